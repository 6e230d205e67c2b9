"""The precision that a series was printed with: what two logs of one value may differ by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats

SAMPLE = 200  # values that show how many digits were printed
FLOAT32 = 2.0**-23  # relative distance of neighbouring numbers of that type
HALF = 0.501  # of the last digit


def unit(values: Floats) -> Floats:
    """Return the unit of the last printed digit of each value, float64 (n,).

    A series is printed with a fixed number of decimals or of digits, or holds float32; which one is estimated from a
    sample of its values.
    """
    finite = values[np.isfinite(values)]
    sample = finite[:: 1 + len(finite) // SAMPLE]
    forms = [_digits(value) for value in sample.tolist()]
    digits = max((form[0] for form in forms), default=17)
    decimals = max((form[1] for form in forms), default=17)
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.where(sizes > 0, np.floor(np.log10(sizes)), -300.0)
        found = np.maximum(10.0**-decimals, 10.0 ** (exponents - digits + 1))
        if len(finite) and digits > 9 and (finite.astype(np.float32) == finite).all():
            found = np.maximum(found, sizes * FLOAT32)
    whole: Floats = found
    return whole


def _digits(value: float) -> tuple[int, int]:
    """Return the significant digits and the decimals of the shortest text of a number."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    before, _, after = mantissa.lstrip("-").partition(".")
    if after == "0":
        after = ""
    return max(1, len(f"{before}{after}".lstrip("0"))), max(0, len(after) - int(exponent or 0))


def alike(one: Floats, other: Floats) -> Bools:
    """Return whether values are equal as far as both were printed, bool (n,); NaN equals NaN."""
    apart = HALF * np.maximum(unit(one), unit(other))
    both = np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore"):
        near = both & (np.abs(one - other) <= apart)
    same: Bools = near | (one == other) | (np.isnan(one) & np.isnan(other))
    return same
