"""How far each row of a loss stands out of the rows before it, and which height chance alone reaches."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import FACTOR, NOISE_TIMES, ROWS_LONG, ROWS_SHORT, SHARE_HALF, SHARE_MOST
from stabtree.common.stats import SAMPLE, interval, median, neighbours, quantiles, row_medians, scatter, span, windows
from stabtree.measures.registry import finite
from stabtree.profile.model import Recovery
from stabtree.profile.segments import far

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Series


TAIL_EXPONENT = 4.0  # of the tail where a run has few high rows; labelled runs with enough have 1.6 to 5, median 3.8
# The largest share of the rows that a window takes: a log of one row an epoch would else be all window. A log without
# `level_rows` rows in it has no windows: see `find_short`.
LOG_SHARE = 0.25


class SpikeSearchParams(NamedTuple):
    """How spikes are searched for: the parameters of the value."""

    window_steps: int  # the stretch before a step over which its mean and sigma are taken
    sigma: float  # how many sigmas above that mean a step must be
    chance: float  # how many steps as high the run's own noise may explain; 1 is the document's own rule
    back_sigma: float  # how close to the mean before it, in sigmas, a spike must come to be over
    horizon_steps: int  # steps within which a loss comes back, and after which one that has not stays up
    lasting_share: float  # what stays up by no more than this share of the loss's range has come back
    rare: float  # below how many expected by chance a spike is rare
    level_rows: int  # rows that make a level: a window of fewer widens, and a shift lasts as many
    # How far a shift must be above the mean before it, where the window is long; twice as far where it has no more than
    # `level_rows` rows.
    shift_sigma: float
    shift_share: float  # by how much of all that the loss covers a shift must rise

    @property
    def guarded(self) -> bool:
        """Whether chance is considered as well; else only the document's own limit counts."""
        return self.chance < 1

    def rows(self, series: Series) -> int:
        """Return the window in rows of a series."""
        # A trend and the scatter about it take three rows, whatever is asked for.
        steps = finite(series)[0]
        few = max(self.level_rows, 3)
        rows = max(round(self.window_steps / interval(steps)), few)
        return min(rows, max(few, round(LOG_SHARE * len(steps)))) if self.guarded else rows

    def first(self, steps: Ints, rows: int) -> int:
        """Return the first row to judge: `rows` before it, and past the window's own steps (document: t > 100)."""
        return rows if int(steps[rows]) > max(self.window_steps, rows * interval(steps)) else rows + 1

    def horizon(self, series: Series) -> int:
        """Return `horizon_steps`, or as many steps of a short log as a window may take of its rows."""
        if not self.guarded:
            return self.horizon_steps
        steps = finite(series)[0]
        apart = interval(steps)
        rows = min(round(self.horizon_steps / apart), max(ROWS_SHORT, round(LOG_SHARE * len(steps))))
        return min(self.horizon_steps, round(rows * apart))

    def short(self, series: Series) -> bool:
        """Return whether a log is too short for windows."""
        return self.guarded and LOG_SHARE * len(finite(series)[0]) < self.level_rows

    def shift_bar(self, rows: int) -> float:
        """Return how many sigmas of a window of so many rows make a shift."""
        # A sigma of few rows is a rough one, and rougher still where neighbours are alike.
        return self.shift_sigma * (1 + self.level_rows / rows)


PART = 1 << 13  # no limit: windows that are worked out in one go: a dozen arrays of so many fit the cache


class Windows(NamedTuple):
    """The windows of `rows` values, each of which belongs to the value behind it: entry i to `values[rows + i]`."""

    values: Floats  # float64 (n,)
    rows: int  # how many values a window has
    # Whether the deviation is that from the window's straight line (`rows` > 2), so that a loss that falls steeply does
    # not pass for a noisy one.
    detrend: bool

    def between(self, begin: int, end: int) -> tuple[Floats, Floats]:
        """Return the means and deviations of the entries from `begin` up to `end`."""
        rows, size = self.rows, end - begin
        # Any typical value taken off all others keeps the squares small; no outlier takes the place of a median.
        center = median(self.values[:: 1 + len(self.values) // 10_000])
        part = self.values[begin : end + rows - 1] - center
        scatter = _sums(part * part, rows, size) / rows
        if not self.detrend:
            average = _sums(part, rows, size) / rows
            scatter -= average * average
        else:
            total, slopes = _sums_and_slopes(part, rows, size)
            average = total / rows
            scatter -= average * average
            scatter -= slopes * slopes * ((rows * rows - 1) / 12)
            scatter *= rows / (rows - 2)  # the line takes two degrees of freedom
        return average + center, np.sqrt(np.maximum(scatter, 0.0))


def _sums(part: Floats, rows: int, size: int) -> Floats:
    """Return sums of `rows` neighbours, `size` of them.

    Adds up doubled partial sums, so a huge value spoils only the windows that hold it; a running
    cumulative sum would lose the digits of every window after it.
    """
    total = np.zeros(size)
    width, start = 1, 0
    while True:
        if rows & width:
            total += part[start : start + size]
            start += width
        width *= 2
        if width > rows:
            return total
        part = part[: len(part) - width // 2] + part[width // 2 :]


def _sums_and_slopes(part: Floats, rows: int, size: int) -> tuple[Floats, Floats]:
    """Return sums and least-squares slopes per row of `rows` neighbours, `size` of each, added up as in `_sums`."""
    total, weighted = np.zeros(size), np.zeros(size)
    inner = np.zeros(len(part))  # sums of row times index within the doubled parts, indices counted from their start
    width, start = 1, 0
    while True:
        if rows & width:
            here = part[start : start + size]
            weighted += inner[start : start + size]
            weighted += start * here
            total += here
            start += width
        half, width = width, width * 2
        if width > rows:
            weighted -= (rows - 1) / 2 * total
            weighted /= rows * (rows * rows - 1) / 12
            return total, weighted
        inner = inner[: len(part) - half] + inner[half:] + half * part[half:]
        part = part[: len(part) - half] + part[half:]


# Below this share of its own size a loss does not vary: float32 holds 1e-7, and a logged text six digits.
RELATIVE_RESOLUTION = 1e-6  # no limit
NO_SPREAD = 1e-150  # no limit: its square is no number above 0


class Scores(NamedTuple):
    """The rows of a loss against the window before each."""

    values: Floats  # the loss, float64 (n,)
    first: int  # the row that the scores begin with
    heights: Floats  # the value over the mean of its window in units of its sigma, (n - first,)
    windows: Windows  # those windows; of the loss, or of what is put in its place
    noise: Floats  # the heights without those of many spikes, see `many_spikes`: what they are measured against

    def at(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return mean and sigma of the windows before some rows, int64 (m,) in rising order, counted from `first`."""
        wanted = rows + (self.first - self.windows.rows)
        mean, spread = np.empty(len(wanted)), np.empty(len(wanted))
        begin = 0
        while begin < len(wanted):
            first = int(wanted[begin])
            end = int(np.searchsorted(wanted, first + PART))
            averages, deviations = self.windows.between(first, int(wanted[end - 1]) + 1)
            mean[begin:end] = averages[wanted[begin:end] - first]
            spread[begin:end] = deviations[wanted[begin:end] - first]
            begin = end
        return mean, _visible(mean, spread)

    def against(self, level: Floats) -> Scores:
        """Return the scores against windows of `level`, float64 (n,)."""
        return _scored(self.values, self.windows._replace(values=level), self.first)


@remembered
def scores(loss: Series, rows: int, first: int, guarded: bool, apart: bool = True) -> Scores:
    """Return the height of each finite value over the window of `rows` rows before it, from row `first` on.

    Where `guarded`, sigma is the scatter about the window's trend, and many spikes that stand `apart` don't widen it.
    """
    steps, values = finite(loss)
    scored = _scored(values, Windows(values, rows, guarded), first)
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


@remembered
def many_spikes(loss: Series) -> tuple[Recovery, ...]:
    """Return the spikes of a loss that has several, nearly all of which a gap parts from its noise.

    Each stands above the medians of the rows before and after it, in scatters of neighbours, which spikes don't widen.
    Of a heavy tail, which is noise of the run's own, most would be just above the limit; of a scatter that shrinks as
    the loss falls, some would be dips.
    """
    steps, values = finite(loss)
    if len(values) < ROWS_LONG:
        return ()
    before, after = neighbours(values)
    changes = after - before
    plain = changes[np.abs(changes) <= far(len(values)) * 2**0.5 * scatter(changes)]  # so many may be those of spikes
    noise = max(scatter(plain), RELATIVE_RESOLUTION * abs(median(values)), NO_SPREAD)
    found = {side: _outstanding(steps, side * values, noise, far(len(values))) for side in (1, -1)}
    high = sum(spike.height > NOISE_TIMES * far(len(values)) for spike in found[1])
    return found[1] if high >= max(2, SHARE_MOST * (len(found[1]) + len(found[-1]))) else ()


def _outstanding(steps: Ints, values: Floats, noise: float, height: float) -> tuple[Recovery, ...]:
    """Return the rows that rise so many scatters at once above those before them, and come back within a few rows."""
    found: list[Recovery] = []
    free = 3  # rows before the first spike
    for row in (np.flatnonzero(np.diff(values) > height * noise) + 1).tolist():
        level = median(values[max(row - ROWS_LONG, 0) : row]) if row >= free else math.inf
        back = np.flatnonzero(values[row : row + ROWS_SHORT] < level + FACTOR * noise)
        if not len(back):
            continue
        free = row + int(back[0])
        top = row + int(np.argmax(values[row:free])) if free > row else row
        level = (level + median(values[free : free + ROWS_LONG])) / 2  # on both sides, for the loss may fall fast
        times = (float(values[top]) - level) / noise
        if times > height:
            found.append(Recovery(int(steps[top]), float(values[top]), times, free - row))
    return tuple(found)


def _scored(values: Floats, windows: Windows, first: int) -> Scores:
    heights = np.empty(len(values) - first)
    for begin in range(first, len(values), PART):
        end = min(begin + PART, len(values))
        mean, spread = windows.between(begin - windows.rows, end - windows.rows)
        sigma, part = _visible(mean, spread), heights[begin - first : end - first]
        np.subtract(values[begin:end], mean, out=part)
        part /= sigma
        # A window of nothing but zeros is no training: the height of a loss above it means nothing.
        part[sigma <= NO_SPREAD] = 0.0
    return Scores(values, first, heights, windows, heights)


def _visible(mean: Floats, spread: Floats) -> Floats:
    """Return a deviation, or what the digits of its mean resolve where that is more."""
    found: Floats = np.maximum(spread, np.maximum(np.abs(mean) * RELATIVE_RESOLUTION, NO_SPREAD))
    return found


def shifts(scored: Scores, params: SpikeSearchParams) -> dict[int, float]:
    """Return the rows of the scores from which on the whole level is high, and how high in units of sigma.

    None without `guarded`, nor with fewer than `level_rows` rows to come.
    """
    values, begin, above = scored.values, scored.first, scored.heights
    count = len(above) - params.level_rows + 1
    if not params.guarded or count < 1:
        return {}
    bar = params.shift_bar(scored.windows.rows)
    high = np.flatnonzero(above[:count] > bar)
    if not len(high):
        return {}
    mean, spread = scored.at(high)
    level = row_medians(windows(values[begin:], params.level_rows)[high])
    heights = (level - mean) / spread
    lasting = (heights > bar) & (level - mean > params.shift_share * span(values))
    # The rows right before a jump are still at the old level; half way up already, it creeps.
    first = begin - params.level_rows
    if first >= 0:
        before = row_medians(windows(values[first:], params.level_rows)[high])
        lasting &= before - mean < SHARE_HALF * (level - mean)
    return dict(zip(high[lasting].tolist(), heights[lasting].tolist(), strict=True))


NORMAL_DECAY = (2.3263 - 1.2816) / math.log(10)  # no limit: the decay of a normal sample


def t_tail(height: float, dof: int) -> float:
    """Return the probability that Student's t with `dof` degrees of freedom (1 or more) exceeds a height.

    Abramowitz and Stegun 26.7.3 and 26.7.4; the normal distribution from 200 degrees on.
    """
    if dof >= 200:
        return 0.5 * math.erfc(height / math.sqrt(2))
    angle = math.atan(height / math.sqrt(dof))
    square = math.cos(angle) ** 2
    term = total = 1.0 if dof % 2 == 0 else math.cos(angle)
    for k in range(2 if dof % 2 == 0 else 3, dof - 1, 2):
        term *= square * (k - 1) / k
        total += term
    if dof % 2 == 0:
        inside = math.sin(angle) * total
    else:
        inside = 2 / math.pi * (angle + (math.sin(angle) * total if dof > 1 else 0.0))
    return max(0.0, (1 - inside) / 2)


class Tail(NamedTuple):
    """The upper tail of a sample of scores: how many of `size` chance would put above a height.

    An exponential tail through the 90th and the 99th percentile, so that a heavy-tailed series raises its own bar,
    where a normal tail would cry wolf. It is never thinner than what normal noise gives in windows of `rows` rows:
    Student's t, since a window of ten rows knows its own deviation badly.
    """

    size: int
    at90: float
    decay: float
    rows: int

    def expected(self, height: float) -> float:
        """Return the number of scores above `height` to expect by chance."""
        own = 0.1 * math.exp(min(0.0, -(height - self.at90) / self.decay))
        return self.size * max(own, _of_noise(height, self.rows))

    def height(self, expected: float) -> float:
        """Return the height above which chance puts `expected` scores; infinite for none."""
        if expected <= 0:
            return math.inf
        own = self.at90 + self.decay * math.log(max(0.1 * self.size / expected, 1.0))
        return max(own if 0.1 * self.size > expected else 0.0, _height_of_noise(self.size, self.rows, expected))


def _of_noise(height: float, rows: int) -> float:
    """Return the share of scores of normal noise above a height, each over a window of so many rows."""
    return t_tail(height / math.sqrt(1 + 1 / rows), max(rows - 2, 1))


@lru_cache(maxsize=256)
def _height_of_noise(size: int, rows: int, expected: float) -> float:
    """Return the height above which normal noise puts `expected` of `size` scores: the same for all runs as long."""
    return height_for(lambda height: size * _of_noise(height, rows), expected)


def height_for(expected: Callable[[float], float], wanted: float) -> float:
    """Return the height above which a tail expects so many, to the last digits; infinite for none."""
    if wanted <= 0:
        return math.inf
    low, high = 0.0, 1.0
    while expected(high) > wanted and high < 1e300:
        low, high = high, 2 * high + 1
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) > wanted else (low, middle)
    return high


def upper_tail(scores: Floats, rows: int) -> Tail:
    """Return the tail of at least two scores, without the ones to be tested: the highest, and the last twentieth.

    In a log of 60 rows the highest score alone would move the 99th percentile up to itself, and a run that blows
    up in its last rows would raise its own bar above them. `rows` is the window that each score was measured with.
    """
    early = scores
    if len(scores) >= 40:
        early = scores[: len(scores) - len(scores) // 20]
    indices = np.arange(0, len(early) - 1, 1 + len(early) // SAMPLE)
    others = early[indices + (indices >= np.argmax(early))]
    at90, at99 = quantiles(others, 0.90, 0.99)
    return Tail(len(scores), at90, max((at99 - at90) / math.log(10), NORMAL_DECAY), rows)
