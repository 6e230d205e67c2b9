"""Rows whose cells stand one column further left than those above them.

A trainer that stops writing one column, but not its header, makes a gradient's norm of a loss. The file proves it
where a column goes on, from one row to the next, with the values of the column to its right, which are far from its
own; and where the column to the right ends there for good, or a second one does the same at the same row.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree._lazy import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree._lazy import Floats
    from stabtree.loaders.table import Column

# Rows on each side that are compared.
AROUND = 10
# Values go on where they change by less than this share, and break off where they change by more than this factor.
GOES_ON = 0.05
BREAKS = 2.0
# So many columns, and rows of each, are looked at: the metrics that matter stand first.
COMPARED = 12
CANDIDATES = 20


def shifted_from(columns: Sequence[Column | None]) -> int | None:
    """The first row whose cells stand one column too far left, None where no such is proved."""
    if columns[-1] and columns[-1].logged is None:
        return None  # a shift leaves the last column empty
    proofs: Counter[int] = Counter()
    for left, right in pairwise(columns[:COMPARED]):
        if left and right and not left.coded and not right.coded and len(left.values) > 2 * AROUND:
            found = _taken_over(_blanked(left), _blanked(right))
            proofs.update(found)
            ends = int(np.flatnonzero(right.mask)[-1]) + 1 if right.count else 0
            proofs.update(row for row in found if row == ends)
    return min((row for row, count in proofs.items() if count > 1), default=None)


def _blanked(column: Column) -> Floats:
    """The values of a column, NaN where nothing was logged."""
    return column.values if column.logged is None else np.where(column.logged, column.values, np.nan)


def _taken_over(left: Floats, right: Floats) -> list[int]:
    """The rows from which on the left column holds what the right one held before."""
    with np.errstate(all="ignore"):
        on = np.abs(left[1:] - right[:-1]) <= GOES_ON * np.abs(right[:-1])
        off = np.abs(left[1:] - left[:-1]) > (1 - 1 / BREAKS) * np.maximum(np.abs(left[1:]), np.abs(left[:-1]))
    rows = (np.flatnonzero(on & off) + 1).tolist()
    return [row for row in rows[:CANDIDATES] if _for_good(left, right, row)]


def _for_good(left: Floats, right: Floats, row: int) -> bool:
    """Whether the rows around say the same as the two at the place itself."""
    own, theirs, now = left[max(0, row - AROUND) : row], right[max(0, row - AROUND) : row], left[row : row + AROUND]
    if len(own) < AROUND or len(now) < AROUND or np.isnan([*own, *theirs, *now]).any():
        return False
    return _far(now, own, BREAKS) and not _far(now, theirs, 1 + GOES_ON)


def _far(one: Floats, other: Floats, factor: float) -> bool:
    """Whether the usual values of two stretches differ by more than a factor."""
    a, b = float(np.median(one)), float(np.median(other))
    return not (a == b or (a * b > 0 and 1 / factor <= a / b <= factor))
