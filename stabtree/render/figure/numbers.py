"""Numbers as they stand at an axis: short, and still told apart."""

from __future__ import annotations

MOST_DIGITS = 7
LONGEST = 8  # characters


def short(value: float, digits: int = 3) -> str:
    """A number in few characters: `2.31`, `65536`, `1.2e-5`."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.0f}" if abs(value) >= 10.0**digits else f"{value:.{digits}g}"
    decimals = digits - 1 if digits > 3 else 1 if 1e-99 <= abs(value) < 1e99 else 0
    text = f"{value:.{decimals}e}"
    mantissa, _, exponent = text.partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def ends(low: float, high: float) -> tuple[str, str]:
    """The ends of an axis, with as many digits as it takes to tell them apart, where there is room."""
    for digits in range(3, MOST_DIGITS + 1):
        texts = short(low, digits), short(high, digits)
        if texts[0] != texts[1] and max(map(len, texts)) <= LONGEST:
            return texts
    return short(low), short(high)
