"""What the clock and the memory say: waiting for data, steps that take far longer, memory that only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import stretches_of
from stabtree.common.shared import above, whether
from stabtree.common.stats import LARGEST, blocks, median, medians_of_three
from stabtree.measures.registry import Count, finite, measure, paired

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Ints
    from stabtree.run import Series


@measure(source="measured: step times of public logs", min_points=shared.ROWS_LONG)
def waits_for_data(step_time: Series, data_time: Series, *, share: float = shared.SHARE_HALF) -> Answer:
    """Does a step spend most of its time waiting for its batch?

    Yes where the median of data_time over step_time is above `share`. Where it is above 1, they have different units.
    """
    steps, data, whole = paired(data_time, step_time)
    keep = np.isfinite(data) & (data >= 0) & (whole > 0) & (whole < LARGEST)
    steps, part = steps[keep], min(median(data[keep] / whole[keep]), LARGEST) if keep.any() else 0.0
    text = f"{against(part, share, '.0%')} of a step is spent waiting for its batch (limit {share:.0%})"
    found = Evidence(text, "data_time", (), part, share, f"{part:.0%}")
    onset = int(steps[0]) if len(steps) else None
    return measured(min(above(part, share), above(1.0, part)), (found,), onset_step=onset)


@measure(source="measured: memory of public logs", min_points=shared.ROWS_LONG)
def memory_grows(memory: Series, *, growth: float = shared.FACTOR_SMALL) -> Answer:
    """Does the memory in use grow steadily up to the end?

    Yes where no level is below the one before, the last is `growth` times the first, and each half of the run adds at
    least a third of all that is added: a peak that rises with the longest batch so far soon stands still.
    """
    steps, values = finite(memory)
    levels, _ = blocks(values, min(shared.LEVELS, len(values) // 3))
    first, middle, last = float(levels[0]), float(levels[len(levels) // 2]), float(levels[-1])
    text = f"memory goes from {figure(first)} to {figure(last)}, and was {figure(middle)} half way"
    brief = f"from {figure(first)} to {figure(last)}"
    found = Evidence(text, "memory", (int(steps[0]), int(steps[-1])), last, growth * first, brief)
    halves = min(middle - first, last - middle)
    steady = min(above(halves, (last - first) / 3), whether(bool((np.diff(levels) >= 0).all() and last > first)))
    return measured(min(steady, above(last, growth * first)), (found,), onset_step=int(steps[0]))


@measure(source="measured: step times of public logs")
def slow_steps(
    step_time: Series | None = None,
    throughput: Series | None = None,
    *,
    factor: float = shared.FACTOR,
    share: float,
    rows: Count = shared.ROWS_LONG,
) -> Answer:
    """Do some steps take far longer than the others, at a fixed distance or in one stretch?

    Yes where steps of more than `factor` times the median cost more than `share` of the time of all, and either come
    again every so many rows, five times at least, or stand in a stretch of `rows` after the first ones.
    """
    series = step_time if step_time is not None else throughput
    if series is None:
        return unknown("neither step_time nor throughput is logged", "step_time")
    at, times = finite(series)
    at, times = at[times > 0], times[times > 0]
    if len(times) < 3 * rows:
        return unknown(f"{series.metric} has {len(times):,} rows above 0, {3 * rows} are needed", "step_time")
    times = times if series.metric == "step_time" else 1 / times
    usual = median(times)
    again, stretch = _again(times > factor * usual), _stretch(medians_of_three(times) > factor * usual, rows)
    slow = again if again is not None else stretch
    if slow is None:
        text = f"the slowest step takes {figure(min(float(times.max()) / usual, 1e9))} times the median"
        return Answer(NO, (Evidence(f"{text}, at no fixed distance and in no stretch", series.metric),))
    cost = float((times[slow] - usual).sum() / times.sum())
    size, first, last = median(times[slow]) / usual, int(at[slow[0]]), int(at[slow[-1]])
    where = f"Steps {first:,} to {last:,}"
    if again is not None:
        where = f"A step in every {median(np.diff(at[slow])):g}"
    brief = f"{where} took {figure(size, 2)} times as long as the others"
    text = f"{brief}; that is {against(cost, share, '.0%')} of the time of all steps (limit {share:.0%})"
    found = Evidence(text, series.metric, (first, last), cost, share, brief)
    return measured(above(cost, share), (found,), onset_step=first)


def _again(slow: Bools) -> Ints | None:
    """Return the slow rows that come again at a fixed distance, of three rows or more; None where they don't."""
    rows = np.flatnonzero(slow)
    rows = rows[rows > 0]  # the first step compiles
    apart = np.diff(rows)
    if len(rows) < shared.ROWS_SHORT or (usual := median(apart)) < 3:
        return None
    return rows if float(np.mean(np.abs(apart - usual) <= 1)) >= shared.SHARE_MOST else None


def _stretch(slow: Bools, rows: int) -> Ints | None:
    """Return the longest stretch of slow rows, if it has so many and begins after as many; else None."""
    begins, lengths = stretches_of(np.flatnonzero(slow))
    if not len(lengths) or lengths.max() < rows or begins[int(np.argmax(lengths))] < rows:
        return None
    first = int(begins[int(np.argmax(lengths))])
    return np.arange(first, first + int(lengths.max()))
