"""Runs of one seed: their rows are equal to the last digit, until something differs.

What is equal on every seed proves nothing: a series that does not move, and the first row of one that no batch is
measured by. The norms of LayerNorm weights begin at the same value in every run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_LONG
from stabtree.common.stats import change_noise, quantiles
from stabtree.metrics.metric import Role
from stabtree.metrics.table import with_role
from stabtree.tools.compare.digits import alike, unit
from stabtree.tools.compare.result import Parting
from stabtree.tools.compare.series import SCHEDULED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.lazy import Bools, Floats
    from stabtree.tools.compare.align import Rows

# What a batch is measured by, so that already its first row differs from seed to seed.
_OF_A_BATCH = (Role.LOSS, Role.HELD_OUT_LOSS, Role.QUALITY, Role.REWARD, Role.GRADIENT)
_AT_START = (0.0, math.log(2))  # the first loss of on-policy RL and of DPO, on every seed
BF16 = 2.0**-8  # relative distance of neighbouring numbers of the coarsest precision that losses are computed in
CHANCE = 1e-3  # that runs of two seeds begin with the same digits
MAX_ROWS = ROWS_LONG  # rows of a series that count towards that
NOISE_ROWS = 50  # first rows that show how much a series moves by itself
MIN_ROWS = 3  # rows needed to measure that


def same_seed(rows: Iterable[Rows]) -> bool:
    """Return whether the first rows of two runs agree in more digits than those of two seeds would."""
    return math.prod(_by_chance(one) for one in rows if one.metric not in SCHEDULED) < CHANCE


def _by_chance(rows: Rows) -> float:
    """Return the chance that a series of two seeds begins with as many equal rows."""
    good = rows.good[0]
    finite = good[np.isfinite(good)][:NOISE_ROWS]
    noise = _noise(finite)
    equal = int(np.count_nonzero(_proves(rows)[: _equal_rows(rows)]))
    if not equal or not noise > 0:
        return 1.0
    one = min(1.0, 2 * float(unit(finite).max()) / noise)
    return float(one ** min(equal, MAX_ROWS))


def _proves(rows: Rows) -> Bools:
    """Return the rows that another seed would make another value of, bool (n,)."""
    good = rows.good[0]
    proves = np.append(True, good[1:] != good[:-1])
    start = good[:1]
    by_nature = any(alike(start, np.full(1, value))[0] for value in _AT_START)
    if by_nature or rows.metric not in with_role(*_OF_A_BATCH):
        proves[0] = False
    return proves


def only_rounded(rows: Iterable[Rows]) -> bool:
    """Return whether what the first batch is measured by differs by no more than a lower precision makes of it."""
    return any(_is_rounded(one) for one in rows if one.metric in with_role(*_OF_A_BATCH))


def _is_rounded(rows: Rows) -> bool:
    good, bad = float(rows.good[0][0]), float(rows.bad[0])
    apart = abs(bad - good)
    return bool(0 < apart <= BF16 * abs(good) and apart < _noise(rows.good[0]) and not _equal_rows(rows))


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
