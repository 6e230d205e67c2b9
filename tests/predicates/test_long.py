"""What predicates work out part by part, against the plain computation over all rows."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.common.passes import PART
from stabtree.common.stats import stretches
from stabtree.predicates.course.exact import _longest
from stabtree.predicates.course.fall import _mean_peak
from stabtree.predicates.course.noise import _parting
from stabtree.run import Series

SIZES = (2, 500, PART, PART + 1, PART + 2, 2 * PART + 100)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("calm", [0.0, 0.4, 1.0])
def test_rises_end_where_they_do_in_the_whole(size: int, calm: float) -> None:
    """The change after which the fewest are rises, wherever it is."""
    values = np.random.default_rng(size).normal(size=size)
    values[round(calm * size) :] = -np.arange(size - round(calm * size))
    assert _parting(values, 0.2) == np.argmax(np.cumsum((np.diff(values) > 0) - 0.2)) + 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["falls", "warms up", "scatters"])
def test_the_mean_peak_is_that_of_the_highest_so_far(size: int, kind: str) -> None:
    """Whether the peak is in the first part, in a later one, or in none."""
    rates = np.linspace(1.0, 0.1, size)
    if kind == "warms up":
        rates = np.minimum(np.arange(size), PART + 50) / (PART + 50)
    elif kind == "scatters":
        rates = rates + np.random.default_rng(size).random(size)
    lr = Series("lr", np.arange(size), rates)
    assert _mean_peak(lr) == pytest.approx(np.maximum.accumulate(rates).mean(), rel=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 1.0])
def test_the_longest_stretch_is_the_first_of_its_length(share: float) -> None:
    """As of the flags of all rows."""
    for seed in range(20):
        flags = np.random.default_rng(seed).random(60) < share
        expected = max(stretches(flags), key=lambda part: part[1] - part[0], default=(1, 1))
        assert _longest(np.flatnonzero(flags)) == expected
