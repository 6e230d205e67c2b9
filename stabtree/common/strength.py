"""How far an observation stands from its limit, on one scale for every question."""

from __future__ import annotations

import math

FARTHEST = 20.0
"""In doublings; what is farther off is no farther off."""

TINY = 1e-9
"""How far below its limit something is that is just not above it."""


def above(observed: float, limit: float) -> float:
    """Return how far above a limit something is, in doublings: 1 at twice the limit, 0 at it, -1 at half of it.

    What is not above 0 is as far below the limit as can be, and anything else as far above a limit of 0.
    """
    if math.isnan(observed) or observed <= 0:
        return -FARTHEST
    if limit <= 0 or math.isinf(observed):
        return FARTHEST
    return max(-FARTHEST, min(FARTHEST, math.log2(observed) - math.log2(limit)))


def beyond(observed: float, limit: float) -> float:
    """Return how far above a limit something is, as `above`; what is exactly at the limit is not beyond it."""
    return above(observed, limit) if observed > limit else min(above(observed, limit), -TINY)


def below(observed: float, limit: float) -> float:
    """Return how far below a limit something is, in doublings: 1 at half of the limit, 0 at it, -1 at twice of it."""
    return -above(observed, limit)


def whether(holds: bool) -> float:
    """Return the strength of something that either holds or does not."""
    return FARTHEST if holds else -FARTHEST
