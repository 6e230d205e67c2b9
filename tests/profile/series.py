"""Series made for these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stabtree.run import Series

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats


def series(values: Floats | list[float], metric: str = "loss", first_step: int = 0) -> Series:
    """A series logged at every step."""
    array = np.asarray(values, dtype=np.float64)
    return Series(metric, np.arange(first_step, first_step + len(array)), array)


def noise(rows: int, seed: int = 0) -> Floats:
    """Normal noise, float64 (rows,), with a standard deviation of 1."""
    return np.random.default_rng(seed).standard_normal(rows)


def stairs(*levels: float, rows: int = 200, scatter: float = 0.1, seed: int = 0) -> Floats:
    """So many rows on each level in turn, with noise."""
    return np.repeat(levels, rows) + scatter * noise(len(levels) * rows, seed)
