"""Whether values of two logs are the same, in as many digits as both were printed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.stats import are_whole

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.run import Series

DIGITS = range(1, 8)  # that a log prints; one with more holds all that single precision has
SMALL = 1e-3  # what is smaller is printed with an exponent
SINGLE = 2e-6  # the rounding of single precision, in which event files hold values
FIRST_ROWS = 64  # no limit: rows by which most logs are told apart


def alike(here: Floats, there: Floats) -> bool:
    """Whether values are the same in as many digits as both logs hold; a NaN is like a NaN alone."""
    return bool(len(here)) and _within(here, there, rounding(here) + rounding(there))


def begin_alike(here: Series, there: Series) -> bool:
    """Whether the first rows of two series are the same; where they are not, no more of them are.

    More rows may show that more digits were printed, never fewer.
    """
    (one, off), (other, other_off) = _first_rows(here), _first_rows(there)
    rows = min(len(one), len(other))
    return _within(one[:rows], other[:rows], off[:rows] + other_off[:rows])


@remembered
def _first_rows(series: Series) -> tuple[Floats, Floats]:
    """Return the first values of a series, and how far they may be off: each log of a folder is compared with all."""
    values = series.values[:FIRST_ROWS]
    return values, rounding(values)


def _within(here: Floats, there: Floats, rounded: Floats) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(here - there) <= rounded + SINGLE * np.abs(here)
    return bool((off | (here == there) | (np.isnan(here) & np.isnan(there))).all())


def rounding(values: Floats) -> Floats:
    """Return how far values may be off because they were printed with few digits, float64 (n,); 0 where they were not.

    Trainers print so many digits behind the point, or so many in all; Keras does both, by the size of a number.
    """
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    exponents = np.floor(np.log10(np.where(sizes > 0, sizes, 1.0)))
    with np.errstate(over="ignore"):
        behind = next((digits for digits in DIGITS if _holds(sizes[sizes >= SMALL] * 10.0**digits)), None)
        in_all = next((digits for digits in DIGITS if _holds(sizes * 10.0 ** (digits - exponents))), None)
    off = np.zeros(len(values))
    if behind is not None:
        off = off + 0.51 * 10.0**-behind
    if in_all is not None:
        off = np.maximum(off, 0.51 * 10.0 ** (exponents - in_all))
    return off


def _holds(scaled: Floats) -> bool:
    """Whether numbers are whole, as far as double precision shows; those that are too large for it are not."""
    # A few rule out most.
    return bool(np.isfinite(scaled).all()) and are_whole(scaled[:FIRST_ROWS]) and are_whole(scaled)
