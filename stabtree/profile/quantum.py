"""The smallest step of numbers as they were printed or stored."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints

SAMPLE = 64  # no limit: values of each series that are looked at: finer ones would have to hide from every one of them
DIGITS = 8  # no limit: a number printed with more digits has no step that anybody would see
MANTISSA = 53  # no limit
SHORT = 24  # no limit: bits of a float32; a number with more was computed, not stored in a shorter type
TINY = sys.float_info.min  # no limit
EXACT = 1e-9  # no limit: the share of a step by which a division may miss a whole number


def quanta(values: Floats) -> Floats:
    """Return the quantum of each of k series, float64 (k, n) with at least one row; 0 where there is none.

    Printed numbers are multiples of a power of ten; those stored in a short float type have few bits, and their step
    is that of the median size.
    """
    rows = values.shape[1]
    sample = values[:, :: -(-rows // SAMPLE)]
    return np.maximum(_printed(sample), _stored(sample))


def _printed(sample: Floats) -> Floats:
    sizes = np.abs(sample)
    largest = sizes.max(axis=1)
    found = np.zeros(len(sample))
    open_ = np.flatnonzero((largest > 0) & (largest < 1e15))
    top = np.floor(np.log10(np.where(largest > 0, largest, 1.0)))
    if not len(open_):
        return found
    # All digits at once: a loop over them takes several times as long for one series.
    unit = 10.0 ** np.minimum(top[open_, None] - np.arange(DIGITS + 1), 15.0)
    usable: Bools = unit > TINY
    unit = np.where(usable, unit, 1.0)
    whole = _are_whole(sizes[open_, None] / unit[..., None]) & usable
    coarsest, any_ = whole.argmax(axis=1), whole.any(axis=1)
    found[open_[any_]] = unit[any_, coarsest[any_]]
    return found


def _are_whole(values: Floats) -> Bools:
    """Return for each row whether all its values are whole numbers, but for the error of a division."""
    away = np.abs(values - np.round(values)) <= EXACT * np.maximum(values, 1.0)
    found: Bools = np.all(away, axis=-1)
    return found


def bits_used(values: Floats) -> Ints:
    """Return how many bits of their mantissas values use, of the shape of the values: 8 at most in bf16, 11 in fp16."""
    whole = (np.frexp(np.abs(values))[0] * 2.0**MANTISSA).astype(np.int64)
    # The rest are zeros at its end.
    lowest = np.where(whole > 0, np.frexp((whole & -whole).astype(np.float64))[1] - 1, MANTISSA)
    found: Ints = MANTISSA - lowest
    return found


def _stored(sample: Floats) -> Floats:
    """Return the step of floats with few bits, (k,); 0 where one has more than a float32 holds."""
    used = bits_used(sample)
    bits, held = used.max(axis=1), used > 0
    short: Bools = (bits > 0) & (bits <= SHORT)
    if not short.any():  # as of all that was printed
        return np.zeros(len(sample))
    exponents = np.frexp(np.abs(sample))[1]
    ordered = np.sort(np.where(held, exponents, exponents.min() - 1), axis=1)
    middle = sample.shape[1] - 1 - np.count_nonzero(held, axis=1) // 2
    typical = np.take_along_axis(ordered, middle[:, None], axis=1)[:, 0]
    step = np.ldexp(1.0, np.clip(typical - bits, -1000, 1000))
    return np.where(short, step, 0.0)
