"""Passes in parts against plain computations of the whole."""

from __future__ import annotations

import gc
import weakref
from itertools import product

import numpy as np
import pytest

from stabtree.common.passes import (
    PART,
    broken_rows,
    extremes,
    increases,
    never_falls,
    remembered,
    remembered_of_frozen,
    row_of,
    rows_before,
    rows_upto,
)
from stabtree.run import Series

SIZES = (0, 1, 2, PART, PART + 1, 2 * PART + 7)


def _series(values: np.ndarray) -> Series:
    return Series("loss", np.arange(len(values)), values)


@pytest.mark.parametrize(("size", "at"), [(size, at) for size, at in product(SIZES, (1, PART - 1, PART)) if at < size])
def test_one_step_back_is_seen_between_any_two_rows(size: int, at: int) -> None:
    """Between parts as well as inside of them; equal neighbours increase where that is not asked strictly."""
    values = np.arange(size)
    assert increases(values)
    values[at:] -= 1
    assert not increases(values)
    assert never_falls(values)
    values[at:] -= 1
    assert not never_falls(values)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("odd", [(), (np.nan,), (np.inf, -np.inf), (np.nan, np.inf)])
def test_extremes_are_those_of_the_finite_values(size: int, odd: tuple[float, ...]) -> None:
    """Whatever else is logged; and the rows that are not finite are known."""
    values = np.random.default_rng(size).normal(size=size)
    values[: len(odd)] = odd[:size]
    found, sound = extremes(_series(values)), np.isfinite(values)
    assert found.finite == sound.all()
    assert found.lowest == values[sound].min(initial=np.inf)
    assert found.highest == values[sound].max(initial=-np.inf)
    assert broken_rows(_series(values)).tolist() == np.flatnonzero(~sound).tolist()


def test_what_was_found_is_forgotten_with_its_object() -> None:
    """A function is asked once of each object and option, and keeps no object alive."""
    asked = []

    @remembered
    def size(series: Series, times: int = 1) -> int:
        asked.append(times)
        return times * len(series)

    series = _series(np.zeros(3))
    assert [size(series), size(series), size(series, times=2)] == [3, 3, 6]
    assert asked == [1, 2]
    alive = weakref.ref(series)
    del series
    gc.collect()
    assert alive() is None


def test_what_is_known_of_an_array_is_known_while_nobody_can_write_to_it() -> None:
    """A frozen array is asked once, another one each time, and one at the place of a dead one anew."""
    asked = []

    @remembered_of_frozen
    def first(values: np.ndarray) -> float:
        asked.append(float(values[0]))
        return asked[-1]

    values = np.array([1.0])
    assert [first(values), first(values)] == [1.0, 1.0]
    values[0] = 2.0
    values.flags.writeable = False
    assert [first(values), first(values)] == [2.0, 2.0]
    for number in range(20):
        again = np.array([float(number)])
        again.flags.writeable = False
        assert first(again) == number
        del again
    assert asked == [1.0, 1.0, 2.0, *range(20)]


@pytest.mark.parametrize("step", [-1, 0, 3, 4, 4.5, 20, 21])
def test_rows_of_a_step_are_cut_by_a_search(step: float) -> None:
    """Before it, up to it, and its own, as of a comparison with every step."""
    steps = np.array([0, 3, 4, 9, 20])
    assert rows_before(steps, step) == np.count_nonzero(steps < step)
    assert rows_upto(steps, step) == np.count_nonzero(steps <= step)
    assert steps[row_of(steps, step)].tolist() == steps[steps == step].tolist()
