"""Series of equal length cut into blocks of rows: what each block holds, for all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_MAD, of_three

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats

MAX_BLOCKS = 64  # no limit: what is quadratic in blocks costs the same for any log; 64 show any shape one would draw
SORTED_ROWS = 64  # no limit: blocks of up to so many rows are sorted whole
BLOCK_SAMPLE = 255  # no limit: rows of a longer block whose median is taken: its error is a twelfth of their scatter
PAIRS = 256  # no limit: neighbours whose difference is looked at: the scatter is known to some percent
IQR = 1.349  # no limit: interquartile range of a normal sample, in standard deviations
RAMP_IQR = 0.5 / IQR  # no limit: the same of an even ramp, as a share of its height
MIN_INNER = 8  # rows from which on a block shows its own scatter
LEVEL_SHARE = 20  # no limit: the first and the last level are medians of one in so many rows
LEVEL_ROWS = 3  # no limit: but of so many at least


class Blocked(Struct, frozen=True):
    """What the blocks of k series of n finite rows hold.

    Attributes:
        values: float64 (k, n).
        head: rows at the beginning that belong to no block; fewer than `size`, unless there is only one block.
        size: rows of a block.
        medians: float64 (k, blocks).
        lows: float64 (k, blocks), the lowest value of each block; the head belongs to the first one.
        highs: float64 (k, blocks), the highest.
        inner: float64 (k,), the scatter of rows inside their block without the trend; 0 where blocks are too short.
    """

    values: Floats
    head: int
    size: int
    medians: Floats
    lows: Floats
    highs: Floats
    inner: Floats

    @property
    def count(self) -> int:
        """The number of blocks."""
        return int(self.medians.shape[1])


def blocks_of(values: Floats) -> Blocked:
    """Cut series, float64 (k, n) with at least one row, into up to `MAX_BLOCKS` blocks up to their last row."""
    series, rows = values.shape
    size = -(-rows // MAX_BLOCKS)
    count = rows // size
    head = rows - count * size
    cut = values[:, head:].reshape(series, count, size)
    if size <= SORTED_ROWS:
        ordered = np.sort(cut, axis=-1)
        lows, highs = ordered[..., 0].copy(), ordered[..., -1].copy()
    else:
        ordered = np.sort(cut[..., :: -(-size // BLOCK_SAMPLE)], axis=-1)
        lows, highs = cut.min(axis=-1), cut.max(axis=-1)
    medians = middle(ordered)
    if head:
        lows[:, 0] = np.minimum(lows[:, 0], values[:, :head].min(axis=1))
        highs[:, 0] = np.maximum(highs[:, 0], values[:, :head].max(axis=1))
    return Blocked(values, head, size, medians, lows, highs, _inner(ordered, medians))


def middle(ordered: Floats) -> Floats:
    """Return the medians along the last axis of sorted values."""
    size = ordered.shape[-1]
    found: Floats = 0.5 * ordered[..., (size - 1) // 2] + 0.5 * ordered[..., size // 2]
    return found


def _inner(ordered: Floats, medians: Floats) -> Floats:
    """Return the scatter inside the blocks, (k,): their interquartile range without that of the trend across them."""
    size = ordered.shape[-1]
    if size < MIN_INNER or medians.shape[1] < LEVEL_ROWS:
        return np.zeros(len(medians))
    quarter = size // 4
    spread = (ordered[..., size - 1 - quarter] - ordered[..., quarter]) / IQR
    ramp = RAMP_IQR * np.abs(np.gradient(medians, axis=1))
    own = np.sqrt(np.maximum(spread - ramp, 0.0)) * np.sqrt(np.maximum(spread + ramp, 0.0))
    return middle(np.sort(own, axis=1))


def row_noise(blocks: Blocked) -> Floats:
    """Return the scatter of single rows around their local level, (k,): the larger one by neighbours and in blocks.

    Neighbours of a smoothed series are alike, and short blocks show nothing.
    """
    values = blocks.values
    rows = values.shape[1]
    if rows < LEVEL_ROWS:
        return np.zeros(len(values))
    at = np.arange(0, rows - 1, -(-(rows - 1) // PAIRS))
    return np.maximum(change_scatter(values[:, at + 1] - values[:, at]), blocks.inner)


def change_scatter(changes: Floats) -> Floats:
    """Return the standard deviation of one value, (k,), by changes between neighbours, (k, m)."""
    centre = middle(np.sort(changes, axis=1))
    away = np.abs(changes - centre[:, None])
    found: Floats = NORMAL_MAD * middle(np.sort(away, axis=1)) / 2**0.5
    return found


def smoothed(medians: Floats) -> Floats:
    """Return the median of each block and its neighbours, (k, blocks), and at both ends Tukey's rule.

    That is the median of the block, its neighbour, and what a line through the next two lets expect.
    """
    if medians.shape[1] < LEVEL_ROWS:
        return medians
    left, own, right = medians[:, :-2], medians[:, 1:-1], medians[:, 2:]
    inner = of_three(left, own, right)
    second = before = inner
    if inner.shape[1] > 1:
        second, before = inner[:, 1:2], inner[:, -2:-1]
    first = of_three(medians[:, :1], inner[:, :1], 3 * inner[:, :1] - 2 * second)
    last = of_three(medians[:, -1:], inner[:, -1:], 3 * inner[:, -1:] - 2 * before)
    return np.concatenate((first, inner, last), axis=1)


def ends(values: Floats) -> tuple[Floats, Floats]:
    """Return the levels at the beginning and at the end, (k,) each."""
    rows = values.shape[1]
    taken = min(rows, max(LEVEL_ROWS, rows // LEVEL_SHARE))
    every = -(-taken // BLOCK_SAMPLE)
    first, last = values[:, :taken:every], values[:, rows - taken :: every]
    return middle(np.sort(first, axis=1)), middle(np.sort(last, axis=1))


def extreme_rows(blocks: Blocked, *, highest: bool) -> list[int]:
    """Return the first row of the lowest value of each series, or of the highest."""
    found = []
    if highest:
        at = blocks.highs.argmax(axis=1)
    else:
        at = blocks.lows.argmin(axis=1)
    for values, block in zip(blocks.values, at.tolist(), strict=True):
        begin = 0 if not block else blocks.head + block * blocks.size
        part = values[begin : blocks.head + (block + 1) * blocks.size]
        found.append(begin + int(part.argmax() if highest else part.argmin()))
    return found
