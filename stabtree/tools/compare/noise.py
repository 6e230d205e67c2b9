"""Where a series parts: with one seed at the first digit that differs, else where chance does not make it.

Of runs of one seed the rows are equal to the last digit, until something differs. What is equal on every seed proves
nothing: a series that does not move, and the first row of one that no batch is measured by. The norms of LayerNorm
weights begin at the same value in every run.

Of runs of different seeds each row, and each mean over some rows, is measured in deviations from what is usual. The bar
is the score that chance exceeds with the given probability, estimated from the tail of healthy scores: with one good
run from the differences before, with several from how much each good run differs from the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import NOISE_TIMES, ROWS_LONG, SHARE_HALF
from stabtree.common.stats import change_noise, median, quantiles, span
from stabtree.facts.scores import Tail, Windows, upper_tail
from stabtree.metrics.metric import Role
from stabtree.metrics.table import with_role
from stabtree.tools.compare.result import Parting
from stabtree.tools.compare.rows import SCHEDULED, alike, scaled, unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.tools.compare.rows import Rows

# What a batch is measured by, so that already its first row differs from seed to seed.
_OF_A_BATCH = (Role.LOSS, Role.HELD_OUT_LOSS, Role.QUALITY, Role.REWARD, Role.GRADIENT)
_AT_START = (0.0, math.log(2))  # the first loss of on-policy RL and of DPO, on every seed
BF16 = 2.0**-8  # relative distance of neighbouring numbers of the coarsest precision that losses are computed in
CHANCE_OF_DIGITS = 1e-3  # that runs of two seeds begin with the same digits
MAX_DIGIT_ROWS = ROWS_LONG  # rows of a series that count towards that
NOISE_ROWS = 50  # first rows that show how much a series moves by itself
MIN_NOISE_ROWS = 3  # rows needed to measure that

# How well a run learns is much the same on all seeds.
_LEARNING = (Role.LOSS, Role.HELD_OUT_LOSS, Role.QUALITY, Role.REWARD)
CHANCE = 0.01  # that two healthy runs are reported to part, over all series and both tests
OVER = (1, 8, 32)  # rows that are averaged: a jump is seen in one, a shift in many
MIN_ROWS = 40  # common rows needed to measure noise
MIN_WINDOW, MAX_WINDOW = 10, 64  # rows, or means of rows, that a deviation is measured by
QUARTER = 4
MIN_TAIL_SCORES = MIN_ROWS  # healthy scores needed to estimate their tail
MIN_SCORE = 7.0  # deviations of a parting, however thin the tail looks
LEVEL = SHARE_HALF  # share of the good run's range: a mean so far off is not noise
LEVEL_NOISES = 8.0  # times the noise of a mean that it must be off as well
LEVEL_ROWS = 32
LEVEL_MEANS = 2  # consecutive means that must be off
CALM = NOISE_TIMES  # times the noise of a mean within which two runs are alike
FLOOR = 0.3  # times the good run's own noise: the smallest deviation of the differences
REFIT_GROWTH = 1.1  # factor by which the rows grow before the tail is estimated again
STRETCH = 3  # longest stretch of non-finite values that does not count if the good run has some too


def same_seed(rows: Iterable[Rows]) -> bool:
    """Return whether the first rows of two runs agree in more digits than those of two seeds would."""
    return math.prod(_by_chance(one) for one in rows if one.metric not in SCHEDULED) < CHANCE_OF_DIGITS


def _by_chance(rows: Rows) -> float:
    """Return the chance that a series of two seeds begins with as many equal rows."""
    good = rows.good[0]
    finite = good[np.isfinite(good)][:NOISE_ROWS]
    noise = _noise(finite)
    equal = int(np.count_nonzero(_proves(rows)[: _equal_rows(rows)]))
    if not equal or not noise > 0:
        return 1.0
    one = min(1.0, 2 * float(unit(finite).max()) / noise)
    return float(one ** min(equal, MAX_DIGIT_ROWS))


def _proves(rows: Rows) -> Bools:
    """Return the rows that another seed would make another value of, bool (n,)."""
    good = rows.good[0]
    proves = np.append(True, good[1:] != good[:-1])
    start = good[:1]
    by_nature = any(alike(start, np.full(1, value))[0] for value in _AT_START)
    if by_nature or rows.metric not in with_role(*_OF_A_BATCH):
        proves[0] = False
    return proves


def only_rounded(rows: Iterable[Rows]) -> bool:
    """Return whether what the first batch is measured by differs by no more than a lower precision makes of it."""
    return any(_is_rounded(one) for one in rows if one.metric in with_role(*_OF_A_BATCH))


def _is_rounded(rows: Rows) -> bool:
    good, bad = float(rows.good[0][0]), float(rows.bad[0])
    apart = abs(bad - good)
    return bool(0 < apart <= BF16 * abs(good) and apart < _noise(rows.good[0]) and not _equal_rows(rows))


def _noise(values: Floats) -> float:
    """Return the noise of the finite values; 0 if there are too few."""
    finite = values[np.isfinite(values)]
    if len(finite) < MIN_NOISE_ROWS:
        return 0.0
    return change_noise(finite)


def _equal_rows(rows: Rows) -> int:
    """Count the first rows that are equal as far as they were printed."""
    different = np.flatnonzero(~alike(rows.good[0], rows.bad))
    if len(different):
        return int(different[0])
    return rows.size


def first_difference(rows: Rows) -> Parting | None:
    """Return the parting at the first row in which what was printed differs; None if there is none."""
    at = _equal_rows(rows)
    if at < rows.size:
        return parting(rows, at, "differs")
    return None


def parting(rows: Rows, at: int, how: str) -> Parting:
    """Return the parting of a series at a row, with the difference in multiples of the good run's noise."""
    good, bad = float(rows.good[0][at]), float(rows.bad[at])
    if math.isfinite(good) and not math.isfinite(bad):
        how = "not finite"
    noises = None
    if rows.metric not in SCHEDULED and math.isfinite(bad - good):
        noise = _noise(rows.good[0])
        if noise > 0:
            noises = abs(bad - good) / noise
    return Parting(
        metric=rows.metric,
        step=int(rows.steps[at]),
        place=float(rows.positions[at]),
        how=how,
        good=good if math.isfinite(good) else None,
        bad=bad if math.isfinite(bad) else None,
        last_alike=int(rows.steps[at - 1]) if at else None,
        noises=noises,
    )


def largest(rows: Rows, after: Parting) -> float:
    """Return how many times its own noise a series moves away after it parted; infinite if that is unknown."""
    later = rows.positions >= after.place
    noise = _noise(rows.good[0])
    apart = np.abs(rows.bad[later] - rows.good[0][later])
    if not noise > 0 or not np.isfinite(apart).all():
        return math.inf
    return quantiles(apart, 0.95)[0] / noise


class Scored(NamedTuple):
    """A series in deviations, averaged over some rows.

    Attributes:
        scores: float64 (n,), how far each mean is from what is usual; NaN where that can't be measured.
        rows: int64 (n,), the first row of each mean.
        over: the number of rows in a mean.
        window: the number of means that the deviation was measured by.
    """

    scores: Floats
    rows: Ints
    over: int
    window: int


def lost(rows: Rows) -> Parting | None:
    """Find where values stop being finite; if the good runs have such values too, only a long stretch counts."""
    longest = max(int(_lengths(~np.isfinite(one)).max(initial=0)) for one in rows.good)
    bar = STRETCH + 2 * longest if longest else 1
    at = np.flatnonzero(_lengths(~np.isfinite(rows.bad)) == bar)
    if len(at):
        return parting(rows, int(at[0]) - bar + 1, "not finite")
    return None


def _lengths(flags: Bools) -> Ints:
    """Return how many consecutive values are true up to each one, (n,)."""
    indexes = np.arange(len(flags))
    lengths: Ints = indexes - np.maximum.accumulate(np.where(flags, -1, indexes))
    return lengths


def by_history(rows: Rows, chance: float) -> Parting | None:
    """Find where a series parts from the one good run, by more than they differed before.

    Args:
        rows: the series.
        chance: the probability that noise alone is reported.
    """
    good, bad = scaled(rows.good, rows.bad)
    keep = np.isfinite(good[0]) & np.isfinite(bad)
    kept = np.flatnonzero(keep)
    if len(kept) < MIN_ROWS:
        return None
    apart = bad[keep] - good[0][keep]
    floor = FLOOR * change_noise(good[0][keep])
    found = []
    for over in OVER:
        scored = _against_before(apart, over, floor / over**0.5)
        if scored:
            index = _beyond_before(scored, chance / len(OVER))
            if index is not None:
                found.append(_parting_at(rows, kept, apart, scored, index))
    if rows.metric in with_role(*_LEARNING) and not found:
        level = _level_change(good[0][keep], apart)
        if level is not None:
            found.append(replace(parting(rows, int(kept[level]), "shifts"), noises=None, over_rows=LEVEL_ROWS))
    return min(found, key=lambda one: one.place, default=None)


def _parting_at(rows: Rows, kept: Ints, apart: Floats, scored: Scored, index: int) -> Parting:
    """Return the parting of a series at the first row that is off around a mean that is off.

    Args:
        rows: the series.
        kept: int64 (n,), the rows that were compared.
        apart: float64 (n,), the differences in these rows.
        scored: the means.
        index: which mean is off.
    """
    at = int(scored.rows[index])
    how = "jumps"
    if scored.over > 1:
        at = _turn(apart, at, scored.over)
        how = "shifts"
    return replace(parting(rows, int(kept[at]), how), noises=float(scored.scores[index]), over_rows=scored.over)


def _turn(apart: Floats, first: int, over: int) -> int:
    """Return the row at which the level of differences changes, in a mean that is off or the one before it."""
    start = max(0, first - over)
    usual = median(apart[max(0, start - MAX_WINDOW) : start]) if start else 0.0
    change = float(apart[first : first + over].mean()) - usual
    part = (apart[start : first + over] - usual) * np.sign(change) - abs(change) / 2
    sums = np.concatenate(([0.0], np.cumsum(part)))
    return start + int(np.argmin(sums[:-1]))


def _level_change(good: Floats, apart: Floats) -> int | None:
    """Find where a run moves away for good: the first row after the last at which both were alike."""
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
    until = first + LEVEL_ROWS  # the first mean that is off may begin with rows that are alike
    calm = np.flatnonzero(np.abs(_means(apart[:until], few)) <= CALM * noise / few**0.5)
    if len(calm):
        return int(calm[-1] + 1) * few
    return 0


def _means(values: Floats, over: int) -> Floats:
    """Return the mean of each block of `over` values, (n // over,)."""
    whole = values[: len(values) // over * over]
    means: Floats = whole.reshape(-1, over).mean(axis=1)
    return means


def _against_before(apart: Floats, over: int, floor: float) -> Scored | None:
    """Return means in deviations from those in a window before each; None if there are too few."""
    means = _means(apart, over)
    window = min(MAX_WINDOW, len(means) // QUARTER)
    if window < MIN_WINDOW:
        return None
    center, spread = Windows(means, window, detrend=False).between(0, len(means) - window)
    size = np.maximum(spread, floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.abs(means[window:] - center) / size
    scores[~(size > 0)] = 0.0
    return Scored(scores, over * np.arange(window, len(means)), over, window)


def _beyond_before(scored: Scored, chance: float) -> int | None:
    """Return the index of the first score above the bar that the scores before it set."""
    size = len(scored.scores)
    min_bar = max(MIN_SCORE, Tail(size, 0.0, 1e-9, scored.window).height(chance))
    bar, fitted = min_bar, 0
    for at in np.flatnonzero(scored.scores > min_bar).tolist():
        if at >= MIN_TAIL_SCORES and at >= REFIT_GROWTH * fitted:
            tail = upper_tail(scored.scores[:at], scored.window)
            bar, fitted = max(min_bar, tail._replace(size=size).height(chance)), at
        if scored.scores[at] > bar:
            return int(at)
    return None


def by_envelope(rows: Rows, chance: float) -> Parting | None:
    """Find where a series leaves the envelope of several good runs: their median and spread at each position.

    The bar is set by the good runs themselves, each measured against the others.

    Args:
        rows: the series.
        chance: the probability that noise alone is reported.
    """
    good, bad = scaled(rows.good, rows.bad)
    keep = np.isfinite(good).all(axis=0) & np.isfinite(bad)
    kept = np.flatnonzero(keep)
    if len(kept) < MIN_ROWS:
        return None
    found = []
    for over in OVER:
        scored, bar = _against_envelope(good[:, keep], bad[keep], over, chance / len(OVER))
        above = np.flatnonzero(scored.scores > bar)
        if len(above):
            apart = bad[keep] - _middle(good[:, keep])
            found.append(_parting_at(rows, kept, apart, scored, int(above[0])))
    return min(found, key=lambda one: one.place, default=None)


def _against_envelope(good: Floats, bad: Floats, over: int, chance: float) -> tuple[Scored, float]:
    """Return the bad run in spreads of the good ones, and the bar that the good ones set.

    Args:
        good: float64 (runs, n).
        bad: float64 (n,).
        over: the number of rows in a mean.
        chance: the probability that noise alone exceeds the bar.
    """
    means = np.array([_means(one, over) for one in good])
    runs, count = means.shape
    window = max(1, min(MAX_WINDOW, count // QUARTER))
    center = _middle(means)
    variance = ((means - center) ** 2).sum(axis=0) / (runs - 1)
    spread = _smoothed(variance, window) ** 0.5
    spread = np.maximum(spread, median(spread) / 2)
    scores = _in_spreads(_means(bad, over), center, spread)
    healthy = np.concatenate(
        [_in_spreads(one, _middle(np.delete(means, run, axis=0)), spread) for run, one in enumerate(means)]
    )
    free = (runs - 1) * max(1.0, window * _independent(means - center))
    tail = Tail(count, 0.0, 1e-9, int(free) + 2)
    if len(healthy) > 2:
        tail = upper_tail(healthy, int(free) + 2)
    bar = max(tail._replace(size=count).height(chance), float(healthy.max()))
    return Scored(scores, over * np.arange(count), over, window), bar


def _in_spreads(values: Floats, center: Floats, spread: Floats) -> Floats:
    """Return how many spreads values are from the center, (n,); 0 where there is no spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores: Floats = np.where(spread > 0, np.abs(values - center) / spread, 0.0)
    return scores


def _middle(values: Floats) -> Floats:
    """Return the median of the runs at each position, (n,)."""
    ordered = np.sort(values, axis=0)
    half = len(values) // 2
    if len(values) % 2:
        return np.asarray(ordered[half])
    return np.asarray((ordered[half - 1] + ordered[half]) / 2)


def _smoothed(values: Floats, window: int) -> Floats:
    """Return means over a window around each value, shorter at the ends, (n,)."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    indexes = np.arange(len(values))
    low, high = np.maximum(indexes - window // 2, 0), np.minimum(indexes + window // 2 + 1, len(values))
    means: Floats = (sums[high] - sums[low]) / (high - low)
    return means


def _independent(residuals: Floats) -> float:
    """Return the effective share of independent rows, by their correlation with the next one."""
    centered = residuals - residuals.mean(axis=1, keepdims=True)
    power = float((centered * centered).sum())
    if not power > 0:
        return 1.0
    correlation = float((centered[:, 1:] * centered[:, :-1]).sum()) / power
    correlation = min(max(correlation, 0.0), 1.0)
    return (1 - correlation) / (1 + correlation)


def comparable(rows: Rows) -> str:
    """Return why a series of different seeds can't be compared; empty if it can."""
    if rows.metric in SCHEDULED:
        return ""
    finite = rows.good[0][np.isfinite(rows.good[0])]
    if rows.size < MIN_ROWS:
        return f"{rows.size:,} rows in common, {MIN_ROWS} are needed"
    if len(finite) < 2:
        return "it is NaN or inf in the good run"
    if change_noise(finite) > 0:
        return ""
    if np.all(finite == finite[0]):
        return "it never moves in the good run"
    return "it moves in steps, at other times on another seed"
