"""Rows whose cells stand one column further left than those above them.

A trainer that stops writing one column, but not its header, makes a gradient's norm of a loss. The file proves it
where the last column ends for good and the one before it goes on with its values, which are far from its own.
"""

from __future__ import annotations

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


def shifted_from(columns: Sequence[Column | None]) -> int | None:
    """The first row whose cells stand one column too far left, None where no such is proved."""
    for left, right in pairwise(columns):
        if left is None or right is None or right.logged is None or left.coded or right.coded:
            continue
        row = int(np.flatnonzero(right.logged)[-1]) + 1 if right.count else 0
        before, after = slice(row - AROUND, row), slice(row, row + AROUND)
        if not AROUND <= row <= len(right.values) - AROUND or not right.logged[:row].all() or not left.mask.all():
            continue
        own, theirs, now = left.values[before], right.values[before], left.values[after]
        if _far(now, own, BREAKS) and not _far(now, theirs, 1 + GOES_ON):
            return row
    return None


def _far(one: Floats, other: Floats, factor: float) -> bool:
    """Whether the usual values of two stretches differ by more than a factor."""
    a, b = float(np.median(one)), float(np.median(other))
    return not (a == b or (a * b > 0 and 1 / factor <= a / b <= factor))
