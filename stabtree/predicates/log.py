"""What a log says besides its metrics: seams where it went back, the time that passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.stats import quantiles, row_medians
from stabtree.common.strength import above, weakest
from stabtree.facts.registry import finite
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.seam import Seam
    from stabtree.run import Run, Series

HOUR = 3600.0  # no limit: seconds
PACE_ROWS = 200  # no limit: rows at which a change of pace is looked for; more would not find it more exactly
SAMPLE = 4000  # no limit: rows that show the pace of a longer log


@predicate(source="what users ask for: loss continuity after a resume", labels=("jump", "gain", "no"))
def resume_seam(
    seam: Seam,
    lr: Series | None = None,
    loss_scale: Series | None = None,
    *,
    lr_factor: float = shared.FACTOR_SMALL,
) -> Answer:
    """Does the loss change where the run was resumed?

    `jump`: it is higher than the rows before let expect: an optimizer state, a schedule or weights that were not
    restored. `gain`: it is lower, as when data that were seen already come again. A rate that changes by more than
    `lr_factor` at the seam, or a scale that starts again, is reported as well.
    """
    evidence = [seam.evidence]
    for series, name, factor in ((lr, "lr", lr_factor), (loss_scale, "loss_scale", 1.0)):
        evidence += _moved(series, name, seam.step, factor)
    verdict = "jump" if seam.change > 0 else "gain"
    return measured(seam.strength, tuple(evidence), verdict, onset_step=seam.step, last_good_step=seam.good_step)


@predicate(source="prime-diloco#97, apex#480, torchtitan#1213", labels=(LIKELY, NO))
def jump_at_resume(seam: Seam) -> Answer:
    """Does the loss jump with the first steps after a resume?"""
    return Answer(LIKELY if seam.change > 0 and seam.strength >= 0 else NO, (seam.evidence,))


def _moved(series: Series | None, name: str, step: int, factor: float) -> list[Evidence]:
    """Return the change of a series from the row before a step to the row at it, where it is more than a factor."""
    if series is None:
        return []
    at = int(np.searchsorted(series.steps, step))
    if not 0 < at < len(series):
        return []
    old, new = float(series.values[at - 1]), float(series.values[at])
    if not (old > 0 and new > 0) or max(old / new, new / old) <= factor:
        return []
    return [Evidence(f"{name} goes from {figure(old)} to {figure(new)} there", name, (step,), new / old, factor)]


class Pace(NamedTuple):
    """What a step costs, row by row.

    Attributes:
        metric: the series that it was read from.
        steps: (n,), the step of each row.
        cost: (n,), the time that a step took, in any unit.
    """

    metric: str
    steps: Ints
    cost: Floats


def _pace(clock: Series | None, step_time: Series | None, throughput: Series | None, rows: int) -> Pace | None:
    """Return the cost of a step by the clock, else as the trainer logs it; None where neither has that many rows."""
    found = [_by_clock(clock, rows)] if clock is not None else []
    found += [Pace("step_time", *_positive(step_time))] if step_time is not None else []
    if throughput is not None:
        steps, speed = _positive(throughput)
        found.append(Pace("throughput", steps, 1 / speed))
    pace = next((pace for pace in found if len(pace.cost) >= rows), None)
    part = slice(None, None, 1 + len(pace.cost) // SAMPLE) if pace else slice(None)
    return pace and Pace(pace.metric, pace.steps[part], pace.cost[part])


def _positive(series: Series) -> tuple[Ints, Floats]:
    steps, values = finite(series)
    keep = values > 0
    return steps[keep], values[keep]


def _by_clock(clock: Series, rows: int) -> Pace:
    """Return the seconds per step between rows; every second row is dropped while most lie within one clock tick."""
    steps, values = finite(clock)
    while len(values) >= 2 * rows and float(np.mean(np.diff(values) == 0)) > shared.SHARE_SOME:
        steps, values = steps[::2], values[::2]
    passed, done = np.diff(values), np.diff(steps)
    keep = passed > 0
    return Pace("wall_time", steps[1:][keep], passed[keep] / done[keep])


@predicate(source="measured: the pace of healthy runs")
def throughput_collapses(
    run: Run,
    wall_time: Series | None = None,
    step_time: Series | None = None,
    throughput: Series | None = None,
    *,
    factor: float,
    hours: float,
    rows: Count = shared.ROWS_SHORT,
    share: float = shared.SHARE_SOME,
) -> Answer:
    """Does a step take far longer from some row on, up to the end?

    Yes where all but the quickest tenth of the rows from there to the end, `rows` and `share` of the log at
    least, cost more than `factor` times the median of those before, twice as many at least, and more than all but as
    few of these: a pause at an evaluation or a checkpoint is a single row. Where a clock is logged, that has cost
    `hours` at least. Not asked beside a reward: what a step costs changes there with the answers, and with what is
    still to be explored.
    """
    if "reward" in run.series:
        return inapplicable("a reward is logged: the time of a step depends on what is sampled")
    rows = max(rows, 2)
    pace = _pace(wall_time, step_time, throughput, 3 * rows)
    if pace is None:
        return unknown(f"no time is logged in {3 * rows} rows or more", "wall_time")
    total, least = len(pace.cost), max(rows, int(share * len(pace.cost)))
    slowest, at, before, after = 0.0, 0, 0.0, 0.0
    for row in range(2 * rows, total - least + 1, 1 + total // PACE_ROWS):
        usual, slow = quantiles(pace.cost[:row], 0.5, shared.SHARE_MOST)
        quick = quantiles(pace.cost[row:], 1 - shared.SHARE_MOST)[0]
        if quick > slow and quick / usual > slowest:
            slowest, at, before, after = quick / usual, row, usual, float(row_medians(pace.cost[row:]))
    if not at:
        text = f"by its {pace.metric} a step takes about as long in all {total:,} rows, except for pauses"
        return Answer(NO, (Evidence(text, pace.metric, (), 1.0, factor),))
    at += int(np.argmax(pace.cost[at:] > factor * before))
    step, slowest = int(pace.steps[at]), min(slowest, 1e300)
    seconds = f" (from {figure(before)} to {figure(after)} s)" if pace.metric == "wall_time" else ""
    text = f"a step takes {as_factor(after / before)} as long from step {step:,} on{seconds}, by {pace.metric}; "
    text += f"nearly all of {total - at:,} rows take {against(slowest, factor)}× as long (limit {factor:g}×)"
    found = [Evidence(text, pace.metric, (step, int(pace.steps[-1])), slowest, factor)]
    lost = hours
    if pace.metric == "wall_time":
        lost = (after - before) * int(pace.steps[-1] - pace.steps[at - 1]) / HOUR
        text = f"that has cost {against(lost, hours)} hours in {int(pace.steps[-1]) - step:,} steps (limit {hours:g})"
        found.append(Evidence(text, "wall_time", (step, int(pace.steps[-1])), min(lost, 1e300), hours))
    strength = weakest(above(slowest - 1, factor - 1), above(lost, hours))
    return measured(strength, tuple(found), onset_step=step, last_good_step=int(pace.steps[at - 1]))


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
