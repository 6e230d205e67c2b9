"""When a series left its level: at once, or gradually and hidden in its noise or in its fall."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.profile.onset import left_level

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
