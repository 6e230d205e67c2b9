"""Numbers that a file proves not to be what was logged: without their decimal point, or with another sign.

One value tells nothing. But where most values have fractions and lie close together, whole numbers a hundred
times as large between them have lost their point; and where most are as far from 0 as the few negative ones,
these have lost their sign. Nothing is mended: a reader of the log is told, and a verdict does not rest on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.loaders.table import Column

# Fewer of them are left to the search for spikes.
MIN_SHARE = 0.05
BLOCK = 50
# A point that is lost makes a number so many times as large, at least.
LOST_FACTOR = 100.0
WHOLE_FLOAT32 = 2.0**23
# And those that lost it stand apart from all others by such a factor.
APART = 10.0
# Within this share of the usual distance from 0, a value is as far from it as the others.
ALIKE = 0.5
# Chance changes from one kind of value to the other at least so often for each value of the rarer kind.
SCATTERED = 0.8
# So many, and no more than this share of all, go so far below 0 as the others go above: of normal noise with a third
# below 0 their median goes 0.6 times as far, of a Laplace's 0.8 times.
MIRRORED_ROWS = 50
MIRRORED_SHARE = 0.35
MIRRORED = 0.9
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
        """All of them, bool (n,)."""
        return self.points | self.signs

    @property
    def total(self) -> int:
        """How many there are."""
        return int(np.count_nonzero(self.cells))

    def notes(self, name: str) -> list[str]:
        """What was misread in a column of a name, in words."""
        points, signs = int(np.count_nonzero(self.points)), int(np.count_nonzero(self.signs))
        found = []
        if points:
            found.append(f"Cells of {name} that lost their decimal point: {points}, whole numbers among fractions.")
        if signs:
            found.append(f"Cells of {name} whose sign is flipped: {signs}, as far below 0 as the others are above it.")
        return found


def misread(column: Column, metric: str) -> Misread | None:
    """The cells of a column that lost their point, or have another sign; None where there are few or none."""
    if metric not in CHECKED or column.coded:
        return None
    there = np.isfinite(column.values) if column.logged is None else column.logged & np.isfinite(column.values)
    values = column.values if there.all() else column.values[there]
    if len(values) < BLOCK:
        return None
    lost, flipped = _lost_points(values), _flipped(values) if metric != "grad_norm" else None
    if not lost.any() and (flipped is None or not flipped.any()):
        return None
    points, signs = (np.zeros(len(column.values), dtype=np.bool_) for _ in range(2))
    points[there] = lost
    signs[there] = False if flipped is None else flipped
    return Misread(points, signs)


def _lost_points(values: Floats) -> Bools:
    if len(values) and max(float(values.max()), -float(values.min())) < LOST_FACTOR / 10:
        return np.zeros(len(values), dtype=np.bool_)
    # A float32 above its 24 bits has no fraction to lose.
    large = (np.abs(values) >= LOST_FACTOR / 10) & (np.abs(values) < WHOLE_FLOAT32) & (values == np.floor(values))
    if not _some(large):
        return np.zeros(len(values), dtype=np.bool_)
    fractions = np.where(large, np.nan, np.abs(values))
    odd = large & (np.abs(values) > LOST_FACTOR * _usual(fractions))
    told = _told(odd)
    # Where six digits are printed, 123457 is whole for its size; then there are numbers of every size below it.
    if told.any() and np.quantile(np.abs(values[odd]), 0.05) < APART * np.quantile(np.abs(values[~large]), 0.99):
        told[:] = False
    # Where points are lost, a whole number is one that lost its own.
    return (values == np.floor(values)) & (values != 0) if told.any() else told


def _flipped(values: Floats) -> Bools:
    below = values < 0
    if not _some(below):
        return np.zeros(len(values), dtype=np.bool_)
    usual = _usual(np.abs(values))
    far = np.abs(values) / np.maximum(usual, 1e-300)
    alike = np.abs(far - 1) < ALIKE
    if np.count_nonzero(alike) >= (1 - MIN_SHARE) * len(values):
        return _told(below & alike)
    # What merely dips below 0 does not go as far below as it goes above.
    few = MIRRORED_ROWS < np.count_nonzero(below) < MIRRORED_SHARE * len(values)
    mirrored = few and np.median(far[below]) > MIRRORED * np.median(far[~below])
    return _told(below) if mirrored else np.zeros(len(values), dtype=np.bool_)


def _some(odd: Bools) -> bool:
    return bool(MIN_SHARE * len(odd) < np.count_nonzero(odd) < (1 - MIN_SHARE) * len(odd))


def _told(odd: Bools) -> Bools:
    """Those that there are, where they are enough, and scattered: a run that breaks goes on breaking."""
    count = np.count_nonzero(odd)
    scattered = np.count_nonzero(odd[1:] != odd[:-1]) >= SCATTERED * min(count, len(odd) - count)
    return odd if _some(odd) and scattered else np.zeros(len(odd), dtype=np.bool_)


def _usual(values: Floats) -> Floats:
    """The median of the block around each value, NaNs left out."""
    padded = np.append(values, np.full(-len(values) % BLOCK, np.nan)).reshape(-1, BLOCK)
    blank = np.isnan(padded).all(axis=1)
    padded[blank] = np.inf
    return np.repeat(np.nanmedian(padded, axis=1), BLOCK)[: len(values)]
