"""A series as levels: block medians, from its lowest one to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.stats import (
    BLOCK_SAMPLE,
    MEDIAN_ERROR,
    NORMAL_MAD,
    blocks,
    change_noise,
    kendall_z,
    median,
    medians_of_three,
    span,
)
from stabtree.facts.registry import Count, fact, finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Series

FEWEST = 3  # levels of a whole log


class Course(NamedTuple):
    """A stretch of the loss as block medians, from its lowest level to its end.

    `rise` is how far the end is above the lowest level, `noise` the scatter between neighbouring
    blocks, `span` the range of the whole run's levels, `trend_z` the Mann-Kendall score from the low on,
    `steps` how many steps the stretch covers, `rows` how many rows its low and its end are made of.
    """

    low_step: int
    low: float
    end: float
    rise: float
    noise: float
    span: float
    trend_z: float
    steps: int
    rows: int

    @property
    def share(self) -> float:
        """The rise as a share of the range that the loss covers in the whole run."""
        return min(self.rise / self.span, 1e300) if self.span > 0 else 0.0

    @property
    def times(self) -> float:
        """The rise in units of the scatter."""
        if self.noise > 0:
            return min(self.rise / self.noise, 1e300)
        return 1e300 if self.rise > 0 else 0.0


class Levels(NamedTuple):
    """How rows are put together to levels.

    Attributes:
        window_steps: the stretch at the end that is looked at close up, and its doubles.
        max_levels: the most levels; Kendall's score is quadratic, and 40 show any shape that a person would see.
        min_levels: the fewest levels of a stretch; fewer than 8 can't reach a score of 2.33 but by rising all along. A
            whole log of fewer rows has as many levels as rows.
        rows: the fewest rows whose median is a level, where there are enough for `min_levels`.
    """

    window_steps: int
    max_levels: int
    min_levels: int
    rows: int

    def length(self, series: Series) -> float:
        """Return how many steps of a series are one level, 0 where it has none."""
        steps, _ = finite(series)
        count = self.count(len(steps))
        return float(steps[-1] - steps[0]) / count if count else 0.0

    def count(self, rows: int) -> int:
        """Return how many levels so many rows give: a log with too few for medians of `rows` has shorter ones."""
        level_rows = min(self.rows, max(rows // self.min_levels, 1))
        return min(self.max_levels, rows // level_rows)


@fact()
def levels(
    *,
    window_steps: Count,
    max_levels: Count,
    min_levels: Count,
    level_rows: Count = shared.ROWS_SHORT,
) -> Levels:
    """Return how a series is read as levels; the parameters are those of `Levels`."""
    max_levels, min_levels = max(max_levels, 4), max(min_levels, 4)
    return Levels(window_steps, max_levels, min_levels, level_rows)


def _course(steps: Ints, values: Floats, into: Levels, whole: float | None = None) -> Course | None:
    """Return the course of a stretch, None when it has too few rows for its levels.

    `whole` is the range of the whole run's levels, where the stretch is only a part of it.
    """
    count = into.count(len(values)) if whole is None else min(into.max_levels, len(values) // into.rows)
    if count < (FEWEST if whole is None else into.min_levels):
        return None
    levels, starts = blocks(values, count)
    smooth = medians_of_three(levels)
    low = int(np.argmin(smooth))
    noise = max(change_noise(levels), _within(values[int(starts[0]) :].reshape(count, -1), levels))
    lowest = float(smooth[low])
    end = median(levels[-3:]) if low < count - 1 else lowest  # nothing has risen since a low that is the end
    covered = span(levels) if whole is None else whole
    low_step, length = int(steps[starts[low]]), int(steps[-1] - steps[0])
    trend = _trend(values[starts[low] :], levels[low:], into)
    return Course(low_step, lowest, end, end - lowest, noise, covered, trend, length, 3 * (len(values) // count))


def _within(rows: Floats, levels: Floats) -> float:
    """Return the error of a median of the rows of a block (blocks, size): all the noise where a block is one epoch."""
    some = rows[:, :: 1 + rows.shape[1] // BLOCK_SAMPLE]
    scatter = NORMAL_MAD * median(np.abs(some - levels[:, None]))
    return float(MEDIAN_ERROR * scatter / rows.shape[1] ** 0.5)


def _trend(values: Floats, levels: Floats, into: Levels) -> float:
    """Return the trend score of a stretch by its levels, by shorter ones where they are too few for a certain one."""
    count = min(into.min_levels * 2, len(values) // 2)
    if len(levels) < into.min_levels <= count:
        levels, _ = blocks(values, count)
    return kendall_z(levels)


@remembered
def courses(loss: Series, into: Levels) -> tuple[Course, ...]:
    """Return the courses of the whole run and of its last 2, 4, 8, ... times `window_steps` steps, longest first.

    The levels of a long run are long themselves: a rise over the last 200 of 20,000 steps is seen only close up.
    """
    steps, values = finite(loss)
    whole = _course(steps, values, into)
    if whole is None:
        return ()
    found = [whole]
    length = 2 * into.window_steps
    while length < whole.steps / 2:
        inside = int(np.searchsorted(steps, steps[-1] - length))
        part = _course(steps[inside:], values[inside:], into, whole.span)
        if part:
            found.insert(1, part)
        length *= 2
    return tuple(found)
