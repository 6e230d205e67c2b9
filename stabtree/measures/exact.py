"""What rows show by themselves: exact numbers, vanished noise, the time that passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import changes, rows_at_end, stretches_of
from stabtree.common.shared import FARTHEST, ROWS_LONG, ROWS_SHORT, above, below, whether
from stabtree.common.stats import SOME, median, resolution, row_medians
from stabtree.measures.registry import Count, finite, highest, lowest, measure
from stabtree.measures.start import guess, may_be_zero
from stabtree.profile import scatter_of
from stabtree.profile.model import quanta

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


@measure(source="masked labels: every label -100", min_points=5)
def loss_at_zero(
    run: Run, context: Context, loss: Series, *, share: float = shared.SHARE_MOST, fall: float = shared.FACTOR_HUGE
) -> Answer:
    """Is the loss exactly 0 throughout, or from some row on?

    Yes where at least `share` of the rows from the first 0 on are exactly 0, the last one as well, and the loss did not
    come down to it: a smallest value above 0 that is a `fall`-th of the largest says that 0 is a small value rounded.
    """
    steps, values = finite(loss)
    why = may_be_zero(run, context, loss)
    if why:
        return inapplicable(why)
    zero = np.flatnonzero(values == 0)
    low, high = float(values.min(initial=np.inf, where=values > 0)) if len(zero) else lowest(loss), highest(loss)
    text = f"the loss is exactly 0 in {len(zero):,} of {len(values):,} rows"
    text += f"; its other values go from {figure(low)} to {figure(high)}" if high else ""
    at = int(zero[0]) if len(zero) else 0
    seen = len(zero) / (len(values) - at)
    fell = above(low * fall, high) if high else FARTHEST
    ends = whether(bool(values[-1] == 0) and len(zero) >= ROWS_SHORT)
    strength = min(ends, below(1 - seen, 1 - share), fell)
    found = (Evidence(text, "loss", (int(steps[0]), int(steps[-1])), seen, share),)
    good = int(steps[at - 1]) if at else None
    return measured(strength, found, onset_step=int(steps[at]), last_good_step=good)


@measure(source="batches without a label; NaN rows logged as 0 (logging_nan_inf_filter)", min_points=5)
def zero_rows(
    run: Run,
    context: Context,
    loss: Series,
    *,
    near_share: float,
    rows: Count = ROWS_LONG,
    digits: float = shared.FACTOR_HUGE,
    share: float = shared.SHARE_HALF,
) -> Answer:
    """Are single rows of the loss exactly 0, between ordinary ones?

    A row counts where each of the `rows` rows other than 0 on either side is at least `near_share` of their median, and
    that median has `digits` steps of the numbers: then 0 is no small value rounded, nor one that the loss was on its
    way to. At most `share` of the rows may be 0, else it is the level; and as many of the zeros have to count, else
    they are the end of the scatter, as of a loss of margins.
    """
    steps, values = finite(loss)
    why = may_be_zero(run, context, loss)
    if why:
        return inapplicable(why)
    zero = np.flatnonzero(values == 0)
    # What follows the last ordinary row is the end of the loss.
    zero = zero[: len(zero) - rows_at_end(zero, len(values))]
    if not len(zero) or len(zero) > share * len(values):
        text = f"{len(zero):,} of {len(values):,} rows of the loss are exactly 0"
        return Answer(NO, (Evidence(text, "loss", (), len(zero) / len(values), share),), strength=-FARTHEST)
    others, step, strengths = np.flatnonzero(values != 0), scatter_of(loss)[1], [-FARTHEST]
    for at in zero:
        index = int(np.searchsorted(others, at))
        near = values[others[max(0, index - rows) : index + rows]]
        level = median(near)
        strengths.append(min(above(float(near.min()), near_share * level), above(level, digits * step)))
    found = np.array(strengths[1:])
    alone = zero[found >= 0].tolist()
    text = f"the loss is exactly 0 in {len(zero):,} rows, {len(alone):,} of them among ordinary ones"
    text += f", the first at step {int(steps[alone[0]]):,}" if alone else ""
    shown = zero[:ROWS_SHORT] if not alone else np.array(alone[:ROWS_SHORT])
    evidence = (Evidence(text, "loss", tuple(steps[shown].tolist()), len(alone) / len(values), share),)
    most = above(len(alone) / len(zero), share)  # else the loss scatters as far down as 0
    onset = int(shown[0])
    good = int(steps[onset - 1]) if onset else None
    return measured(min(max(strengths), most), evidence, onset_step=int(steps[onset]), last_good_step=good)


@measure(source="stuck loggers and loaders", min_points=5)
def loss_repeats(
    context: Context,
    loss: Series,
    *,
    rows: Count,
    values_most: Count,
    digits: float = shared.FACTOR_HUGE,
    plain: float = shared.SHARE_HALF,
) -> Answer:
    """Is the loss exactly the same number in many rows?

    Yes where one value other than 0 fills `rows` neighbouring rows or more, or the whole log holds at most
    `values_most` different values, one only where it is short. Each must have `digits` steps of the numbers, as they
    were printed or stored, so that rounding does not make different losses equal; a log of one single value needs no
    more than to be `plain` or above, since no loss that is trained stays within a rounding of so large a number.
    """
    steps, values = finite(loss)
    same = changes(values, np.equal)
    most = values_most if len(values) >= ROWS_LONG else 1
    # In nearly every log a few rows show that there are more.
    different = np.unique(values).tolist() if len(set(values[:SOME].tolist())) <= most else []
    begins, lengths = stretches_of(same[values[same] != 0])
    longest = int(np.argmax(lengths)) if len(lengths) else 0
    begin, end = (int(begins[longest]), int(begins[longest] + lengths[longest])) if len(lengths) else (1, 1)
    if 0 < len(different) <= most and end - begin + 1 < rows:
        return _few_values(context, loss, different, digits, plain)
    count, value = end - begin + 1, float(values[begin - 1])
    text = f"the longest stretch of one value is {count:,} rows of {figure(value, 6)}, from step "
    text += f"{int(steps[begin - 1]):,} (limit {rows:,})"
    one = f"{guess(value, context.classes.value) or figure(value, 6)} in {count:,} rows"
    span = (int(steps[begin - 1]), int(steps[end - 1]))
    found = (Evidence(text, "loss", span, float(count), float(rows), one),)
    good = int(steps[begin - 2]) if begin > 1 else None
    strength = above(count, rows)
    if strength >= -1:  # the digits take a while in a long log
        strength = min(strength, above(abs(value), digits * _step_of(values)))
    return measured(strength, found, onset_step=span[0], last_good_step=good)


def _few_values(context: Context, loss: Series, different: list[float], digits: float, plain: float) -> Answer:
    steps, values = finite(loss)
    listed = ", ".join(f"{figure(value, 6)}" for value in different)
    text = f"all {len(values):,} rows of the loss hold {len(different)} different value"
    text += f"{'s' if len(different) > 1 else ''}: {listed}"
    single = len(different) == 1
    one = f"{guess(different[0], context.classes.value) or figure(different[0], 6)} in {len(values):,} rows"
    span = (int(steps[0]), int(steps[-1]))
    step = _step_of(values)
    smallest = min(abs(value) for value in different)
    strength = above(smallest, digits * step) if 0 < step < 1 else -FARTHEST
    if single:
        strength = max(strength, above(smallest, plain))
    found = (Evidence(text, "loss", span, float(len(different)), None, one if single else ""),)
    return measured(strength, found, onset_step=span[0])


def _step_of(values: Floats) -> float:
    """Return the last digit that was printed, or the step of the float that was stored; 0 where neither is seen."""
    return max(resolution(values), float(quanta(values[None])[0]))


@measure(source="measured: one batch over and over from a step on")
def noise_vanishes(run: Run, loss: Series, context: Context, *, rises_before: float) -> Answer:
    """Does the loss fall from a row on without rising, though its rows rose and fell before?

    Batches differ, so that the loss of a run that learns rises from row to row almost as often as it falls. Yes where
    at most a twentieth of the changes from a row to the end are rises, over 20 rows or more, while it falls to a third
    of its lowest before, and at least `rises_before` of those before it, of 20 or more. Not asked of a loss
    that moves by nature or may be 0.
    """
    steps, values = finite(loss)
    why = context.restless or may_be_zero(run, context, loss)
    if why:
        return inapplicable(why)
    count = len(values) - 1
    if count < 2 * ROWS_LONG:
        return unknown(f"the loss has {len(values):,} finite rows, {2 * ROWS_LONG + 1} are needed", "loss")
    rises = np.diff(values) > 0
    # The change after which the shares of rises differ most from the middle of both limits.
    at = int(np.argmax(np.cumsum(rises - (rises_before + shared.SHARE_SOME) / 2))) + 1
    if not ROWS_LONG <= at <= count - ROWS_LONG:
        text = f"{rises.mean():.0%} of the changes of the loss are rises, without a row from which on fewer are"
        return Answer(NO, (Evidence(text, "loss", (int(steps[0]), int(steps[-1]))),))
    before, after = float(rises[:at].mean()), float(rises[at:].mean())
    began, ended = float(values[:at].min()), float(values[-1])  # what comes down from a spike only comes back
    text = f"up to step {int(steps[at]):,} {before:.0%} of the changes of the loss are rises, after it {after:.0%}, "
    text += f"while it falls from {figure(began)}, its lowest so far, to {figure(ended)}"
    found = Evidence(text, "loss", (int(steps[at]), int(steps[-1])), before, rises_before)
    calm = below(after, shared.SHARE_SOME)
    strength = min(above(before, rises_before), calm, above(began, shared.FACTOR * ended))
    return measured(strength, (found,), onset_step=int(steps[at + 1]), last_good_step=int(steps[at]))


HOUR = 3600.0  # no limit: seconds


@measure(source="measured: the pauses of healthy runs", min_points=12)
def stalled(
    run: Run,
    wall_time: Series,
    *,
    hours: float,
    factor: float = shared.FACTOR_LARGE,
    usual_factor: float = shared.FACTOR_HUGE,
) -> Answer:
    """Does the run pause once, far longer than at any other time?

    Yes where the clock goes on by `hours` between two rows, by `factor` times as much as between any other two, and by
    `usual_factor` times the median: pauses of evaluations and checkpoints come again. Where the run was resumed, a
    pause is no stall; and a clock that counts from the start of the process does not see it.
    """
    steps, values = finite(wall_time)
    passed = np.diff(values)
    for resume in run.resumes:
        passed[(steps[:-1] < resume.to_step) & (steps[1:] >= resume.to_step)] = 0
    at = int(np.argmax(passed))
    longest, others = float(passed[at]), np.delete(passed, at)
    second, usual = float(others.max()), float(row_medians(others))
    step, after = int(steps[at]), int(steps[at + 1])
    text = f"the longest pause is {against(longest / HOUR, hours)} hours, between steps {step:,} and {after:,} "
    text += f"(limit {hours:g}); the next longest took {figure(max(second, 0.0) / HOUR)} hours, "
    text += f"{figure(max(usual, 0.0))} s are usual"
    text += "; resumes are not counted" if run.resumes else ""
    found = (Evidence(text, "wall_time", (step, after), longest / HOUR, hours),)
    limits = (hours * HOUR, factor * max(second, 0.0), usual_factor * max(usual, 0.0))
    strength = min(above(longest, limit) for limit in limits)
    return measured(strength, found, onset_step=step, last_good_step=step)
