"""Fit where the chance of a failure reaches a level and how fast it grows, with a penalty for leaving what is known."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

from stabtree.common.lazy import Floats, np

FARTHEST = 2.0
"""Doublings by which a limit may be moved."""
SHIFTS, SLOPES = 161, 41
STEEPEST, FLATTEST = 8.0, 0.5
USUAL_SLOPE = 2.0
SHIFT_SPREAD, SLOPE_SPREAD = 0.5, 0.5
"""How far a limit (in doublings) and a slope (in its logarithm) are expected to be from where they begin."""
WINDOW = 3.0
"""Doublings below the limit: what is farther below shows this failure no more than any other run does."""
ABOVE = 4.0
CLEARLY = 1.92
"""Log-likelihood by which another limit must fit better: one in twenty does by chance."""
MISTAKEN = 0.03
"""The share of labels that are wrong: no single log may be worth more than that allows."""


class Curve(NamedTuple):
    """How far the limit is to be moved, in doublings, and the slope there."""

    shift: float
    slope: float


@cache
def _shifts() -> Floats:
    return np.linspace(-FARTHEST, FARTHEST, SHIFTS)[:, None]


@cache
def _slopes() -> Floats:
    return np.geomspace(FLATTEST, STEEPEST, SLOPES)


def losses(strengths: Floats, positive: Floats, weights: Floats, level: float) -> Floats:
    """Return the weighted loss of each pair of a shift and a slope, and the penalty of the shift.

    Args:
        strengths: how far each log is above the limit, in doublings.
        positive: 1 for a failure that the question names, 0 for a healthy log.
        weights: how much each log counts.
        level: the chance that the limit is to be at.
    """
    used = strengths > -WINDOW
    near = np.minimum(strengths[used], ABOVE)[:, None, None]
    line = math.log(level / (1 - level)) + _slopes() * (near - _shifts())
    chance = MISTAKEN + (1 - 2 * MISTAKEN) / (1 + np.exp(-line))
    right = np.where(positive[used][:, None, None] > 0, chance, 1 - chance)
    loss = -np.sum(weights[used][:, None, None] * np.log(right), axis=0)
    found: Floats = loss + (_shifts() / SHIFT_SPREAD) ** 2 / 2
    return found


def shared_slope(tables: list[Floats]) -> float:
    """Return the slope that fits several questions best, each with the limit that is best for it."""
    profile = _spread(USUAL_SLOPE) + sum(table.min(axis=0) for table in tables)
    return float(_slopes()[np.argmin(profile)])


def best(table: Floats, slope: float) -> Curve:
    """Return the curve that fits best, where the slope is expected to be about a given one.

    The limit stays where it is unless another one fits clearly better.
    """
    whole = table + _spread(slope)
    shift, steep = divmod(int(np.argmin(whole)), whole.shape[1])
    here = SHIFTS // 2
    if whole[here].min() - whole[shift, steep] < CLEARLY:
        shift, steep = here, int(np.argmin(whole[here]))
    return Curve(float(_shifts()[shift, 0]), float(_slopes()[steep]))


def _spread(slope: float) -> Floats:
    found: Floats = (np.log(_slopes() / slope) / SLOPE_SPREAD) ** 2 / 2
    return found
