"""Finding spikes: all excursions of a loss above its recent mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.facts.registry import finite, per_series
from stabtree.facts.spike_short import BEFORE_ROWS, expected, heights
from stabtree.stats import NORMAL_99, Tail, interval, quantiles, row_medians, span, trailing_moments, upper_tail

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints
    from stabtree.run import Series

# Below this share of its own size a loss does not vary: float32 holds 1e-7, and a logged text six digits.
RELATIVE_RESOLUTION = 1e-6
NO_SPREAD = 1e-150  # its square is no number above 0


class SpikeLook(NamedTuple):
    """How spikes are looked for, the parameters of the fact.

    Attributes:
        window_steps: the stretch before a step over which its mean and sigma are taken.
        sigma: how many sigmas above that mean a step must stand.
        chance: how many steps as high the run's own noise may explain; 1 is the document's letter.
        back_sigma: how close to the mean before it, in sigmas, a spike must come to be over.
        horizon_steps: steps within which a loss comes back, and after which one that has not stays up.
        lasting_share: what stays up by no more than this share of the loss's range has come back.
        least_rows: rows of a window; a mean and a sigma of fewer say little, so it widens instead.
        back_rows: rows whose median must be back before a guarded recovery counts.
        seam_rows: rows after a resume in which a jump is the seam's and no spike.
        tail_rows: rows from which on a power law is read from the run's own highest hundredth.
        tail_exponent: its exponent below that; measured on labelled runs 1.6 to 5 where rows are enough, median 3.8.
        log_share: the most that a window takes of all rows; a log of one row an epoch would else be all window.
        short_rows: a log of fewer rows has no windows: see `spike_short`.
        shift_rows: rows, from a high one on, whose median is looked at for a shift.
        shift_sigma: how far that median must stand above the mean before them, where the window is long; twice as far
            where it has no more than `shift_rows` rows.
        shift_share: by how much of all that the loss covers it must rise.
        shift_jump: the most of that rise that as many rows before may have made: a level that creeps up is no spike.
    """

    window_steps: int
    sigma: float
    chance: float
    back_sigma: float
    horizon_steps: int
    lasting_share: float
    least_rows: int
    back_rows: int
    seam_rows: int
    tail_rows: int
    tail_exponent: float
    log_share: float
    short_rows: int
    shift_rows: int
    shift_sigma: float
    shift_share: float
    shift_jump: float

    @property
    def guarded(self) -> bool:
        """Whether chance is asked as well; else the document's letter holds."""
        return self.chance < 1

    def rows(self, series: Series) -> int:
        """The window in rows of a series."""
        # A trend and the scatter about it take three rows, whatever is asked for.
        steps = finite(series)[0]
        rows = max(round(self.window_steps / interval(steps)), self.least_rows, 3)
        return self._within_log(rows, len(steps), max(self.least_rows, 3)) if self.guarded else rows

    def horizon(self, series: Series) -> int:
        """`horizon_steps`, or as many steps of a short log as a window may take of its rows."""
        if not self.guarded:
            return self.horizon_steps
        steps = finite(series)[0]
        apart = interval(steps)
        rows = self._within_log(round(self.horizon_steps / apart), len(steps), self.back_rows)
        return min(self.horizon_steps, round(rows * apart))

    def short(self, series: Series) -> bool:
        """Whether a log is too short for windows."""
        return self.guarded and len(finite(series)[0]) < self.short_rows

    def shift_bar(self, rows: int) -> float:
        """How many sigmas of a window of so many rows make a shift."""
        # A sigma of few rows is a rough one, and rougher still where neighbours are alike.
        return self.shift_sigma * (1 + self.shift_rows / rows)

    def _within_log(self, rows: int, all_rows: int, least: int) -> int:
        return min(rows, max(least, round(self.log_share * all_rows)))


@dataclass(frozen=True, slots=True)
class Excursion:
    """One excursion of the loss.

    Attributes:
        step: first step above the threshold.
        peak_step: step of its highest value; `peak` is that value.
        height_sigma: the first step's height over `mean` in units of `sigma`, or the peak's if higher.
        mean: mean of the window before it.
        sigma: standard deviation of the window before it.
        expected: how many steps this high chance allows over the whole run.
        recovered_step: first step at which it was back, None if it never was.
        last_good_step: the logged step before it.
        shift_sigma: how far the median of the rows from it on stands over `mean` where the level shifts; else 0.
    """

    step: int
    peak_step: int
    peak: float
    height_sigma: float
    mean: float
    sigma: float
    expected: float
    recovered_step: int | None
    last_good_step: int
    shift_sigma: float = 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """All spikes of a run, with what the search looked at.

    Attributes:
        spikes: in order of step.
        rows: the window in rows; `widened` says that it spans more steps than asked for.
        judged: how many steps had a full window before them.
        highest: the highest score of all and its step, for explaining a no.
        bar: the score from which a step counted.
    """

    spikes: tuple[Excursion, ...]
    rows: int
    widened: bool
    judged: int
    highest: float
    highest_step: int
    bar: float


@per_series
def rarity(series: Series, step: int, look: SpikeLook) -> float:
    """How many rows of the whole run the series' own noise puts as high as the highest around a step."""
    steps, values = finite(series)
    rows = look.rows(series)
    at = int(np.searchsorted(steps, step)) - rows - 1
    if len(values) < rows + 3 or not 0 <= at < len(values) - rows - 1:
        return float("inf")
    scores = _scores(values, values, rows, True)[2]
    near = scores[max(at - look.back_rows, 0) : at + look.back_rows]
    return upper_tail(scores, rows).expected(float(near.max()))


@per_series
def rarest(loss: Series, top: Excursion, look: SpikeLook, alone: bool = False) -> float:
    """How many rows as high as a spike's highest one chance allows, however heavy the tail of the run's noise.

    Of a shift, how many stretches as high; `alone` asks about the single row all the same.

    The more pessimistic of two tails: the exponential one of `Tail`, and a power law through the highest hundredth of
    the rows outside of the spike (Hill 1975). Runs of fewer than `tail_rows` rows have no hundredth to
    read it from: theirs goes through the 99th percentile, at least that of normal noise, with the exponent
    `tail_exponent`, the median of the labelled healthy runs.
    """
    steps, values = finite(loss)
    if look.short(loss):
        return top.expected
    rows = look.rows(loss)
    scores = _scores(values, values, rows, True)[2]
    first = int(np.searchsorted(steps, top.step)) - rows - 1
    end = len(scores)
    if top.recovered_step is not None:
        end = max(int(np.searchsorted(steps, top.recovered_step)) - rows - 1, first + 1)
    height = float(scores[first:end].max())
    others = np.delete(scores, slice(first, end))
    least, base, exponent = len(others) / 100, NORMAL_99, look.tail_exponent
    if len(others) >= max(look.tail_rows, 100):  # a hundredth of fewer is no row
        highest = np.sort(np.partition(others, -int(least) - 1)[-int(least) - 1 :])
        base = max(float(highest[0]), 1e-300)
        exponent = 1 / max(float(np.mean(np.log(np.maximum(highest[1:], base) / base))), 1e-3)
    elif len(others):
        base = max(quantiles(others, 0.99)[0], NORMAL_99)
    tail = upper_tail(scores, rows)

    def allowed(at: float) -> float:
        return max(tail.expected(at), float(least * (max(at, base) / base) ** -exponent))

    single = allowed(height)
    if alone or not top.shift_sigma:
        return single
    return min(single, in_a_row(allowed(top.shift_sigma), len(scores), look))


def in_a_row(single: float, rows: int, look: SpikeLook) -> float:
    """How many times `single` high rows of all fill the greater half of `shift_rows` in a row by chance."""
    half = (look.shift_rows + 1) // 2
    share = min(single / max(rows, 1), 1.0)
    return float(rows * math.comb(look.shift_rows, half) * share**half)


def find(loss: Series, look: SpikeLook, seams: tuple[int, ...] = ()) -> Search:
    """Search a loss series for spikes.

    A step is above when it stands more than `sigma` standard deviations over the mean of the `window_steps`
    before it. With `chance` below 1 the deviation is that about the window's trend, and the step must stand so
    high that the upper tail of the run's own scores makes fewer than `chance` such steps expected. Steps up to the
    recovery belong to one spike. Once found, the steps of a spike that healed are taken out of the windows
    after it, where they would hide the next one. A rise that runs straight into the NaN at which the run ends
    belongs to section 1 and is no spike, nor is one in the first rows after one of the `seams`, steps at which the
    run was resumed.
    """
    steps, values = finite(loss)
    if look.short(loss):
        return _find_short(steps, values, look)
    rows = look.rows(loss)
    widened = rows != max(1, round(look.window_steps / interval(steps)))
    if len(values) < rows + 3:
        return Search((), rows, widened, 0, 0.0, 0, look.sigma)
    guarded = look.guarded
    scored = _scores(values, values, rows, guarded)
    # The tail is that of the first look: with the spikes taken out, their own flanks would stand out in it.
    tail = upper_tail(scored[2], rows)
    bar = min(max(look.sigma, tail.height(look.chance)), 1e300) if guarded else look.sigma
    shifts = _shifts(values, scored, rows, look)
    scan = _scan(steps, values, scored, rows, tail, bar, shifts, look)
    healed = [spike for spike in scan.spikes if spike.recovered_step is not None]
    if healed:
        scored = _scores(values, _without(steps, values, healed, rows), rows, guarded)
        scan = _scan(steps, values, scored, rows, tail, bar, _shifts(values, scored, rows, look), look)
    if not np.isfinite(loss.values[-1]):
        last = int(steps[-1]) - look.window_steps
        scan = replace(scan, spikes=tuple(s for s in scan.spikes if s.recovered_step is not None or s.step < last))
    spikes = tuple(spike for spike in scan.spikes if not _at_seam(steps, spike.step, seams, look.seam_rows))
    return replace(scan, widened=widened, spikes=spikes)


def _find_short(steps: Ints, values: Floats, look: SpikeLook) -> Search:
    """The spikes of a log without windows; a single row that is back where it came from has healed."""
    level, scatter, height = heights(values, RELATIVE_RESOLUTION)
    top = int(np.argmax(height))
    bar = NORMAL_99 * max(len(values) / 100 / look.chance, 1.0) ** (1 / look.tail_exponent)
    found: list[Excursion] = []
    row = 2
    while row < len(values):
        if height[row] <= max(bar, look.sigma):
            row += 1
            continue
        back = _first_below(values, row + 1, float(level[row]) + look.back_sigma * scatter, 1)
        end = back if back is not None else len(values)
        peak = row + int(np.argmax(values[row:end]))
        found.append(
            Excursion(
                step=int(steps[row]),
                peak_step=int(steps[peak]),
                peak=float(values[peak]),
                height_sigma=float(height[row:end].max()),
                mean=float(level[row]),
                sigma=scatter,
                expected=expected(float(height[row:end].max()), len(values), look.tail_exponent),
                recovered_step=int(steps[back]) if back is not None else None,
                last_good_step=int(steps[row - 1]),
            )
        )
        row = end
    highest = float(height[top])
    return Search(tuple(found), BEFORE_ROWS, True, len(values) - 2, highest, int(steps[top]), max(bar, look.sigma))


def _at_seam(steps: Ints, step: int, seams: tuple[int, ...], rows: int) -> bool:
    """Whether a step is among the first rows after a seam."""
    return any(0 <= int(np.searchsorted(steps, step)) - int(np.searchsorted(steps, seam)) < rows for seam in seams)


def _without(steps: Ints, values: Floats, healed: list[Excursion], rows: int) -> Floats:
    """The values with every healed spike replaced by the rows before it, so that their scatter stays the run's own."""
    level = values.copy()
    for spike in healed:
        back = spike.recovered_step if spike.recovered_step is not None else spike.step
        start, end = (int(np.searchsorted(steps, step)) for step in (spike.step, back))
        level[start:end] = np.resize(level[start - rows : start], end - start)
    return level


def _scores(values: Floats, level: Floats, rows: int, guarded: bool) -> tuple[Floats, Floats, Floats]:
    """Mean and sigma of the window of `level` before each value, and its height above: three of (n - rows - 1,).

    The first belongs to the first value with more than `rows` before it, the document's t > 100. Where `guarded`,
    sigma is the scatter about the window's trend.
    """
    mean, spread = (part[1:] for part in trailing_moments(level, rows, detrend=guarded))
    # In place: these arrays are as long as the log.
    scores = np.abs(mean)
    scores *= RELATIVE_RESOLUTION
    np.maximum(scores, NO_SPREAD, out=scores)
    np.maximum(spread, scores, out=spread)
    np.subtract(values[rows + 1 :], mean, out=scores)
    scores /= spread
    # A window of nothing but zeros is no training: how far a loss stands above it says nothing.
    scores[spread <= NO_SPREAD] = 0.0
    return mean, spread, scores


class Shifts(NamedTuple):
    """Rows of the scores from which on the whole level stands high, and how high in units of sigma; both (m,)."""

    rows: Ints
    heights: Floats

    def at(self, row: int) -> float:
        """The height of the shift that begins at a row, 0 where none does."""
        at = int(np.searchsorted(self.rows, row))
        return float(self.heights[at]) if at < len(self.rows) and self.rows[at] == row else 0.0


def _shifts(values: Floats, scored: tuple[Floats, Floats, Floats], rows: int, look: SpikeLook) -> Shifts:
    """Where the level shifts: none by the document's letter, nor with fewer than `shift_rows` rows to come."""
    mean, spread, scores = scored
    count = len(scores) - look.shift_rows + 1
    if not look.guarded or count < 1:
        return Shifts(np.zeros(0, dtype=np.int64), np.zeros(0))
    bar = look.shift_bar(rows)
    high = np.flatnonzero(scores[:count] > bar)
    if not len(high):
        return Shifts(high, np.zeros(0))
    windows = np.lib.stride_tricks.sliding_window_view(values[rows + 1 :], look.shift_rows)
    level = row_medians(windows[high])
    heights = (level - mean[high]) / spread[high]
    lasting = (heights > bar) & (level - mean[high] > look.shift_share * span(values))
    # The rows right before a jump are still at the old level; half way up already, it creeps.
    first = rows + 1 - look.shift_rows
    if first >= 0:
        before = row_medians(np.lib.stride_tricks.sliding_window_view(values[first:], look.shift_rows)[high])
        lasting &= before - mean[high] < look.shift_jump * (level - mean[high])
    return Shifts(high[lasting], heights[lasting])


def _scan(
    steps: Ints,
    values: Floats,
    scored: tuple[Floats, Floats, Floats],
    rows: int,
    tail: Tail,
    bar: float,
    shifts: Shifts,
    look: SpikeLook,
) -> Search:
    """All excursions above `bar` and all shifts; the median of `back_rows` rows must be back for one to have healed."""
    mean, spread, scores = scored
    top, least = int(np.argmax(scores)), look.back_rows if look.guarded else 1
    found: list[Excursion] = []
    # Twice in it does no harm, and `np.union1d` imports masked arrays.
    hits = np.sort(np.concatenate((np.flatnonzero(scores > bar), shifts.rows)))
    at = 0
    while at < len(hits):
        hit = int(hits[at])
        row, m, s = hit + rows + 1, float(mean[hit]), float(spread[hit])
        back = _first_below(values, row + 1, m + look.back_sigma * s, least)
        end = back if back is not None else len(values)
        peak = row + int(np.argmax(values[row:end]))
        shifted, single = shifts.at(hit), tail.expected(float(scores[hit]))
        found.append(
            Excursion(
                step=int(steps[row]),
                peak_step=int(steps[peak]),
                peak=float(values[peak]),
                height_sigma=(float(values[peak]) - m) / s,
                mean=m,
                sigma=s,
                expected=in_a_row(tail.expected(shifted), len(scores), look) if shifted else single,
                recovered_step=int(steps[back]) if back is not None else None,
                last_good_step=int(steps[row - 1]),
                shift_sigma=shifted,
            )
        )
        at = int(np.searchsorted(hits, end - rows - 1))
    return Search(tuple(found), rows, False, len(scores), float(scores[top]), int(steps[rows + 1 + top]), bar)


def _first_below(values: Floats, start: int, level: float, rows: int) -> int | None:
    """Index of the first row from `start` on that is at or below a level, and the median of `rows` rows with it."""
    size = 16  # most spikes are back within a few rows; the look ahead doubles for those that are not
    while start < len(values):
        part = values[start : start + size + rows - 1]
        if len(part) < rows:
            return None
        levels = part if rows == 1 else row_medians(np.lib.stride_tricks.sliding_window_view(part, rows))
        below = np.flatnonzero((levels <= level) & (part[: len(levels)] <= level))
        if len(below):
            return start + int(below[0])
        start += len(levels)
        size *= 2
    return None
