"""Spikes of a log that is too short for windows: by the scatter of all its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.stats import NORMAL_99, change_noise

if TYPE_CHECKING:
    from stabtree._lazy import Floats

BEFORE_ROWS = 5
"""Rows before a row that it is compared with: the fewest with a middle that two odd ones leave alone."""


class Heights(NamedTuple):
    """How far rows stand above the highest of the few before them; all of (n,), 0 for the first two.

    Attributes:
        level: the highest of the rows before.
        scatter: of the changes from row to row, over the square root of two.
        height: over the level in units of the scatter; of a loss that is positive throughout, that of its
            logarithm where it is smaller, since the scatter of such a loss shrinks with it.
    """

    level: Floats
    scatter: float
    height: Floats


def heights(values: Floats, resolution: float) -> Heights:
    """The heights of the rows of a short log; a scatter below `resolution` of the loss's own size is none."""
    level, up, scatter = _above(values, resolution * float(np.max(np.abs(values))))
    if float(values.min()) > 0:
        _, relative, _ = _above(np.log(values), resolution)
        up = np.minimum(up, relative)
    return Heights(level, scatter, up)


def _above(values: Floats, least: float) -> tuple[Floats, Floats, float]:
    level = values.copy()
    for row in range(2, len(values)):
        level[row] = values[max(row - BEFORE_ROWS, 0) : row].max()
    scatter = max(change_noise(values), least, 1e-150)
    height = (values - level) / scatter
    height[:2] = 0.0
    return level, height, scatter


def expected(height: float, rows: int, exponent: float) -> float:
    """How many rows as high the noise of so many rows allows: a power law from the 99th percentile of normal noise."""
    return float(rows / 100 * (max(height, NORMAL_99) / NORMAL_99) ** -exponent)
