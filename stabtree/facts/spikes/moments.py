"""Mean and deviation of the rows before each row: window after window, in parts that fit the processor's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import median

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.common.lazy import Floats, Ints

    Piece = tuple[int, Floats, Floats, Floats]

PART = 1 << 13  # no limit: windows that are worked out in one go: a dozen arrays of so many fit the cache
APART = 512  # no limit: the same of windows far apart


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
        for begin in range(0, len(wanted), APART):
            some = slice(begin, begin + APART)
            here = wanted[some]
            if here[-1] - here[0] < PART:
                averages, deviations = self.between(int(here[0]), int(here[-1]) + 1)
                mean[some], spread[some] = averages[here - here[0]], deviations[here - here[0]]
            else:
                part = self.values[np.arange(self.rows)[:, None] + here] - self.center
                mean[some], spread[some] = self._moments(_apart(part, self.rows))
        return mean, spread

    def between(self, begin: int, end: int) -> tuple[Floats, Floats]:
        """Return the means and deviations of the entries from `begin` up to `end`."""
        part = self.values[begin : end + self.rows - 1] - self.center
        return self._moments(_neighbours(part, self.rows, end - begin, weighted=self.detrend))

    def _moments(self, pieces: Iterable[Piece]) -> tuple[Floats, Floats]:
        """Return the means and deviations of windows that are made of such pieces."""
        rows, total, weighted, squares = self.rows, *np.zeros((3, 1))
        for start, sums, inner, squared in pieces:
            total = total + sums
            weighted = weighted + inner
            weighted += start * sums
            squares = squares + squared
        average = total / rows
        scatter = squares / rows - average * average
        if self.detrend:
            slope = (weighted - (rows - 1) / 2 * total) / (rows * (rows * rows - 1) / 12)
            # The line takes two degrees of freedom.
            scatter = (scatter - slope * slope * ((rows * rows - 1) / 12)) * (rows / (rows - 2))
        return average + self.center, np.sqrt(np.maximum(scatter, 0.0))


def window_sums(part: Floats, rows: int, size: int) -> Floats:
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


def _neighbours(part: Floats, rows: int, size: int, *, weighted: bool) -> Iterator[Piece]:
    """Yield the pieces of `size` windows that begin with one value after the other: doubled ones, as `window_sums` has.

    A piece is the place in the window at which it begins, and of each window the sum of its values, the sum of these
    times their index in the piece (0 where these are not `weighted`), and the sum of their squares.
    """
    inner, squares = np.zeros(len(part)), part * part
    width, start = 1, 0
    while True:
        if rows & width:
            own = slice(start, start + size)
            yield start, part[own], inner[own], squares[own]
            start += width
        if 2 * width > rows:
            return
        if weighted:
            inner = inner[:-width] + inner[width:] + width * part[width:]
        part, squares = part[:-width] + part[width:], squares[:-width] + squares[width:]
        width *= 2


def _apart(part: Floats, rows: int) -> Iterator[Piece]:
    """Yield the same pieces of windows wherever they begin: float64 (rows, m), added up in the same order."""
    width, start = 1, 0
    while width <= rows:
        if rows & width:
            sums = part[start : start + width]
            inner, squares = np.zeros(sums.shape), sums * sums
            half = 1
            while half < width:
                inner = inner[::2] + inner[1::2] + half * sums[1::2]
                sums, squares = sums[::2] + sums[1::2], squares[::2] + squares[1::2]
                half *= 2
            yield start, sums[0], inner[0], squares[0]
            start += width
        width *= 2
