"""Questions to settings: what is out of its range, or nearly a word that is meant."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, inapplicable
from stabtree.frameworks.load import framework
from stabtree.measures.registry import measure, number
from stabtree.measures.settings import (
    OUTSIDE,
    decided,
    describe,
    format_value,
    not_applicable,
    not_given,
    word,
)

if TYPE_CHECKING:
    from stabtree.run import Run

NEARLY = 0.75  # no limit: of difflib, where 1 is the same word


@measure(
    source="the documents that a tree names",
    labels=(YES, OUTSIDE, NO),
    rule="{key} is not between {low:g} and {high:g}",
)
def setting_outside(
    run: Run, *, key: str, low: float = 0.0, high: float = 1e12, graded: bool = False, where: str = "", being: str = ""
) -> Answer:
    """Is a setting outside of its range?

    With `graded` it is `outside` up to ten times `high` or a tenth of `low`, and yes beyond. A `low` of 0 is no limit.
    """
    refused = not_applicable(run, where, being)
    value = number(run, key)
    if refused or value is None:
        return refused or not_given(run, key)
    found = _outside(value, low if low > 0 else -math.inf, high, shared.FACTOR_LARGE if graded else 1.0)
    limit = high if value > high or low <= 0 else low
    if low > 0:
        bar = f"the range is {format_value(low)} to {format_value(high)}"
    else:
        bar = f"at most {format_value(high)} is usual"
    bar = f"at least {format_value(low)} is usual" if high >= 1e12 else bar
    return decided(run, (key, where), bar, found=found, observed=value, limit=limit)


def _outside(value: float, low: float, high: float, factor: float) -> str:
    if value > high * factor or value < low / factor:
        return YES
    return OUTSIDE if value > high or value < low else NO


@measure(source="the documents that a tree names", rule="{key} is more than {other}, by a twentieth")
def setting_exceeds(run: Run, *, key: str, other: str, where: str = "", being: str = "") -> Answer:
    """Is a setting larger than another one?

    By more than a twentieth: a schedule may be a few steps longer than a run.
    """
    refused = not_applicable(run, where, being)
    value, against = number(run, key), number(run, other)
    if refused or value is None or against is None:
        return refused or not_given(run, key, other)
    limit = (1 + shared.SHARE_SOME) * against
    bar = f"more than {format_value(limit)} is too much"
    return decided(run, (key, other), bar, found=value > limit, observed=value, limit=limit)


@measure(source="the documents that a tree names", rule="{key} is none of {values}, and nearly one of them")
def setting_misspelled(run: Run, *, key: str, values: str) -> Answer:
    """Is a setting nearly one of these values?

    `values` are separated by blanks. What resembles none of them may be a value that they lack, and is no mistake; what
    is made of their words alone is one more of them, as `linear_with_warmup`, and words may be joined in any way.
    """
    if key not in run.config:
        return not_given(run, key)
    known, known_values = word(run, key), values.lower().split()
    close = get_close_matches(known, known_values, 1, NEARLY)
    words = {part for value in known_values for part in (value, *value.split("_"))}
    same = words.issuperset(known.split("_")) or _joined(known) in map(_joined, known_values)
    found = bool(close) and not same
    return decided(run, (key,), f"did you mean {close[0]}?" if found else "", found=found)


def _joined(name: str) -> str:
    """Return a name without what separates its words."""
    return re.sub(r"[\s_-]+", "", name)


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


@measure(
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
    found = _outside(rate, low, high, shared.FACTOR_LARGE)
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
