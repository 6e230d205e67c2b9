"""Runs made close to one threshold each, to hold it from both sides."""

from __future__ import annotations

from tests.made import levels, phase19
from tests.made.hold import Hold, pins

HOLDS: tuple[Hold, ...] = (*phase19.HOLDS, *levels.HOLDS)
PINS = tuple(pins(HOLDS))
