"""Functions of finite float64 arrays, in linear time but for sorting; they leave their arguments alone."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.common.passes import PART, parts, remembered_of_frozen, rows_at_end, stretches_of

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints

FEW = 256  # values that are sorted sooner than parted
LONG = 1 << 17  # values of which fewer are sorted for their median
STEPS_OF_WINDOW = 64  # places of a running median within its width
MEDIAN_SAMPLE = 10_000  # values of a long array that say about where its median is
SAMPLE = 50_000  # values from which a quantile of a longer array is read: its error is below a tenth of a percent
BLOCK_SAMPLE = 1000
TURNS = 4  # of white noise two values in three are turning points, of a random walk half
SOME = 1000  # values that are checked before all of them are
NORMAL_MAD = 1.4826  # makes the median absolute deviation of a normal sample its standard deviation
NORMAL_99 = 2.33  # a z that one normal value in a hundred exceeds
MEDIAN_ERROR = math.sqrt(math.pi / 2)  # the standard error of a median of normal values over that of their mean
NEARLY_ZERO = 1e-300  # what a 0 is replaced by that a number is divided by
LARGEST = 1e100  # larger values are clipped to this, so that squares and ratios stay finite


def median(values: Floats | Ints) -> float:
    """Return the median of all values, NaN if there is none or one of them is NaN."""
    if not values.size:
        return math.nan
    if values.size > LONG:
        return _long_median(values.ravel())
    return float(row_medians(values.ravel()))


def _long_median(values: Floats | Ints) -> float:
    """Return the median of a long array: only the values near that of a sample are sorted, all others are counted."""
    if np.isnan(values.max()):
        return math.nan
    sample = np.sort(values[:: len(values) // MEDIAN_SAMPLE])
    slack = math.ceil(2 * len(sample) ** 0.5)  # four standard errors of the sample's median, in ranks
    low, high = sample[len(sample) // 2 - slack], sample[len(sample) // 2 + slack]
    below, inside, near = 0, 0, []
    for part in parts(values):
        less, within = part < low, part <= high
        within ^= less
        below += int(np.count_nonzero(less))
        if low < high:
            near.append(part[within])
        inside += int(np.count_nonzero(within))
    first, last = (len(values) - 1) // 2 - below, len(values) // 2 - below
    if first < 0 or last >= inside:  # the sample misleads
        return float(row_medians(values))
    if low == high:
        return float(low)
    parted = np.partition(np.concatenate(near), (first, last))
    return float((parted[first] + parted[last]) / 2)


def row_medians(values: Floats | Ints) -> Floats:
    """Return the medians along the last axis, of at least one value each.

    Gives what `np.median` gives; that one imports masked arrays first, which takes a tenth of a small diagnosis.
    """
    size = values.shape[-1]
    middle = size // 2
    if size <= FEW:
        parted = np.sort(values, axis=-1)
        below: Any = parted[..., middle - 1]
    else:
        # Around one place: around two or three it takes several times as long.
        parted = np.partition(values, middle, axis=-1)
        below = parted[..., :middle].max(axis=-1)
    found: Any = parted[..., middle]
    if size % 2 == 0:
        with np.errstate(over="ignore"):
            found = (below + found) / 2
    if parted.size and np.isnan(parted.max()):  # it is sorted behind all others
        found = np.where(np.isnan(parted[..., middle:].max(axis=-1)), np.nan, found)
    return np.asarray(found)


def running_medians(values: Floats, rows: int) -> Floats:
    """Return the median of each `rows` neighbours: (n,) -> (n - rows + 1,).

    A wide window moves in steps of a part of its width: of each row it would take the square of the time.
    """
    found, by = np.empty(len(values) - rows + 1), max(rows // STEPS_OF_WINDOW, 1)
    for begin in range(0, len(found), PART):
        part = values[begin : begin + PART + rows - 1]
        medians = np.repeat(row_medians(windows(part, rows)[::by]), by)
        found[begin : begin + PART] = medians[: len(part) - rows + 1]
    return found


def quantiles(values: Floats, *shares: float) -> list[float]:
    """Return the quantiles of at least one value, interpolated linearly as by `np.quantile` (see `row_medians`)."""
    positions = [share * (len(values) - 1) for share in shares]
    below = [int(position) for position in positions]
    above = [min(index + 1, len(values) - 1) for index in below]
    if len(values) <= FEW:
        parted = np.sort(values)
    else:
        parted = np.partition(values, sorted({*below, *above}))
    found = []
    for position, low, high in zip(positions, below, above, strict=True):
        a, b, part = float(parted[low]), float(parted[high]), position - low
        if part >= 0.5:
            found.append(b - (b - a) * (1 - part))
        else:
            found.append(a + (b - a) * part)
    return found


def true_at_end(flags: Bools) -> int:
    """Return how many of the last values are true."""
    return rows_at_end(np.flatnonzero(flags), len(flags))


def highest_rows(values: Floats, count: int) -> Ints:
    """Return the rows of the `count` highest values, in any order; of equal ones at the bar, some."""
    size = len(values) // (4 * count)
    if size < 2:
        return np.argpartition(values, -min(count, len(values)))[-count:]
    # The highest values of blocks: as many of them reach the bar, and with them these rows.
    tops = values[: 4 * count * size].reshape(-1, size).max(axis=1)
    high = np.flatnonzero(values >= np.partition(tops, -count)[-count])
    return high[np.argpartition(values[high], -count)[-count:]]


def is_counter(values: Floats) -> bool:
    """Whether values only ever rise, as a count from the beginning on does; a flag of each row goes back to 0."""
    return bool(np.isfinite(values).all() and (np.diff(values) >= 0).all())


def is_measured(values: Floats) -> bool:
    """Whether fractions turn as often as only what is measured does: a schedule stands still, or goes on in its way."""
    with np.errstate(invalid="ignore"):
        changes = np.sign(np.diff(values))
        turns = int(np.count_nonzero(changes[1:] * changes[:-1] < 0))
        return len(values) > TURNS and turns > len(values) / TURNS and not are_whole(values)


def change_noise(values: Floats) -> float:
    """Return the standard deviation of one value, by neighbours' changes: outliers and a trend don't affect it.

    Of a longer array `SAMPLE` changes, evenly spread, are enough: the error is below a percent.
    """
    before, after = neighbours(values)
    return scatter(after - before)


def unsure(rows: int, z: float) -> float:
    """Return how much wider a bound of `z` errors is where so many rows beyond its fit show the scatter.

    Student's t, to the first term beyond the normal distribution.
    """
    return 1 + (z**2 + 1) / (4 * max(rows, 1))


def falls_by_turns(values: Floats) -> bool:
    """Return whether each value is below the one two before it: a fall, though neighbours may alternate."""
    return bool((values[2:] < values[:-2]).all())


def neighbours(values: Floats) -> tuple[Floats, Floats]:
    """Return up to `SAMPLE` values, evenly spread, and the one after each."""
    every = 1 + len(values) // SAMPLE
    return values[: len(values) - 1 : every], values[1::every]


def scatter(changes: Floats) -> float:
    """Return the standard deviation of one value, by some changes from one to the next."""
    return NORMAL_MAD * median(np.abs(changes - median(changes))) / 2**0.5


def resolution(values: Floats) -> float:
    """Return the power of ten that all values are multiples of, if they were printed with so few digits; else 0.

    A loss printed as 0.0123 has one of 1e-4. No value but 0 gives 0 as well.
    """
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return 0.0
    top = math.floor(math.log10(float(sizes.max())))
    for power in range(top, top - 8, -1):
        # The first few rule out nearly every wrong power.
        if are_whole(sizes[:SOME] / 10.0**power) and are_whole(sizes / 10.0**power):
            return float(10.0**power)
    return 0.0


def are_whole(values: Floats) -> bool:
    """Return whether all are whole numbers, but for the error of a division."""
    return bool((np.abs(values - np.round(values)) <= 1e-9 * np.maximum(values, 1.0)).all())


@remembered_of_frozen
def interval(steps: Ints) -> float:
    """Return the median distance between neighbouring steps; 1 for fewer than two steps."""
    if len(steps) < 2:
        return 1.0
    mean = (int(steps[-1]) - int(steps[0])) / (len(steps) - 1)
    # steps increase: a mean of 1 means all are 1
    if mean == 1.0:
        return mean
    return median(np.diff(steps))


def blocks(values: Floats, count: int) -> tuple[Floats, Ints]:
    """Return medians of `count` equal consecutive blocks up to the last value, and the index at which each starts.

    Up to `count - 1` values at the beginning are left out, and of a block of thousands a median needs only some.
    """
    rows, starts = block_rows(values, count)
    return row_medians(rows), starts


def block_rows(values: Floats, count: int) -> tuple[Floats, Ints]:
    """Return the rows whose medians are those of `blocks`, (count, rows), and the index at which each block starts."""
    size = len(values) // count
    first = len(values) - count * size
    rows = values[first:].reshape(count, size)[:, :: 1 + size // BLOCK_SAMPLE]
    return rows, first + size * np.arange(count)


def medians_of_three(values: Floats) -> Floats:
    """Return the median of each of at least three values and its neighbours; at both ends the mean of two."""
    one, two, three = values[:-2], values[1:-1], values[2:]
    found = np.empty(len(values))
    found[1:-1] = of_three(one, two, three)
    found[0], found[-1] = (values[0] + values[1]) / 2, (values[-2] + values[-1]) / 2
    return found


def of_three(one: Floats, two: Floats, three: Floats) -> Floats:
    """Return the median of three values each; NaN where one of them is."""
    return np.asarray(np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three)))


def windows(values: Floats, rows: int) -> Floats:
    """Return all stretches of `rows` neighbours, (n - rows + 1, rows), as a view of an array without gaps.

    As `np.lib.stride_tricks.sliding_window_view`, in a twentieth of the time that takes for a short one.
    """
    step = values.itemsize
    shape = (len(values) - rows + 1, rows)
    return np.ndarray(shape, values.dtype, np.ascontiguousarray(values), 0, (step, step))


def kendall_z(values: Floats) -> float:
    """Return the Mann-Kendall trend score: about standard normal without a trend, positive for a rise.

    Quadratic in time: for a few hundred values (block medians), not for raw rows.
    Source: Mann 1945, Kendall 1975; ties corrected as usual.
    """
    n = len(values)
    if n < 4:
        return 0.0
    above, later = np.greater.outer(values, values), _later(n)
    score = float(np.count_nonzero(above & later) - np.count_nonzero(above & later.T))
    tied, ordered = 0.0, np.sort(values)
    if (ordered[1:] == ordered[:-1]).any():
        _, ties = np.unique(values, return_counts=True)
        tied = float((ties * (ties - 1) * (2 * ties + 5)).sum())
    variance = (n * (n - 1) * (2 * n + 5) - tied) / 18
    if variance <= 0 or score == 0:
        return 0.0
    return (score - math.copysign(1, score)) / math.sqrt(variance)


@lru_cache(maxsize=16)
def _later(count: int) -> Bools:
    """Return which of two rows comes later: bool (count, count)."""
    return np.tri(count, count, -1, dtype=np.bool_)


def ends_and_trend(values: Floats, levels: int) -> tuple[float, float, float]:
    """Return the level at the beginning, the level at the end, and the z of the trend of block medians."""
    medians, _ = blocks(values, min(max(levels, 1), max(1, len(values) // 3)))
    return median(medians[:3]), median(medians[-3:]), kendall_z(medians)


def span(values: Floats) -> float:
    """Return the range from the 2nd to the 98th percentile: all that a series covers but its outliers."""
    high, low = quantiles(values[:: 1 + len(values) // SAMPLE], 0.98, 0.02)
    return high - low


def stretches(flags: Bools) -> list[tuple[int, int]]:
    """Return runs of true values as (first index, index after the last)."""
    begins, sizes = stretches_of(np.flatnonzero(flags))
    return list(zip(begins.tolist(), (begins + sizes).tolist(), strict=True))
