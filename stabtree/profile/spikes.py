"""Rows far off the local level that come back to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, FACTOR_SMALL
from stabtree.profile.blocks import smoothed
from stabtree.profile.model import Recovery, Swings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.profile.blocks import Blocked

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
    slack = _slack(local)
    if blocked.head:
        slack[:, 0] *= 2  # the rows before the first block are up to twice as far from its middle
    reach = far(blocked.values.shape[1]) * noise[:, None] + slack
    out = ((blocked.highs - local > reach) | (local - blocked.lows > reach)) & (noise > 0)[:, None]
    found: list[list[Recovery]] = [[] for _ in steps]
    if out.any():
        for owner, top in _tops(blocked, out, local / noise[:, None], slack / noise[:, None], noise):
            row, height, rows = top
            found[owner].append(Recovery(int(steps[owner][row]), float(blocked.values[owner, row]), height, rows))
    return [Swings(len(own), _highest(own)) for own in found]


def _highest(spikes_: list[Recovery]) -> tuple[Recovery, ...]:
    if len(spikes_) <= MAX_KEPT:
        return tuple(spikes_)
    return tuple(sorted(sorted(spikes_, key=lambda spike: -abs(spike.height))[:MAX_KEPT]))


def _slack(local: Floats) -> Floats:
    """Return how far rows may be off the level of their block since that changes from block to block: (k, blocks)."""
    if local.shape[1] < 2:
        return np.zeros(local.shape)
    change = np.abs(np.diff(local, axis=1))
    edge = np.zeros((len(local), 1))
    found: Floats = np.maximum(np.concatenate((edge, change), axis=1), np.concatenate((change, edge), axis=1))
    return found


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
    before, after = _back_around(tops, np.flatnonzero(size <= BACK), np.flatnonzero(apart) * blocked.size, len(off))
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


def _back_around(tops: Ints, back: Ints, parts: Ints, rows: int) -> tuple[Ints, Ints]:
    """Return the last row before each of `tops` that is on the level, and the first one behind it: int64 (tops,) each.

    Args:
        tops: int64, the rows that are far off.
        back: int64, the rows that are on the level.
        parts: int64, the rows at which the rows looked at begin anew, 0 among them; what is beyond is on the level.
        rows: how many rows there are.
    """
    part = np.searchsorted(parts, tops, side="right")
    at = np.searchsorted(back, tops)
    before = np.maximum(np.append(-1, back)[at], parts[part - 1] - 1)
    after = np.minimum(np.append(back, rows)[at], np.append(parts[1:], rows)[part - 1])
    return before, after
