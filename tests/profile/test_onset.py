"""When a series left its level: at once, or gradually and hidden in its noise or in its fall."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.profile.build import lasts_from, left_best, left_level, risen_by_factors

AT = np.arange(0, 2000, 5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("begins", "tau"), [(600, 20), (600, 40), (900, 80), (1500, 40)])
def test_a_rise_that_grows_out_of_the_noise_is_dated_to_before_it_shows(begins: int, tau: int, seed: int) -> None:
    """The last good step is before its beginning, also where the loss still falls then."""
    noise = np.random.default_rng(seed).normal(0, 0.03, len(AT))
    rise = np.where(begins <= AT, np.minimum(5.0, 0.02 * np.exp(np.minimum(AT - begins, 500) / tau)), 0.0)
    found = left_level(AT, 1.9 + 5 * np.exp(-AT / 300) + noise + rise, begins + 5 * tau)
    assert found is not None
    assert found.last_good_step < begins + tau
    assert begins - 100 < found.first_bad_step <= begins + 5 * tau


def test_what_leaves_its_level_at_once_does_so_between_two_rows() -> None:
    """Everything up to the row before is good."""
    values = 2.0 + 0.03 * np.sin(AT * 1.7) + np.where(AT >= 1000, 3.0, 0.0)
    assert left_level(AT, values, 1000) == (995, 1000)
    assert left_level(AT[:4], values[:4], 15) is None


def test_what_is_bad_to_the_end_begins_before_its_exceptions() -> None:
    """One good row near the end does not make the trouble younger; a bad row long before it does not make it older."""
    bad = (AT >= 1000) & (AT != 1990)
    bad[10] = True
    row = lasts_from(bad)
    assert row is not None
    assert AT[row] == 1000
    assert lasts_from(np.zeros(5, dtype=bool)) is None


def test_a_fall_long_after_the_best_row_is_dated_by_the_fall() -> None:
    """The rows between the two are still good; a slow rise of too few rows begins after the best one."""
    values = 2.0 + 0.03 * np.sin(AT * 1.7) + np.where(AT >= 1500, 3.0, 0.0)
    assert left_best(AT, values, 400, 2.0, 5.0) == (1495, 1500)
    assert left_best(AT[:4], np.array([2.0, 2.0, 3.0, 4.0]), 0, 2.0, 4.0) == (0, 15)
    assert left_best(AT, np.full(len(AT), 2.0), 400, 2.0, 5.0) == (400, 400)


def test_an_exponential_rise_begins_long_before_its_half() -> None:
    """Its first tenth, counted in factors, is on the level."""
    values = np.exp(np.maximum(AT - 1000, 0) / 50)
    assert risen_by_factors(AT, values, 1.0, float(values[-1]), int(AT[300])) == 1100
    assert risen_by_factors(AT, values, 1.0, 0.0, int(AT[300])) == 1005
