"""How high each row of a loss is above the window before it, and where its level shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import NOISE_TIMES, SHARE_HALF, SHARE_MOST
from stabtree.common.stats import row_medians, span, windows
from stabtree.facts.registry import finite
from stabtree.facts.spikes.moments import Windows
from stabtree.profile import profile_of
from stabtree.profile.spikes import far

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.spikes.params import SpikeSearchParams
    from stabtree.profile.model import Recovery
    from stabtree.run import Series

# Below this share of its own size a loss does not vary: float32 holds 1e-7, and a logged text six digits.
RELATIVE_RESOLUTION = 1e-6  # no limit
NO_SPREAD = 1e-150  # no limit: its square is no number above 0


class Scores(NamedTuple):
    """The rows of a loss against the window before each.

    Attributes:
        values: the loss, float64 (n,).
        first: the row that the scores begin with.
        heights: the value over the mean of its window in units of its sigma, (n - first,).
        windows: those windows; of the loss, or of what is put in its place.
        noise: the heights without those of many spikes, see `many_spikes`: what they are measured against.
    """

    values: Floats
    first: int
    heights: Floats
    windows: Windows
    noise: Floats

    def at(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return mean and sigma of the windows before some rows, int64 (m,) in rising order, counted from `first`."""
        mean, spread = self.windows.at(rows + (self.first - self.windows.rows))
        return mean, _visible(mean, spread)

    def against(self, level: Floats) -> Scores:
        """Return the scores against windows of `level`, float64 (n,)."""
        return _scored(self.values, Windows.of(level, self.windows.rows, detrend=self.windows.detrend), self.first)


@remembered
def scores(loss: Series, rows: int, first: int, guarded: bool, apart: bool = True) -> Scores:
    """Return the height of each finite value over the window of `rows` rows before it, from row `first` on.

    Where `guarded`, sigma is the scatter about the window's trend, and many spikes that stand `apart` don't widen it.
    """
    steps, values = finite(loss)
    scored = _scored(values, Windows.of(values, rows, detrend=guarded), first)
    many = many_spikes(loss) if guarded and apart else ()
    if not many:
        return scored
    level, noise = values.copy(), np.ones(len(values), dtype=bool)
    for spike in many:
        top, reach = int(np.searchsorted(steps, spike.step)), spike.rows or 1
        start, end = max(top - reach + 1, reach), min(top + reach, len(values))
        level[start:end] = np.resize(level[start - reach : start], end - start)
        noise[start:end] = False
    scored = scored.against(level)
    return scored._replace(noise=scored.heights[noise[first:]])


def many_spikes(loss: Series) -> tuple[Recovery, ...]:
    """Return the spikes of a loss that has several, nearly all of which a gap parts from its noise.

    Of a heavy tail, which is noise of the run's own, most would be just above the limit.
    """
    up = tuple(spike for spike in profile_of(loss).spikes.highest if spike.height > 0)
    high = sum(spike.height > NOISE_TIMES * far(len(loss)) for spike in up)
    return up if high > 1 and high >= SHARE_MOST * len(up) else ()


def _scored(values: Floats, windows: Windows, first: int) -> Scores:
    rows, heights = windows.rows, np.empty(len(values) - first)
    for span_, mean, spread in windows.parts(first - rows):
        sigma = _visible(mean, spread)
        part = heights[span_.start + rows - first : span_.stop + rows - first]
        np.subtract(values[span_.start + rows : span_.stop + rows], mean, out=part)
        part /= sigma
        # A window of nothing but zeros is no training: the height of a loss above it means nothing.
        part[sigma <= NO_SPREAD] = 0.0
    return Scores(values, first, heights, windows, heights)


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
    values, begin, above = scored.values, scored.first, scored.heights
    count = len(above) - params.level_rows + 1
    if not params.guarded or count < 1:
        return Shifts(np.zeros(0, dtype=np.int64), np.zeros(0))
    bar = params.shift_bar(scored.windows.rows)
    high = np.flatnonzero(above[:count] > bar)
    if not len(high):
        return Shifts(high, np.zeros(0))
    mean, spread = scored.at(high)
    level = row_medians(windows(values[begin:], params.level_rows)[high])
    heights = (level - mean) / spread
    lasting = (heights > bar) & (level - mean > params.shift_share * span(values))
    # The rows right before a jump are still at the old level; half way up already, it creeps.
    first = begin - params.level_rows
    if first >= 0:
        before = row_medians(windows(values[first:], params.level_rows)[high])
        lasting &= before - mean < SHARE_HALF * (level - mean)
    return Shifts(high[lasting], heights[lasting])
