"""Functions of finite float64 arrays, in linear time but for sorting; they leave their arguments alone."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints

CHUNK = 1 << 15
FEW = 256  # values that are sorted sooner than parted
SAMPLE = 50_000  # values from which a quantile of a longer array is read: its error is below a tenth of a percent
BLOCK_SAMPLE = 1000
SOME = 1000  # values that are checked before all of them are
NORMAL_MAD = 1.4826  # makes the median absolute deviation of a normal sample its standard deviation
NORMAL_99 = 2.33  # a z that one normal value in a hundred exceeds
MEDIAN_ERROR = math.sqrt(math.pi / 2)  # the standard error of a median of normal values over that of their mean
NEARLY_ZERO = 1e-300  # what a 0 is replaced by that a number is divided by
LARGEST = 1e100  # larger values are clipped to this, so that squares and ratios stay finite


def median(values: Floats | Ints) -> float:
    """Return the median of all values, NaN if there is none or one of them is NaN."""
    if values.size:
        return float(row_medians(values.ravel()))
    return math.nan


def row_medians(values: Floats | Ints) -> Floats:
    """Return the medians along the last axis, of at least one value each.

    Gives what `np.median` gives; that one imports masked arrays first, which takes a tenth of a small diagnosis.
    """
    size = values.shape[-1]
    middle = size // 2
    if size <= FEW:
        parted = np.sort(values, axis=-1)
    else:
        parted = np.partition(values, sorted({(size - 1) // 2, middle, size - 1}), axis=-1)
    found: Any = parted[..., middle]
    if not size % 2:
        found = (parted[..., middle - 1] + found) / 2
    answer: Floats = np.where(np.isnan(parted[..., -1]), np.nan, found)
    return answer


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
    wrong = np.flatnonzero(~flags)
    if not len(wrong):
        return len(flags)
    return len(flags) - 1 - int(wrong[-1])


def is_counter(values: Floats) -> bool:
    """Whether values only ever rise, as a count from the beginning on does; a flag of each row goes back to 0."""
    return bool(np.isfinite(values).all() and (np.diff(values) >= 0).all())


def change_noise(values: Floats) -> float:
    """Return the standard deviation of one value, by neighbours' changes: outliers and a trend don't affect it.

    Of a longer array `SAMPLE` changes, evenly spread, are enough: the error is below a percent.
    """
    every = 1 + len(values) // SAMPLE
    changes = values[1::every] - values[: len(values) - 1 : every]
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
        if _whole(sizes[:SOME] / 10.0**power) and _whole(sizes / 10.0**power):
            return float(10.0**power)
    return 0.0


def _whole(values: Floats) -> bool:
    """Return whether all are whole numbers, but for the error of a division."""
    return bool((np.abs(values - np.round(values)) <= 1e-9 * np.maximum(values, 1.0)).all())


def interval(steps: Ints) -> float:
    """Return the median distance between neighbouring steps; 1 for fewer than two steps."""
    if len(steps) < 2:
        return 1.0
    mean = (int(steps[-1]) - int(steps[0])) / (len(steps) - 1)
    # steps increase: a mean of 1 means all are 1
    if mean == 1.0:
        return mean
    return median(np.diff(steps))


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


def _slopes(part: Floats, rows: int, size: int) -> Floats:
    """Return the least-squares slopes per row of `rows` neighbours, `size` of them, added up as in `_sums`."""
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
            return weighted
        inner = inner[: len(part) - half] + inner[half:] + half * part[half:]
        part = part[: len(part) - half] + part[half:]


def trailing_moments(values: Floats, rows: int, *, detrend: bool = False) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the `rows` values before each one: (n,) -> two of (n - rows,).

    Entry i belongs to `values[rows + i]`, which is itself not in the window. With `detrend` (rows > 2) the
    deviation is that from the window's straight line, so that a loss that falls steeply does not pass for a noisy one.
    Goes through the array in parts that fit the processor's cache.
    """
    # Any typical value will do: it only keeps the squares small. A median, so that no outlier takes its place.
    center = median(values[:: 1 + len(values) // 10_000]) if len(values) else 0.0
    count = max(len(values) - rows, 0)
    mean, spread = np.empty(count), np.empty(count)
    for begin in range(0, count, CHUNK):
        size = min(CHUNK, count - begin)
        part = values[begin : begin + size + rows - 1] - center
        average = _sums(part, rows, size) / rows
        scatter = _sums(part * part, rows, size) / rows - average * average
        if detrend:
            explained = _slopes(part, rows, size)
            # The line takes two degrees of freedom.
            scatter = (scatter - explained * explained * ((rows * rows - 1) / 12)) * (rows / (rows - 2))
        np.add(average, center, out=mean[begin : begin + size])
        np.sqrt(np.maximum(scatter, 0.0), out=spread[begin : begin + size])
    return mean, spread


def blocks(values: Floats, count: int) -> tuple[Floats, Ints]:
    """Return medians of `count` equal consecutive blocks up to the last value, and the index at which each starts.

    Up to `count - 1` values at the beginning are left out, and of a block of thousands a median needs only some.
    """
    size = len(values) // count
    first = len(values) - count * size
    medians: Floats = row_medians(values[first:].reshape(count, size)[:, :: 1 + size // BLOCK_SAMPLE])
    return medians, first + size * np.arange(count)


def medians_of_three(values: Floats) -> Floats:
    """Return the median of each of at least three values and its neighbours; at both ends the mean of two."""
    one, two, three = values[:-2], values[1:-1], values[2:]
    found = np.empty(len(values))
    found[1:-1] = of_three(one, two, three)
    found[0], found[-1] = (values[0] + values[1]) / 2, (values[-2] + values[-1]) / 2
    return found


def of_three(one: Floats, two: Floats, three: Floats) -> Floats:
    """Return the median of three values each; NaN where one of them is."""
    found: Floats = np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three))
    return found


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
    padded = np.concatenate(([False], flags, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
