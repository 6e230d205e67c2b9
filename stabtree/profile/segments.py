"""Levels, change points and spikes of a series."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, FACTOR_SMALL
from stabtree.common.stats import MEDIAN_ERROR, NORMAL_MAD, of_three
from stabtree.profile.model import Recovery, Swings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints


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
    inner = np.zeros(series)
    if size >= MIN_INNER and count >= LEVEL_ROWS:
        # The interquartile range inside each block, without that of the trend across it.
        quarter = ordered.shape[-1] // 4
        spread = (ordered[..., ordered.shape[-1] - 1 - quarter] - ordered[..., quarter]) / IQR
        ramp = RAMP_IQR * np.abs(np.gradient(medians, axis=1))
        own = np.sqrt(np.maximum(spread - ramp, 0.0)) * np.sqrt(np.maximum(spread + ramp, 0.0))
        inner = middle(np.sort(own, axis=1))
    return Blocked(values, head, size, medians, lows, highs, inner)


def middle(ordered: Floats) -> Floats:
    """Return the medians along the last axis of sorted values."""
    size = ordered.shape[-1]
    found: Floats = 0.5 * ordered[..., (size - 1) // 2] + 0.5 * ordered[..., size // 2]
    return found


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


# A change costs this many squared standard deviations times the logarithm of the number of blocks: 3 is that of the
# Bayesian criterion for its place and its height, and one more pays for a scatter that is only estimated.
PENALTY = 4.0
MIN_LENGTH = 2  # blocks of a level: a single one may be a burst
FARTHEST = 1e6  # no limit: in scatters; beyond it a square leaves no digits of the others in a sum
LEVEL_SAMPLE = 255  # no limit: rows of a level whose median is taken
NEAR = FACTOR  # in standard errors: levels so close are one
REFINE_ROWS = 1024  # no limit: rows looked at in one go for the place of a change inside its two blocks


def level_scatter(blocked: Blocked, noise: Floats) -> Floats:
    """Return the standard deviation of the block medians around a level, (k,): as they scatter, and as rows do."""
    own = MEDIAN_ERROR * noise / math.sqrt(blocked.size)
    if blocked.size == 1:
        own = noise
    if blocked.count > MIN_LENGTH:
        own = np.maximum(own, change_scatter(np.diff(blocked.medians, axis=1)))
    return own


def changes(medians: Floats, scatter: Floats) -> Bools:
    """Return at which blocks a new level begins: bool (k, blocks), the first of each series among them.

    Minimises the squared distance of the medians to the means of their levels plus a penalty for each change, over all
    divisions into levels of `MIN_LENGTH` blocks or more. That is the optimum which PELT finds too; with a fixed number
    of blocks a plain recursion takes the same time for any log.

    Args:
        medians: float64 (k, blocks).
        scatter: float64 (k,), the standard deviation of a median around its level, above 0.
    """
    series, count = medians.shape
    begins = np.zeros((series, count), dtype=np.bool_)
    begins[:, 0] = True
    if count < 2 * MIN_LENGTH:
        return begins
    centre = np.sort(medians, axis=1)[:, count // 2]
    scaled = np.clip((medians - centre[:, None]) / scatter[:, None], -FARTHEST, FARTHEST)
    # The beginning of the last level of the best division of the first t blocks: int64 (blocks + 1, k).
    penalty, rows = PENALTY * math.log(count), np.arange(series)
    sums, squares = np.zeros((2, count + 1, series))
    np.cumsum(scaled.T, axis=0, out=sums[1:])
    np.cumsum(scaled.T**2, axis=0, out=squares[1:])
    offsets = np.full((count + 1, series), np.inf)
    offsets[0] = -penalty
    offsets -= squares
    came_from = np.zeros((count + 1, series), dtype=np.int64)
    lengths = np.arange(count, 0, -1)[:, None]
    for end in range(MIN_LENGTH, count + 1):
        starts = slice(end - MIN_LENGTH + 1)
        total = sums[end] - sums[starts]
        total *= total
        total /= lengths[count - end :][starts]
        costs = offsets[starts] - total
        came_from[end] = costs.argmin(axis=0)
        offsets[end] = costs[came_from[end], rows] + penalty
    at = np.full(series, count)
    while True:
        at = came_from[at, rows]
        open_ = at > 0
        if not open_.any():
            return begins
        begins[rows[open_], at[open_]] = True


def levels_of(blocked: Blocked, noise: Floats, scatter: Floats) -> tuple[Ints, Floats, Ints]:
    """Return the levels of k series, one series after the other.

    The row at which each begins, int64 (levels,); the median of its rows, float64 (levels,); and the index behind the
    last level of each series, int64 (k,).

    Args:
        blocked: the series in blocks.
        noise: float64 (k,), the scatter of single rows.
        scatter: float64 (k,), that of block medians around their level, above 0.
    """
    begins = changes(blocked.medians, scatter)
    # The mean of the medians of each level.
    starts = np.flatnonzero(begins.ravel())
    counts = np.diff(np.append(starts, begins.size))
    means = np.add.reduceat(blocked.medians.ravel() / np.repeat(counts, counts), starts)
    rows = _change_rows(blocked, begins, means)
    owner, block = np.nonzero(begins)
    level = _row_medians(blocked, owner, rows)
    # A change inside a block spoils its median, and may look like two.
    first = block == 0
    size = np.where(np.append(first[1:], True), blocked.count, np.append(block[1:], 0)) - block
    short = size <= MIN_LENGTH
    count = np.minimum(_lengths(blocked, owner, rows), LEVEL_SAMPLE)
    error = NEAR * MEDIAN_ERROR * noise[owner] * np.sqrt(1 / count + 1 / np.roll(count, 1))
    same = ~first & (short | np.roll(short, 1)) & (np.abs(level - np.roll(level, 1)) <= error)
    if same.any():
        owner, rows = owner[~same], rows[~same]
        level = _row_medians(blocked, owner, rows)
    return rows, level, np.searchsorted(owner, np.arange(len(noise)), side="right")


def _lengths(blocked: Blocked, owner: Ints, rows: Ints) -> Ints:
    """Return how many rows each level has: int64 (levels,)."""
    last = np.append(owner[1:] != owner[:-1], True)
    found: Ints = np.where(last, blocked.values.shape[1], np.append(rows[1:], 0)) - rows
    return found


def _row_medians(blocked: Blocked, owner: Ints, rows: Ints) -> Floats:
    """Return the median of up to `LEVEL_SAMPLE` rows of each level: float64 (levels,)."""
    length = _lengths(blocked, owner, rows)
    spread = (np.arange(LEVEL_SAMPLE) + 0.5) / LEVEL_SAMPLE
    at = rows[:, None] + (length[:, None] * spread).astype(np.int64)
    return middle(np.sort(blocked.values[owner[:, None], at], axis=1))


def _change_rows(blocked: Blocked, begins: Bools, level: Floats) -> Ints:
    """Return the row at which each level begins, the first of a series at row 0: int64 (levels,).

    The place between two blocks is where the rows before it are nearer to the level before, in absolute distance, and
    those after it to the one after.
    """
    owner, block = np.nonzero(begins)
    rows = np.where(block == 0, 0, blocked.head + block * blocked.size)
    inner = np.flatnonzero(block > 0)
    if blocked.size == 1 or not len(inner):
        return rows
    before, after = level[inner - 1], level[inner]
    first = rows[inner] - blocked.size
    stride = -(-2 * blocked.size // REFINE_ROWS)
    found = first + stride * _parting(blocked.values, owner[inner], first, stride, 2 * blocked.size, before, after)
    if stride > 1:
        begin = np.clip(found - stride, 0, blocked.values.shape[1] - 2 * stride)
        found = begin + _parting(blocked.values, owner[inner], begin, 1, 2 * stride, before, after)
    rows[inner] = np.clip(found, 1, blocked.values.shape[1] - 1)
    return rows


def _parting(values: Floats, owner: Ints, first: Ints, stride: int, length: int, before: Floats, after: Floats) -> Ints:
    """Return after how many of the rows from `first` on, `stride` apart, the level changes: int64 (changes,)."""
    window = values[owner[:, None], first[:, None] + np.arange(0, length, stride)]
    nearer = np.abs(window - before[:, None]) - np.abs(window - after[:, None])
    cost = np.concatenate((np.zeros((len(first), 1)), np.cumsum(nearer, axis=1)), axis=1)
    found: Ints = cost.argmin(axis=1)
    return found


MAX_KEPT = 100  # no limit: the highest; a heavy tail may have thousands
# The highest of n normal values is about sqrt(2 ln n); one in several hundred series has one so much higher.
BEYOND = FACTOR_SMALL
MIN_HEIGHT = 5.0  # in scatters, for short series, whose scatter is badly known
BACK = FACTOR  # in scatters: where nearly all rows are


def far(rows: int) -> float:
    """Return how many scatters off its level a row must be to be a spike of a series with so many rows."""
    return max(MIN_HEIGHT, BEYOND + math.sqrt(2 * math.log(max(rows, 2))))


def spikes(blocked: Blocked, noise: Floats, steps: Sequence[Ints]) -> list[Swings]:
    """Return the spikes of each of k series.

    Args:
        blocked: the series in blocks.
        noise: float64 (k,), the scatter of single rows.
        steps: the steps of each series, int64 (n,).
    """
    local = smoothed(blocked.medians)
    # The level changes from block to block, and rows may be off that of their block by as much.
    steps_between = np.pad(np.abs(np.diff(local, axis=1)), ((0, 0), (1, 1)))
    slack = np.maximum(steps_between[:, :-1], steps_between[:, 1:])
    if blocked.head:
        slack[:, 0] *= 2  # the rows before the first block are up to twice as far from its middle
    reach = far(blocked.values.shape[1]) * noise[:, None] + slack
    out = ((blocked.highs - local > reach) | (local - blocked.lows > reach)) & (noise > 0)[:, None]
    found: list[list[Recovery]] = [[] for _ in steps]
    if out.any():
        for owner, top in _tops(blocked, out, local / noise[:, None], slack / noise[:, None], noise):
            row, height, rows = top
            found[owner].append(Recovery(int(steps[owner][row]), float(blocked.values[owner, row]), height, rows))
    highest = [sorted(own, key=lambda spike: -abs(spike.height))[:MAX_KEPT] for own in found]
    return [Swings(len(own), tuple(sorted(kept))) for own, kept in zip(found, highest, strict=True)]


def _tops(
    blocked: Blocked, out: Bools, local: Floats, slack: Floats, noise: Floats
) -> Iterator[tuple[int, tuple[int, float, int | None]]]:
    """Yield of each spike its series, and its farthest row, the height of that, and the rows until it is back.

    Only the rows of blocks that hold one, and of those beside them, are looked at.

    Args:
        blocked: k series in blocks.
        out: bool (k, blocks), the blocks that hold a row far off.
        local: float64 (k, blocks), the level of each block in scatters of the rows.
        slack: float64 (k, blocks), how much off a row may be by the trend, in scatters.
        noise: float64 (k,), that scatter.
    """
    near = out.copy()
    near[:, 1:] |= out[:, :-1]
    near[:, :-1] |= out[:, 1:]
    # The rows before the first block are the end of one more, whose other rows are not there.
    owner, block = np.nonzero(np.concatenate((near[:, :1] & (blocked.head > 0), near), axis=1))
    rows = blocked.head + (block[:, None] - 1) * blocked.size + np.arange(blocked.size)
    own = np.maximum(block - 1, 0)
    off = (blocked.values[owner[:, None], rows] / noise[owner, None] - local[owner, own][:, None]).ravel()
    off[rows.ravel() < 0] = 0
    size = np.abs(off) - np.repeat(slack[owner, own], blocked.size)
    tops = np.flatnonzero(size > far(blocked.values.shape[1]))
    # Where the blocks before or behind are not looked at, the series is back.
    apart = (np.diff(owner, prepend=-1) != 0) | (np.diff(block, prepend=-2) != 1)
    parts, back = np.flatnonzero(apart) * blocked.size, np.flatnonzero(size <= BACK)
    part, at_back = np.searchsorted(parts, tops, side="right"), np.searchsorted(back, tops)
    # The last row before each that is on the level, and the first one behind it.
    before = np.maximum(np.append(-1, back)[at_back], parts[part - 1] - 1)
    after = np.minimum(np.append(back, len(off))[at_back], np.append(parts[1:], len(off))[part - 1])
    groups = np.flatnonzero(np.diff(after, prepend=-1))
    order = np.lexsort((-size[tops], np.cumsum(np.diff(after, prepend=-1) != 0)))
    for index in order[groups].tolist():
        at, until = int(tops[index]), int(after[index])
        row, back_after = int(rows.ravel()[at]), until - int(before[index]) - 1
        if int(rows.ravel()[until - 1]) < blocked.values.shape[1] - 1:
            yield int(owner[at // blocked.size]), (row, float(off[at]), back_after)
        elif back_after == 1:
            # What never came back has left its level, unless it is the last row, of which nobody knows.
            yield int(owner[at // blocked.size]), (row, float(off[at]), None)
