"""Round numbers along an axis."""

from __future__ import annotations

import math

MULTIPLES = (1, 2, 5, 10)


def linear(low: float, high: float, most: int) -> list[float]:
    """At most `most` multiples of 1, 2 or 5 times a power of ten between two ends; the ends where none fits."""
    rough = high / most - low / most
    if not (math.isfinite(rough) and rough > 0) or rough < 1e-300 or max(abs(low), abs(high)) / rough > 1e12:
        return [low, high] if high > low else [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((power * times for times in MULTIPLES if power * times >= rough), power * 10)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [count * step for count in range(first, last + 1)] or [low, high]


def logarithmic(low: float, high: float, most: int) -> list[float]:
    """Powers of ten between two ends, evenly spread where there are more than `most`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return [low, high]
    stride = math.ceil((last - first + 1) / most)
    return [10.0**power for power in range(first, last + 1, stride) if power > -308]


def steps(first: int, last: int, most: int) -> list[int]:
    """Whole numbers along the axis of steps, its first one among them."""
    found = [round(value) for value in linear(float(first), float(last), most)]
    return [*dict.fromkeys(step for step in found if first <= step <= last)] or [first, last]
