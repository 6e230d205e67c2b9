"""A series that gets worse again after its best level: by how much, at the very least."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_MAD, blocks, median, medians_of_three
from stabtree.facts.registry import finite
from stabtree.profile.onset import Onset, lasts_from

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Series

NORMAL_90 = 1.28  # no limit
"""A z that one normal value in ten exceeds: of ten bounds one is too high."""
MEDIAN_VARIANCE = 1.57  # no limit: the variance of a median of normal values over that of their mean


class TurningPoint(NamedTuple):
    """The best level of a series, and what came after it. Values are as they were logged.

    Attributes:
        step: the step of the best value on that level, which is `best`.
        best: that value.
        level: the best level.
        last: the last value.
        after: how many levels follow the one with the best value.
        worse: by how much the later ones are worse, by a line through them or by the median of their last third.
        bound: by how much they are worse at least, once their scatter is taken off.
    """

    step: int
    best: float
    level: float
    last: float
    after: int
    worse: float
    bound: float


def turn_of(series: Series, *, falls: bool = True) -> TurningPoint | None:
    """Return where a series turned for the worse; None for fewer than three finite rows.

    Args:
        series: the series.
        falls: whether lower is better.
    """
    steps, values = finite(series)
    if len(values) < 3:
        return None
    sign = 1.0 if falls else -1.0
    values = sign * values
    size = max(1, len(values) // shared.LEVELS)
    levels, starts = blocks(values, len(values) // size)
    smooth = levels if len(levels) < shared.LEVELS // 2 else medians_of_three(levels)  # the lowest of many may be luck
    best, noise = int(np.argmin(smooth)), bend_noise(levels)
    at = _lowest_row(values, starts, best, size)
    level = float(smooth[best])
    worse, bound = _worse(levels[best:], level, noise)
    last, after = float(values[-1]), len(levels) - 1 - max(at - int(starts[0]), 0) // size
    return TurningPoint(int(steps[at]), sign * float(values[at]), sign * level, sign * last, after, worse, bound)


def leaves(series: Series, turn: TurningPoint, *, falls: bool = True) -> Onset:
    """Return when a series left its best level: between two rows where it did so at once, else at its turn.

    At once: all rows up to the one from which on nearly all are worse than halfway were still on that level.
    """
    steps, values = finite(series)
    worse = values - turn.level if falls else turn.level - values
    after = int(np.searchsorted(steps, turn.step))
    row = lasts_from(worse > shared.SHARE_HALF * turn.worse)
    if row is None or row <= after or worse[after:row].max() > (1 - shared.SHARE_MOST) * turn.worse:
        return Onset(turn.step, turn.step)
    return Onset(int(steps[row - 1]), int(steps[row]))


def _lowest_row(values: Floats, starts: Ints, best: int, size: int) -> int:
    """Return the row of the lowest value in the best block and in those beside it."""
    begin, end = int(starts[max(best - 1, 0)]), int(starts[min(best + 1, len(starts) - 1)]) + size
    return begin + int(np.argmin(values[begin:end]))


def _worse(levels: Floats, level: float, noise: float) -> tuple[float, float]:
    """Return by how much the levels from the best one on have risen, and by how much at least.

    A line shows a rise that goes on, with few levels too; the median of the last third one that has ended.
    """
    later = levels[-max(1, len(levels) // 3) :]
    scatter = max(noise, float(later.std(ddof=1)) if len(later) > 2 else 0.0)
    step = median(later) - level
    rises = [(step - NORMAL_90 * scatter * (MEDIAN_VARIANCE / len(later) + 1) ** 0.5, step)]
    if len(levels) > 2:
        rise, error = line(levels, noise)
        rises.append((rise - NORMAL_90 * error, rise))
    bound, worse = max(rises)
    return worse, bound


def line(values: Floats, noise: float = 0.0) -> tuple[float, float]:
    """Return the rise of a straight line through at least three values from end to end, and its standard error.

    Args:
        values: the values.
        noise: the scatter of one, where it is known to be larger than around that line.
    """
    offsets = np.arange(len(values)) - (len(values) - 1) / 2
    squares, away = float(offsets @ offsets), values - values.mean()
    slope = float(offsets @ away) / squares
    rest = away - slope * offsets
    scatter = max(noise, (float(rest @ rest) / (len(values) - 2)) ** 0.5)
    return slope * (len(values) - 1), scatter / squares**0.5 * (len(values) - 1)


def bend_noise(values: Floats) -> float:
    """Return the scatter of one of at least three values by their second differences: no trend affects it."""
    return NORMAL_MAD * median(np.abs(np.diff(values, 2))) / 6**0.5
