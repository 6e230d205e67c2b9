"""Numbers as they stand at an axis: short, and still told apart."""

from __future__ import annotations

MOST_DIGITS = 7


def short(value: float, digits: int = 3) -> str:
    """A number in few characters: `2.31`, `65536`, `1.2e-5`."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.0f}" if abs(value) >= 10.0**digits else f"{value:.{digits}g}"
    text = f"{value:.{digits - 1}e}" if digits > 3 else f"{value:.1e}"
    mantissa, _, exponent = text.partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def ends(low: float, high: float) -> tuple[str, str]:
    """The ends of an axis, with as many digits as it takes to tell one from the other."""
    texts = short(low), short(high)
    for digits in range(3, MOST_DIGITS + 1):
        texts = short(low, digits), short(high, digits)
        if texts[0] != texts[1]:
            break
    return texts
