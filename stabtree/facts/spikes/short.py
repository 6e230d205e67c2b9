"""Spikes of a log that is too short for windows: by the scatter of all its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import NORMAL_99, change_noise
from stabtree.facts.spikes.excursions import Excursion, Search, bounds, excursion
from stabtree.facts.spikes.scores import NO_SPREAD, RELATIVE_RESOLUTION
from stabtree.facts.spikes.tails import height_for, t_tail

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.spikes.params import SpikeSearchParams


class Heights(NamedTuple):
    """How far rows are above the highest of the few before them; all of (n,), 0 for the first two.

    Attributes:
        level: the highest of the rows before.
        scatter: of the changes from row to row, over the square root of two.
        height: over the level in units of the scatter; of a loss that is positive throughout, that of its
            logarithm where it is smaller, since the scatter of such a loss shrinks with it.
    """

    level: Floats
    scatter: float
    height: Floats


class ShortTail(NamedTuple):
    """How many of `rows` chance puts above a height: a power law from the 99th percentile of normal noise on.

    It is never thinner than Student's t, since few changes show their scatter badly.
    """

    rows: int
    exponent: float

    def expected(self, height: float) -> float:
        """Return the number of rows above `height` to expect by chance."""
        power = float((max(height, NORMAL_99) / NORMAL_99) ** -self.exponent) / 100
        # A median deviation is as good as a standard deviation of a third of the changes.
        return self.rows * max(power, t_tail(height, max((self.rows - 2) // 3, 1)))


def find_short(steps: Ints, values: Floats, params: SpikeSearchParams) -> Search:
    """Find the spikes of a log without windows; a single row that is back where it came from has healed."""
    level, scatter, height = heights(values)
    tail = ShortTail(len(values), params.tail_exponent)
    top = int(np.argmax(height))
    bar = max(height_for(tail.expected, params.chance), params.sigma)
    found: list[Excursion] = []
    row = 2
    while row < len(values):
        if height[row] <= bar:
            row += 1
            continue
        mean = float(level[row])
        extent = bounds(values, row, mean + params.back_sigma * scatter, 1)
        highest = float(height[row : extent.end].max())
        found.append(
            excursion(
                steps,
                values,
                extent,
                mean=mean,
                sigma=scatter,
                height_sigma=highest,
                expected=tail.expected(highest),
            )
        )
        row = extent.end
    highest = float(height[top])
    return Search(
        tuple(found), ROWS_SHORT, True, len(values) - 2, highest, int(steps[top]), bar, tail.expected(highest)
    )


def heights(values: Floats) -> Heights:
    """Return the heights of the rows of a short log; a scatter below what its digits resolve is none."""
    level, up, scatter = _above(values, RELATIVE_RESOLUTION * float(np.max(np.abs(values))))
    if float(values.min()) > 0:
        _, relative, _ = _above(np.log(values), RELATIVE_RESOLUTION)
        up = np.minimum(up, relative)
    return Heights(level, scatter, up)


def _above(values: Floats, least: float) -> tuple[Floats, Floats, float]:
    level = values.copy()
    for row in range(2, len(values)):
        level[row] = values[max(row - ROWS_SHORT, 0) : row].max()
    scatter = max(change_noise(values), least, NO_SPREAD)
    height = (values - level) / scatter
    height[:2] = 0.0
    return level, height, scatter
