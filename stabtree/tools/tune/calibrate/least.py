"""The least change of a number that makes something true, found by trying: no algebra is trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.tools.tune.calibrate.knobs import Tunable

CLOSE = 1.005
"""Two values whose ratio is no larger are not distinguished."""
DIGITS = 3
AWAY = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Where it is tried: parts of the way that a threshold may go, in its logarithm."""
LOOKED_AT = (0.3, 1.0)
"""Where it must hold at one place at least, before it is looked for closely."""


def smallest_change(knob: Tunable, holds: Callable[[float], bool], *, up: bool) -> float | None:
    """Return the value nearest to the one in force at which something holds; None where it holds at none within reach.

    Args:
        knob: the number.
        holds: whether it holds at a value.
        up: whether the value may grow; else it may fall.
    """
    end = knob.moved(knob.base, knob.factor, up=up)
    if end == knob.base or not any(holds(value) for value in _values(knob, LOOKED_AT, up=up)):
        return None
    near = knob.base
    for value in _values(knob, AWAY, up=up):
        if holds(value):
            return _between(knob, near, value, holds, up=up)
        near = value
    return None


def _values(knob: Tunable, parts: tuple[float, ...], *, up: bool) -> list[float]:
    """Return values at growing distances from the one in force, none beyond the end."""
    raw = [knob.moved(knob.base, knob.factor**part, up=up) for part in parts]
    return list(dict.fromkeys(away(knob, value, up=up) for value in raw))


def _between(knob: Tunable, near: float, far: float, holds: Callable[[float], bool], *, up: bool) -> float:
    """Return the nearest value at which it holds, between one at which it does not and one at which it does."""
    while max(near, far) > CLOSE * min(near, far):
        middle = away(knob, math.sqrt(near * far), up=up, digits=DIGITS + 2)
        if middle in (near, far):
            break
        if holds(middle):
            far = middle
        else:
            near = middle
    return far


def away(knob: Tunable, value: float, *, up: bool, digits: int = DIGITS) -> float:
    """Return a value that can be typed, rounded away from the one in force."""
    scale = 1.0
    if not knob.whole:
        scale = 10.0 ** (digits - 1 - math.floor(math.log10(value)))
    steps = value * scale
    # What is a round number but for the last bits stays it.
    near = round(steps)
    if math.isclose(steps, near, rel_tol=1e-9):
        whole = near
    elif up:
        whole = math.ceil(steps)
    else:
        whole = math.floor(steps)
    if knob.whole:
        return whole
    return float(f"{whole / scale:.{digits}g}")
