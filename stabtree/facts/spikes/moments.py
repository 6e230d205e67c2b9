"""Mean and deviation of the rows before each row: window after window, in parts that fit the processor's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import median

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats, Ints

PART = 1 << 13  # no limit: windows that are worked out in one go: a dozen arrays of so many fit the cache


def trailing_moments(values: Floats, rows: int, *, detrend: bool = False) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the `rows` values before each one: (n,) -> two of (n - rows,)."""
    windows = Windows.of(values, rows, detrend=detrend)
    return windows.at(np.arange(windows.entries))


class Windows(NamedTuple):
    """The windows of `rows` values, each of which belongs to the value behind it: entry i to `values[rows + i]`.

    Attributes:
        values: float64 (n,).
        rows: how many values a window has.
        detrend: whether the deviation is that from the window's straight line (`rows` > 2), so that a loss that falls
            steeply does not pass for a noisy one.
        center: any typical value: what is taken off all others keeps the squares small.
    """

    values: Floats
    rows: int
    detrend: bool
    center: float

    @classmethod
    def of(cls, values: Floats, rows: int, *, detrend: bool) -> Windows:
        """Return the windows of values."""
        # A median, so that no outlier takes its place.
        center = median(values[:: 1 + len(values) // 10_000]) if len(values) else 0.0
        return cls(values, rows, detrend, center)

    @property
    def entries(self) -> int:
        """The number of windows with a value behind them."""
        return max(len(self.values) - self.rows, 0)

    def parts(self, first: int) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield means and deviations part by part, from entry `first` on: which entries they are, and both, (m,)."""
        for begin in range(first, self.entries, PART):
            span = slice(begin, min(begin + PART, self.entries))
            yield span, *self.between(span.start, span.stop)

    def at(self, wanted: Ints) -> tuple[Floats, Floats]:
        """Return the means and deviations of some entries, int64 (m,) in rising order: two of (m,)."""
        mean, spread = np.empty(len(wanted)), np.empty(len(wanted))
        begin = 0
        while begin < len(wanted):
            first = int(wanted[begin])
            end = int(np.searchsorted(wanted, first + PART))
            averages, deviations = self.between(first, int(wanted[end - 1]) + 1)
            mean[begin:end] = averages[wanted[begin:end] - first]
            spread[begin:end] = deviations[wanted[begin:end] - first]
            begin = end
        return mean, spread

    def between(self, begin: int, end: int) -> tuple[Floats, Floats]:
        """Return the means and deviations of the entries from `begin` up to `end`."""
        rows, size = self.rows, end - begin
        part = self.values[begin : end + rows - 1] - self.center
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
        return average + self.center, np.sqrt(np.maximum(scatter, 0.0))


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
