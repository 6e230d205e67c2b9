"""Change points, departures and spikes of series whose shape is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.profile import Profile, profile_of
from stabtree.profile.segments import MIN_LENGTH, PENALTY, blocks_of, changes, level_scatter, row_noise
from tests.profile.series import noise, series, stairs


def begins(found: Profile) -> list[int]:
    """The steps at which its levels begin."""
    return [segment.first_step for segment in found.segments]


@pytest.mark.parametrize("rows", [20, 200, 2000, 20_000])
def test_change_points(rows: int) -> None:
    """They are found to the row where the levels are far apart, and the segments cover all rows."""
    found = profile_of(series(stairs(1.0, 5.0, 2.0, rows=rows)))
    assert begins(found) == [0, rows, 2 * rows]
    assert [segment.rows for segment in found.segments] == [rows] * 3
    assert [segment.level for segment in found.segments] == pytest.approx([1.0, 5.0, 2.0], abs=0.1)
    assert all(one.last_step + 1 == other.first_step for one, other in pairwise(found.segments))


def test_a_small_change_is_found_nearby() -> None:
    """A shift by one standard deviation of the rows, within a block."""
    found = profile_of(series(stairs(0.0, 1.0, rows=2000, scatter=1.0)))
    assert len(found.segments) == 2
    assert abs(begins(found)[1] - 2000) <= 4000 / 64


def test_noise_has_one_level() -> None:
    """Of 300 series of noise alone few have a change, a spike or a departure."""
    profiles = [profile_of(series(noise(rows, seed))) for rows in (40, 400, 4000) for seed in range(100)]
    for count in (
        sum(len(found.segments) > 1 for found in profiles),
        sum(found.spikes.count for found in profiles),
        sum(len(found.departures) for found in profiles),
    ):
        assert count <= 0.05 * len(profiles)


def test_the_search_finds_what_ruptures_finds() -> None:
    """Its exact search over the same block medians, with the same penalty, gives the same levels."""
    ruptures = pytest.importorskip("ruptures")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        levels = rng.normal(0, 3, rng.integers(1, 6))
        values = stairs(*levels, rows=int(rng.integers(100, 3000)), scatter=1.0, seed=seed)
        blocked = blocks_of(values[None])
        scatter = level_scatter(blocked, row_noise(blocked))
        own = np.flatnonzero(changes(blocked.medians, scatter)[0])[1:].tolist()
        search = ruptures.Pelt(model="l2", min_size=MIN_LENGTH, jump=1).fit(blocked.medians[0] / scatter[0])
        assert own == search.predict(pen=PENALTY * np.log(blocked.count))[:-1]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3), st.integers(0, 10**9))
def test_scale_and_shift(seed: int, scale: float, shift: float, first_step: int) -> None:
    """In other units, with a constant added or from another step on, it is the same description."""
    values = stairs(3.0, 1.0, 2.0, rows=100, seed=seed)
    values[150] += 4.0
    plain = profile_of(series(values))
    other = profile_of(series(scale * (values + shift), first_step=first_step))
    assert begins(other) == [first_step + step for step in begins(plain)]
    assert other.first == pytest.approx(scale * (plain.first + shift), rel=1e-6)
    assert other.level_noise == pytest.approx(scale * plain.level_noise, rel=1e-4)
    assert [top.step - first_step for top in other.spikes.highest] == [top.step for top in plain.spikes.highest]
    assert [top.rows for top in other.spikes.highest] == [top.rows for top in plain.spikes.highest]
    assert [left.step - first_step for left in other.departures] == [left.step for left in plain.departures]
    assert other.best_step == (plain.best_step or 0) + first_step


@pytest.mark.parametrize("rows", [60, 600, 6000, 60_000])
@pytest.mark.parametrize("side", [1, -1])
def test_injected_spikes_are_counted(rows: int, side: int) -> None:
    """Each is one, with its step, its value and the rows that it took to come back."""
    values = 2.0 + 0.1 * noise(rows)
    at = [rows // 5, rows // 2, rows - rows // 10]
    for start in at:
        values[start] += 5.0 * side
    found = profile_of(series(values)).spikes
    assert found.count == 3
    assert [top.step for top in found.highest] == at
    assert [top.rows for top in found.highest] == [1, 1, 1]
    assert all(top.height * side > 20 for top in found.highest)


def test_a_spike_takes_its_rows_to_come_back() -> None:
    """Counted from the first row off the level to the last one before it is back."""
    values = 2.0 + 0.1 * noise(5000)
    values[3000:3010] += np.linspace(9.0, 1.0, 10)
    top = profile_of(series(values)).spikes.highest
    assert [(spike.step, spike.rows) for spike in top] == [(3000, 10)]


def test_a_heavy_tail_keeps_its_highest_spikes() -> None:
    """All are counted, and 100 of them listed by step."""
    values = np.random.default_rng(0).standard_t(1.5, 100_000)
    found = profile_of(series(values)).spikes
    assert found.count > len(found.highest) == 100
    assert [top.step for top in found.highest] == sorted(top.step for top in found.highest)
    assert max(abs(top.value) for top in found.highest) == np.abs(values).max()


def test_it_left_its_lowest_level_for_good() -> None:
    """With the step, both levels, and when it was tenfold."""
    (rose,) = profile_of(series(stairs(3.0, 1.0, 5.0, 20.0))).departures
    assert rose.step == 400
    assert rose.level == pytest.approx(1.0, abs=0.05)
    assert rose.end == pytest.approx(20.0, abs=0.2)
    assert rose.tenfold_step == 600
    assert rose.times > 100


def test_it_came_back() -> None:
    """A level that a series is on at its end was not left."""
    found = profile_of(series(stairs(1.0, 5.0, 1.0)))
    assert [left for left in found.departures if left.times > 0] == []


@pytest.mark.parametrize("rows", [300, 3000, 100_000])
@pytest.mark.parametrize("last", [2, 5])
def test_the_very_end(rows: int, last: int) -> None:
    """A few last rows that are far off are a departure, however long the log is."""
    values = 1.0 + 0.05 * noise(rows)
    values[-last:] += 50.0
    (left,) = profile_of(series(values)).departures
    assert left.step == rows - last
    assert left.tenfold_step == rows - last


def test_a_single_last_row_is_a_spike_that_is_not_back() -> None:
    """Nobody knows whether it will be."""
    values = 1.0 + 0.05 * noise(3000)
    values[-1] = 50.0
    found = profile_of(series(values))
    assert [top.rows for top in found.spikes.highest] == [None]
    assert found.departures == ()
