"""An axis: how high a value is on it, its numbers in few characters, and round numbers along it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats

LOG_RATIO = 30.0  # a series that spans more than this is drawn on a log axis
MAX_DIGITS = 7
LONGEST = 8  # characters of a number at the end of an axis
MULTIPLES = (1, 2, 5, 10)


def levels(values: Floats, low: float, high: float, *, log: bool) -> Floats:
    """Return the height of finite values between the ends of an axis, 0 to 1; beyond an end is at the end."""
    if not high > low:
        return np.full(len(values), 0.5)
    with np.errstate(all="ignore"):
        if log:
            values, low, high = np.log(values), float(np.log(low)), float(np.log(high))
        # Halved first: the distance of the largest numbers from each other overflows a float.
        share = (values / 2 - low / 2) / (high / 2 - low / 2)
    found: Floats = np.clip(np.nan_to_num(share), 0, 1)
    return found


def short(value: float, digits: int = 3) -> str:
    """Return a number in few characters: `2.31`, `65536`, `1.2e-5`."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        if abs(value) >= 10.0**digits:
            return f"{value:.0f}"
        return f"{value:.{digits}g}"
    decimals = 1 if 1e-99 <= abs(value) < 1e99 else 0
    if digits > 3:
        decimals = digits - 1
    mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def ends(low: float, high: float) -> tuple[str, str]:
    """Return the ends of an axis, with as many digits as it takes for them to differ, where there is room."""
    for digits in range(3, MAX_DIGITS + 1):
        texts = short(low, digits), short(high, digits)
        if texts[0] != texts[1] and max(map(len, texts)) <= LONGEST:
            return texts
    return short(low), short(high)


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` multiples of 1, 2 or 5 times a power of ten between two ends; the ends where none fits."""
    rough = high / most - low / most
    if not (math.isfinite(rough) and rough > 0) or rough < 1e-300 or max(abs(low), abs(high)) / rough > 1e12:
        return [low, high] if high > low else [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((power * times for times in MULTIPLES if power * times >= rough), power * 10)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [count * step for count in range(first, last + 1)] or [low, high]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return the powers of ten between two ends, evenly spread where there are more than `most`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return [low, high]
    stride = math.ceil((last - first + 1) / most)
    return [10.0**power for power in range(first, last + 1, stride) if power > -308]


def step_ticks(first: int, last: int, most: int) -> list[int]:
    """Return whole numbers along the axis of steps, its first one among them."""
    found = [round(value) for value in linear_ticks(float(first), float(last), most)]
    return [*dict.fromkeys(step for step in found if first <= step <= last)] or [first, last]
