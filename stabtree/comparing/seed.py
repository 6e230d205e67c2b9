"""Runs of one seed: their rows are equal to the last digit, until something differs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import change_noise, quantiles
from stabtree.comparing.digits import alike, unit
from stabtree.comparing.result import Parting
from stabtree.comparing.series import SCHEDULED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.comparing.align import Rows

CHANCE = 1e-3  # that runs of two seeds begin with the same digits
ROWS = 20  # at most so many rows of a series count towards that
FIRST = 50  # rows that tell how much a series moves by itself
LEAST = 3  # rows that it takes to tell


def same_seed(rows: Iterable[Rows]) -> bool:
    """Whether the first rows of two runs agree in more digits than those of two seeds would."""
    return math.prod(_by_chance(one) for one in rows if one.metric not in SCHEDULED) < CHANCE


def _by_chance(rows: Rows) -> float:
    """The chance that a series of two seeds begins with as many equal rows."""
    good = rows.good[0]
    equal = _alike_for(rows)
    finite = good[np.isfinite(good)][:FIRST]
    noise = change_noise(finite) if len(finite) >= LEAST else 0.0
    if not equal or not noise > 0:
        return 1.0
    one = min(1.0, 2 * float(unit(finite).max()) / noise)
    return float(one ** min(equal, ROWS))


def _alike_for(rows: Rows) -> int:
    """How many first rows are alike."""
    different = np.flatnonzero(~alike(rows.good[0], rows.bad))
    return int(different[0]) if len(different) else len(rows)


def first_difference(rows: Rows) -> Parting | None:
    """The first row at which a series differs in what was printed."""
    at = _alike_for(rows)
    return parting(rows, at, "differs") if at < len(rows) else None


def parting(rows: Rows, at: int, how: str) -> Parting:
    """A series that parts at a row, with how many times the noise of the good run's rows the difference is."""
    good, bad = rows.good[0], rows.bad
    finite = good[np.isfinite(good)]
    noise = change_noise(finite) if len(finite) >= LEAST else 0.0
    lost = not math.isfinite(bad[at]) and math.isfinite(good[at])
    apart = abs(float(bad[at]) - float(good[at]))
    return Parting(
        metric=rows.metric,
        step=int(rows.steps[at]),
        place=float(rows.places[at]),
        how="not finite" if lost else how,
        good=float(good[at]) if math.isfinite(good[at]) else None,
        bad=float(bad[at]) if math.isfinite(bad[at]) else None,
        last_alike=int(rows.steps[at - 1]) if at else None,
        noises=apart / noise if noise > 0 and math.isfinite(apart) and rows.metric not in SCHEDULED else None,
    )


def largest(rows: Rows, after: Parting) -> float:
    """How many times its own noise a series goes off after it parted; infinite where that is unknown."""
    later = rows.places >= after.place
    good, bad = rows.good[0], rows.bad
    finite = good[np.isfinite(good)]
    noise = change_noise(finite) if len(finite) >= LEAST else 0.0
    apart = np.abs(bad[later] - good[later])
    if not noise > 0 or not np.isfinite(apart).all():
        return math.inf
    return quantiles(apart, 0.95)[0] / noise
