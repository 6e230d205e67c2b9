"""Profiles of whole runs, and of values that nobody would log."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import numpy as np
import pytest

from stabtree.profile import build, profile_of, profiles, scatter_of
from stabtree.profile.segments import levels_of
from stabtree.run import Run
from tests.profile.series import noise, series, stairs

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
    """No crash, no warning; what is finite is described."""
    values = np.array(ODD[kind], dtype=np.float64)
    found = profile_of(series(values))
    good = values[np.isfinite(values)]
    assert found.rows == len(values)
    assert found.nonfinite.count == len(values) - len(good)
    assert sum(segment.rows for segment in found.segments) == len(good)
    if len(good):
        assert found.lowest is not None
        assert found.lowest.value == good.min()
        assert np.isfinite([found.first, found.last, found.best, found.level_noise, found.trend]).all()


def test_rows_that_are_not_finite() -> None:
    """Their number, the first of them, and whether they go on to the end."""
    values = noise(100)
    values[[20, 21, 60]] = np.nan
    values[98:] = np.inf
    found = profile_of(series(values, first_step=1000)).nonfinite
    assert (found.count, found.first_step, found.runs, found.to_the_end) == (5, 1020, 3, True)


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


@pytest.mark.parametrize("kind", ODD)
def test_the_scatter_alone_is_that_of_the_profile(kind: str) -> None:
    """It is asked for where nothing else is."""
    values = np.array(ODD[kind], dtype=np.float64)
    found = profile_of(series(values))
    assert scatter_of(series(values)) == scatter_of(found.series) == (found.level_noise, found.quantum)


def test_levels_are_searched_for_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longest, and most questions are about the ends, the best and the scatter."""
    searched: list[int] = []
    real = levels_of

    def noted(*given: Any) -> Any:
        searched.append(1)
        return real(*given)

    monkeypatch.setattr(build, "levels_of", noted)
    found = profile_of(series(stairs(3.0, 1.0, 2.0)))
    assert found.last < found.first
    assert not searched
    assert len(found.segments) == 3
    assert found.departures == profile_of(found.series).departures
    assert searched == [1]
