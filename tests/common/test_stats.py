"""The statistics against plain reference computations."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.common import stats


def test_kendall_is_standard_normal_without_a_trend() -> None:
    """On noise the score has mean 0 and standard deviation 1."""
    rng = np.random.default_rng(2)
    scores = [stats.kendall_z(rng.normal(size=25)) for _ in range(400)]
    assert abs(np.mean(scores)) < 0.15
    assert 0.85 < np.std(scores) < 1.15


@pytest.mark.parametrize(
    ("values", "counts"),
    [([0, 0, 1, 5], True), ([0, 1, 0], False), ([], True), ([-np.inf] * 3, False), ([1, np.inf, np.inf], False)],
)
@pytest.mark.filterwarnings("error")
def test_a_counter_is_finite_and_only_rises(values: list[float], counts: bool) -> None:
    """What is infinite counts nothing, and gives no warning of numpy."""
    assert stats.is_counter(np.array(values, dtype=float)) == counts


def _long(kind: str, rng: np.random.Generator) -> np.ndarray:
    size = stats.LONG + int(rng.integers(1, 5000))
    values = rng.normal(size=size)
    if kind == "ties":
        return np.round(values, 1)
    if kind == "one value":
        return np.where(values > 2, values, 1.25)
    if kind == "sorted":
        return np.sort(values)
    if kind == "misleading":  # the sample sees none of the low values
        return np.where(np.arange(size) % (size // stats.MEDIAN_SAMPLE) == 0, 100 + values, values)
    if kind == "not finite":
        return np.where(values > 1, np.inf, values)
    return values


@pytest.mark.parametrize("kind", ["normal", "ties", "one value", "sorted", "misleading", "not finite"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_median_of_a_long_array_is_exact(kind: str, seed: int) -> None:
    """The values that are only counted change nothing; NaN still makes it NaN."""
    values = _long(kind, np.random.default_rng(seed))
    assert stats.median(values) == np.median(values)
    assert stats.median(values[1:]) == np.median(values[1:])
    values[7] = np.nan
    assert np.isnan(stats.median(values))


@pytest.mark.parametrize("size", [5, 100, 900, 20_000])
@pytest.mark.parametrize("digits", [1, 6])
def test_the_highest_rows_hold_the_highest_values(size: int, digits: int) -> None:
    """As many as asked for, or all; ties or not."""
    values = np.round(np.random.default_rng(size).normal(size=size), digits)
    rows = stats.highest_rows(values, 100)
    assert len(set(rows.tolist())) == min(size, 100)
    assert np.sort(values[rows]).tolist() == np.sort(values)[-100:].tolist()


@pytest.mark.parametrize("rows", [1, 2, 5, 6])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_row_medians_are_those_of_numpy(rows: int, count: int) -> None:
    """Of an odd and an even number of values, of none, and with NaN in some of the rows."""
    values = np.random.default_rng(rows).normal(size=(count, rows))
    values[::3, rows // 2] = np.nan
    np.testing.assert_array_equal(stats.row_medians(values), np.median(values, axis=-1))
    whole = np.arange(count * rows).reshape(count, rows) ** 2 % 7
    np.testing.assert_array_equal(stats.row_medians(whole), np.median(whole, axis=-1))


@pytest.mark.filterwarnings("error")
def test_a_median_at_the_end_of_the_range_warns_of_nothing() -> None:
    """What numpy says of an overflow would be a line of a program's standard error."""
    assert stats.median(np.array([1.7e308, 1.7e308])) == np.inf
