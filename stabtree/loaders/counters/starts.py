"""Where a counter goes back, and where it is back at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_SMALL
from stabtree.common.stats import median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.loaders.counters.levels import Level

# A run from scratch logs its first row at step 0, at 1, or after one interval; a later first row is a resume's.
LATE = FACTOR_SMALL
# An epoch may come twice where a run was begun anew; where more do, rows are no epochs.
MAX_REPEATED = 0.1
# An interval is known from so many rows.
INTERVAL_ROWS = 50
# A counter that goes back more often than this counts within epochs, or the rows are out of order.
MANY = 20_000


@dataclass(frozen=True, slots=True)
class Counted:
    """The rows of a file that carry the loss, m of them, and what was logged in them.

    Attributes:
        axis: float64 (m,), what counts them.
        outcomes: the loss first, then what else shows how far training has come.
        rate: the learning rate.
        epochs: float64 (m,), the epochs beside the steps that the axis counts; None where there are none.
        passes: whether the axis counts epochs, rounds or episodes, which none counts within another.
    """

    axis: Floats
    outcomes: Sequence[Level] = ()
    rate: Level | None = None
    epochs: Floats | None = None
    passes: bool = False


def rows_back(evidence: Counted) -> Ints:
    """Return the rows at which the counter goes back, or stays at its start where each row should be another epoch."""
    changes = np.diff(evidence.axis)
    back = changes < 0
    again = changes == 0
    if evidence.passes and np.count_nonzero(again) <= MAX_REPEATED * len(again):
        back |= again
    return np.flatnonzero(back) + 1


def rows_at_start(evidence: Counted, back: list[int]) -> list[int]:
    """Return the rows at which the counter is back at its start; eval rows and stray ones are none."""
    if len(back) > MANY:
        return back if (evidence.axis[back] == evidence.axis[0]).all() else []
    axis, found, begin = evidence.axis, [], 0
    for row, (stretch, end) in zip(back, _around(back, len(axis)), strict=True):
        before, after = interval(axis[stretch:row]), interval(axis[row:end])
        wider = after > LATE * before and axis[row] <= LATE * after
        if axis[row] > axis[begin] and not wider:
            continue
        if _is_stray(axis, row, before) or not _repeats(axis, begin, stretch, row):
            continue
        late = axis[begin] > LATE * (before or after or 1.0)
        if late and not any(level.vote(begin, stretch, row, end) > 1 for level in evidence.outcomes):
            continue  # a run that was resumed from the same checkpoint once more
        found.append(row)
        begin = row
    return found


def _around(back: list[int], rows: int) -> list[tuple[int, int]]:
    """Return for each of some rows the one before it and the one after it, the ends of the file included."""
    edges = [0, *back, rows]
    return [(edges[index], edges[index + 2]) for index in range(len(back))]


def interval(stretch: Floats) -> float:
    """Return the usual distance of two rows that are counted upwards; 0 where there are none."""
    rises = np.diff(stretch[:INTERVAL_ROWS])
    rises = rises[rises > 0]
    return median(rises) if len(rises) else 0.0


def _is_stray(axis: Floats, row: int, interval: float) -> bool:
    """Return whether the count goes on after a row or two as if they were not there."""
    before = axis[row - 1]
    for after in axis[row + 1 : row + 3]:
        if before < after <= before + 2 * interval and after - axis[row] > 3 * interval:
            return True
    return False


def _repeats(axis: Floats, begin: int, stretch: int, row: int) -> bool:
    """Return whether some step comes again; rows that are merely out of order repeat none."""
    if axis[row] == axis[begin]:
        return True
    return bool(np.isin(axis[stretch:row], axis[row : 2 * row - stretch + INTERVAL_ROWS]).any())
