"""Profiles: levels, scatter, digits, change points, departures, spikes, and when a series left its level."""

from __future__ import annotations

import gc
import math
import time
import weakref
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.metrics.metric import Role
from stabtree.profile import Profile, profile_of, profiles, scatter_of
from stabtree.profile.build import lasts_from
from stabtree.profile.change import Change, change_point, left_course
from stabtree.profile.segments import MIN_LENGTH, PENALTY, blocks_of, changes, level_scatter, row_noise
from stabtree.run import Run, Series

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats


def series(values: Floats | list[float], metric: str = "loss", first_step: int = 0) -> Series:
    """A series logged at every step."""
    array = np.asarray(values, dtype=np.float64)
    return Series(metric, np.arange(first_step, first_step + len(array)), array)


def noise(rows: int, seed: int = 0) -> Floats:
    """Normal noise, float64 (rows,), with a standard deviation of 1."""
    return np.random.default_rng(seed).standard_normal(rows)


def stairs(*levels: float, rows: int = 200, scatter: float = 0.1, seed: int = 0) -> Floats:
    """So many rows on each level in turn, with noise."""
    return np.repeat(levels, rows) + scatter * noise(len(levels) * rows, seed)


def test_a_level_is_not_a_value() -> None:
    """The best level of a loss is a median; the best value and its step are those that were logged."""
    values = stairs(3.0, 1.0, 1.5)
    values[700 % 600] = 0.25
    found = profile_of(series(values))
    assert found.best == pytest.approx(1.0, abs=0.1)
    assert (found.lowest, found.best_step) == ((100, 0.25), 100)
    assert found.first == pytest.approx(3.0, abs=0.1)
    assert found.last == pytest.approx(1.5, abs=0.1)


def test_the_best_of_a_reward_is_its_highest() -> None:
    """The direction is that of the metric."""
    values = stairs(-5.0, 2.0, 0.0)
    found = profile_of(series(values, "reward"))
    assert found.better == "higher"
    assert found.best == pytest.approx(2.0, abs=0.1)
    assert found.best_step == int(values.argmax())


def test_nothing_is_best_of_a_series_that_nobody_knows() -> None:
    """Its extremes are there all the same."""
    found = profile_of(series([3.0, 1.0, 2.0], "my_column"))
    assert (found.role, found.better, found.best_step) == (Role.OTHER, "", None)
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


def test_a_straight_line_and_a_constant_have_no_noise() -> None:
    """Nor a spike; a constant has one level and no trend."""
    line, found = profile_of(series(np.linspace(1e-3, 0, 500), "lr")), profile_of(series([0.5] * 100))
    assert line.level_noise < 1e-8
    assert found.constant
    assert (found.first, found.best, found.last, found.level_noise, found.trend) == (0.5, 0.5, 0.5, 0.0, 0.0)
    assert len(found.segments) == 1
    assert not (line.spikes.count)
    assert not (found.departures)


def test_the_steps_in_which_a_series_is_stored() -> None:
    """Printed decimals, bf16 and float32 have some, a float64 that was computed none; one step of them is no spike."""
    for digits in (0, 1, 2, 4, 6):
        assert profile_of(series(np.round(5 + noise(500), digits))).quantum == pytest.approx(10.0**-digits)
    bits = (9.6 + 0.03 * noise(500)).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    counts = np.where(np.arange(500) % 97 == 0, 1.0, 0.0)
    for values, quantum in ((bits.view(np.float32).astype(np.float64), 0.0625), (counts, 1.0)):
        found = profile_of(series(values, "skips" if quantum == 1 else "loss"))
        assert found.quantum == quantum
        assert not found.spikes.count
    assert 0 < profile_of(series((2.0 + 0.1 * noise(500)).astype(np.float32).astype(np.float64))).quantum <= 2.0 / 2**22
    assert profile_of(series(noise(500))).quantum == 0


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
    for seed in range(6):
        rng = np.random.default_rng(seed)
        levels = rng.normal(0, 3, rng.integers(1, 6))
        values = stairs(*levels, rows=int(rng.integers(100, 3000)), scatter=1.0, seed=seed)
        blocked = blocks_of(values[None])
        scatter = level_scatter(blocked, row_noise(blocked))
        own = np.flatnonzero(changes(blocked.medians, scatter)[0])[1:].tolist()
        search = ruptures.Pelt(model="l2", min_size=MIN_LENGTH, jump=1).fit(blocked.medians[0] / scatter[0])
        assert own == search.predict(pen=PENALTY * np.log(blocked.count))[:-1]


@settings(max_examples=25)
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
    assert not [left for left in profile_of(series(stairs(1.0, 5.0, 1.0))).departures if left.times > 0]  # it came back


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


AT = np.arange(0, 2000, 5)


def made(kind: str, rows: int, share: float, rise: float, seed: int) -> tuple[int, Floats]:
    """A level of 2, or a fall to it, that a rise follows; where it begins, and the rows with noise of 0.02."""
    at, begin = np.arange(rows), int(rows * share)
    since = np.maximum(at - begin, 0) / (rows - begin)
    level = 2 + 2 * np.exp(-at / (0.08 * rows)) if kind.startswith("fall") else np.full(rows, 2.0)
    values = {
        "ramp": level + rise * since,
        "exponential": level * (1 + rise) ** since,
        "jump": level + np.where(at >= begin, rise, 0.0),
        "slow": level + rise * since**1.5,
        "two stages": level + rise * (0.4 * np.minimum(since / 0.6, 1.0) + np.maximum(since - 0.6, 0.0)),
        "fall, ramp": level + rise * since,
        "fall, jump": level + np.where(at >= begin, rise, 0.0),
    }[kind]
    return begin, values + 0.02 * np.random.default_rng(seed).standard_normal(rows)


KINDS = ("ramp", "exponential", "jump", "slow", "two stages", "fall, ramp", "fall, jump")
LENGTHS, SHARES, RISES = (40, 200, 800, 4000), (0.3, 0.5, 0.75), (1.0, 3.0, 8.0)


def test_the_onset_of_made_curves() -> None:
    """The median error is at most 1% of the run, 90% are within 3%, and no more than 5% are earlier than that."""
    cases = [(kind, rows, share, rise) for kind in KINDS for rows in LENGTHS for share in SHARES for rise in RISES]
    errors = []
    for seed, (kind, rows, share, rise) in enumerate(cases):
        begin, values = made(kind, rows, share, rise, seed)
        found = change_point(np.arange(rows), values)
        assert found is not None
        assert found.last_good_step < found.first_bad_step <= found.last_step
        errors.append((found.first_bad_step - begin) / rows)
    off = np.abs(errors)
    assert np.median(off) <= 0.01
    assert np.mean(off <= 0.03) >= 0.9
    assert np.mean(np.array(errors) < -0.03) <= 0.05


@pytest.mark.parametrize("kind", ["ramp", "jump"])
def test_the_onset_is_no_farther_off_than_that_of_a_library(kind: str) -> None:
    """One change of slope, or of level, found by dynamic programming over the same rows."""
    ruptures = pytest.importorskip("ruptures")
    ours, theirs = [], []
    for seed in range(6):
        begin, values = made(kind, 200, 0.5, 3.0, seed)
        found = change_point(np.arange(200), values)
        assert found is not None
        model = "l2" if kind == "jump" else "clinear"
        reference = ruptures.Dynp(model=model, min_size=2, jump=1).fit(values).predict(n_bkps=1)[0]
        ours.append(abs(found.first_bad_step - begin))
        theirs.append(abs(reference - begin))
    assert np.median(ours) <= np.median(theirs) + 2


def test_no_rise_has_no_change_point() -> None:
    """Noise, a fall, and a rise that came back leave none; a jump after such a rise is found by itself."""
    noise = 0.02 * np.random.default_rng(3).standard_normal(len(AT))
    bump = np.where((AT > 400) & (AT < 700), 4.0, 0.0)
    assert change_point(AT, 2 + noise) is None
    assert change_point(AT, 2 + 3 * np.exp(-AT / 200) + noise) is None
    found = change_point(AT, 2 + noise + bump + np.where(AT >= 1500, 4.0, 0.0))
    assert found == Change(1495, 1500, 1500, at_once=True)


def test_what_leaves_its_level_at_once_does_so_between_two_rows() -> None:
    """Everything up to the row before is good, in a few rows too."""
    values = 2.0 + 0.03 * np.sin(AT * 1.7) + np.where(AT >= 1000, 3.0, 0.0)
    for by_step in (1000, None):
        assert left_course(AT, values, by_step=by_step)[:2] == (995, 1000)
    assert left_course(AT[:4], values[:4])[:2] == (10, 15)


def test_what_is_bad_to_the_end_begins_before_its_exceptions() -> None:
    """One good row near the end does not make the trouble younger; a bad row long before it does not make it older."""
    bad = (AT >= 1000) & (AT != 1990)
    bad[10] = True
    row = lasts_from(bad)
    assert row is not None
    assert AT[row] == 1000
    assert lasts_from(np.zeros(5, dtype=bool)) is None


ODD = {
    "empty": [],
    "one row": [1.0],
    "two rows": [1.0, 2.0],
    "all NaN": [np.nan] * 50,
    "NaN at the end": [1.0] * 50 + [np.nan] * 5,
    "one finite row": [np.inf, 2.0, np.nan],
    "infinite": [np.inf, -np.inf] * 40,
    "huge": [1e308, -1e308] * 100,
    "huge at the end": [1.0, 1.1] * 100 + [1e300] * 3,
    "denormal": [5e-324, 1e-323, 0.0] * 40,
    "whole numbers beyond 2**53": [2.0**53 + 2 * i for i in range(200)],
    "zeros": [0.0] * 200,
    "two values": [0.0, 1.0] * 100,
    "growing": [1.5**i for i in range(400)],
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_values(kind: str) -> None:
    """No crash, no warning; what is finite is described, and the scatter that is asked for alone is the same."""
    values = np.array(ODD[kind], dtype=np.float64)
    found = profile_of(series(values))
    good = values[np.isfinite(values)]
    assert found.rows == len(values)
    assert found.nonfinite.count == len(values) - len(good)
    assert scatter_of(series(values)) == scatter_of(found.series) == (found.level_noise, found.quantum)
    assert sum(segment.rows for segment in found.segments) == len(good)
    if len(good):
        assert found.lowest is not None
        assert found.lowest.value == good.min()
        assert np.isfinite([found.first, found.last, found.best, found.level_noise, found.trend]).all()


def test_rows_that_are_not_finite() -> None:
    """Their number, the first of them, and in how many runs they are."""
    values = noise(100)
    values[[20, 21, 60]] = np.nan
    values[98:] = np.inf
    found = profile_of(series(values, first_step=1000)).nonfinite
    assert (found.count, found.first_step, found.runs) == (5, 1020, 3)


def test_a_run_is_described_as_each_of_its_series_is() -> None:
    """Series of one length are measured together, with the same result, known or not."""
    known = {name: series(stairs(1.0, 2.0, seed=seed), name) for seed, name in enumerate(("loss", "grad_norm"))}
    others = {f"own_{seed}": series(stairs(3.0, 1.0, 5.0, rows=100 + seed % 2, seed=seed)) for seed in range(20)}
    others["all NaN"] = series([np.nan] * 9)
    together = profiles(Run("run", known, others=others))
    assert together.keys() == {*known, *others}
    for name, found in together.items():
        own = (known | others)[name]
        assert found.series is own
        alone = profile_of(series(own.values, own.metric))
        assert (alone.segments, alone.departures, alone.spikes) == (found.segments, found.departures, found.spikes)
        assert alone.level_noise == found.level_noise


def test_a_series_is_not_kept_by_its_profile() -> None:
    """What was measured is remembered as long as the series is used."""
    own = series(noise(100))
    profile_of(own)
    gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None


def test_the_time_grows_with_the_rows_and_not_faster() -> None:
    """Eight times as many rows take at most about eight times as long, whatever they hold."""
    seconds = []
    for rows in (100_000, 800_000):
        values = np.random.default_rng(0).standard_t(1.5, rows) + 5.0 * (np.arange(rows) > rows / 2)
        took = []
        for _ in range(3):
            own = series(values)
            start = time.process_time()
            profile_of(own)
            took.append(time.process_time() - start)
        seconds.append(min(took))
    assert seconds[1] < 16 * seconds[0]
