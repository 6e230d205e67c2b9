"""How far a reward has come down from its best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.stats import MEDIAN_ERROR, NORMAL_MAD, blocks, median, medians_of_three
from stabtree.common.strength import above, weakest
from stabtree.facts.registry import finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.run import Series

MOST_TIMES = 1e6  # no limit: printed of a fall without any scatter


class FallLimits(NamedTuple):
    """What a fall takes.

    Attributes:
        share: how much must be lost of all that the series covered.
        factor: how far the end must be below the best level, in units of the scatter of levels.
    """

    share: float = shared.SHARE_HALF
    factor: float = shared.FACTOR


class MetricFall(NamedTuple):
    """How far a series ends below its best level.

    Attributes:
        best: its best level.
        best_step: where that is.
        end: its level at the end.
        last: its last value.
        share: what is lost, as a share of the range from its lowest level to its best.
        times: what is lost, in units of the scatter of levels; fewer levels make it smaller.
        rows: how many rows a level has.
    """

    best: float
    best_step: int
    end: float
    last: float
    share: float
    times: float
    rows: int

    def strength(self, limits: FallLimits) -> float:
        """Return how far this is beyond the limits."""
        return weakest(above(self.share, limits.share), above(self.times, limits.factor))

    def evidence(self, metric: str, limits: FallLimits) -> Evidence:
        """Return the fall in words."""
        course = f"{figure(self.best)} around step {self.best_step:,}, {figure(self.end)} at the end"
        text = f"{metric} ends at its best level, {figure(self.end)}"
        if self.share > 0:
            lost = against(self.share, limits.share, ".0%")
            text = f"{metric} lost {lost} of its range (limit {limits.share:.0%}): {course}"
        if self.share >= limits.share and self.times < limits.factor:
            text += ", within its scatter"
        return Evidence(text, metric, (self.best_step,), self.share, limits.share)


def fall_of(series: Series) -> MetricFall | None:
    """Return how far a series has come down; None where it has too few rows for a scatter."""
    steps, values = finite(series)
    if len(values) < shared.ROWS_SHORT:
        return None
    levels, starts = blocks(values, len(values) // math.ceil(len(values) / shared.LEVELS))
    smooth = medians_of_three(levels)
    at = int(np.argmax(smooth))
    rows = len(values) // len(levels)
    best, end = float(smooth[at]), median(values[-max(min(3, len(values) // 3), rows) :])
    lost, lowest = best - end, min(end, float(smooth.min()), float(levels[0]))
    scatter = max(_scatter(np.diff(levels)), MEDIAN_ERROR * _scatter(np.diff(values)) / rows**0.5)
    return MetricFall(
        best=best,
        best_step=int(steps[starts[at]]),
        end=end,
        last=float(values[-1]),
        share=lost / (best - lowest) if best > lowest else 0.0,
        times=_times(lost, scatter, len(levels)),
        rows=rows,
    )


def _times(lost: float, scatter: float, count: int) -> float:
    """Return a difference in units of a scatter that is itself known by so many values only."""
    if lost <= 0:
        return 0.0
    if scatter <= 0:
        return 1e300
    return min(lost / scatter / (1 + 4 / max(count - 1, 1)), 1e300)


def _scatter(changes: Floats) -> float:
    """Return the standard deviation of values by the changes between neighbours, of which most may be 0."""
    around = np.abs(changes - median(changes))
    return (NORMAL_MAD * median(around) or MEDIAN_ERROR * float(np.mean(around))) / 2**0.5
