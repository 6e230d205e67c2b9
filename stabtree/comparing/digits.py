"""How finely a series was printed: what two logs of one value may differ by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats

SAMPLE = 200  # values that tell how many digits were printed
FLOAT32 = 2.0**-23  # what neighbouring numbers of that type differ by, as a share
HALF = 0.501  # of the last digit


def unit(values: Floats) -> Floats:
    """The worth of the last printed digit of each value, float64 (n,); 0 for what is not finite.

    A series is printed with so many decimals or with so many digits, or holds float32; what all of its values have is
    read from some of them.
    """
    finite = values[np.isfinite(values)]
    sample = finite[:: 1 + len(finite) // SAMPLE]
    forms = [_digits(value) for value in sample.tolist()]
    digits, decimals = (max((form[place] for form in forms), default=17) for place in (0, 1))
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.where(sizes > 0, np.floor(np.log10(sizes)), -300.0)
        found = np.maximum(10.0**-decimals, 10.0 ** (exponents - digits + 1))
        if len(finite) and digits > 9 and (finite.astype(np.float32) == finite).all():
            found = np.maximum(found, sizes * FLOAT32)
    whole: Floats = found
    return whole


def _digits(value: float) -> tuple[int, int]:
    """Significant digits and decimals of the shortest text of a number."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    before, _, after = mantissa.lstrip("-").partition(".")
    after = "" if after == "0" else after
    return max(1, len(f"{before}{after}".lstrip("0"))), max(0, len(after) - int(exponent or 0))


def alike(one: Floats, other: Floats) -> Bools:
    """Whether values are the same as far as both were printed: the same NaN or infinity too."""
    apart = HALF * np.maximum(unit(one), unit(other))
    both = np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore"):
        near = both & (np.abs(one - other) <= apart)
    same: Bools = near | (one == other) | (np.isnan(one) & np.isnan(other))
    return same
