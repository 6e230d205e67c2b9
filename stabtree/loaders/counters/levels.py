"""Whether a metric begins anew at a row or goes on from the one before: the evidence where a counter starts again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.stats import median

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints

# A level is the median of so many values, which one outlier doesn't move.
LEVEL_ROWS = 3
# Two levels differ if they are so many times the noise of one value apart, so many times that if this is beyond doubt.
APART, BEYOND_DOUBT = 4.0, 3.0
# The median size of the second differences of white noise, in units of its standard deviation.
SECOND_DIFFERENCE = 1.65
# How far back from the last level to the first one a value is: nearer to the first, or beyond doubt.
BACK, SURELY_BACK = 0.5, 0.75
# What goes on from the last level moves by no larger share of the way back, if by more than from row to row.
GOES_ON = 0.1


@dataclass(frozen=True, slots=True)
class Level:
    """A metric as evidence.

    Attributes:
        rows: int64 (k,), the rows that hold it.
        values: float64 (k,).
        noise: the standard deviation of a value around its trend.
    """

    rows: Ints
    values: Floats
    noise: float

    @classmethod
    def of(cls, values: Floats, logged: Bools) -> Level:
        """Return the evidence of a metric, values float64 (n,), in the rows that hold it, bool (n,)."""
        held = values[logged]
        return cls(np.flatnonzero(logged), held, _noise(held))

    def is_finite(self, begin: int, end: int) -> bool:
        """Return whether every value between two rows is finite."""
        first, last = np.searchsorted(self.rows, (begin, end))
        return bool(np.isfinite(self.values[first:last]).all())

    def vote(self, begin: int, stretch: int, row: int, end: int) -> int:
        """Return whether the metric is back at its first level at a row.

        Args:
            begin: the row at which the run begins.
            stretch: the row at which the counter started again before.
            row: the row at which it starts again.
            end: the row at which it does so next.

        Returns:
            1 if it is, 2 beyond doubt; -1 if it goes on, -2 beyond doubt; 0 if this can't be decided.
        """
        first, since, at, stop = np.searchsorted(self.rows, (begin, stretch, row, end)).tolist()
        now = self.values[at : min(at + LEVEL_ROWS, stop)]
        start = self.values[first : min(first + len(now), at)]
        last = self.values[at - min(LEVEL_ROWS, (at - since + 1) // 2) : at]
        if not (len(now) and len(start) and len(last)):
            return 0
        if np.isfinite(now).all() and np.isfinite(start).all() and not np.isfinite(last).any():
            return 2  # what goes on from a NaN stays one
        # A steep start is seen in its first value alone.
        if self._compare(now[:1], start[:1], last) > 1:
            return 2
        return self._compare(now, start, last)

    def _compare(self, now: Floats, start: Floats, last: Floats) -> int:
        now, start, last = (part[np.isfinite(part)] for part in (now, start, last))
        if not (len(now) and len(start) and len(last)):
            return 0
        apart = APART * self.noise / len(now) ** 0.5
        before = median(last)
        gap = median(start) - before
        if abs(gap) <= apart or not np.isfinite(gap):
            return 0
        moved = median(now) - before
        certain = 2 if abs(gap) > BEYOND_DOUBT * apart else 1
        if moved / gap >= BACK:
            return certain if moved / gap >= SURELY_BACK else 1
        usual = (LEVEL_ROWS + 1) * float(np.abs(np.diff(last)).max(initial=0.0))
        if abs(moved) <= max(apart, min(usual, (1 - SURELY_BACK) * abs(gap)), GOES_ON * abs(gap)):
            return -certain
        return -1 if moved / gap > -BACK else 0  # elsewhere than both


def _noise(values: Floats) -> float:
    """Return the scatter of values around their trend."""
    finite = values[np.isfinite(values)]
    if len(finite) < LEVEL_ROWS:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        bends = np.abs(finite[2:] - 2 * finite[1:-1] + finite[:-2])
    return median(bends) / SECOND_DIFFERENCE
