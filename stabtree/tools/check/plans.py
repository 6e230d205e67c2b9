"""Questions to settings: what is out of its range, what they plan for the rates, and what will be logged and saved."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, inapplicable
from stabtree.common.stats import LARGEST
from stabtree.frameworks.load import framework
from stabtree.measures.registry import Count, measure, number
from stabtree.measures.settings import (
    OUTSIDE,
    decided,
    describe,
    format_value,
    is_default,
    not_applicable,
    not_given,
    word,
)

if TYPE_CHECKING:
    from stabtree.run import Run

_JOINTS = re.compile(r"[\s_-]+")  # between the words of a name
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
    bar, limit = f"the range is {format_value(low)} to {format_value(high)}", low
    if high >= 1e12:
        bar = f"at least {format_value(low)} is usual"
    elif low <= 0:
        low, bar = -math.inf, f"at most {format_value(high)} is usual"
    if value > high or low < 0:
        limit = high
    found = _outside(value, low, high, shared.FACTOR_LARGE if graded else 1.0)
    return decided(run, (key, where), bar, found=found, observed=value, limit=limit)


def _outside(value: float, low: float, high: float, factor: float) -> str:
    if low <= value <= high:
        return NO
    if low / factor <= value <= high * factor:
        return OUTSIDE
    return YES


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
    words = {*known_values, *"_".join(known_values).split("_")}
    same = words.issuperset(known.split("_")) or _JOINTS.sub("", known) in [
        _JOINTS.sub("", value) for value in known_values
    ]
    found = bool(close) and not same
    return decided(run, (key,), f"did you mean {close[0]}?" if found else "", found=found)


LORA, FULL, TUNED, PREFERENCE, REINFORCED, PRETRAINED = "lora", "full", "finetune", "preference", "rl", "pretrain"
ADAPTERS = ("lora", "qlora", "dora", "peft")
_BY_TASK = {
    **dict.fromkeys(("dpo", "ipo", "kto", "orpo", "simpo", "cpo", "preference"), PREFERENCE),
    **dict.fromkeys(("grpo", "ppo", "rloo", "reinforce", "reinforce_plus_plus", "gspo", "dapo"), REINFORCED),
    **dict.fromkeys(("reward", "rm", "prm"), "other"),  # fine-tunings with rates of their own
}
_PRETRAINED = ("pretrain", "pretraining", "pt")
_PHASES = ("adapter", "task", "init_from", "framework")
_PLAIN = ("sgd", "momentum", "asgd", "nesterov")  # optimizers whose step grows with the gradient
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
        return not_given(run, "adapter", "task")
    if known != phase:
        return inapplicable(f"{describe(run, *_PHASES) or 'the run'}: this is asked of {phase}")
    if word(run, "optimizer") in _PLAIN:
        return inapplicable(f"{describe(run, 'optimizer')}: the ranges are those of Adam")
    rate = number(run, "lr")
    if rate is None:
        return not_given(run, "lr")
    found, limit = _outside(rate, low, high, shared.FACTOR_LARGE), low
    if rate > high:
        limit = high
    bar = f"the range is {format_value(low)} to {format_value(high)}"
    return decided(run, ("lr",), bar, found=found, observed=rate, limit=limit)


def phase_of(run: Run) -> str:
    """Return which phase of a model's life a run is, by its task, its adapter and its trainer; empty if unknown."""
    task, adapter = word(run, "task"), word(run, "adapter")
    if "num_generations" in run.config:
        return REINFORCED
    if "beta" in run.config and not task:
        return PREFERENCE
    if task in _BY_TASK:
        return _BY_TASK[task]
    if adapter in ADAPTERS:
        return LORA
    defaults, begins = framework(word(run, "framework")).defaults, word(run, "init_from")
    if task in _PRETRAINED or (defaults.pretrains and begins in _FROM_SCRATCH):
        return PRETRAINED
    if adapter == "full":
        return FULL
    if task == "sft" or (defaults.fine_tunes and begins not in _FROM_SCRATCH):
        return TUNED  # an adapter may be made elsewhere
    return ""


ADAM = "*adam*"
GENTLE, ABOVE_ZERO, UNSAID = "gentle", "above-zero", "unsaid"
WARMUP = ("warmup_steps", "warmup_ratio", "max_steps")
BATCH = ("batch_size", "micro_batch_size", "accumulation_steps", "world_size")


@measure(
    source="precision P12",
    labels=(YES, GENTLE, NO),
    rule="the optimizer is of the Adam family, and its rate begins at its peak; gentle below {gentle_lr:g}",
)
def starts_at_peak(run: Run, *, gentle_lr: float) -> Answer:
    """Does Adam begin at its peak rate, with no warm-up?

    `gentle` where the rate is below what fine-tunings warm up to, or where none was chosen: it is the default.
    """
    refused = not_applicable(run, "optimizer", ADAM)
    steps, share = number(run, "warmup_steps"), number(run, "warmup_ratio")
    if refused or {steps, share} == {None}:
        return refused or not_given(run, "warmup_steps")
    longest = max(steps or 0.0, share or 0.0)
    keys, rate = ("warmup_steps", "warmup_ratio", "optimizer", "lr"), number(run, "lr")
    found = YES
    if longest > 0:
        found = NO
    elif (rate is not None and rate < gentle_lr) or is_default(run, "warmup_steps"):
        found = GENTLE
    return decided(run, keys, "a warm-up above 0 is needed", found=found, observed=longest, limit=0.0)


@measure(source="precision P12", rule="the warm-up takes more than {share:.0%} of the run")
def warms_up_beyond(run: Run, *, share: float = shared.SHARE_MOST) -> Answer:
    """Does the warm-up take a larger share of the run than this?"""
    known = _warmup_share(run)
    if known is None:
        return not_given(run, "warmup_steps", "max_steps")
    bar = f"{known:.3g} of the run; more than {share:g} is too much"
    return decided(run, WARMUP, bar, found=known > share, observed=known, limit=share)


@measure(source="precision P12", rule="a warm-up below {share:.0%} of the run, and below {enough_steps} steps")
def warms_up_briefly(run: Run, *, share: float, enough_steps: int = shared.ROWS_LONG) -> Answer:
    """Is the warm-up a smaller share of the run than this, and short?"""
    refused = not_applicable(run, "optimizer", ADAM)
    known, total = _warmup_share(run), number(run, "max_steps")
    if refused or known is None or total is None:
        return refused or not_given(run, "warmup_steps", "max_steps")
    steps = known * total
    bar = f"{known:.2g} of the run; {share:g}, or {enough_steps} steps, is enough"
    return decided(run, WARMUP, bar, found=0 < known < share and steps < enough_steps, observed=known, limit=share)


def _warmup_share(run: Run) -> float | None:
    """Return the share of the run that its warm-up takes; given steps take precedence over a share, as in trainers."""
    steps, share, total = (number(run, key) for key in WARMUP)
    if steps and total:
        return steps / total
    if steps or (steps is None and share is None):
        return None
    return share or 0.0


@measure(
    source="convergence O8",
    labels=(YES, ABOVE_ZERO, NO),
    rule="max_steps is more than schedule_steps, by a twentieth; above-zero where min_lr is",
)
def outlasts_schedule(run: Run) -> Answer:
    """Does the run go on after the schedule of its rate?

    `above-zero` where the schedule covers most of the run and ends at a rate above 0, which trains on.
    """
    keys = ("max_steps", "schedule_steps", "min_lr")
    total, steps, lowest = (number(run, key) for key in keys)
    if total is None or steps is None:
        return not_given(run, *keys[:2])
    limit = (1 + shared.SHARE_SOME) * steps
    found = YES
    if total <= limit:
        found = NO
    elif lowest and lowest > 0 and steps >= shared.SHARE_HALF * total:
        found = ABOVE_ZERO
    bar = f"more than {format_value(limit)} is too much"
    return decided(run, keys, bar, found=found, observed=total, limit=limit)


@measure(
    source="precision P13", labels=(YES, UNSAID, NO), rule="grad_clip is 0 or -1; unsaid where that is the default"
)
def not_clipped(run: Run) -> Answer:
    """Is the gradient not clipped?

    `unsaid` where nobody chose so and the trainer's default is none, but in fp16, whose overflows need it.
    """
    limit = number(run, "grad_clip")
    if limit is None:
        return not_given(run, "grad_clip")
    keys: tuple[str, ...] = ("grad_clip",)
    if limit not in (0.0, -1.0):
        return decided(run, keys, "looked for: 0 -1", found=NO, observed=limit)
    found = YES
    if is_default(run, "grad_clip"):
        keys = ("grad_clip", "dtype")
        if word(run, "dtype") != "fp16":
            found = UNSAID
    return decided(run, keys, "", found=found, observed=limit)


@measure(source="convergence O10", rule="1 / (1 - beta2) steps are more than the run has")
def averages_too_slowly(run: Run) -> Answer:
    """Is the run shorter than the time over which Adam averages squared gradients?"""
    refused = not_applicable(run, "optimizer", ADAM)
    beta, total = number(run, "beta2"), number(run, "max_steps")
    if refused or beta is None or total is None:
        return refused or not_given(run, "beta2", "max_steps")
    if not 0 <= beta < 1:
        return inapplicable(f"{describe(run, 'beta2')} is no average")
    span = 1 / (1 - beta)
    bar = f"squared gradients are averaged over {span:.4g} steps"
    return decided(run, ("beta2", "max_steps"), bar, found=span > total, observed=span, limit=total)


@measure(source="convergence O10", rule="epsilon below {fp16:g} where the optimizer works in fp16")
def epsilon_vanishes(run: Run, *, fp16: float) -> Answer:
    """Does epsilon round to 0 in the format that the optimizer works in?

    The format is that of the optimizer's state, or of all where weights are in half precision, too. bf16 has the range
    of fp32: no usual epsilon is 0 in it.
    """
    key = "optimizer_state_dtype"
    if key not in run.config:
        if run.setting("mixed") is not False or "dtype" not in run.config:
            return not_given(run, *{"epsilon"}.difference(run.config), key)
        key = "dtype"
    form, value = word(run, key), number(run, "epsilon")
    if form != "fp16":
        return decided(run, (key,), "wide enough for any epsilon", found=False)
    if value is None:
        return not_given(run, "epsilon")
    bar = f"{form} takes {format_value(fp16)} or more"
    return decided(run, ("epsilon", key), bar, found=value < fp16, observed=value, limit=fp16)


@measure(source="axolotl, loss spikes", rule="micro batch × accumulation × processes is not the batch that is said")
def batch_differs(run: Run) -> Answer:
    """Is the batch size that is said another than its parts make?"""
    stated, micro, steps, world = (number(run, key) for key in BATCH)
    if stated is None or micro is None or steps is None or world is None:
        return not_given(run, *BATCH)
    made = micro * steps * world
    return decided(
        run, BATCH, f"{micro:g} × {steps:g} × {world:g} = {made:g}", found=made != stated, observed=stated, limit=made
    )


@measure(
    source="axolotl, common errors", rule="the answers of a batch can't be shared out in groups of num_generations"
)
def groups_split(run: Run) -> Answer:
    """Is the batch of answers no multiple of the answers a prompt gets?

    Without the number of processes only a yes of theirs is open: what one process holds may divide by itself.
    """
    refused = not_applicable(run, "task", "grpo")
    if refused:
        return refused
    group, micro = number(run, "num_generations"), number(run, "micro_batch_size")
    steps, world = number(run, "accumulation_steps"), number(run, "world_size")
    keys = ("num_generations", "micro_batch_size", "accumulation_steps", "world_size")
    if not group or micro is None or steps is None:
        return not_given(run, *keys[:3])
    made = micro * steps * (world or 1)
    if made % group and world is None:
        return not_given(run, *keys)
    bar = f"{made:g} answers a step in groups of {group:g}"
    return decided(run, keys, bar, found=bool(made % group), observed=made, limit=group)


OFF, BY_STEPS = "no", ("", "steps")
FEW, ONCE = "few", "once"
REWARDED = ("grpo", "ppo")
SAVES = ("save_strategy", "checkpoint_every", "max_steps")
LOGS = ("log_strategy", "log_interval", "max_steps")
_BEST = ("huggingface", "trl", "llamafactory", "axolotl")  # they refuse a best that is saved and not evaluated


@measure(source="axolotl, key metrics for SFT", labels=(YES, ONCE, NO), rule="no evaluation before the run ends")
def eval_never(run: Run) -> Answer:
    """Will the run end without an evaluation?

    `once` unless samples are known to come again: the training loss of new ones shows nearly as much. So it is where
    nobody chose it, and it is the trainer's default.
    """
    if number(run, "num_generations") or word(run, "task") in REWARDED:
        return inapplicable("its reward shows how it does")
    how, every, total = word(run, "eval_strategy"), number(run, "eval_every"), number(run, "max_steps")
    if not how and every is None:
        return not_given(run, "eval_strategy")
    late = how in BY_STEPS and every is not None and total is not None and every > total
    epochs = number(run, "epochs")
    found = YES if how == OFF or late else NO
    if found == YES and (epochs is None or epochs <= 1 or is_default(run, "eval_strategy")):
        found = ONCE
    keys = ("eval_strategy", *(("eval_every", "max_steps") if how != OFF else ()), "epochs")
    return decided(run, keys, "", found=found)


@measure(source="Phase-19 Q2.4", rule="no checkpoint before the run ends, and more than {usual_steps} steps")
def saves_never(run: Run, *, usual_steps: int) -> Answer:
    """Will there be no checkpoint before the run ends?

    A run that is no longer than `usual_steps` loses no more than is usual.
    """
    how, every, total = word(run, SAVES[0]), number(run, SAVES[1]), number(run, SAVES[2])
    if total is not None and total <= usual_steps:
        bar = f"up to {usual_steps} steps between checkpoints are usual"
        return decided(run, SAVES, bar, found=False, observed=total, limit=float(usual_steps))
    if how == OFF:
        return decided(run, SAVES[:1], "", found=True)
    if how not in BY_STEPS:
        return decided(run, SAVES[:1], "", found=False)
    if every is None or total is None:
        return not_given(run, *SAVES[1:])
    # What nobody chose is saved at the end as well.
    chosen = not is_default(run, "checkpoint_every")
    return decided(run, SAVES, "", found=chosen and every >= total, observed=every, limit=total)


@measure(source="Phase-19 Q2.4", rule="more than {usual_steps} steps between checkpoints, and {share:.0%} of the run")
def saves_rarely(run: Run, *, usual_steps: int, share: float) -> Answer:
    """Are the checkpoints far apart?"""
    how, every, total = word(run, SAVES[0]), number(run, SAVES[1]), number(run, SAVES[2])
    if how not in BY_STEPS:
        return inapplicable(f"{describe(run, SAVES[0])}: not by steps")
    if every is None or (every > usual_steps and total is None):
        return not_given(run, *SAVES[1:])
    if total is not None and every >= total:
        return decided(run, SAVES, "there is none", found=False)
    limit = max(float(usual_steps), share * (total or 0.0))
    return decided(
        run, SAVES, f"up to {limit:g} steps apart is usual", found=every > limit, observed=every, limit=limit
    )


@measure(
    source="Phase-19 Q4.1; NaN detection, rollback",
    labels=(YES, FEW, NO),
    rule="only the newest is kept, or those kept span fewer than {fault_steps} steps, in a run of more",
)
def keeps_too_few(run: Run, *, fault_steps: int) -> Answer:
    """Will all checkpoints that are kept be younger than a fault is when it shows?

    The oldest of n is at least n - 1 intervals old. A best one that is kept besides is older. `few` where there is an
    older one at all, be it in the history of a hub.
    """
    keys = ("save_total_limit", "checkpoint_every", "load_best", "max_steps", "push_to_hub")
    kept, every, total = number(run, keys[0]), number(run, keys[1]), number(run, keys[3])
    how = word(run, "save_strategy")
    if kept is None:
        return not_given(run, keys[0])
    if how == OFF or kept <= 0:
        return inapplicable(f"{describe(run, 'save_strategy', keys[0])}: none is dropped")
    if run.setting("load_best") is True:
        return decided(run, keys[:3], "the best one is kept besides", found=False)
    if total is not None and total <= fault_steps:
        bar = f"the run is over before a slow fault shows, which takes {fault_steps} steps"
        return decided(run, (keys[0], keys[3]), bar, found=False, observed=total, limit=float(fault_steps))
    if kept > 1 and (every is None or how not in BY_STEPS):
        if every is None:
            return not_given(run, "checkpoint_every")
        return inapplicable(f"{describe(run, 'save_strategy')}")
    span = (kept - 1) * (every or 0.0)
    dropped = total is None or every is None or kept * every < total
    kept_is = f"the oldest kept is {span:g} steps old or more" if kept > 1 else "only one is kept"
    bar = f"{kept_is}; a slow fault takes {fault_steps} steps to show"
    # Where a metric is watched, these are the best ones, which may be of any age.
    best = run.config[keys[0]].spelled.endswith("save_top_k")
    found = YES
    if not dropped or span >= fault_steps:
        found = NO
    elif kept > 1 or best or run.setting("push_to_hub") is True:
        found = FEW
    return decided(run, keys, bar, found=found, observed=span, limit=float(fault_steps))


@measure(
    source="Hugging Face Trainer",
    rule="load_best is true, and save_strategy is not eval_strategy, or checkpoint_every no multiple of eval_every",
)
def best_mismatched(run: Run) -> Answer:
    """Is the best checkpoint to be loaded, and saved at other times than the run is evaluated?"""
    if run.setting("load_best") is not True or word(run, "framework") not in _BEST:
        return inapplicable("no trainer that compares the two loads the best")
    evaluated, saved = word(run, "eval_strategy"), word(run, "save_strategy")
    if OFF in (evaluated, saved) or saved == "best":
        return inapplicable(f"{describe(run, 'eval_strategy', 'save_strategy')}: there is nothing to compare")
    if not evaluated or not saved:
        return not_given(run, *(key for key in ("eval_strategy", "save_strategy") if key not in run.config))
    if evaluated != saved:
        return decided(run, ("eval_strategy", "save_strategy"), "they must be the same", found=True)
    every, kept = number(run, "eval_every"), number(run, "checkpoint_every")
    if evaluated != "steps" or not every or not kept:
        return decided(run, ("eval_strategy", "save_strategy"), "", found=False)
    bar = "the second must be a multiple of the first"
    return decided(run, ("eval_every", "checkpoint_every"), bar, found=bool(kept % every), observed=kept, limit=every)


@measure(
    source="stabtree: the rows that show a lasting state",
    labels=(YES, FEW, NO),
    rule="no row at all, or fewer than {rows} rows",
)
def logs_too_little(run: Run, *, rows: Count = shared.ROWS_LONG) -> Answer:
    """Will the log have too few rows to judge the run by?

    Yes where it has none; `few` below `rows` ones, unless every step is logged, and where nobody chose the interval.
    """
    how, every, total = word(run, LOGS[0]), number(run, LOGS[1]), number(run, LOGS[2])
    if how == OFF:
        return decided(run, LOGS[:1], "nothing is logged", found=True)
    refused = _not_by_steps(run)
    if refused or not every or total is None:
        return refused or not_given(run, *LOGS[1:])
    count = min(total // every, LARGEST)
    found = NO
    if count < 1 and not is_default(run, LOGS[1]):
        found = YES
    elif count < rows and every > 1:
        found = FEW
    bar = f"{count:g} rows; a lasting state takes {rows}"
    return decided(run, LOGS, bar, found=found, observed=count, limit=float(rows))


@measure(source="Phase-19 Q2.1 and Q2.2", rule="more than {recovery_steps} steps between rows")
def logs_too_rarely(run: Run, *, recovery_steps: int) -> Answer:
    """Are the rows of the log so far apart that a spike may be over before the next one?"""
    every, refused = number(run, LOGS[1]), _not_by_steps(run)
    if refused or every is None:
        return refused or not_given(run, LOGS[1])
    bar, limit = f"a spike is over within {recovery_steps} steps", float(recovery_steps)
    return decided(run, LOGS[:2], bar, found=every > limit, observed=every, limit=limit)


def _not_by_steps(run: Run) -> Answer | None:
    """Return why the number of steps between two log rows is not known; None where it may be."""
    if word(run, LOGS[0]) not in BY_STEPS:
        return inapplicable(f"{describe(run, LOGS[0])}: not by steps")
    if LOGS[1] in run.config and "steps_per_print" in run.config[LOGS[1]].source:
        return inapplicable(f"{describe(run, LOGS[1])}: how often DeepSpeed prints, not what the trainer logs")
    return None
