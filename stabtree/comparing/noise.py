"""Runs of different seeds: a difference counts where chance does not make one so large, by what was there before.

Two tests share one form. Each row, and each mean over some rows, is measured in deviations from what is usual, and the
bar is the height that chance reaches as rarely as is said, read from the tail of those that are known to be healthy:
with one good run the differences before, with several what each good run differs from the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import Tail, change_noise, median, span, trailing_moments, upper_tail
from stabtree.comparing.seed import parting
from stabtree.comparing.series import LEARNED, SCHEDULED, scaled

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.comparing.align import Rows
    from stabtree.comparing.result import Parting

CHANCE = 0.01  # that two healthy runs are told to part, over all series and both tests
OVER = (1, 8, 32)  # rows that are averaged: a jump is seen in one, a shift in many
LEAST_ROWS = 40  # common rows from which on there is noise to measure
WINDOW = (10, 64)  # rows, or means of rows, that a deviation is measured by: at least, and at most
QUARTER = 4
KNOWN = 40  # scores that it takes for a tail of their own
LEAST = 7.0  # deviations: a parting is at least as large, however thin the tail looks
LEVEL = 0.5  # of all the way that the good run goes: a level so far off is none of noise
LEVEL_NOISES = 8.0  # and so many times the noise of a mean besides
LEVEL_ROWS = 32
LEVEL_MEANS = 2  # in so many means one after the other
CALM = 2.0  # times the noise of a mean within which two runs are alike
FLOOR = 0.3  # of the good run's own noise that the differences have at least
AGAIN = 1.1  # a tail is read anew when so many times as many rows have come
STRETCH = 3  # longest stretch of values that are not finite that calls for nothing, where the good run has some too


class Scored(NamedTuple):
    """A series in deviations, averaged over some rows.

    Attributes:
        scores: float64 (n,), how far each mean is from what is usual; NaN where that can't be measured.
        rows: the row that each mean begins at.
        over: over how many rows each is averaged.
        window: means that the deviation was measured by.
    """

    scores: Floats
    rows: Ints
    over: int
    window: int


def lost(rows: Rows) -> Parting | None:
    """Where values stop being finite that are finite in the good runs; where those have some too, a long stretch."""
    bad = ~np.isfinite(rows.bad)
    there = ~np.isfinite(rows.good)
    longest = max(_longest(one) for one in there)
    bar = 1 if not longest else STRETCH + 2 * longest
    lengths = _lengths(bad)
    at = np.flatnonzero(lengths == bar)
    return parting(rows, int(at[0]) - bar + 1, "not finite") if len(at) else None


def _lengths(flags: Bools) -> Ints:
    """How many values in a row are true up to each one."""
    places = np.arange(len(flags))
    lengths: Ints = places - np.maximum.accumulate(np.where(flags, -1, places))
    return lengths


def _longest(flags: Bools) -> int:
    return int(_lengths(flags).max(initial=0))


def by_history(rows: Rows, chance: float) -> Parting | None:
    """Where a series parts from the one good run, beyond what their differences were before.

    Args:
        rows: the series.
        chance: that it is told to part by noise.
    """
    good, bad = scaled(rows.good, rows.bad)
    keep = np.isfinite(good[0]) & np.isfinite(bad)
    kept = np.flatnonzero(keep)
    if len(kept) < LEAST_ROWS:
        return None
    apart = bad[keep] - good[0][keep]
    floor = FLOOR * change_noise(good[0][keep])
    found = []
    for over in OVER:
        scored = _against_before(apart, over, floor / over**0.5)
        at = _beyond_before(scored, chance / len(OVER)) if scored else None
        if scored and at is not None:
            found.append(_told(rows, kept, apart, scored, at))
    level = _level(good[0][keep], apart) if rows.metric in LEARNED and not found else None
    if level is not None:
        found.append(replace(parting(rows, int(kept[level]), "shifts"), noises=None, over_rows=LEVEL_ROWS))
    return min(found, key=lambda one: one.place, default=None)


def _told(rows: Rows, kept: Ints, apart: Floats, scored: Scored, place: int) -> Parting:
    """A series that parts where a mean is off: at the row of it from which on the rows are."""
    first = int(scored.rows[place])
    at = first if scored.over == 1 else _turn(apart, first, scored.over)
    told = parting(rows, int(kept[at]), "jumps" if scored.over == 1 else "shifts")
    return replace(told, noises=float(scored.scores[place]), over_rows=scored.over)


def _turn(apart: Floats, first: int, over: int) -> int:
    """The row at which the level of differences changes, in a mean that is off or the one before it."""
    start = max(0, first - over)
    usual = median(apart[max(0, start - WINDOW[1]) : start]) if start else 0.0
    way = float(apart[first : first + over].mean()) - usual
    part = (apart[start : first + over] - usual) * np.sign(way) - abs(way) / 2
    sums = np.concatenate(([0.0], np.cumsum(part)))
    return start + int(np.argmin(sums[:-1]))


def _level(good: Floats, apart: Floats) -> int | None:
    """Where a run goes another way for good: the first row after the last that was alike."""
    means, own = _means(apart, LEVEL_ROWS), _means(good, LEVEL_ROWS)
    if len(means) <= LEVEL_MEANS:
        return None
    noise = change_noise(good)
    off = np.abs(means) > max(LEVEL * span(own), LEVEL_NOISES * noise / LEVEL_ROWS**0.5)
    at = np.flatnonzero(_lengths(off) == LEVEL_MEANS)
    if not len(at):
        return None
    first = (int(at[0]) - LEVEL_MEANS + 1) * LEVEL_ROWS
    few = OVER[1]
    calm = np.flatnonzero(np.abs(_means(apart[:first], few)) <= CALM * noise / few**0.5)
    return int(calm[-1] + 1) * few if len(calm) else 0


def _means(values: Floats, over: int) -> Floats:
    whole = values[: len(values) // over * over]
    means: Floats = whole.reshape(-1, over).mean(axis=1)
    return means


def _against_before(apart: Floats, over: int, floor: float) -> Scored | None:
    """Means in deviations from those in a window before each."""
    means = _means(apart, over)
    window = min(WINDOW[1], len(means) // QUARTER)
    if window < WINDOW[0]:
        return None
    center, spread = trailing_moments(means, window)
    size = np.maximum(spread, floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.abs(means[window:] - center) / size
    scores[~(size > 0)] = 0.0
    return Scored(scores, over * np.arange(window, len(means)), over, window)


def _beyond_before(scored: Scored, chance: float) -> int | None:
    """The first score above the bar that the scores before it set."""
    size = len(scored.scores)
    bare = max(LEAST, Tail(size, 0.0, 1e-9, scored.window).height(chance))
    bar, known = bare, 0
    for at in np.flatnonzero(scored.scores > bare).tolist():
        if at >= KNOWN and at >= AGAIN * known:
            tail = upper_tail(scored.scores[:at], scored.window)
            bar, known = max(bare, tail._replace(size=size).height(chance)), at
        if scored.scores[at] > bar:
            return int(at)
    return None


def by_envelope(rows: Rows, chance: float) -> Parting | None:
    """Where a series leaves the envelope of several good runs: their median and spread at each position.

    The bar is set by the good runs themselves, each measured against the others.
    """
    good, bad = scaled(rows.good, rows.bad)
    keep = np.isfinite(good).all(axis=0) & np.isfinite(bad)
    kept = np.flatnonzero(keep)
    if len(kept) < LEAST_ROWS:
        return None
    found = []
    for over in OVER:
        scored, bar = _against_envelope(good[:, keep], bad[keep], over, chance / len(OVER))
        above = np.flatnonzero(scored.scores > bar)
        if len(above):
            apart = bad[keep] - _middle(good[:, keep])
            found.append(_told(rows, kept, apart, scored, int(above[0])))
    return min(found, key=lambda one: one.place, default=None)


def _against_envelope(good: Floats, bad: Floats, over: int, chance: float) -> tuple[Scored, float]:
    """The bad run in spreads of the good ones, and the bar that the good ones set."""
    means, mine = np.array([_means(one, over) for one in good]), _means(bad, over)
    runs, count = means.shape
    window = max(1, min(WINDOW[1], count // QUARTER))
    center = _middle(means)
    away = np.abs(means - center)
    spread = _smoothed((away**2).sum(axis=0) / (runs - 1), window) ** 0.5
    spread = np.maximum(spread, median(spread) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(spread > 0, np.abs(mine - center) / spread, 0.0)
        others = [_middle(np.delete(means, one, axis=0)) for one in range(runs)]
        healthy = np.concatenate(
            [np.where(spread > 0, np.abs(one - other) / spread, 0.0) for one, other in zip(means, others, strict=True)]
        )
    free = (runs - 1) * max(1.0, window * _independent(means - center))
    tail = upper_tail(healthy, int(free) + 2) if len(healthy) > 2 else Tail(count, 0.0, 1e-9, int(free) + 2)
    bar = max(tail._replace(size=count).height(chance), float(healthy.max()))
    return Scored(scores, over * np.arange(count), over, window), bar


def _middle(values: Floats) -> Floats:
    """The median of the runs at each position."""
    ordered = np.sort(values, axis=0)
    half = len(values) // 2
    middle: Floats = ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2
    return middle


def _smoothed(values: Floats, window: int) -> Floats:
    """Means over a window around each value, shorter at the ends."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    places = np.arange(len(values))
    low, high = np.maximum(places - window // 2, 0), np.minimum(places + window // 2 + 1, len(values))
    means: Floats = (sums[high] - sums[low]) / (high - low)
    return means


def _independent(residuals: Floats) -> float:
    """The share of rows that are independent of each other, by how much each one resembles the next."""
    centered = residuals - residuals.mean(axis=1, keepdims=True)
    power = float((centered * centered).sum())
    alike = float((centered[:, 1:] * centered[:, :-1]).sum()) / power if power > 0 else 0.0
    alike = min(max(alike, 0.0), 1.0)
    return (1 - alike) / (1 + alike)


def comparable(rows: Rows) -> str:
    """Why a series of different seeds can't be compared; nothing where it can."""
    if rows.metric in SCHEDULED:
        return ""
    finite = rows.good[0][np.isfinite(rows.good[0])]
    if len(rows) < LEAST_ROWS:
        return f"{len(rows):,} rows in common, {LEAST_ROWS} are needed"
    if len(finite) < 2:
        return "it is NaN or inf in the good run"
    if change_noise(finite) > 0:
        return ""
    still = bool(np.all(finite == finite[0]))
    return "it never moves in the good run" if still else "it moves in steps, at other times on another seed"
