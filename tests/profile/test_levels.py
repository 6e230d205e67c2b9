"""Levels, extremes and scatter of a series."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stabtree.metrics.metric import Role
from stabtree.profile import profile_of
from tests.profile.series import noise, series, stairs


def test_a_level_is_not_a_value() -> None:
    """The best level of a loss is a median; the best value and its step are those that were logged."""
    values = stairs(3.0, 1.0, 1.5)
    values[700 % 600] = 0.25
    found = profile_of(series(values))
    assert found.best == pytest.approx(1.0, abs=0.1)
    assert (found.best_value, found.best_step) == (0.25, 100)
    assert found.first == pytest.approx(3.0, abs=0.1)
    assert found.last == pytest.approx(1.5, abs=0.1)


def test_the_best_of_a_reward_is_its_highest() -> None:
    """The direction is that of the metric."""
    values = stairs(-5.0, 2.0, 0.0)
    found = profile_of(series(values, "reward"))
    assert found.better == "higher"
    assert found.best == pytest.approx(2.0, abs=0.1)
    assert found.best_step == int(values.argmax())


def test_a_name_that_no_metric_has_may_say_what_is_better() -> None:
    """The words of a column's name give it a role and a direction, and a clock shows no training."""
    values = stairs(0.2, 0.6, 0.4, scatter=0.01)
    found = profile_of(series(values, "val/my_mIoU"))
    assert (found.role, found.better, found.best_step) == (Role.QUALITY, "higher", int(values.argmax()))
    assert found.shows_training
    assert not profile_of(series(values, "iter_time")).shows_training


def test_nothing_is_best_of_a_series_that_nobody_knows() -> None:
    """Its extremes are there all the same."""
    found = profile_of(series([3.0, 1.0, 2.0], "my_column"))
    assert (found.role, found.better, found.best_step, found.best_value) == (Role.OTHER, "", None, None)
    assert math.isnan(found.best)
    assert (found.lowest, found.highest) == ((1, 1.0), (0, 3.0))


@pytest.mark.parametrize("rows", [65, 100, 1000, 20_000])
def test_extremes_are_found_in_every_row(rows: int) -> None:
    """Also in rows that belong to no whole block."""
    for at in (0, 1, rows // 2, rows - 1):
        values = noise(rows)
        values[at] = -50.0
        found = profile_of(series(values))
        assert found.lowest == (at, -50.0)
        assert found.highest is not None
        assert found.highest.step == int(values.argmax())


@pytest.mark.parametrize("rows", [30, 300, 3000, 30_000])
def test_the_scatter_is_that_of_the_noise(rows: int) -> None:
    """Neither a trend nor some outliers change it."""
    values = 0.2 * noise(rows) + np.linspace(100, 0, rows)
    values[5 :: max(20, rows // 10)] += 1000.0
    assert profile_of(series(values)).level_noise == pytest.approx(0.2, rel=0.35)


def test_a_smoothed_series_scatters_more_than_its_neighbours_differ() -> None:
    """A moving average of noise: the blocks show the scatter that neighbours hide."""
    values = np.convolve(noise(20_000), np.ones(50) / 50, mode="valid")
    assert profile_of(series(values)).level_noise > 2 * np.abs(np.diff(values)).mean()


def test_a_schedule_has_no_noise() -> None:
    """A straight line does not scatter."""
    found = profile_of(series(np.linspace(1e-3, 0, 500), "lr"))
    assert found.level_noise < 1e-8
    assert not found.spikes.count


def test_a_constant_series() -> None:
    """It has one level, no scatter, no trend."""
    found = profile_of(series([0.5] * 100))
    assert found.constant
    assert (found.first, found.best, found.last, found.level_noise, found.trend) == (0.5, 0.5, 0.5, 0.0, 0.0)
    assert len(found.segments) == 1
    assert not found.departures


def test_the_trend_has_a_sign() -> None:
    """Rising is above 0."""
    ramp = np.linspace(0, 5, 200) + noise(200)
    assert profile_of(series(ramp)).trend > 2
    assert profile_of(series(-ramp)).trend < -2
    assert abs(profile_of(series(noise(200))).trend) < 3
