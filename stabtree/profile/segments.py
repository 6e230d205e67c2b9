"""Piecewise levels: an exact, penalised search for change points over block medians, for many series at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR
from stabtree.common.stats import MEDIAN_ERROR
from stabtree.profile.blocks import change_scatter, middle

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.profile.blocks import Blocked

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
    came_from = _recursion_of_one(scaled[0])[None] if series == 1 else _recursion(scaled)
    rows = np.arange(series)
    at = np.full(series, count)
    while True:
        at = came_from[rows, at]
        open_ = at > 0
        if not open_.any():
            return begins
        begins[rows[open_], at[open_]] = True


def _recursion(scaled: Floats) -> Ints:
    """Return the beginning of the last level of the best division of the first t blocks: int64 (k, blocks + 1)."""
    series, count = scaled.shape
    penalty = PENALTY * math.log(count)
    sums = np.zeros((count + 1, series))
    squares = np.zeros((count + 1, series))
    np.cumsum(scaled.T, axis=0, out=sums[1:])
    np.cumsum(scaled.T**2, axis=0, out=squares[1:])
    best = np.full((count + 1, series), np.inf)
    best[0] = -penalty
    came_from = np.zeros((count + 1, series), dtype=np.int64)
    lengths = np.arange(count, 0, -1)[:, None]
    offsets = best - squares
    for end in range(MIN_LENGTH, count + 1):
        starts = slice(end - MIN_LENGTH + 1)
        total = sums[end] - sums[starts]
        total *= total
        total /= lengths[count - end :][starts]
        costs = offsets[starts] - total
        chosen = costs.argmin(axis=0)
        came_from[end] = chosen
        offsets[end] = costs[chosen, np.arange(series)] + penalty
    return came_from.T


def _recursion_of_one(scaled: Floats) -> Ints:
    """Return what `_recursion` does, int64 (blocks + 1,), of one series, (blocks,), in a fifth of the time."""
    count = len(scaled)
    penalty = PENALTY * math.log(count)
    sums = np.append(0.0, np.cumsum(scaled))
    offsets = np.full(count + 1, np.inf)
    offsets[0] = -penalty
    offsets -= np.append(0.0, np.cumsum(scaled**2))
    came_from = np.zeros(count + 1, dtype=np.int64)
    ends = np.arange(count + 1)
    totals = np.subtract.outer(sums, sums)
    totals *= totals
    totals /= np.maximum(np.subtract.outer(ends, ends), 1)
    for end in range(MIN_LENGTH, count + 1):
        costs = offsets[: end - MIN_LENGTH + 1] - totals[end, : end - MIN_LENGTH + 1]
        start = costs.argmin()
        came_from[end] = start
        offsets[end] = costs[start] + penalty
    return came_from


class Flights(NamedTuple):
    """The levels of k series, one series after the other.

    Attributes:
        rows: int64 (levels,), the row at which each begins.
        level: float64 (levels,), the median of its rows.
        ends: int64 (k,), the index behind the last level of each series.
    """

    rows: Ints
    level: Floats
    ends: Ints


def levels_of(blocked: Blocked, noise: Floats, scatter: Floats) -> Flights:
    """Return the levels of k series.

    Args:
        blocked: the series in blocks.
        noise: float64 (k,), the scatter of single rows.
        scatter: float64 (k,), that of block medians around their level, above 0.
    """
    begins = changes(blocked.medians, scatter)
    rows = _change_rows(blocked, begins, _means(blocked.medians, begins))
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
    return Flights(rows, level, np.searchsorted(owner, np.arange(len(noise)), side="right"))


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


def _means(medians: Floats, begins: Bools) -> Floats:
    """Return the mean of the medians of each level: float64 (levels,)."""
    starts = np.flatnonzero(begins.ravel())
    counts = np.diff(np.append(starts, begins.size))
    found: Floats = np.add.reduceat(medians.ravel() / np.repeat(counts, counts), starts)
    return found


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
