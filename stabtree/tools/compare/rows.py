"""Rows of several runs side by side: only rows that were logged, each used once; and how exactly they were printed."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST, median
from stabtree.metrics.table import is_time
from stabtree.tools.compare.result import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import Run, Series

CLOCK = "wall_time"
SCHEDULED = frozenset({"lr", "batch_id"})  # set before the run, whatever it learns: the same on all seeds
MIN_SHARE = 1e-6  # share of the good run's lowest value: on a scale of ratios, lower values are raised to it
SAMPLE = 200  # values that show how many digits were printed
FLOAT32 = 2.0**-23  # relative distance of neighbouring numbers of that type
HALF = 0.501  # of the last digit


class Rows(NamedTuple):
    """One metric of several runs where all of them logged it.

    Attributes:
        metric: the series.
        positions: float64 (n,), increasing positions of the bad run on the axis.
        steps: int64 (n,), its steps there.
        good: float64 (runs, n), the values of the good runs.
        bad: float64 (n,), those of the bad run.
    """

    metric: str
    positions: Floats
    steps: Ints
    good: Floats
    bad: Floats

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.positions)

    def only(self, run: int) -> Rows:
        """Return the same rows with only one of the good runs."""
        return self._replace(good=self.good[run : run + 1])


def in_common(good: Sequence[Run], bad: Run) -> list[str]:
    """Return the series that all runs logged, without those that only measure time."""
    return [name for name in bad.series if not is_time(name) and all(name in run.series for run in good)]


def side_by_side(metric: str, good: Sequence[Run], bad: Run, by: Axis = Axis.STEP) -> Rows:
    """Return the rows of a metric that all runs have at one position.

    By step a position is the step itself. By tokens and time, which rarely agree exactly, a row is matched with the
    nearest one of the other run, at most half a logging interval apart.
    """
    match = _common if by is Axis.STEP else _nearest
    series = bad.series[metric]
    bad_rows, positions = _axis(bad, series, by)
    matches = []
    for run in good:
        rows, others = _axis(run, run.series[metric], by)
        here, there = match(others, positions)
        matches.append((run.series[metric].values[rows[here]], there))
    at = reduce(partial(np.intersect1d, assume_unique=True), [there for _, there in matches])
    values = [matched[np.searchsorted(there, at)] for matched, there in matches]
    kept = bad_rows[at]
    return Rows(metric, positions[at], series.steps[kept], np.array(values), series.values[kept])


def _axis(run: Run, series: Series, by: Axis) -> tuple[Ints, Floats]:
    """Return rows of a series and their positions on the axis; by time only rows at which the clock went on."""
    if by is not Axis.TIME:
        return np.arange(len(series)), series.steps.astype(np.float64)  # exact up to 9e15
    clock = run.series[CLOCK]
    here, there = _common(clock.steps, series.steps)
    seconds = np.clip(clock.values[here], -LARGEST, LARGEST) - np.clip(clock.values[0], -LARGEST, LARGEST)
    highest = np.maximum.accumulate(np.append(-np.inf, np.where(np.isfinite(seconds), seconds, -np.inf)))[:-1]
    goes_on = np.isfinite(seconds) & (seconds > highest)
    return there[goes_on], seconds[goes_on]


def _common(one: Floats | Ints, other: Floats | Ints) -> tuple[Ints, Ints]:
    """Return the indexes in each of two increasing arrays at which they have the same value."""
    at = np.minimum(np.searchsorted(other, one), max(len(other) - 1, 0))
    here = np.flatnonzero(other[at] == one) if len(other) else np.zeros(0, np.int64)
    return here, at[here]


def _nearest(one: Floats, other: Floats) -> tuple[Ints, Ints]:
    """Return the indexes in each of two arrays that are the nearest to each other, at most half an interval apart."""
    if not len(one) or not len(other):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    here, there = _closest(one, other), np.arange(len(other))
    apart = max(median(np.diff(positions)) if len(positions) > 1 else 0.0 for positions in (one, other)) / 2
    keep = (_closest(other, one)[here] == there) & (np.abs(one[here] - other) <= apart)
    return here[keep], there[keep]


def _closest(values: Floats, wanted: Floats) -> Ints:
    """Return the index of the nearest of increasing values for each wanted one, (n,)."""
    after = np.clip(np.searchsorted(values, wanted), 1, max(len(values) - 1, 1))
    after = np.minimum(after, len(values) - 1)
    before = np.maximum(after - 1, 0)
    found: Ints = np.where(np.abs(values[before] - wanted) <= np.abs(values[after] - wanted), before, after)
    return found


def scaled(good: Floats, bad: Floats) -> tuple[Floats, Floats]:
    """Return values (runs, n) and (n,) on a scale of even noise: logarithms if all good ones are above 0."""
    finite = good[np.isfinite(good)]
    if not len(finite) or finite.min() <= 0:
        return np.clip(good, -LARGEST, LARGEST), np.clip(bad, -LARGEST, LARGEST)
    minimum = float(finite.min()) * MIN_SHARE
    return np.log(good), np.log(np.where(bad < minimum, minimum, bad))


def unit(values: Floats) -> Floats:
    """Return the unit of the last printed digit of each value, float64 (n,).

    A series is printed with a fixed number of decimals or of digits, or holds float32; which one is estimated from a
    sample of its values.
    """
    finite = values[np.isfinite(values)]
    forms = [_digits(value) for value in finite[:: 1 + len(finite) // SAMPLE].tolist()]
    digits, decimals = (max(counts) for counts in zip(*forms, strict=True)) if forms else (17, 17)
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.where(sizes > 0, np.floor(np.log10(sizes)), -300.0)
        found: Floats = np.maximum(10.0**-decimals, 10.0 ** (exponents - digits + 1))
        if len(finite) and digits > 9 and (finite.astype(np.float32) == finite).all():
            found = np.maximum(found, sizes * FLOAT32)
    return found


def _digits(value: float) -> tuple[int, int]:
    """Return the significant digits and the decimals of the shortest text of a number."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    before, _, after = mantissa.lstrip("-").partition(".")
    after = "" if after == "0" else after
    return max(1, len(f"{before}{after}".lstrip("0"))), max(0, len(after) - int(exponent or 0))


def alike(one: Floats, other: Floats) -> Bools:
    """Return whether values are equal as far as both were printed, bool (n,); NaN equals NaN."""
    apart = HALF * np.maximum(unit(one), unit(other))
    both = np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore"):
        near = both & (np.abs(one - other) <= apart)
    same: Bools = near | (one == other) | (np.isnan(one) & np.isnan(other))
    return same
