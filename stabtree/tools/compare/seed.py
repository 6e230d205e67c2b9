"""Runs of one seed: their rows are equal to the last digit, until something differs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_LONG
from stabtree.common.stats import change_noise, quantiles
from stabtree.tools.compare.digits import alike, unit
from stabtree.tools.compare.result import Parting
from stabtree.tools.compare.series import SCHEDULED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.lazy import Floats
    from stabtree.tools.compare.align import Rows

CHANCE = 1e-3  # that runs of two seeds begin with the same digits
MAX_ROWS = ROWS_LONG  # rows of a series that count towards that
NOISE_ROWS = 50  # first rows that show how much a series moves by itself
MIN_ROWS = 3  # rows needed to measure that


def same_seed(rows: Iterable[Rows]) -> bool:
    """Return whether the first rows of two runs agree in more digits than those of two seeds would."""
    return math.prod(_by_chance(one) for one in rows if one.metric not in SCHEDULED) < CHANCE


def _by_chance(rows: Rows) -> float:
    """Return the chance that a series of two seeds begins with as many equal rows."""
    equal = _equal_rows(rows)
    finite = rows.good[0][np.isfinite(rows.good[0])][:NOISE_ROWS]
    noise = _noise(finite)
    if not equal or not noise > 0:
        return 1.0
    one = min(1.0, 2 * float(unit(finite).max()) / noise)
    return float(one ** min(equal, MAX_ROWS))


def _noise(values: Floats) -> float:
    """Return the noise of the finite values; 0 if there are too few."""
    finite = values[np.isfinite(values)]
    if len(finite) < MIN_ROWS:
        return 0.0
    return change_noise(finite)


def _equal_rows(rows: Rows) -> int:
    """Count the first rows that are equal as far as they were printed."""
    different = np.flatnonzero(~alike(rows.good[0], rows.bad))
    if len(different):
        return int(different[0])
    return len(rows)


def first_difference(rows: Rows) -> Parting | None:
    """Return the parting at the first row in which what was printed differs; None if there is none."""
    at = _equal_rows(rows)
    if at < len(rows):
        return parting(rows, at, "differs")
    return None


def parting(rows: Rows, at: int, how: str) -> Parting:
    """Return the parting of a series at a row, with the difference in multiples of the good run's noise."""
    good, bad = float(rows.good[0][at]), float(rows.bad[at])
    if math.isfinite(good) and not math.isfinite(bad):
        how = "not finite"
    noises = None
    if rows.metric not in SCHEDULED and math.isfinite(bad - good):
        noise = _noise(rows.good[0])
        if noise > 0:
            noises = abs(bad - good) / noise
    return Parting(
        metric=rows.metric,
        step=int(rows.steps[at]),
        place=float(rows.positions[at]),
        how=how,
        good=good if math.isfinite(good) else None,
        bad=bad if math.isfinite(bad) else None,
        last_alike=int(rows.steps[at - 1]) if at else None,
        noises=noises,
    )


def largest(rows: Rows, after: Parting) -> float:
    """Return how many times its own noise a series moves away after it parted; infinite if that is unknown."""
    later = rows.positions >= after.place
    noise = _noise(rows.good[0])
    apart = np.abs(rows.bad[later] - rows.good[0][later])
    if not noise > 0 or not np.isfinite(apart).all():
        return math.inf
    return quantiles(apart, 0.95)[0] / noise
