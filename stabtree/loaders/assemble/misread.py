"""Numbers that a file proves not to be what was logged: without their decimal point, or with another sign.

One value tells nothing. But where most values have fractions and lie close together, whole numbers a hundred
times as large between them have lost their point; and where most are as far from 0 as the few negative ones,
these have lost their sign. Nothing is mended: a reader of the log is told, and a verdict does not rest on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np

if TYPE_CHECKING:
    from stabtree._lazy import Bools, Floats
    from stabtree.loaders.table import Column

# Fewer of them are left to the search for spikes.
MIN_SHARE = 0.05
BLOCK = 50
# A point that is lost makes a number so many times as large, at least.
LOST_FACTOR = 100.0
# Within this share of the usual distance from 0, a value is as far from it as the others.
ALIKE = 0.5
# Of so many values, the one before or the one behind is a usual one.
BESIDE = 0.8
CHECKED = ("loss", "eval_loss", "grad_norm")


def notes_of(name: str, column: Column, metric: str) -> list[str]:
    """What was misread in a column, in words."""
    lost, flipped = misread(column, metric)
    found = []
    if lost:
        found.append(f"Cells of {name} that lost their decimal point: {lost}, whole numbers among fractions.")
    if flipped:
        found.append(f"Cells of {name} whose sign is flipped: {flipped}, as far below 0 as the others are above it.")
    return found


def misread(column: Column, metric: str) -> tuple[int, int]:
    """How many cells of a column lost their point, and how many have another sign; 0 of few."""
    if metric not in CHECKED or column.coded:
        return 0, 0
    values = column.held
    values = values[np.isfinite(values)]
    if len(values) < BLOCK:
        return 0, 0
    return _lost_points(values), _flipped(values) if metric != "grad_norm" else 0


def _lost_points(values: Floats) -> int:
    large = (np.abs(values) >= LOST_FACTOR / 10) & (values == np.floor(values))
    if not _some(large):
        return 0
    fractions = np.where(large, np.nan, np.abs(values))
    lost = large & (np.abs(values) > LOST_FACTOR * _usual(fractions))
    return _told(lost)


def _flipped(values: Floats) -> int:
    below = values < 0
    if not _some(below):
        return 0
    usual = _usual(np.abs(values))
    alike = np.abs(np.abs(values) - usual) < ALIKE * usual
    if np.count_nonzero(alike) < (1 - MIN_SHARE) * len(values):
        return 0
    return _told(below & alike)


def _some(odd: Bools) -> bool:
    return bool(MIN_SHARE * len(odd) < np.count_nonzero(odd) < 0.5 * len(odd))


def _told(odd: Bools) -> int:
    """How many there are, where they are enough, and scattered among the others: a run that breaks goes on breaking."""
    if not _some(odd):
        return 0
    single = odd & ~(np.append(odd[1:], True) & np.append(True, odd[:-1]))
    count = int(np.count_nonzero(odd))
    return count if np.count_nonzero(single) >= BESIDE * count else 0


def _usual(values: Floats) -> Floats:
    """The median of the block around each value, NaNs left out."""
    padded = np.append(values, np.full(-len(values) % BLOCK, np.nan)).reshape(-1, BLOCK)
    blank = np.isnan(padded).all(axis=1)
    padded[blank] = np.inf
    return np.repeat(np.nanmedian(padded, axis=1), BLOCK)[: len(values)]
