"""Which series tell of a parting, and on which scale their differences are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST
from stabtree.metrics.pace import TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Floats
    from stabtree.run import Run

SCHEDULED = frozenset({"lr", "batch_id"})  # set before the run, whatever it learns: the same on all seeds
LEARNED = frozenset({"loss", "eval_loss", "eval_quality", "reward"})  # how well it learns: on all seeds much the same
LEAST_SHARE = 1e-6  # of the good run's least value: what is lower is taken for that, on a scale of ratios


def in_common(good: Sequence[Run], bad: Run) -> list[str]:
    """The series that all runs logged, without those that tell of time alone."""
    return [name for name in bad.series if name not in TIMES and all(name in run.series for run in good)]


def scaled(good: Floats, bad: Floats) -> tuple[Floats, Floats]:
    """Values on the scale on which their noise is even: ratios where the good run is above 0 throughout.

    Args:
        good: float64 (runs, n).
        bad: float64 (n,).
    """
    finite = good[np.isfinite(good)]
    if not len(finite) or finite.min() <= 0:
        return np.clip(good, -LARGEST, LARGEST), np.clip(bad, -LARGEST, LARGEST)
    least = float(finite.min()) * LEAST_SHARE
    return np.log(good), np.log(np.where(bad < least, least, bad))
