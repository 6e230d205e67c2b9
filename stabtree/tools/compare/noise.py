"""Rows of several runs side by side, and where a series of the bad run first differs from the good ones.

Of runs of one seed the rows are equal to the last printed digit, until something differs. What is equal on every seed
proves nothing: a series that does not move, and the first row of one that no batch is measured by.

Of runs of different seeds a series ends worse from the last rise of the differences on that lasts to the end, which
begins at a change point; where the run was better before, it is worse only once it has crossed the good one. How far it
ends off must be more than noise of as many rows, and than another seed may end off, by what is known of seeds in
general and by how far the good runs are apart or the differences wandered before. It was worse for a time where the
differences add up to most, if they are well beyond those of as many other rows.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_LONG
from stabtree.common.stats import (
    LARGEST,
    MEDIAN_ERROR,
    NEARLY_ZERO,
    change_noise,
    interval,
    median,
    row_medians,
    span,
    stretches,
    true_at_end,
    unsure,
)
from stabtree.metrics.metric import Role
from stabtree.metrics.table import with_role
from stabtree.profile.change import change_point

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import Run

OTHER = {"worse": "better", "better": "worse", "higher": "lower", "lower": "higher"}
SIDES = tuple(OTHER)  # of a series, to its end or for a time
SCHEDULED = frozenset({"lr", "batch_id"})  # set before the run, whatever it learns: the same on all seeds
MIN_SHARE = 1e-6  # share of the good run's lowest value: on a scale of ratios, lower values are raised to it
SAMPLE = 200  # values that show how many digits were printed
FLOAT32 = 2.0**-23  # relative distance of neighbouring numbers of this type
HALF = 0.501  # of the last digit

# How well a run learns is much the same on all seeds; these and the gradient are measured by a batch, so that already
# the first row differs from seed to seed.
_LEARNING = (Role.LOSS, Role.HELD_OUT_LOSS, Role.QUALITY, Role.REWARD)
_OF_A_BATCH = (*_LEARNING, Role.GRADIENT)
_AT_START = (0.0, math.log(2))  # the first loss of on-policy RL and of DPO, on every seed
CHANCE_OF_DIGITS = 1e-3  # that runs of two seeds begin with the same digits
NOISE_ROWS = 50  # first rows that show how much a series moves by itself
MIN_NOISE_ROWS = 3  # rows needed to measure that

MIN_ROWS = 40  # common rows needed to measure noise
FEW_ROWS = 12  # the same of an outcome, whose end may be far off
FLOOR = 0.3  # times the good run's own noise: the smallest noise of the differences
MIN_SCORE = 7.0  # errors of a difference that passes
DRIFTS = 0.5, 3.5  # times the noise that is no part of it: of one that is long and slight, and short and high
BEYOND = 1.5  # times the farthest that healthy runs, or the other rows, are off

END = 4  # which part of the stretch is its end, and how many such parts before it are compared with that
MIN_END, MAX_END = 3, 256  # rows of it
END_ROWS = 16  # rows that show the noise at the end
ERRORS = 5.0  # of the level at the end that it must be off, by the noise of two runs like the good one
SURE = 3.0  # the same by the noise of the bad run, which may be larger
WANDERED = 5.0  # times what levels of as many rows wander that it must be off
HISTORY_ROWS, BLOCKS = 20, 8  # rows, and blocks of them, that show how much levels wander
MATTERS = 0.02  # share of the good value, or of its range where it may be 0: less is no worse, however sure
NEVER_ALIKE = 0.3  # the same of runs that were not alike in their first rows
BEGIN, ALIKE = 50, 0.1  # which part of the rows are the first, and how far they may be apart in logarithms

# How far another seed may end off if it begins alike: as a share of what the run has gained, and in logarithms of a run
# that has gained little. The largest of 53 families of two to five seeds was 0.06 and 0.1 of the training loss, and of
# 25 families 0.25, but for one, and 0.2 of held-out losses, which overfit in some seeds alone.
SEEDS_TRAINED = 0.1, 0.1
SEEDS_HELD_OUT = 0.3, 0.25
MAX_GAIN = 50.0  # in logarithms

MAX_LOG = 5.0  # a hundredfold rise is one, however high it goes
LOST = 0.5  # share of rows up to the end that are not finite where a series is lost
STRETCH = 3  # longest stretch of non-finite values that does not count if the good run has some too


class Difference(Struct, frozen=True):
    """Where one series of the bad run leaves the good ones, and how.

    Attributes:
        metric: the series.
        step: the first step of the bad run at which it differs.
        how: `worse`, `better`, or of what has no better side `higher` and `lower`; `differs` in its digits, or
            `not finite`, which an empty cell is too.
        good: the value of the first good run there, or the level of the good runs; None if it is not finite.
        bad: the value or the level of the bad run; None if it is not finite or missing.
        last_alike: the last step before; None if there is none.
        noises: the difference in multiples of the usual noise; None if that is unknown.
        until: the last step of a difference that passes; None of one that lasts.
        before: what it was before a difference that lasts: `level`, the `same` but less so, or the other side.
        times: how many times the good level it is: at its end, or as long as it differs.
        lost_step: the step from which on it is not finite, or missing, to the end.
    """

    metric: str
    step: int
    how: str
    good: float | None = None
    bad: float | None = None
    last_alike: int | None = None
    noises: float | None = None
    until: int | None = None
    before: str = ""
    times: float | None = None
    lost_step: int | None = None

    @property
    def lasts_worse(self) -> bool:
        """Whether it is worse to the end."""
        return self.how == "worse" and self.until is None


class Rows(NamedTuple):
    """One metric of several runs where all of them logged it.

    Attributes:
        metric: the series.
        steps: int64 (n,), the steps of the bad run.
        good: float64 (runs, n), the values of the good runs.
        bad: float64 (n,), those of the bad run.
    """

    metric: str
    steps: Ints
    good: Floats
    bad: Floats

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.steps)

    @property
    def equal(self) -> int:
        """How many of the first rows are equal as far as they were printed."""
        return int(np.append(~_alike(self.good[0], self.bad), True).argmax())


def side_by_side(metric: str, good: Sequence[Run], bad: Run, *, nearest: bool = False) -> Rows:
    """Return the rows of a metric that all runs have at one step.

    Tokens rarely agree exactly: with `nearest` rows are matched that fall into the same logging interval.
    """
    series, matches = bad.series[metric], []
    for run in good:
        other = run.series[metric]
        width = int(max(interval(other.steps), interval(series.steps), 1)) if nearest else 1
        _, here, there = np.intersect1d(other.steps // width, series.steps // width, return_indices=True)
        matches.append((other.values[here], there))
    at = reduce(partial(np.intersect1d, assume_unique=True), [there for _, there in matches])
    values = np.array([matched[np.searchsorted(there, at)] for matched, there in matches])
    return Rows(metric, series.steps[at], values, series.values[at])


def scaled(good: Floats, bad: Floats) -> tuple[Floats, Floats]:
    """Return values (runs, n) and (n,) on a scale of even noise: logarithms if all good ones are above 0."""
    finite = good[np.isfinite(good)]
    if not len(finite) or finite.min() <= 0:
        return np.clip(good, -LARGEST, LARGEST), np.clip(bad, -LARGEST, LARGEST)
    minimum = float(finite.min()) * MIN_SHARE
    return np.log(good), np.log(np.where(bad < minimum, minimum, bad))


def _unit(values: Floats) -> Floats:
    """Return the unit of the last printed digit of each value, float64 (n,).

    A series is printed with a fixed number of decimals or of digits, or holds float32; which one is estimated from a
    sample of its values.
    """
    finite = values[np.isfinite(values)]
    forms = [_digits(value) for value in finite[:: 1 + len(finite) // SAMPLE].tolist()]
    digits, decimals = (max(counts) for counts in zip(*forms or [(17, 17)], strict=True))
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.where(sizes > 0, np.floor(np.log10(sizes)), -300.0)
        units: Floats = np.maximum(10.0**-decimals, 10.0 ** (exponents - digits + 1))
        if len(finite) and digits > 9 and (finite.astype(np.float32) == finite).all():
            units = np.maximum(units, sizes * FLOAT32)
    return units


def _digits(value: float) -> tuple[int, int]:
    """Return the significant digits and the decimals of the shortest text of a number."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    before, _, after = mantissa.lstrip("-").partition(".")
    decimals = after.rstrip("0")
    return max(1, len(f"{before}{decimals}".lstrip("0"))), max(0, len(decimals) - int(exponent or 0))


def _alike(one: Floats, other: Floats) -> Bools:
    """Return whether values are equal as far as both were printed, bool (n,); NaN equals NaN."""
    apart = HALF * np.maximum(_unit(one), _unit(other))
    both = np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore"):
        same: Bools = (both & (np.abs(one - other) <= apart)) | (one == other) | (np.isnan(one) & np.isnan(other))
    return same


def _noise(values: Floats) -> float:
    """Return the noise of a run; 0 if it has too few finite values."""
    finite = values[np.isfinite(values)]
    return change_noise(finite) if len(finite) >= MIN_NOISE_ROWS else 0.0


def same_seed(pairs: Iterable[Rows]) -> bool:
    """Return whether the first rows of two runs agree in more digits than those of two seeds would."""
    chance = 1.0
    for rows in pairs:
        good = rows.good[0]
        finite = good[np.isfinite(good)][:NOISE_ROWS]
        noise = _noise(finite)
        if rows.metric in SCHEDULED or not noise > 0:
            continue
        moves = np.append(True, good[1:] != good[:-1])  # a value that another seed would make another one
        by_nature = any(_alike(good[:1], np.full(1, value))[0] for value in _AT_START)
        moves[0] = rows.metric in with_role(*_OF_A_BATCH) and not by_nature
        equal = int(np.count_nonzero(moves[: rows.equal]))
        chance *= float(min(1.0, 2 * float(_unit(finite).max()) / noise) ** min(equal, ROWS_LONG))
    return chance < CHANCE_OF_DIGITS


def first_difference(rows: Rows) -> Difference | None:
    """Return the first row in which what was printed differs; None if there is none."""
    at = rows.equal
    return difference(rows, at, "differs") if at < rows.size else None


def difference(rows: Rows, at: int, how: str) -> Difference:
    """Return the difference of a series at a row, in multiples of the good run's noise."""
    good, bad = float(rows.good[0][at]), float(rows.bad[at])
    if math.isfinite(good) and not math.isfinite(bad):
        how = "not finite"
    noises, noise = None, _noise(rows.good[0])
    if rows.metric not in SCHEDULED and math.isfinite(bad - good) and noise > 0:
        noises = abs(bad - good) / noise
    last_alike = int(rows.steps[at - 1]) if at else None
    shown_good, shown_bad = (value if math.isfinite(value) else None for value in (good, bad))
    return Difference(rows.metric, int(rows.steps[at]), how, shown_good, shown_bad, last_alike, noises)


def lost(rows: Rows) -> Difference | None:
    """Find where values stop being finite; if the good runs have such values too, only a long stretch counts."""
    usual = [last - first for values in rows.good for first, last in stretches(~np.isfinite(values))]
    bar = STRETCH + 2 * max(usual) if usual else 1
    long = (first for first, last in stretches(~np.isfinite(rows.bad)) if last - first >= bar)
    return next((difference(rows, first, "not finite") for first in long), None)


class Apart(NamedTuple):
    """How far runs are apart, on a scale of even noise, in the rows in which all are finite.

    Attributes:
        rows: the indexes of these rows.
        apart: float64 (m,), the bad run less the middle of the good ones.
        course: float64 (m,), the middle of the good runs.
        others: float64 (runs, m), each good run less the middle of the other ones; none of a single good run.
        ratios: whether a difference is one of logarithms.
        floor: the smallest noise that the difference can have.
        matters: the smallest difference that matters.
        seeds: how far off another seed may end.
    """

    rows: Ints
    apart: Floats
    course: Floats
    others: Floats
    ratios: bool = False
    floor: float = 0.0
    matters: float = 0.0
    seeds: float = 0.0

    def cut(self, part: slice) -> Apart:
        """Return some of the rows."""
        kept = {name: getattr(self, name)[..., part] for name in ("rows", "apart", "course", "others")}
        return self._replace(**kept)

    def noise(self, last: int = 0) -> float:
        """Return the noise of a row, or of one of the last ones."""
        return max(change_noise(self.apart[-last:]), self.floor)


def apart(rows: Rows) -> Apart:
    """Return how far the runs are apart."""
    kept = np.flatnonzero(np.isfinite(rows.good).all(axis=0) & np.isfinite(rows.bad))
    good, bad = scaled(rows.good[:, kept], rows.bad[kept])
    course, others = row_medians(good.T), np.zeros((0, len(kept)))
    if len(good) > 1:
        others = np.array([values - row_medians(np.delete(good, run, axis=0).T) for run, values in enumerate(good)])
    off = Apart(kept, bad - course, course, others)
    if not len(kept):
        return off
    off = off._replace(ratios=bool((rows.good[:, kept] > 0).all()), floor=FLOOR * _noise(good[0]))
    unit = 1.0 if off.ratios else max(span(course), NEARLY_ZERO)
    return off._replace(matters=MATTERS * unit, seeds=unit * _seeds(rows.metric, off))


def _seeds(metric: str, off: Apart) -> float:
    """Return how far off another seed may end: of runs that begin alike by a share of what was gained."""
    first = slice(min(max(len(off.rows) // BEGIN, MIN_END), FEW_ROWS))
    if not off.ratios or abs(median(off.apart[first])) > ALIKE:
        return NEVER_ALIKE
    share, least = SEEDS_TRAINED if metric in with_role(Role.LOSS) else SEEDS_HELD_OUT
    gain = median(off.course[first]) - median(off.course[-len(off.rows) // END :])
    return max(math.log1p(share * math.expm1(min(max(gain, 0.0), MAX_GAIN))), least)


def block_means(values: Floats, over: int) -> Floats:
    """Return the mean of each block of `over` values, (n // over,)."""
    means: Floats = values[: len(values) // over * over].reshape(-1, over).mean(axis=1)
    return means


def off_by_more(rows: Rows, direction: int, equal: int = 0) -> Difference | None:
    """Return since when a series is off by more than noise to its end, else where it is for a time; None if nowhere.

    Args:
        rows: the series.
        direction: 1 where higher is worse, -1 where lower is, 0 where neither is.
        equal: how many of the first rows are equal, of runs of one seed.
    """
    off, sides, lost_step = apart(rows), {"worse": direction, "better": -direction}, None
    usable = np.flatnonzero(np.isfinite(rows.good).all(axis=0))
    lost_row = _lost(usable, ~np.isfinite(rows.bad[usable]))
    if lost_row is not None:
        lost_step, off = int(rows.steps[lost_row]), off.cut(slice(int(np.searchsorted(off.rows, lost_row))))
    if not direction:
        sides, lost_step = {"higher": 1, "lower": -1}, None
    for side, sign in sides.items():
        if found := _last_stretch(off, sign, equal):
            row, before, size = found
            told = _levels(rows, off.rows[-size:], side, int(off.rows[row]))
            before = {"other": OTHER[side]}.get(before, before)
            return replace(told, before=before, lost_step=lost_step)
        if lost_step is not None:
            return Difference(rows.metric, lost_step, side, before="level", lost_step=lost_step)
    if not direction:
        off = off._replace(apart=off.apart - median(off.apart))
    return _passing(rows, off, sides)


def _levels(rows: Rows, at: Ints, how: str, first: int) -> Difference:
    """Return a difference from a row on, with the levels of both in some rows."""
    good, bad = median(row_medians(rows.good[:, at].T)), median(rows.bad[at])
    times = bad / good if min(good, bad) > 0 else None
    return Difference(rows.metric, int(rows.steps[first]), how, good=good, bad=bad, times=times)


def _passing(rows: Rows, off: Apart, sides: dict[str, int]) -> Difference | None:
    """Find the clearest stretch in which a series is off for a time, be it long and slight or short and high."""
    found = []
    for (side, sign), drift in product(sides.items(), DRIFTS):
        # The stretch in which what exceeds a part of the noise adds up to most.
        sums = np.append(0.0, np.cumsum(sign * off.apart - max(off.matters, drift * off.noise())))
        last = int((sums - np.minimum.accumulate(sums)).argmax())
        first = int(sums[: last + 1].argmin())
        if (clear := _clear(off, sign, first, last)) > 1:
            found.append((clear, first, last, side))
    if not found:
        return None
    _, first, last, side = max(found)
    at = off.rows[first:last]
    return replace(_levels(rows, at, side, int(at[0])), until=int(rows.steps[at[-1]]))


def _clear(off: Apart, sign: int, first: int, last: int) -> float:
    """Return how many times what is needed a stretch is off: healthy runs, or the other rows, may be off too."""
    size = last - first
    if not 0 < size <= len(off.apart) // 2:
        return 0.0
    others = (np.delete(off.apart, slice(first, last)), *off.others)
    usual = max(float(np.abs(block_means(values, size)).max(initial=0.0)) for values in others)
    enough = max(MIN_SCORE * off.noise() / size**0.5, BEYOND * usual, off.matters)
    return float(sign * median(off.apart[first:last]) / max(enough, NEARLY_ZERO))


def _lost(rows: Ints, flags: Bools) -> int | None:
    """Return the first of rows from which on most are not finite, up to the last one; None if that one is."""
    if not len(flags) or not flags[-1]:
        return None
    mostly = np.cumsum(flags[::-1])[::-1] > LOST * np.arange(len(flags), 0, -1)
    start = len(flags) - true_at_end(mostly)
    return int(rows[start + int(flags[start:].argmax())])


def _last_stretch(off: Apart, direction: int, equal: int = 0) -> tuple[int, str, int] | None:
    """Return the first row of the last worse stretch of finite rows, what it was before, and the rows of its end."""
    apart, count = direction * off.apart, len(off.apart)
    if count < FEW_ROWS:
        return None
    same = min(int(np.searchsorted(off.rows, equal)), count - 1)
    starts = [*_starts(off, apart, same), same]
    for row in starts:
        size, past = min(max((count - row) // END, MIN_END), MAX_END, count - row), apart[:row]
        before, level = median(past[-END * size :]) if row >= size else 0.0, median(apart[-size:])
        if level - max(before, 0.0) > _enough(off, past, size):
            # What is sure only of all rows together may still begin later.
            late = [start for start in starts if start > row == same and median(apart[:start]) < level / 2]
            return *_since(off, apart, [*late, row][0], before, END * size), size
    return None


def _starts(off: Apart, apart: Floats, same: int) -> Iterator[int]:
    """Yield the rows from which on the bad run may be worse.

    The change point, and where the excess begins that is half of that at the end.
    """
    # A straight climb is straight as a ratio, and bent in logarithms.
    count = len(apart)
    ratios = np.expm1(np.minimum(apart, MAX_LOG)) if off.ratios else apart
    better = int(np.append(0.0, np.cumsum(apart + off.matters)).argmin())  # the rows up to which it is, on balance
    if rise := change_point(np.arange(count - better), ratios[better:]):
        yield max(better + rise.first_bad_step, same)
    half = median(apart[-max(count // END, MIN_END) :]) / 2
    above = int(np.cumsum(apart - half).argmin()) + 1
    if half > 0 and same < above < count - MIN_END:
        yield above


def _enough(off: Apart, past: Floats, size: int) -> float:
    """Return how far off the level of an end of so many rows must be: beyond noise, beyond other seeds, and enough.

    How far off another seed may be is known of runs in general; the good runs show it, or the rows before the stretch.
    """
    last = max(2 * size, END_ROWS)
    noise, error = off.noise(last), MEDIAN_ERROR / size**0.5
    alike = min(noise, 2**0.5 * change_noise(off.course[-last:]))
    of_noise = error * max(ERRORS * alike * unsure(min(last, len(off.rows)), ERRORS), SURE * noise)
    shown = [(1, off.seeds)]
    if len(off.others):
        levels = [block_means(values[-END * size :], size) for values in off.others]
        shown.append((len(off.others) - 1, WANDERED * float(np.mean(np.square(levels)) ** 0.5)))
    if len(past) >= HISTORY_ROWS:
        over = min(size, len(past) // BLOCKS)  # rows of which the levels wander as those of more rows do
        shown.append((len(past) // size, WANDERED * error * change_noise(block_means(past, over)) * over**0.5))
    of_seeds = (sum(count * bar**2 for count, bar in shown) / sum(count for count, _ in shown)) ** 0.5
    return float(max(of_noise, of_seeds, off.matters))


def _since(off: Apart, apart: Floats, row: int, before: float, rows: int) -> tuple[int, str]:
    """Return since which row a run is worse, and what it was before; after a better stretch where it has crossed."""
    if not row:
        return 0, ""
    how, whole, error = "level", median(apart[:row]), ERRORS * MEDIAN_ERROR * off.noise() / row**0.5
    if whole < -error:
        how = "other"
    elif whole > max(error, off.matters):
        how = "same"
    if before < -error * max(row / rows, 1) ** 0.5 / 2 and apart[row] < 0:
        row += int(np.cumsum(apart[row:]).argmin()) + 1
    return min(row, len(apart) - 1), how


def why_incomparable(rows: Rows) -> str:
    """Return why a series of different seeds can't be compared; empty if it can."""
    finite = rows.good[0][np.isfinite(rows.good[0])]
    needed = FEW_ROWS if rows.metric in with_role(*_LEARNING) else MIN_ROWS
    if rows.metric in SCHEDULED:
        return "" if rows.equal else "it differs from the first row on"
    if rows.size < needed:
        return f"{rows.size:,} rows in common, {needed} are needed"
    if len(finite) < 2:
        return "it is NaN or inf in the good run"
    return "" if change_noise(finite) > 0 else "it never moves in the good run, or only in steps"
