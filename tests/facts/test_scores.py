"""What spikes are found by: the windows before each row, and the tail of their scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.common import stats
from stabtree.common.passes import PART
from stabtree.facts.spikes import tails
from stabtree.facts.spikes.moments import trailing_moments
from stabtree.facts.spikes.scores import NO_SPREAD, RELATIVE_RESOLUTION, scores
from stabtree.run import Series


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.integers(1, 59))
def test_moments_are_those_of_each_window(values: list[float], rows: int) -> None:
    """Mean and deviation by doubled sums equal plain ones, for every window length."""
    mean, spread = trailing_moments(np.array(values), rows)
    windows = [np.array(values[i : i + rows]) for i in range(len(values) - rows)]
    np.testing.assert_allclose(mean, [w.mean() for w in windows], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(spread, [w.std() for w in windows], rtol=1e-6, atol=1e-1)


def test_a_huge_value_spoils_only_its_own_windows() -> None:
    """After 1e30 has left the window, mean and sigma are exact again."""
    values = np.concatenate((np.tile([1.0, 3.0], 50), [1e30], np.tile([1.0, 3.0], 50)))
    mean, sigma = trailing_moments(values, 10)
    assert mean[-1] == 2
    assert sigma[-1] == 1


def test_trailing_moments_leave_out_the_value_itself() -> None:
    """Entry i is about the rows before `values[rows + i]`."""
    mean, sigma = trailing_moments(np.array([1.0, 1.0, 1.0, 9.0]), 3)
    assert mean.tolist() == [1.0]
    assert sigma.tolist() == [0.0]


def test_the_tail_of_normal_noise_allows_what_theory_does() -> None:
    """For normal scores the height allowed once is the normal quantile or, the tail being thicker, more."""
    tail = tails.upper_tail(np.random.default_rng(0).normal(size=100_000), 1000)
    assert 4.2 < tail.height(1.0) < 5.6
    assert tail.expected(tail.height(0.01)) == pytest.approx(0.01)


def test_a_short_window_knows_its_deviation_badly() -> None:
    """Ten rows a window give Student's t: a height that 1,000 rows rule out is allowed."""
    scores = np.random.default_rng(3).normal(size=100)
    assert tails.upper_tail(scores, 10).height(0.1) > tails.upper_tail(scores, 1000).height(0.1)


@pytest.mark.parametrize(
    ("height", "dof", "tail"),
    [(1.0, 1, 0.25), (4.303, 2, 0.025), (2.262, 9, 0.025), (2.228, 10, 0.025), (1.96, 10_000, 0.025)],
)
def test_the_t_tail_is_that_of_the_tables(height: float, dof: int, tail: float) -> None:
    """Student's t, odd and even degrees of freedom, and the normal limit."""
    assert tails.t_tail(height, dof) == pytest.approx(tail, rel=2e-3)


@pytest.mark.parametrize("rows", [3, 10, 37, 100])
def test_detrended_moments_are_those_of_a_straight_line_fit(rows: int) -> None:
    """The deviation about each window's line, as polyfit gives it; the mean as without."""
    values = np.random.default_rng(4).normal(size=300) + 0.1 * np.arange(300)
    mean, spread = trailing_moments(values, rows, detrend=True)
    windows = np.lib.stride_tricks.sliding_window_view(values, rows)[:-1]
    places = np.arange(rows)
    rest = [window - np.polyval(np.polyfit(places, window, 1), places) for window in windows]
    assert spread == pytest.approx([np.sqrt((r * r).sum() / (rows - 2)) for r in rest], abs=1e-9)
    assert mean == pytest.approx(windows.mean(axis=1))


def test_one_outlier_does_not_raise_its_own_bar() -> None:
    """In 60 rows the highest score is judged by the other 59."""
    scores = np.random.default_rng(1).normal(size=60)
    before = tails.upper_tail(scores, 100).height(0.1)
    scores[30] = 1000.0
    assert tails.upper_tail(scores, 100).height(0.1) < before + 1


def test_the_tail_of_a_long_sample_leaves_the_highest_out() -> None:
    """Of more values than are looked at, those are taken that a list without the highest one would give."""
    scores = np.random.default_rng(5).normal(size=150_000)
    scores[70_001] = 50.0
    early = scores[: len(scores) - len(scores) // 20]
    others = np.delete(early, np.argmax(early))[:: 1 + len(early) // stats.SAMPLE]
    assert tails.upper_tail(scores, 100).at90 == pytest.approx(np.quantile(others, 0.9))


def test_scores_part_by_part_are_those_of_the_whole() -> None:
    """The heights of a long loss are its values over their windows; mean and sigma of any row are found again."""
    rng = np.random.default_rng(6)
    values = 2 + 0.1 * rng.normal(size=2 * PART + 50)
    values[PART - 20 : PART + 90] = 0.5  # windows without any scatter
    first, rows = 31, 30
    mean, spread = (part[first - rows :] for part in trailing_moments(values, rows, detrend=True))
    sigma = np.maximum(spread, np.maximum(RELATIVE_RESOLUTION * np.abs(mean), NO_SPREAD))
    scored = scores(Series("loss", np.arange(len(values)), values), rows, first, True)
    np.testing.assert_array_equal(scored.heights, (values[first:] - mean) / sigma)
    some = np.sort(rng.integers(0, len(mean), 300))
    np.testing.assert_array_equal(scored.at(some), (mean[some], sigma[some]))


def test_a_height_is_where_the_expected_number_falls_below() -> None:
    """To the last digit, though most of the tail is not worked out again."""
    random = np.random.default_rng(2)
    for _ in range(200):
        rows = int(random.choice([3, 10, 100, 300]))
        tail = tails.Tail(int(random.integers(10, 10_000)), random.uniform(-1, 4), random.uniform(0.45, 4), rows)
        expected = 10.0 ** random.uniform(-8, 1)
        assert tail.height(expected) == tails.height_for(tail.expected, expected)
