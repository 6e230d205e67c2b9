"""The learning rate against what is usual in the phase of a model's life that the run is."""

from __future__ import annotations

import math

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, inapplicable
from stabtree.frameworks.load import framework
from stabtree.predicates.registry import predicate
from stabtree.predicates.settings.answers import decided, describe, format_value, not_given, number, word
from stabtree.run import Run  # noqa: TC001 - the signature is the declaration

OUTSIDE = "outside"
LORA, FULL, TUNED, PREFERENCE, REINFORCED, PRETRAINED = "lora", "full", "finetune", "preference", "rl", "pretrain"
ADAPTERS = ("lora", "qlora", "dora", "peft")
_PREFERENCE = ("dpo", "ipo", "kto", "orpo", "simpo", "cpo", "preference")
_REINFORCED = ("grpo", "ppo", "rloo", "reinforce", "reinforce_plus_plus", "gspo", "dapo")
_PRETRAINED = ("pretrain", "pretraining", "pt")
_OTHER = ("reward", "rm", "prm")  # fine-tunings with rates of their own
_PHASES = ("adapter", "task", "init_from", "framework")
_PLAIN = ("sgd", "momentum", "asgd", "nesterov")  # optimizers whose step grows with the gradient
_SAYING = ("adapter", "task")  # those of them that a configuration can say
_FROM_SCRATCH = ("", "scratch", "resume")


@predicate(
    source="the documents that a tree names",
    labels=(YES, OUTSIDE, NO),
    rule="in the phase {phase}, lr is not between {low:g} and {high:g}; far off from 10 times either",
)
def rate_unusual(run: Run, *, phase: str, low: float, high: float) -> Answer:
    """Is the learning rate outside of what is usual in a phase?

    The phases are `lora`, `full` (fine-tuning), `finetune` (of either kind), `preference`, `rl` and
    `pretrain`; `outside` up to ten times `high` or a tenth of `low`, and yes beyond.
    """
    known = phase_of(run)
    if not known:
        return not_given(run, *_SAYING)
    if known != phase:
        return inapplicable(f"{describe(run, *_PHASES) or 'the run'}: this is asked of {phase}")
    if word(run, "optimizer") in _PLAIN:
        return inapplicable(f"{describe(run, 'optimizer')}: the ranges are those of Adam")
    rate = number(run, "lr")
    if rate is None:
        return not_given(run, "lr")
    factor = shared.FACTOR_LARGE
    if rate > high * factor or rate < low / factor:
        found = YES
    elif rate > high or rate < low:
        found = OUTSIDE
    else:
        found = NO
    bar = f"the range is {format_value(low)} to {format_value(high)}"
    limit = high if rate > high else low
    return decided(run, ("lr",), bar, found=found, observed=rate, limit=limit if math.isfinite(limit) else None)


def phase_of(run: Run) -> str:
    """Return which phase of a model's life a run is, by its task, its adapter and its trainer; empty if unknown."""
    task, adapter = word(run, "task"), word(run, "adapter")
    if task in _REINFORCED or "num_generations" in run.config:
        return REINFORCED
    if task in _PREFERENCE or ("beta" in run.config and not task):
        return PREFERENCE
    if task in _OTHER:
        return "other"
    if adapter in ADAPTERS:
        return LORA
    defaults = framework(word(run, "framework")).defaults
    begins = word(run, "init_from")
    if task in _PRETRAINED or (defaults.pretrains and begins in _FROM_SCRATCH):
        return PRETRAINED
    if adapter == "full":
        return FULL
    if task == "sft" or (defaults.fine_tunes and begins not in _FROM_SCRATCH):
        return TUNED  # an adapter may be made elsewhere
    return ""
