"""Arrays in, arrays out. Knows nothing of training.

All functions take finite float64 arrays unless they say otherwise, run in linear time (sorting apart)
and leave their arguments alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np

if TYPE_CHECKING:
    from stabtree._lazy import Bools, Floats, Ints

NORMAL_DECAY = (2.3263 - 1.2816) / math.log(10)  # the same slope for a normal sample
CHUNK = 1 << 15
SAMPLE = 50_000  # values from which a quantile of a longer array is read: its error is below a tenth of a percent
NORMAL_MAD = 1.4826  # makes the median absolute deviation of a normal sample its standard deviation


def interval(steps: Ints) -> float:
    """Median distance between neighbouring steps; 1 for fewer than two steps."""
    if len(steps) < 2:
        return 1.0
    mean = (int(steps[-1]) - int(steps[0])) / (len(steps) - 1)
    return mean if mean == 1.0 else float(np.median(np.diff(steps)))  # steps increase: a mean of 1 means all are 1


def windowed_sum(values: Floats, rows: int) -> Floats:
    """Sums of every `rows` neighbours: (n,) -> (n - rows + 1,).

    Adds up doubled partial sums, so a huge value spoils only the windows that hold it; a running
    cumulative sum would lose the digits of every window after it. Goes through the array in parts that
    fit the processor's cache.
    """
    total = np.empty(max(len(values) - rows + 1, 0))
    for begin in range(0, len(total), CHUNK):
        size = min(CHUNK, len(total) - begin)
        total[begin : begin + size] = _doubled(values[begin : begin + size + rows - 1], rows, size)
    return total


def _doubled(part: Floats, rows: int, size: int) -> Floats:
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


def trailing_moments(values: Floats, rows: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the `rows` values before each one: (n,) -> two of (n - rows,).

    Entry i belongs to `values[rows + i]`, which is itself not in the window.
    """
    # Any typical value will do: it only keeps the squares small. A median, so that no outlier takes its place.
    center = float(np.median(values[:: 1 + len(values) // 10_000])) if len(values) else 0.0
    # In place: fresh memory for each intermediate array costs more than the arithmetic.
    shifted = values[:-1] - center
    mean = windowed_sum(shifted, rows)
    mean /= rows
    np.multiply(shifted, shifted, out=shifted)
    spread = windowed_sum(shifted, rows)
    spread /= rows
    spread -= np.multiply(mean, mean, out=shifted[: len(mean)])
    np.sqrt(np.maximum(spread, 0.0, out=spread), out=spread)
    mean += center
    return mean, spread


class Tail(NamedTuple):
    """The upper tail of a sample of scores: how many of `size` chance would put above a height.

    An exponential tail through the 90th and the 99th percentile, never thinner than the normal one.
    A heavy-tailed series raises its own bar, where a normal tail would cry wolf.
    """

    size: int
    at90: float
    decay: float

    def expected(self, height: float) -> float:
        """Scores above `height` to expect by chance."""
        return self.size * 0.1 * math.exp(min(0.0, -(height - self.at90) / self.decay))

    def height(self, expected: float) -> float:
        """The height above which chance puts `expected` scores; infinite for none."""
        if expected <= 0:
            return math.inf
        return self.at90 + self.decay * math.log(max(self.size * 0.1 / expected, 1.0))


def upper_tail(scores: Floats) -> Tail:
    """The tail of at least two scores, without what is on trial: the highest one, and the last twentieth.

    In a log of 60 rows the highest score alone would move the 99th percentile up to itself, and a run that blows
    up in its last rows would raise its own bar above them.
    """
    early = scores[: len(scores) - len(scores) // 20] if len(scores) >= 40 else scores
    others = np.delete(early, np.argmax(early))[:: 1 + len(early) // SAMPLE]
    at90, at99 = (float(q) for q in np.quantile(others, [0.90, 0.99]))
    return Tail(len(scores), at90, max((at99 - at90) / math.log(10), NORMAL_DECAY))


def blocks(values: Floats, count: int) -> tuple[Floats, Ints]:
    """Medians of `count` equal consecutive blocks that end with the last value, and the index at which each starts.

    Up to `count - 1` values at the beginning are left out.
    """
    size = len(values) // count
    first = len(values) - count * size
    medians: Floats = np.median(values[first:].reshape(count, size), axis=1)
    return medians, first + size * np.arange(count)


def kendall_z(values: Floats) -> float:
    """Mann-Kendall trend score: about standard normal without a trend, positive for a rise.

    Quadratic in time: for a few hundred values (block medians), not for raw rows.
    Source: Mann 1945, Kendall 1975; ties corrected as usual.
    """
    n = len(values)
    if n < 4:
        return 0.0
    signs = np.sign(values[None, :] - values[:, None])
    score = float(np.triu(signs, 1).sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0 or score == 0:
        return 0.0
    return (score - math.copysign(1, score)) / math.sqrt(variance)


def span(values: Floats) -> float:
    """The range from the 2nd to the 98th percentile: all that a series covers but its outliers."""
    return float(np.subtract(*np.quantile(values[:: 1 + len(values) // SAMPLE], [0.98, 0.02])))


def stretches(flags: Bools) -> list[tuple[int, int]]:
    """Runs of true values as (first index, index after the last)."""
    padded = np.concatenate(([False], flags, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
