"""Numbers as people write them in a sentence."""

from __future__ import annotations

import math
import re

SMALL, LARGE = 1e-4, 1e6  # outside of these a number is written with an exponent
MANY = 1000.0  # from here on digits are grouped, and a deviation is put in words
FAR = 1e5  # deviations of noise beyond which no one reads the number
MOST = 3.0  # a larger share is a factor
MAX_DIGITS = 17  # a float has no more
NONE = 0.05  # deviations that no one sees
TINY = 0.0005  # the smallest share that is written with its digits
_PRINTED = re.compile(r"(?<![\w.])-?\d+(?:\.(\d+))?e[+-]\d+(?![0-9A-Za-z_])")
_EXPONENT = re.compile(r"e([+-])0*(\d+)$")


def figure(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits.

    >>> figure(22487.3), figure(1.02e15), figure(3e-5), figure(0.25), figure(1e3)
    ('22,500', '1.02e15', '3e-5', '0.25', '1,000')
    """
    size = abs(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:g}"
    rounded = float(f"{value:.{digits}g}")
    if MANY <= abs(rounded) < LARGE and size >= 1:
        return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,}"
    shown = f"{value:.{digits}g}"
    if 0 < abs(rounded) < SMALL or abs(rounded) >= LARGE:
        shown = f"{value:.{digits - 1}e}"
        mantissa, _, exponent = shown.partition("e")
        shown = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
    return _EXPONENT.sub(lambda found: f"e{found[1].replace('+', '')}{found[2]}", shown)


def rewritten(text: str) -> str:
    """Return a text with the numbers that Python printed with an exponent as people write them.

    >>> rewritten("updates are 3.5e-07 of the weights, a factor of 2.87e+03")
    'updates are 3.5e-7 of the weights, a factor of 2,870'
    """
    return _PRINTED.sub(lambda found: figure(float(found[0]), 1 + len(found[1] or "")), text)


def as_share(value: float) -> str:
    """Return a share of something in percent, a large one as a factor.

    >>> as_share(0.534), as_share(0.0123), as_share(0.00002), as_share(0.0), as_share(7.645)
    ('53%', '1.2%', 'under 0.1%', '0%', '7.6×')
    """
    if abs(value) > MOST:
        return as_factor(value)
    if 0 < abs(value) < TINY:
        return "under 0.1%"
    if 0 < abs(value) < 0.1:
        return f"{100 * value:.1f}".removesuffix(".0") + "%"
    return f"{value:.0%}"


def as_factor(value: float) -> str:
    """Return a factor.

    >>> as_factor(2.345), as_factor(10648.0), as_factor(3e9)
    ('2.3×', '10,600×', 'over 1,000,000×')
    """
    if value >= LARGE:
        return f"over {LARGE:,.0f}×"
    return f"{figure(value, 3 if abs(value) >= 100 else 2)}×"


def deviations(sigma: float, limit: float = 0.0) -> str:
    """Return how many standard deviations something is from a mean, in digits that show its side of a limit.

    >>> deviations(4.26), deviations(123.4), deviations(10648.0), deviations(1e9)
    ('4.3σ', '123σ', '10,600 times its noise', 'over 100,000 times its noise')
    """
    if sigma >= FAR:
        return f"over {FAR:,.0f} times its noise"
    if abs(sigma) < NONE:
        return "0σ"
    if sigma >= MANY - 0.5:
        return f"{figure(sigma)} times its noise"
    return f"{against(sigma, limit, '.3g' if abs(sigma) >= 100 else '.2g')}σ"


def against(value: float, limit: float, form: str = ".3g") -> str:
    """Format a number in few digits, or in as many as show on which side of a limit it is.

    Args:
        value: the number.
        limit: what it was compared with, which is shown beside it.
        form: the format with the fewest digits: `.3g`, `.1f` or `.0%`.

    >>> against(29.996, 30.0), against(0.7996, 0.8, ".0%"), against(30.0, 30.0), against(10648.0, 30.0)
    ('29.996', '79.96%', '30', '10,600')
    """
    side, fewest = _side(value, limit), int(form[1:-1])
    for digits in range(fewest, MAX_DIGITS + 1):
        precise = f".{digits}{form[-1]}"
        number = _read(f"{value:{precise}}")
        if _side(number, limit) == _side(number, _read(f"{limit:{precise}}")) == side:
            break
    if form.endswith("g"):
        return figure(value, digits)
    return as_factor(value) if form.endswith("%") and abs(value) > MOST else f"{value:.{digits}{form[-1]}}"


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def _read(shown: str) -> float:
    return float(shown.removesuffix("%")) / (100 if shown.endswith("%") else 1)
