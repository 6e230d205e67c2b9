"""How the rate, the optimizer and the batches are planned: warm-up, averages, formats, products."""

from __future__ import annotations

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, inapplicable
from stabtree.predicates.registry import predicate
from stabtree.predicates.settings.answers import (
    decided,
    describe,
    format_value,
    is_default,
    not_applicable,
    not_given,
    number,
    word,
)
from stabtree.run import Run  # noqa: TC001 - the signature is the declaration

ADAM = "*adam*"
GENTLE, ABOVE_ZERO, UNSAID = "gentle", "above-zero", "unsaid"
BATCH = ("batch_size", "micro_batch_size", "accumulation_steps", "world_size")


@predicate(
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
    if refused or (steps is None and share is None):
        return refused or not_given(run, "warmup_steps")
    longest = max(steps or 0.0, share or 0.0)
    keys = ("warmup_steps", "warmup_ratio", "optimizer")
    rate = number(run, "lr")
    if longest > 0:
        found = NO
    elif (rate is not None and rate < gentle_lr) or is_default(run, "warmup_steps"):
        found = GENTLE
    else:
        found = YES
    return decided(run, (*keys, "lr"), "a warm-up above 0 is needed", found=found, observed=longest, limit=0.0)


@predicate(source="precision P12", rule="the warm-up takes more than {share:.0%} of the run")
def warms_up_beyond(run: Run, *, share: float = shared.SHARE_MOST) -> Answer:
    """Does the warm-up take a larger share of the run than this?"""
    known = _warmup_share(run)
    if known is None:
        return not_given(run, "warmup_steps", "max_steps")
    keys = ("warmup_steps", "warmup_ratio", "max_steps")
    bar = f"{known:.3g} of the run; more than {share:g} is too much"
    return decided(run, keys, bar, found=known > share, observed=known, limit=share)


@predicate(source="precision P12", rule="a warm-up below {share:.0%} of the run, and below {enough_steps} steps")
def warms_up_briefly(run: Run, *, share: float, enough_steps: int = shared.ROWS_LONG) -> Answer:
    """Is the warm-up a smaller share of the run than this, and short?"""
    refused = not_applicable(run, "optimizer", ADAM)
    known, total = _warmup_share(run), number(run, "max_steps")
    if refused or known is None or total is None:
        return refused or not_given(run, "warmup_steps", "max_steps")
    steps = known * total
    keys = ("warmup_steps", "warmup_ratio", "max_steps")
    bar = f"{known:.2g} of the run; {share:g}, or {enough_steps} steps, is enough"
    found = 0 < known < share and steps < enough_steps
    return decided(run, keys, bar, found=found, observed=known, limit=share)


def _warmup_share(run: Run) -> float | None:
    """Return the share of the run that its warm-up takes; given steps take precedence over a share, as in trainers."""
    steps, share, total = number(run, "warmup_steps"), number(run, "warmup_ratio"), number(run, "max_steps")
    if steps and total:
        return steps / total
    if steps or (steps is None and share is None):
        return None
    return share or 0.0


@predicate(
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
    if total <= limit:
        found = NO
    elif lowest and lowest > 0 and steps >= shared.SHARE_HALF * total:
        found = ABOVE_ZERO
    else:
        found = YES
    bar = f"more than {format_value(limit)} is too much"
    return decided(run, keys, bar, found=found, observed=total, limit=limit)


@predicate(
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
        found = YES if word(run, "dtype") == "fp16" else UNSAID
    return decided(run, keys, "", found=found, observed=limit)


@predicate(source="convergence O10", rule="1 / (1 - beta2) steps are more than the run has")
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


@predicate(source="convergence O10", rule="epsilon below {fp16:g} where the optimizer works in fp16")
def epsilon_vanishes(run: Run, *, fp16: float) -> Answer:
    """Does epsilon round to 0 in the format that the optimizer works in?

    The format is that of the optimizer's state, or of all where weights are in half precision, too. bf16 has the range
    of fp32: no usual epsilon is 0 in it.
    """
    key = "optimizer_state_dtype"
    if key not in run.config:
        pure = run.setting("mixed") is False and "dtype" in run.config
        if not pure:
            return not_given(run, *(["epsilon"] if "epsilon" not in run.config else []), key)
        key = "dtype"
    form, value = word(run, key), number(run, "epsilon")
    if form != "fp16":
        return decided(run, (key,), "wide enough for any epsilon", found=False)
    if value is None:
        return not_given(run, "epsilon")
    bar = f"{form} takes {format_value(fp16)} or more"
    return decided(run, ("epsilon", key), bar, found=value < fp16, observed=value, limit=fp16)


@predicate(source="axolotl, loss spikes", rule="micro batch × accumulation × processes is not the batch that is said")
def batch_differs(run: Run) -> Answer:
    """Is the batch size that is said another than its parts make?"""
    stated, micro, steps, world = (number(run, key) for key in BATCH)
    if stated is None or micro is None or steps is None or world is None:
        return not_given(run, *BATCH)
    made = micro * steps * world
    bar = f"{micro:g} × {steps:g} × {world:g} = {made:g}"
    return decided(run, BATCH, bar, found=made != stated, observed=stated, limit=made)


@predicate(
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
