"""Rows of several runs side by side: only rows that were logged, each used once, none invented."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST, median
from stabtree.comparing.result import Axis

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
        places: float64 (n,), increasing positions of the bad run on the axis.
        steps: int64 (n,), its steps there.
        good: float64 (runs, n), the values of the good runs.
        bad: float64 (n,), those of the bad run.
    """

    metric: str
    places: Floats
    steps: Ints
    good: Floats
    bad: Floats

    def __len__(self) -> int:
        return len(self.places)

    def only(self, run: int) -> Rows:
        """The same against one of the good runs."""
        return Rows(self.metric, self.places, self.steps, self.good[run : run + 1], self.bad)


def side_by_side(metric: str, good: Sequence[Run], bad: Run, by: Axis = Axis.STEP) -> Rows:
    """The rows of a metric that all runs have at one position.

    By step a position is the step itself. Tokens and the clock, which two runs hardly count alike, match a row with the
    nearest one of the other run, at most half a logging interval apart.

    Args:
        metric: a series of all of them.
        good: the good runs.
        bad: the bad one.
        by: what rows are matched by.
    """
    clock, join = by is Axis.TIME, _common if by is Axis.STEP else _nearest
    runs = [(*_axis(run, run.series[metric], clock=clock), run.series[metric]) for run in (*good, bad)]
    *others, (mine_rows, mine, series) = runs
    pairs = [join(places, mine) for _, places, _ in others]
    at = reduce(partial(np.intersect1d, assume_unique=True), [there for _, there in pairs])
    values = [
        one.values[rows[here[np.searchsorted(there, at)]]]
        for (rows, _, one), (here, there) in zip(others, pairs, strict=True)
    ]
    kept = mine_rows[at]
    return Rows(metric, mine[at], series.steps[kept], np.array(values), series.values[kept])


def _axis(run: Run, series: Series, *, clock: bool) -> tuple[Ints, Floats]:
    """Rows of a series and where on the axis they stand; of a clock those rows at which it was read and went on."""
    if not clock:
        return np.arange(len(series)), series.steps.astype(np.float64)  # exact up to 9e15
    read = run.series[CLOCK]
    here, there = _common(read.steps, series.steps)
    seconds = np.clip(read.values[here], -LARGEST, LARGEST) - np.clip(read.values[0], -LARGEST, LARGEST)
    highest = np.maximum.accumulate(np.append(-np.inf, np.where(np.isfinite(seconds), seconds, -np.inf)))[:-1]
    goes_on = np.isfinite(seconds) & (seconds > highest)
    return there[goes_on], seconds[goes_on]


def _common(one: Floats | Ints, other: Floats | Ints) -> tuple[Ints, Ints]:
    """Where two runs stand at the same place of their increasing ones: rows of each."""
    at = np.minimum(np.searchsorted(other, one), max(len(other) - 1, 0))
    here = np.flatnonzero(other[at] == one) if len(other) else np.zeros(0, np.int64)
    return here, at[here]


def _nearest(one: Floats, other: Floats) -> tuple[Ints, Ints]:
    """Rows of each run that are the nearest to each other, at most half a logging interval apart."""
    if not len(one) or not len(other):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    here = _closest(one, other)
    there = np.arange(len(other))
    mutual = _closest(other, one)[here] == there
    apart = max(_spacing(one), _spacing(other)) / 2
    keep = mutual & (np.abs(one[here] - other) <= apart)
    return here[keep], there[keep]


def _closest(values: Floats, wanted: Floats) -> Ints:
    """The row of increasing values that is the nearest to each wanted one."""
    after = np.clip(np.searchsorted(values, wanted), 1, max(len(values) - 1, 1))
    after = np.minimum(after, len(values) - 1)
    before = np.maximum(after - 1, 0)
    found: Ints = np.where(np.abs(values[before] - wanted) <= np.abs(values[after] - wanted), before, after)
    return found


def _spacing(places: Floats) -> float:
    return median(np.diff(places)) if len(places) > 1 else 0.0
