"""What runs that are easily judged wrong are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from stabtree.tree.load import load_tree
from tests.conftest import falling

TREE = load_tree()
ROWS = 1000
AT = np.arange(ROWS)
ONES = np.ones(ROWS)


def loss(**changes: Any) -> Any:
    """A healthy loss of 1,000 rows; `nan_from`, `spike` (step, height) and `rise` (step, height) change it."""
    values = falling(ROWS, 0.03)
    if "spike" in changes:
        values[changes["spike"][0]] += changes["spike"][1]
    if "rise" in changes:
        start, height = changes["rise"]
        values[start:] += np.linspace(0, height, ROWS - start)
    if "nan_from" in changes:
        values[changes["nan_from"] :] = np.nan
    return values


def nan_from(step: int, values: Any = ONES) -> Any:
    """A series that is NaN from a step on."""
    return np.where(step > AT, values, np.nan)
