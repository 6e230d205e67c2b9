"""How high each row of a loss is above the window before it, and where its level shifts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import SHARE_HALF
from stabtree.common.stats import LONG, highest_rows, row_medians, span
from stabtree.facts.registry import finite
from stabtree.facts.spikes.bounds import GROUP, height_bounds
from stabtree.facts.spikes.moments import Windows
from stabtree.facts.spikes.tails import tail_of

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.spikes.params import SpikeSearchParams
    from stabtree.facts.spikes.tails import Tail
    from stabtree.run import Series

# Below this share of its own size a loss does not vary: float32 holds 1e-7, and a logged text six digits.
RELATIVE_RESOLUTION = 1e-6  # no limit
NO_SPREAD = 1e-150  # no limit: its square is no number above 0
TRIED = 64  # no limit: groups among whose rows is one that few others can exceed
MANY = 16  # no limit: of one group in so many the rows are worked out one by one, of more all together


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Scores:
    """The rows of a loss against the window before each: by how many of its sigmas they are above its mean.

    Attributes:
        values: the loss, float64 (n,).
        first: the row that the scores begin with, and are counted from.
        windows: those of the loss, or of what is put in its place.
        bounds: what no height of a group of rows exceeds; None where all heights are worked out.
    """

    values: Floats
    first: int
    windows: Windows
    bounds: Floats | None

    def __len__(self) -> int:
        return len(self.values) - self.first

    def at(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return mean and sigma of the windows before some rows, int64 (m,) in rising order."""
        mean, spread = self.windows.at(rows + (self.first - self.windows.rows))
        return mean, _visible(mean, spread)

    def heights(self, rows: Ints) -> Floats:
        """Return the heights of some rows, int64 (m,) in rising order: float64 (m,)."""
        if self.bounds is None:
            return all_heights(self)[rows]
        mean, sigma = self.at(rows)
        return _heights(self.values[self.first + rows], mean, sigma)

    def above(self, bar: float) -> tuple[Ints, Floats]:
        """Return the rows higher than a bar, in rising order, and their heights: both (m,)."""
        rows, heights = self._not_below(bar, len(self))
        high = heights > bar
        return rows[high], heights[high]

    def highest(self, end: int) -> tuple[int, float]:
        """Return the first of the highest rows before row `end`, and its height."""
        bar = -math.inf
        if self.bounds is not None:
            # Only what may exceed the highest of a few groups that may be high need be looked at.
            known = self.bounds[: (self.first + end) // GROUP]
            few = np.sort(highest_rows(np.where(known < np.inf, known, 0.0), TRIED))
            bar = float(self.heights(self._rows(few, end)).max(initial=bar))
        rows, heights = self._not_below(bar, end)
        at = int(np.argmax(heights))
        return int(rows[at]), float(heights[at])

    def tail(self) -> Tail:
        """Return the upper tail of all heights."""
        return tail_of(len(self), lambda end: self.highest(end)[0], self.heights, self.windows.rows)

    def _not_below(self, bar: float, end: int) -> tuple[Ints, Floats]:
        """Return the rows before row `end` of all groups that reach a bar, or all of them, and their heights."""
        if self.bounds is not None:
            groups = np.flatnonzero(self.bounds >= bar)
            if len(groups) * MANY < len(self.bounds):
                rows = self._rows(groups, end)
                return rows, self.heights(rows)
        return np.arange(end), all_heights(self)[:end]

    def _rows(self, groups: Ints, end: int) -> Ints:
        """Return the rows before row `end` of some groups."""
        rows = (GROUP * groups[:, None] + np.arange(GROUP)).ravel() - self.first
        return rows[(rows >= 0) & (rows < end)]

    def against(self, level: Floats) -> Scores:
        """Return the scores against windows of `level`, float64 (n,)."""
        return _scored(self.values, self.first, Windows.of(level, self.windows.rows, detrend=self.windows.detrend))


@remembered
def scores(loss: Series, rows: int, first: int, guarded: bool) -> Scores:
    """Return the scores of the finite values over the window of `rows` rows before each, from row `first` on.

    Where `guarded`, sigma is the scatter about the window's trend.
    """
    _, values = finite(loss)
    return _scored(values, first, Windows.of(values, rows, detrend=guarded))


def _scored(values: Floats, first: int, windows: Windows) -> Scores:
    bounds = height_bounds(values, windows) if len(values) > LONG else None
    return Scores(values, first, windows, bounds)


@remembered
def all_heights(scored: Scores) -> Floats:
    """Return the heights of all rows, (n - first,)."""
    rows, first, heights = scored.windows.rows, scored.first, np.empty(len(scored))
    for part, mean, spread in scored.windows.parts(first - rows):
        values = scored.values[part.start + rows : part.stop + rows]
        heights[part.start + rows - first : part.stop + rows - first] = _heights(values, mean, _visible(mean, spread))
    return heights


def _heights(values: Floats, mean: Floats, sigma: Floats) -> Floats:
    found = (values - mean) / sigma
    # A window of nothing but zeros is no training: the height of a loss above it means nothing.
    found[sigma <= NO_SPREAD] = 0.0
    return found


def _visible(mean: Floats, spread: Floats) -> Floats:
    """Return a deviation, or what the digits of its mean resolve where that is more."""
    found: Floats = np.maximum(spread, np.maximum(np.abs(mean) * RELATIVE_RESOLUTION, NO_SPREAD))
    return found


class Shifts(NamedTuple):
    """Rows of the scores from which on the whole level is high, and how high in units of sigma; both (m,)."""

    rows: Ints
    heights: Floats

    def at(self, row: int) -> float:
        """Return the height of the shift that begins at a row, 0 where none does."""
        at = int(np.searchsorted(self.rows, row))
        return float(self.heights[at]) if at < len(self.rows) and self.rows[at] == row else 0.0


def shifts(scored: Scores, params: SpikeSearchParams) -> Shifts:
    """Find where the level shifts; none without `guarded`, nor with fewer than `level_rows` rows to come."""
    values, begin, count = scored.values, scored.first, len(scored) - params.level_rows + 1
    if not params.guarded or count < 1:
        return Shifts(np.zeros(0, dtype=np.int64), np.zeros(0))
    bar = params.shift_bar(scored.windows.rows)
    high, _ = scored.above(bar)
    high = high[high < count]
    if not len(high):
        return Shifts(high, np.zeros(0))
    windows = np.lib.stride_tricks.sliding_window_view(values[begin:], params.level_rows)
    mean, spread = scored.at(high)
    level = row_medians(windows[high])
    heights = (level - mean) / spread
    lasting = (heights > bar) & (level - mean > params.shift_share * span(values))
    # The rows right before a jump are still at the old level; half way up already, it creeps.
    first = begin - params.level_rows
    if first >= 0:
        before = row_medians(np.lib.stride_tricks.sliding_window_view(values[first:], params.level_rows)[high])
        lasting &= before - mean < SHARE_HALF * (level - mean)
    return Shifts(high[lasting], heights[lasting])
