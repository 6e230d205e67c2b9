"""The history of the loss scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import changes
from stabtree.common.stats import median
from stabtree.facts.registry import Unknown, fact, finite, highest, lowest

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Series

# How a scaler works: it doubles or halves. These bounds lie between the factors 1/2, 1 and 2, for a logged mean.
ROSE, FELL = 1.5, 0.75
# The smallest normal number of fp32, in which a scaler keeps its scale: below it a fall is the end of the format.
SMALLEST = 2.0**-126  # no limit


class ScaleHistory(NamedTuple):
    """What the loss scale did: how often it rose and fell, and its extremes.

    `clean_steps` is the median wait before a rise, `net_halvings` what the second half of the run lost on balance,
    `fall_step` where the fall to the lowest value began. Falls below `SMALLEST` are not counted.
    """

    drops: int
    rises: int
    first: float
    last: float
    lowest: float
    highest: float
    lowest_step: int
    first_drop: int
    fall_step: int
    clean_steps: int | None
    net_halvings: float


@fact()
def scale(loss_scale: Series) -> ScaleHistory | Unknown:
    """Find the loss scale's history; unknown for a placeholder: under two values, none above 0, or 1 throughout."""
    steps, values = finite(loss_scale)
    if len(values) < 2 or highest(loss_scale) <= 0 or lowest(loss_scale) == highest(loss_scale) == 1:
        return Unknown("the loss scale is logged as a placeholder or only once", ("loss_scale",))
    moves = changes(values, np.not_equal) - 1  # few: most steps leave the scale as it is
    before, after = np.maximum(values[moves], SMALLEST), np.maximum(values[moves + 1], SMALLEST)
    ratio = after / np.where(values[moves] == 0, np.nan, before)
    rises, drops = moves[ratio > ROSE], moves[ratio < FELL]
    marks = np.concatenate(([0], np.sort(np.concatenate((rises, drops))) + 1))
    waits = [int(steps[r + 1] - steps[marks[np.searchsorted(marks, r + 1) - 1]]) for r in rises[:200]]
    low = int(np.argmin(values)) if len(moves) else 0
    middle, last = (max(float(values[row]), SMALLEST) for row in (len(values) // 2, -1))
    return ScaleHistory(
        drops=len(drops),
        rises=len(rises),
        first=float(values[0]),
        last=float(values[-1]),
        lowest=float(values[low]),
        highest=highest(loss_scale),
        lowest_step=int(steps[low]),
        first_drop=int(steps[drops[0] + 1]) if len(drops) else int(steps[0]),
        fall_step=_fall_step(steps, values[: low + 1], moves[moves < low]),
        clean_steps=int(median(np.asarray(waits))) if waits else None,
        net_halvings=float(np.log2(middle / last)),
    )


def _fall_step(steps: Ints, values: Floats, moves: Ints) -> int:
    """Return the step at which the fall to the last value began, the lowest: after it the scale did not rise.

    Args:
        steps: the steps of all rows.
        values: the rows up to the lowest.
        moves: those of them after which the scale is another, int64 (m,).
    """
    rises = np.flatnonzero(values[moves + 1] > values[moves])
    falls = moves[rises[-1] + 1 :] if len(rises) else moves
    return int(steps[falls[0] + 1]) if len(falls) else int(steps[len(values) - 1])
