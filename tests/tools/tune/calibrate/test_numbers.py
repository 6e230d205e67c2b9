"""The least change that does, and how sure a count makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.tools.tune.calibrate.knobs import Tunable
from stabtree.tools.tune.calibrate.least import CLOSE, away, smallest_change
from stabtree.tools.tune.calibrate.refit import Strengths
from stabtree.tools.tune.calibrate.share import Share


def knob(base: float, *, whole: bool = False, key: str = "a.level") -> Tunable:
    """A threshold at a value."""
    return Tunable(key, base, base, whole, "a")


@given(st.floats(0.01, 1e4), st.floats(1.03, 9.0), st.booleans())
def test_the_min_value_is_found(base: float, times: float, up: bool) -> None:
    """It holds there, and a little nearer to where it started it does not."""
    bar = base * times if up else base / times
    found = smallest_change(knob(base), lambda value: value >= bar if up else value <= bar, up=up)
    assert found is not None
    assert bar <= found <= bar * CLOSE * 1.002 if up else bar / CLOSE / 1.002 <= found <= bar


def test_what_holds_nowhere_within_reach_is_not_found() -> None:
    """Neither beyond the end of a threshold, nor above a share of 1."""
    assert smallest_change(knob(2.0), lambda value: value > 50, up=True) is None
    assert smallest_change(knob(0.9, key="a.share"), lambda value: value > 1, up=True) is None
    assert smallest_change(knob(1.0, key="a.share"), lambda _: True, up=True) is None


def test_a_whole_number_stays_one() -> None:
    """The next one that does."""
    assert smallest_change(knob(3, whole=True), lambda value: value > 6.5, up=True) == 7
    assert smallest_change(knob(20, whole=True), lambda value: value < 6.5, up=False) == 6


@given(st.floats(1e-6, 1e9), st.booleans())
def test_rounding_goes_away_from_what_is_in_force(value: float, up: bool) -> None:
    """Never back, and by less than a hundredth."""
    found = away(knob(1.0), value, up=up)
    assert found == pytest.approx(value, rel=0.011)
    assert found >= value * (1 - 1e-9) if up else found <= value * (1 + 1e-9)


def test_a_share_is_told_with_what_it_may_be() -> None:
    """By the exact interval: of none in 30 the bound is near 3/30, of 5 in 10 both ends are known."""
    assert Share(0, 30).low == 0
    assert Share(0, 30).high == pytest.approx(1 - 0.05 ** (1 / 30))
    assert Share(5, 10).low == pytest.approx(0.187, abs=5e-4)
    assert Share(5, 10).high == pytest.approx(0.813, abs=5e-4)
    assert Share(4, 4).high == 1
    assert Share(900, 2000).high == pytest.approx(0.4721, abs=1e-3)


def test_many_healthy_runs_beyond_a_limit_move_it_farther_than_few() -> None:
    """Few leave the shipped limit where it is; many raise it, the more the farther they are; and never lower it."""
    few, many = (Strengths("", dict.fromkeys(range(count), 0.5)) for count in (1, 30))
    assert few.shift() < many.shift()
    assert many.shift() > 0.5
    assert Strengths("", dict.fromkeys(range(30), -2.0), (1.0, 2.0)).shift() == 0
    assert Strengths().shift() == 0
