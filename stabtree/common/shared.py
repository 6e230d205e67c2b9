"""The limits that many questions share, one number for one idea; and how far an observation stands from a limit.

A keyword parameter of a measure takes its default from here wherever no real run needs another one, and a tree then
states nothing. A number that a document gives, or that was fitted, stands in the trees.
"""

from __future__ import annotations

import math

ROWS_SHORT = 5
"""Rows that show a level: their median survives two that are off."""
ROWS_LONG = 20
"""Rows that show a lasting state."""
SHARE_SOME = 0.05
SHARE_HALF = 0.5
SHARE_MOST = 0.9
"""Shares of the rows, or of a range."""
TREND_Z = 2.33
"""Mann-Kendall score of a trend that one in a hundred series without one shows."""
LEVELS = 20
"""Block medians in which a trend is looked for."""
NOISE_TIMES = 2.0
"""How many times its own scatter a level must move to have moved."""
FACTOR_SMALL = 1.5
FACTOR = 3.0
FACTOR_LARGE = 10.0
FACTOR_HUGE = 100.0
"""How many times its usual size something is."""
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
