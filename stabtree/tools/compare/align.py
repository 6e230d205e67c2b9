"""Rows of several runs side by side: only rows that were logged, each used once, none invented."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST, median
from stabtree.tools.compare.result import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Run, Series

CLOCK = "wall_time"


@dataclass(frozen=True, slots=True)
class Rows:
    """One metric of several runs where all of them logged it.

    Attributes:
        metric: the series.
        positions: float64 (n,), increasing positions of the bad run on the axis.
        steps: int64 (n,), its steps there.
        good: float64 (runs, n), the values of the good runs.
        bad: float64 (n,), those of the bad run.
    """

    metric: str
    positions: Floats
    steps: Ints
    good: Floats
    bad: Floats

    def __len__(self) -> int:
        return len(self.positions)

    def only(self, run: int) -> Rows:
        """Return the same rows with only one of the good runs."""
        return Rows(self.metric, self.positions, self.steps, self.good[run : run + 1], self.bad)


def side_by_side(metric: str, good: Sequence[Run], bad: Run, by: Axis = Axis.STEP) -> Rows:
    """Return the rows of a metric that all runs have at one position.

    By step a position is the step itself. By tokens and time, which rarely agree exactly, a row is matched with the
    nearest one of the other run, at most half a logging interval apart.

    Args:
        metric: a series of all runs.
        good: the good runs.
        bad: the bad one.
        by: what rows are matched by.
    """
    match = _common if by is Axis.STEP else _nearest
    series = bad.series[metric]
    bad_rows, positions = _axis(bad, series, by)
    matches = []
    for run in good:
        rows, others = _axis(run, run.series[metric], by)
        here, there = match(others, positions)
        matches.append((run.series[metric].values[rows[here]], there))
    at = reduce(partial(np.intersect1d, assume_unique=True), [there for _, there in matches])
    values = [matched[np.searchsorted(there, at)] for matched, there in matches]
    kept = bad_rows[at]
    return Rows(metric, positions[at], series.steps[kept], np.array(values), series.values[kept])


def _axis(run: Run, series: Series, by: Axis) -> tuple[Ints, Floats]:
    """Return rows of a series and their positions on the axis; by time only rows at which the clock went on."""
    if by is not Axis.TIME:
        return np.arange(len(series)), series.steps.astype(np.float64)  # exact up to 9e15
    read = run.series[CLOCK]
    here, there = _common(read.steps, series.steps)
    seconds = np.clip(read.values[here], -LARGEST, LARGEST) - np.clip(read.values[0], -LARGEST, LARGEST)
    highest = np.maximum.accumulate(np.append(-np.inf, np.where(np.isfinite(seconds), seconds, -np.inf)))[:-1]
    goes_on = np.isfinite(seconds) & (seconds > highest)
    return there[goes_on], seconds[goes_on]


def _common(one: Floats | Ints, other: Floats | Ints) -> tuple[Ints, Ints]:
    """Return the indexes in each of two increasing arrays at which they have the same value."""
    at = np.minimum(np.searchsorted(other, one), max(len(other) - 1, 0))
    here = np.flatnonzero(other[at] == one) if len(other) else np.zeros(0, np.int64)
    return here, at[here]


def _nearest(one: Floats, other: Floats) -> tuple[Ints, Ints]:
    """Return the indexes in each of two arrays that are the nearest to each other, at most half an interval apart."""
    if not len(one) or not len(other):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    here = _closest(one, other)
    there = np.arange(len(other))
    mutual = _closest(other, one)[here] == there
    apart = max(_spacing(one), _spacing(other)) / 2
    keep = mutual & (np.abs(one[here] - other) <= apart)
    return here[keep], there[keep]


def _closest(values: Floats, wanted: Floats) -> Ints:
    """Return the index of the nearest of increasing values for each wanted one, (n,)."""
    after = np.clip(np.searchsorted(values, wanted), 1, max(len(values) - 1, 1))
    after = np.minimum(after, len(values) - 1)
    before = np.maximum(after - 1, 0)
    found: Ints = np.where(np.abs(values[before] - wanted) <= np.abs(values[after] - wanted), before, after)
    return found


def _spacing(positions: Floats) -> float:
    if len(positions) > 1:
        return median(np.diff(positions))
    return 0.0
