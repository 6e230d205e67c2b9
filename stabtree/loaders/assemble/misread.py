"""Numbers that a file proves not to be what was logged: without their decimal point, or with another sign.

One value proves nothing. But where most values have fractions and are close together, whole numbers a hundred
times as large between them have lost their point; and where most are as far from 0 as the few negative ones,
these have lost their sign. Nothing is corrected: a note says so, and no verdict rests on such cells.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import extremes, parts, sound_rows
from stabtree.common.shared import FACTOR_HUGE, FACTOR_LARGE, FACTOR_SMALL, SHARE_HALF, SHARE_MOST, SHARE_SOME, TREND_Z

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.loaders.table import Column

# Fewer of them are left to the search for spikes.
MIN_SHARE = SHARE_SOME
BLOCK = 50
# A point that is lost makes a number so many times as large, at least.
LOST_FACTOR = FACTOR_HUGE
WHOLE_FLOAT32 = 2.0**23
# And those that lost it are apart from all others by such a factor.
APART = FACTOR_LARGE
# Two values are alike in size where neither is so many times the other. Of values that scatter around 0 that are up to
# a third of neighbours: a third where all are equally likely, a quarter of normal noise, a fifth of a Laplace's.
ALIKE = FACTOR_SMALL
AROUND_ZERO = 1 / 3
# Chance changes from one kind of value to the other at least so often for each value of the rarer kind.
SCATTERED = SHARE_MOST
# So many, and no more than this share of all, go so far below 0 as the others go above: of normal noise with a third
# below 0 their median goes 0.6 times as far, of a Laplace's 0.8 times.
MIRRORED_ROWS = BLOCK
MIRRORED_SHARE = 0.35
MIRRORED = SHARE_MOST
CHECKED = ("loss", "eval_loss", "grad_norm")


class Misread(NamedTuple):
    """The cells of a column that are proved not to be what was logged.

    Attributes:
        points: bool (n,), those without their point.
        signs: bool (n,), those with another sign.
    """

    points: Bools
    signs: Bools

    @property
    def cells(self) -> Bools:
        """All misread cells, bool (n,)."""
        return self.points | self.signs

    @property
    def total(self) -> int:
        """The number of misread cells."""
        return int(np.count_nonzero(self.cells))

    def notes(self, name: str) -> list[str]:
        """Return what was misread in the column of this name, in words."""
        points, signs = int(np.count_nonzero(self.points)), int(np.count_nonzero(self.signs))
        found = []
        if points:
            found.append(f"Cells of {name} that lost their decimal point: {points}, whole numbers among fractions.")
        if signs:
            found.append(f"Cells of {name} whose sign is flipped: {signs}, as far below 0 as the others are above it.")
        return found


def misread(column: Column, metric: str) -> Misread | None:
    """Return the cells of a column that lost their point, or have another sign; None where there are few or none."""
    if metric not in CHECKED or column.coded:
        return None
    own = extremes(column)
    if own.lowest >= 0 and own.highest < LOST_FACTOR / 10:  # no number that lost its point, nor one below 0
        return None
    there = sound_rows(column) if column.logged is None else column.logged & np.isfinite(column.values)
    values = column.values[there]
    if len(values) < BLOCK:
        return None
    points, signs = _lost_points(values), np.zeros(len(values), dtype=np.bool_)
    if metric != "grad_norm":
        signs = _flipped(values)
    if not (points.any() or signs.any()):
        return None
    found = Misread(*np.zeros((2, len(column.values)), dtype=np.bool_))
    found.points[there], found.signs[there] = points, signs
    return found


def _lost_points(values: Floats) -> Bools:
    """Return the values that lost their decimal point, bool (n,)."""
    none = np.zeros(len(values), dtype=np.bool_)
    large = np.concatenate([_whole_and_large(part) for part in parts(values)])
    if not _some(large):
        return none
    sizes = np.abs(values)
    odd = large & (sizes > LOST_FACTOR * _usual(np.where(large, np.nan, sizes)))
    if not _some_scattered(odd):
        return none
    # Where six digits are printed, 123457 is whole for its size; then there are numbers of every size below it.
    if np.quantile(sizes[odd], 0.05) < APART * np.quantile(sizes[~large], 0.99):
        return none
    # Where points are lost, a whole number is one that lost its own.
    lost: Bools = (values == np.floor(values)) & (values != 0)
    return lost


def _whole_and_large(values: Floats) -> Bools:
    """Return which may be numbers without their point; a float32 above its 24 bits has no fraction to lose."""
    sizes = np.abs(values)
    large: Bools = (sizes >= LOST_FACTOR / 10) & (sizes < WHOLE_FLOAT32)
    if large.any():
        large &= values == np.floor(values)
    return large


def _flipped(values: Floats) -> Bools:
    """Return the values with another sign, bool (n,)."""
    none = np.zeros(len(values), dtype=np.bool_)
    below = values < 0
    if not _some(below):
        return none
    if _only_signs_change(values, below):
        return below
    if not MIRRORED_ROWS < np.count_nonzero(below) < MIRRORED_SHARE * len(values) or not _some_scattered(below):
        return none
    far = np.abs(values) / np.maximum(_usual(np.abs(values)), 1e-300)
    if np.median(far[below]) <= MIRRORED * np.median(far[~below]):
        return none  # what merely dips below 0 does not go as far below as it goes above
    return below


def _only_signs_change(values: Floats, below: Bools) -> bool:
    """Return whether values on either side of a change of sign are more alike in size than values around 0 can be."""
    change = np.flatnonzero(below[1:] != below[:-1])
    one, other = np.abs(values[change]), np.abs(values[change + 1])
    alike = np.count_nonzero(np.maximum(one, other) <= ALIKE * np.minimum(one, other))
    chance = AROUND_ZERO * len(change)
    surely = chance + TREND_Z * math.sqrt(chance * (1 - AROUND_ZERO))
    return bool(alike > max(surely, SHARE_HALF * len(change)))


def _some(odd: Bools) -> bool:
    return bool(MIN_SHARE * len(odd) < np.count_nonzero(odd) < (1 - MIN_SHARE) * len(odd))


def _some_scattered(odd: Bools) -> bool:
    """Whether some values are odd, but not one after the other: a run that breaks goes on breaking."""
    count = np.count_nonzero(odd)
    changes = np.count_nonzero(odd[1:] != odd[:-1])
    return _some(odd) and bool(changes >= SCATTERED * min(count, len(odd) - count))


def _usual(values: Floats) -> Floats:
    """Return the median of the block around each value, NaNs left out."""
    padded = np.append(values, np.full(-len(values) % BLOCK, np.nan)).reshape(-1, BLOCK)
    blank = np.isnan(padded).all(axis=1)
    padded[blank] = np.inf
    return np.repeat(np.nanmedian(padded, axis=1), BLOCK)[: len(values)]
