"""The parts of a profile, and the smallest difference that a series shows."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.stats import is_counter, is_measured
from stabtree.metrics.metric import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import Series


class Point(NamedTuple):
    """One row that was logged."""

    step: int
    value: float


class Segment(NamedTuple):
    """A stretch of rows on one level.

    Attributes:
        first_step: its first step.
        last_step: its last step.
        rows: how many finite rows it has.
        level: the median of its rows, in the unit of the series.
    """

    first_step: int
    last_step: int
    rows: int
    level: float


class LeftLevel(NamedTuple):
    """A level that a series left and did not come back to.

    Attributes:
        step: the first step off the level.
        level: the level that it left.
        end: the level at the end of the series.
        times: how far apart the two are, in units of `level_noise`; above 0 for a rise.
        scatters: the same in units of how block medians scatter around levels, which is larger where a series wanders.
        tenfold_step: the step from which on every row is at 10 times the level or more, at a tenth of it or less where
            the series falls; None where it never got so far, or the level is not above 0.
    """

    step: int
    level: float
    end: float
    times: float
    scatters: float
    tenfold_step: int | None


class Recovery(NamedTuple):
    """A spike: rows far off the local level that come back to it.

    Attributes:
        step: the step of its farthest row.
        value: the value of that row.
        height: how far that row is off the local level, in units of `level_noise`; below 0 for a dip.
        rows: how many rows it took to come back; None for the last row of a series.
    """

    step: int
    value: float
    height: float
    rows: int | None


class Swings(Struct, frozen=True):
    """The spikes of a series: how many there are, and the highest of them, by step."""

    count: int = 0
    highest: tuple[Recovery, ...] = ()


class Nonfinite(Struct, frozen=True):
    """The rows that are NaN or infinite.

    Attributes:
        count: how many.
        first_step: the step of the first one, None without any.
        runs: into how many uninterrupted runs of rows they fall.

    """

    count: int = 0
    first_step: int | None = None
    runs: int = 0


class Profile(Struct, frozen=True):
    """What a series looks like, by its finite rows. Levels are in its own unit, NaN where no row is finite.

    Attributes:
        series: the series.
        role: what it holds by its name.
        better: `lower`, `higher`, or nothing where neither is.
        rows: how many rows were logged, those that are not finite included.
        span: the first and the last step; None without rows.
        first: the level at the beginning: the median of the first twentieth of the rows, of 3 at least.
        best: the best such level of the run; NaN where no direction is better. No logged value need equal it.
        best_step: the step of the best logged value.
        last: the level at the end.
        lowest: the lowest logged value, the first of equal ones.
        highest: the highest.
        level_noise: the standard deviation of single rows around their local level, robust against outliers and a
            trend, half a `quantum` at least; 0 for a constant series.
        quantum: the smallest step of the numbers as they were printed or stored (0.01, or 2**-8 of the value for
            bf16); 0 where they have none that can be seen.
        constant: whether all finite values are the same.
        nonfinite: the rows that are not finite.
        segments: stretches on one level each, in order; a steady trend is a flight of stairs.
        departures: the lowest level that it left upwards, and the highest that it left downwards, for good, by step.
        spikes: rows far off their local level that came back.
        trend: the Mann-Kendall score of up to 16 levels: about standard normal without a trend, above 0 for a rise.

    """

    series: Series
    role: Role
    better: str
    rows: int
    span: tuple[int, int] | None
    first: float = math.nan
    best: float = math.nan
    best_step: int | None = None
    last: float = math.nan
    lowest: Point | None = None
    highest: Point | None = None
    level_noise: float = 0.0
    quantum: float = 0.0
    constant: bool = False
    nonfinite: Nonfinite = Nonfinite()
    segments: Sequence[Segment] = ()
    departures: Sequence[LeftLevel] = ()
    spikes: Swings = Swings()
    trend: float = 0.0

    @property
    def shows_training(self) -> bool:
        """Whether it can show how training goes: no clock, schedule or label, and nothing that never falls."""
        schedule = self.role is Role.SETTING and not is_measured(self.series.values)
        if schedule or self.role in (Role.CLOCK, Role.COUNTER, Role.LABEL):
            return False
        return not is_counter(self.series.values)


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
    steps = sizes[open_, None] / unit[..., None]
    # Whole numbers, but for the error of a division.
    whole = np.all(np.abs(steps - np.round(steps)) <= EXACT * np.maximum(steps, 1.0), axis=-1) & usable
    coarsest, any_ = whole.argmax(axis=1), whole.any(axis=1)
    found[open_[any_]] = unit[any_, coarsest[any_]]
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
