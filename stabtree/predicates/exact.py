"""What rows show by themselves: exact numbers, a sudden fall, vanished noise, seams, the time that passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import changes, rows_at_end, rows_before, rows_upto, stretches_of
from stabtree.common.shared import ROWS_LONG, ROWS_SHORT
from stabtree.common.stats import NEARLY_ZERO, SOME, median, resolution, row_medians, span, windows
from stabtree.common.strength import FARTHEST, above, below, strongest, weakest, whether
from stabtree.facts.registry import finite, highest, lowest
from stabtree.predicates.drift import first_level
from stabtree.predicates.registry import Count, predicate
from stabtree.predicates.start import guess, may_be_zero
from stabtree.profile import scatter_of
from stabtree.profile.model import quanta

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


@predicate(source="masked labels: every label -100", min_points=5)
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
    strength = weakest(ends, below(1 - seen, 1 - share), fell)
    found = (Evidence(text, "loss", (int(steps[0]), int(steps[-1])), seen, share),)
    good = int(steps[at - 1]) if at else None
    return measured(strength, found, onset_step=int(steps[at]), last_good_step=good)


@predicate(source="batches without a label; NaN rows logged as 0 (logging_nan_inf_filter)", min_points=5)
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
        strengths.append(weakest(above(float(near.min()), near_share * level), above(level, digits * step)))
    found = np.array(strengths[1:])
    alone = zero[found >= 0].tolist()
    text = f"the loss is exactly 0 in {len(zero):,} rows, {len(alone):,} of them among ordinary ones"
    text += f", the first at step {int(steps[alone[0]]):,}" if alone else ""
    shown = zero[:ROWS_SHORT] if not alone else np.array(alone[:ROWS_SHORT])
    evidence = (Evidence(text, "loss", tuple(steps[shown].tolist()), len(alone) / len(values), share),)
    most = above(len(alone) / len(zero), share)  # else the loss scatters as far down as 0
    onset = int(shown[0])
    good = int(steps[onset - 1]) if onset else None
    return measured(weakest(max(strengths), most), evidence, onset_step=int(steps[onset]), last_good_step=good)


@predicate(source="stuck loggers and loaders", min_points=5)
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
        strength = weakest(strength, above(abs(value), digits * _step_of(values)))
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
        strength = strongest(strength, above(smallest, plain))
    return measured(
        strength,
        (Evidence(text, "loss", span, float(len(different)), None, one if single else ""),),
        onset_step=span[0],
    )


def _step_of(values: Floats) -> float:
    """Return the last digit that was printed, or the step of the float that was stored; 0 where neither is seen."""
    return max(resolution(values), float(quanta(values[None])[0]))


@predicate(source="measured: one batch over and over from a step on")
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
    strength = weakest(above(before, rises_before), calm, above(began, shared.FACTOR * ended))
    return measured(strength, (found,), onset_step=int(steps[at + 1]), last_good_step=int(steps[at]))


@predicate(source="measured: a batch that is drawn again and again", min_points=12)
def loss_collapses(
    run: Run,
    loss: Series,
    context: Context,
    lr: Series | None = None,
    *,
    factor: float,
    rows: Count,
    within_rows: Count,
    settled_rows: Count,
    settled_share: float,
    above_first: float,
    lr_factor: float,
    thrown: float,
) -> Answer:
    """Does a loss that had settled fall to almost 0 within a few rows?

    Yes where `rows` neighbouring rows lie below a `factor`-th of the lowest of `settled_rows` rows that end at most
    `within_rows` rows before. These have settled where the medians of their halves differ by less than `settled_share`,
    none lies below half of their median, and that is at most `above_first` times the first level (for `thrown` see
    `first_level`): what comes down from a spike only comes back. A rate that changes by `lr_factor` in between may
    explain it. Not asked of exact zeros, nor of a loss that moves by nature or may be 0.
    """
    steps, values = finite(loss)
    why = context.restless or may_be_zero(run, context, loss)
    rows, within_rows, settled_rows = max(rows, 1), max(within_rows, 1), max(settled_rows, 2)
    if why:
        return inapplicable(why)
    if len(values) < settled_rows + rows:
        return unknown(f"the loss has {len(values):,} finite rows, {settled_rows + rows} are needed")
    after, falls = _falls(values, settled_rows, within_rows, rows)
    at, far = int(np.argmax(falls)), np.flatnonzero(falls > factor)
    before = windows(values, settled_rows)[far]
    middle, half = row_medians(before), settled_rows // 2
    begin, last = row_medians(before[:, :half]), row_medians(before[:, half:])
    calm = (np.abs(begin - last) < settled_share * np.minimum(begin, last)) & (before.min(axis=1) > middle / 2)
    calm &= middle <= above_first * first_level(values, thrown)
    if len(far) and not calm.any():
        text = f"the loss falls {factor:g}× and more within {within_rows} rows, but not from {settled_rows} level ones"
        return Answer(NO, (Evidence(text, "loss", (int(steps[far[0]]),)),))
    if len(far):
        at = int(far[calm][np.argmax(falls[far][calm])])
    low, first = float(values[at : at + settled_rows].min()), at + int(np.argmin(after[at : at + within_rows]))
    end, most = settled_rows + first, min(float(falls[at]), 1e300)
    text = f"the loss falls {against(most, factor)}× at once (limit {factor:g}×): {figure(low)} or above up to step "
    text += f"{int(steps[at + settled_rows - 1]):,}, {figure(after[first])} or below from step "
    text += f"{int(steps[end]):,} on"
    found = [Evidence(text, "loss", (int(steps[at + settled_rows]), int(steps[end])), most, factor)]
    at_rate, rates = finite(lr) if lr is not None else (steps[:0], values[:0])
    rates = rates[rows_before(at_rate, steps[at]) : rows_upto(at_rate, steps[end])]
    if most <= factor or (len(rates) and rates.max() > lr_factor * max(float(rates.min()), 1e-300)):
        if most > factor:
            found.append(Evidence(f"lr goes from {figure(rates[0])} to {figure(rates[-1])} meanwhile", "lr"))
        return Answer(NO, tuple(found))
    onset = at + settled_rows
    while onset < len(values) - 1 and values[onset] > low / 2:
        onset += 1
    return Answer(YES, tuple(found), onset_step=int(steps[onset]), last_good_step=int(steps[onset - 1]))


def _falls(values: Floats, settled: int, within: int, low: int) -> tuple[Floats, Floats]:
    """Return the highest of `low` rows behind each `settled` ones, and how many times less the loss is soon after.

    Entry i is about the stretch that begins with row i; the low rows begin `within` rows behind it at the latest.
    Behind the end of the log the first is infinity.
    """
    after = np.append(-_lowest(-values[settled:], low), np.full(within - 1, np.inf))
    reached = _lowest(after, within)
    before = _lowest(values, settled)[: len(reached)]
    return after, np.where(reached > 0, before / np.maximum(reached, NEARLY_ZERO), 0.0)


def _lowest(values: Floats, rows: int) -> Floats:
    """Return the lowest of each `rows` neighbours: (n,) -> (n - rows + 1,)."""
    count, width = len(values) - rows + 1, 1
    while 2 * width <= rows:
        values, width = np.minimum(values[:-width], values[width:]), 2 * width
    return np.minimum(values[:count], values[rows - width :][:count])


HOUR = 3600.0  # no limit: seconds


@predicate(source="what users ask for: loss continuity after a resume", labels=("jump", "gain", "no"), min_points=2)
def resume_seam(run: Run, loss: Series, *, sigma: float, range_share: float) -> Answer:
    """Does the loss change where the run was resumed?

    `jump`: it is higher than the rows before let expect: an optimizer state, a schedule or weights that were not
    restored. `gain`: it is lower, as when data that were seen already come again. Compared is the median of up to
    `ROWS_LONG` rows after each resume with what as many before predict: off by more than `sigma` times the scatter of
    the rows before and by more than `range_share` of all that the loss ever moved.
    """
    steps, values = finite(loss)
    bar, worst = range_share * span(values), None
    for resume in run.resumes:
        at = int(np.searchsorted(steps, resume.to_step))
        before, after = values[max(0, at - ROWS_LONG) : at], values[at : at + ROWS_LONG]
        if min(len(before), len(after)) < ROWS_SHORT:
            continue
        # A falling loss may go on falling or level off: all between its last level and its trend drawn on is expected.
        level, now = median(before), median(after)
        slope, start = np.polyfit(np.arange(len(before)), before, 1)
        ahead = float(start + slope * (len(before) + len(after) / 2))
        change = max(now - max(level, ahead), 0.0) or min(now - min(level, ahead), 0.0)
        noise = median(np.abs(np.diff(before))) or float(np.std(before))
        strength = weakest(above(abs(change), sigma * noise), above(abs(change), bar))
        if worst is None or strength > (worst.strength or 0.0):
            text = f"after the resume at step {resume.to_step:,} the loss is {figure(now, 4)}, not {figure(level, 4)}"
            found = (Evidence(text, "loss", (resume.to_step,), change, bar),)
            verdict, good = "jump" if change > 0 else "gain", int(steps[at - 1])
            worst = measured(strength, found, verdict, onset_step=resume.to_step, last_good_step=good)
    if worst:
        return worst
    count = len(run.resumes)
    text = f"none of {count} resumes has {ROWS_SHORT} rows of the loss on either side"
    found = (Evidence(text if count else "the steps of the log never go back", "loss"),)
    return Answer(NO, found)


@predicate(source="measured: the pauses of healthy runs", min_points=12)
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
    strength = weakest(*(above(longest, limit) for limit in limits))
    return measured(strength, found, onset_step=step, last_good_step=step)
