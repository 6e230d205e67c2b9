"""When a series left a level for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, FACTOR_LARGE
from stabtree.profile.model import LeftLevel
from stabtree.profile.spikes import far

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.profile.blocks import Blocked

NEAR = FACTOR  # in scatters of a level: levels so close are one
TENFOLD = FACTOR_LARGE
MIN_ROWS = 2  # a single last row may be a spike


class Staircase(NamedTuple):
    """The levels of one series.

    Attributes:
        rows: the row at which each begins.
        level: each of them.
        scatter: the standard deviation of a block median.
        noise: that of a single row.
        first: the level of the first rows.
        end: the level of the last rows.
        tails: how many of the last rows are above the last level, and how many below.
    """

    rows: list[int]
    level: list[float]
    scatter: float
    noise: float
    first: float
    end: float
    tails: tuple[int, int]


def departures(values: Floats, stairs: Staircase, steps: Ints) -> tuple[LeftLevel, ...]:
    """Return the lowest level that a series left upwards for good, and the highest that it left downwards, by step."""
    if not stairs.noise > 0:
        return ()
    found = [_left(values, stairs, steps, side) for side in (1, -1)]
    return tuple(sorted((item for item in found if item), key=lambda item: item.step))


def _left(values: Floats, stairs: Staircase, steps: Ints, side: int) -> LeftLevel | None:
    """Return where a series left its lowest level (side 1) or its highest one (side -1) for good."""
    level = stairs.level if side > 0 else [-value for value in stairs.level]
    near = min(level) + NEAR * stairs.scatter
    home = len(level) - 1
    while level[home] > near:
        home -= 1
    tail = stairs.tails[0] if side > 0 else stairs.tails[1]
    if home < len(level) - 1:
        row, end = stairs.rows[home + 1], stairs.end
    elif tail >= MIN_ROWS:
        row = len(values) - tail
        end = float(np.sort(values[row:])[tail // 2])
    else:
        return None
    left = stairs.level[home]
    times = (end - left) / stairs.noise
    if side * times <= 0:
        return None
    scatters = (end - left) / stairs.scatter
    return LeftLevel(int(steps[row]), left, end, times, scatters, _tenfold(values, steps, row, left, side))


def tails(blocked: Blocked, level: Floats, noise: Floats) -> list[tuple[int, int]]:
    """Return how many of the last rows, of two blocks at the most, are far above a level, and how many below.

    Args:
        blocked: k series in blocks.
        level: float64 (k,), the last level of each.
        noise: float64 (k,), the scatter of single rows.
    """
    off = blocked.values[:, -2 * blocked.size :] - level[:, None]
    reach = far(blocked.values.shape[1]) * noise[:, None]
    return list(zip(_true_at_end(off > reach), _true_at_end(off < -reach), strict=True))


def _true_at_end(flags: Bools) -> list[int]:
    """Return how many of the last flags of each series, bool (k, n), are true."""
    inside = ~flags[:, ::-1]
    found: list[int] = np.where(inside.any(axis=1), inside.argmax(axis=1), flags.shape[1]).tolist()
    return found


def _tenfold(values: Floats, steps: Ints, row: int, level: float, side: int) -> int | None:
    """Return the first step from which on every row is 10 times as far from 0; see `LeftLevel`."""
    if not level > 0 or (values[-1] < TENFOLD * level if side > 0 else values[-1] > level / TENFOLD):
        return None
    inside = values[row:] < TENFOLD * level if side > 0 else values[row:] > level / TENFOLD
    last = len(inside) - 1 - int(inside[::-1].argmax()) if inside.any() else -1
    return int(steps[row + last + 1])
