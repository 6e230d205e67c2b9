"""When a series left its level: the last step at which it was on it, and the first from which on it was not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.lazy import np
from stabtree.common.passes import PART
from stabtree.common.stats import MEDIAN_ERROR, NORMAL_MAD, median, running_medians

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints

MOST_ROWS = 15  # of a level: with more a rise of some rows would be over before it shows
OFF = 1.0  # errors above its level from which on a series is off it


class Onset(NamedTuple):
    """When a series left its level.

    Attributes:
        last_good_step: the last step at which it was on its level.
        first_bad_step: the first step from which on it was off it.
    """

    last_good_step: int
    first_bad_step: int


def lasts_from(bad: Bools) -> int | None:
    """Return the first bad row from which on nearly all rows are bad; None where the series does not end so."""
    shares = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)
    rows = np.flatnonzero(bad & (shares >= shared.SHARE_MOST))
    return int(rows[0]) if len(rows) else None


def left_level(steps: Ints, values: Floats, by_step: int) -> Onset | None:
    """Return when a series left its lowest level upwards, up to a step by which it had; None with too few rows before.

    Where the rows right before that step are on the level, the series left it at once. Else it left it gradually, and
    no more than the first of the last rows on the level is known to be good.

    Args:
        steps: int64 (n,).
        values: float64 (n,), finite.
        by_step: a step at which the series is known to be off its level.
    """
    end = int(np.searchsorted(steps, by_step))
    rows = max(3, min(MOST_ROWS, end // shared.ROWS_LONG))
    if end < 2 * rows:
        return None
    level = running_medians(values[:end], rows)
    calm = max(int(level.argmin()) + rows, 4 * rows)  # what grows for long has changes of its own
    changes = np.diff(values[: max(calm, end)])
    np.abs(changes, out=changes)
    noise = min(median(changes[: calm - 1]), median(changes[: end - 1]))
    white = NORMAL_MAD * MEDIAN_ERROR * noise / math.sqrt(2 * rows)
    # The lowest of many windows is lower than their level by so many errors.
    low, errors = float(level.min()), math.sqrt(2 * math.log(end / rows))
    off = (errors + OFF) * max(white, min(_wander(level[:calm], rows), _wander(level, rows)))
    if level[-1] <= low + off:
        return Onset(int(steps[end - 1]), int(steps[min(end, len(steps) - 1)]))
    surely_on = int(np.flatnonzero(level <= low + white / 2)[-1])
    good = _before_the_turn(level, surely_on, 2 * rows, off)
    on = int(np.flatnonzero(level <= low + off)[-1])
    return Onset(int(steps[good]), int(steps[min(on + rows // 2 + 1, end)]))


def left_best(steps: Ints, values: Floats, best_step: int, level: float, end: float) -> Onset:
    """Return when a series left its lowest level upwards for good; its best step where it never went halfway.

    Where the row before the first one past halfway was still within a tenth of the way, it did so at once.

    Args:
        steps: int64 (n,).
        values: float64 (n,), finite.
        best_step: a step at which it was on its lowest level.
        level: that level.
        end: the level at its end.
    """
    row = lasts_from((steps > best_step) & (values > (level + end) / 2))
    if row is None:
        return Onset(best_step, best_step)
    by_step = int(steps[row])
    if values[row - 1] <= level + (1 - shared.SHARE_MOST) * (end - level):
        return Onset(int(steps[row - 1]), by_step)
    found = left_level(steps, values, by_step)
    if found is None or found.first_bad_step <= best_step:
        return Onset(best_step, by_step)
    return Onset(max(found.last_good_step, best_step), found.first_bad_step)


def risen_by_factors(steps: Ints, values: Floats, level: float, end: float, by_step: int) -> int:
    """Return the first step at which a series had risen off a level above 0 by factors, up to one by which it had.

    An exponential rise is halfway when most of its rows are behind it; what it makes in its first tenth, counted in
    factors, is still on the level.
    """
    row = int(np.searchsorted(steps, by_step))
    near = level * math.exp((1 - shared.SHARE_MOST) * math.log(max(end, level) / level))
    on = np.flatnonzero(values[:row] <= near)
    return int(steps[int(on[-1]) + 1]) if len(on) else by_step


def _wander(level: Floats, rows: int) -> float:
    """Return how much levels of so many rows each scatter around a steady course, by the bends between neighbours."""
    if len(level) <= 2 * rows:
        return 0.0
    bends = level[2 * rows :] - 2 * level[rows:-rows]
    bends += level[: -2 * rows]
    return NORMAL_MAD * median(np.abs(bends, out=bends)) / math.sqrt(6)


def _before_the_turn(level: Floats, low: int, rows: int, off: float) -> int:
    """Return the last row up to the lowest level at which the series still fell as it had; that level's on a plateau.

    A fall hides the beginning of a rise: until the two are equal there is only a fall that slows down.
    """
    end = min(low, len(level) - 1 - rows) + 1
    for begin in range(end - PART, 2 * rows - PART, -PART):
        first, last = max(begin, 2 * rows), begin + PART
        here = level[first:last]
        before, after = level[first - rows : last - rows] - here, here - level[first + rows : last + rows]
        plateau = level[first - 2 * rows : last - 2 * rows] - here <= off
        good = np.flatnonzero(plateau | (after >= np.maximum(before, 0.0) * shared.SHARE_HALF))
        if len(good):
            return min(low, first + int(good[-1]))
    return low
