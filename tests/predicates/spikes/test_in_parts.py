"""What predicates work out part by part, against the plain computation over all rows."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.common.passes import PART
from stabtree.common.stats import stretches
from stabtree.predicates.course.exact import _longest
from stabtree.predicates.course.fall import _mean_peak
from stabtree.predicates.course.noise import _parting
from stabtree.predicates.spikes.collapse import Stretches
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


def _plain(values: np.ndarray, settled: int, within: int, low: int) -> np.ndarray:
    """Return the lowest of each settled stretch over the lowest that the highest of the low rows after it reach."""
    windows = np.lib.stride_tricks.sliding_window_view
    after = windows(values, low).max(axis=1)[settled:]
    reached = windows(np.append(after, np.full(within - 1, np.inf)), within).min(axis=1)
    before = windows(values, settled).min(axis=1)[:-low]
    return np.where(reached > 0, before / np.maximum(reached, 1e-300), 0.0)


@pytest.mark.parametrize("rows", [40, PART - 1, PART + 29, PART + 30, 2 * PART + 100])
@pytest.mark.parametrize(("settled", "within", "low"), [(20, 20, 10), (2, 1, 1), (7, 3, 5)])
def test_falls_are_those_of_the_whole(rows: int, settled: int, within: int, low: int) -> None:
    """Also of the rows at the end, behind which there is nothing, and of those beside the end of a part."""
    values = np.exp(np.random.default_rng(rows).normal(size=rows))
    values[rows // 3 : rows // 3 + 40] /= 50
    values[rows // 2] = 0.0
    fall = _plain(values, settled, within, low)
    at, far, falls = Stretches(values, settled, within, low).steepest(3.0)
    assert at == np.argmax(fall)
    assert far.tolist() == np.flatnonzero(fall > 3).tolist()
    assert falls.tolist() == fall[fall > 3].tolist()
