"""Which series can show a parting, and on which scale their differences are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST
from stabtree.metrics.table import is_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Floats
    from stabtree.run import Run

SCHEDULED = frozenset({"lr", "batch_id"})  # set before the run, whatever it learns: the same on all seeds
MIN_SHARE = 1e-6  # share of the good run's lowest value: on a scale of ratios, lower values are raised to it


def in_common(good: Sequence[Run], bad: Run) -> list[str]:
    """Return the series that all runs logged, without those that only measure time."""
    return [name for name in bad.series if not is_time(name) and all(name in run.series for run in good)]


def scaled(good: Floats, bad: Floats) -> tuple[Floats, Floats]:
    """Return values on a scale on which their noise is even: logarithms if all good ones are above 0.

    Args:
        good: float64 (runs, n).
        bad: float64 (n,).

    Returns:
        The same shapes.
    """
    finite = good[np.isfinite(good)]
    if not len(finite) or finite.min() <= 0:
        return np.clip(good, -LARGEST, LARGEST), np.clip(bad, -LARGEST, LARGEST)
    minimum = float(finite.min()) * MIN_SHARE
    return np.log(good), np.log(np.where(bad < minimum, minimum, bad))
