"""A series that leaves its course is found at the same row whichever stretches are looked at first."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.facts import departure as searching
from stabtree.facts.departure import Limits, departure

LIMITS = Limits(0.01, 0.01, 1.5, 3.0, 64, 8, 32)


@pytest.mark.parametrize("side", [-1, 0, 1])
def test_the_earliest_row_of_all_stretches_counts(side: int) -> None:
    """Those that are passed over because they can find nothing earlier would not have."""
    random = np.random.default_rng(side + 5)
    found = 0
    for _ in range(150):
        rows = int(random.integers(30, 500))
        values = random.normal(size=rows) + random.normal(size=rows).cumsum() * random.choice([0.0, 0.2])
        values[-int(random.integers(1, 20)) :] += random.normal() * 30
        stretches = searching._stretches(rows, LIMITS)
        tried = sum(one.rows * one.blocks for one in stretches) * 4
        every = [searching._at(values, one, LIMITS, tried, side) for one in stretches]
        expected = min(filter(None, every), key=lambda item: (item.row, -item.times), default=None)
        assert departure(values, LIMITS, 4, side) == expected
        found += expected is not None
    assert found
