"""Runs made close to one threshold each, to hold it from both sides."""

from __future__ import annotations

from tests.corpus.made import (
    causes,
    checks,
    convergence,
    early,
    exact,
    facts,
    levels,
    overfitting,
    panels,
    phase19,
    precision,
)
from tests.corpus.made.hold import Hold, pins

HOLDS: tuple[Hold, ...] = (
    *facts.HOLDS,
    *panels.HOLDS,
    *phase19.HOLDS,
    *convergence.HOLDS,
    *checks.HOLDS,
    *overfitting.HOLDS,
    *exact.HOLDS,
    *early.HOLDS,
    *levels.HOLDS,
    *precision.HOLDS,
    *causes.HOLDS,
)
PINS = tuple(pins(HOLDS))
