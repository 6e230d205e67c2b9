"""The model of a figure: nothing of a series is lost, whatever it holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msgspec.structs import replace

from stabtree.diagnosis.walk import diagnose
from stabtree.report.html import html
from stabtree.report.plot import Figure, Frame, Mark, Strip, column_of, drawn_strip, figure, strips, whole_figure
from stabtree.report.svg import svg
from stabtree.report.words import main_finding
from stabtree.run import Gap, Series
from stabtree.tree.load import load_trees
from tests.conftest import falling, make_run

COLUMNS = 120


def strip_of(values: np.ndarray, columns: int = COLUMNS, gaps: tuple[Gap, ...] = ()) -> Strip:
    """A series of a value a step, cut into columns."""
    series = Series("loss", np.arange(len(values)), values, "test")
    return drawn_strip(series, Frame(0, max(len(values) - 1, 1), columns), gaps=gaps)


@pytest.mark.parametrize("row", [0, 1, 499_999, 777_777, 999_999])
def test_a_single_row_among_a_million_is_not_lost(row: int) -> None:
    """A spike, a dip and a NaN of one row each stand in their column, and nowhere else."""
    values = 2 + 0.01 * np.random.default_rng(0).normal(size=1_000_000)
    column = int(column_of(np.array([row]), 0, 999_999, COLUMNS)[0])
    values[row] = 9.0
    spiked = strip_of(values)
    assert np.flatnonzero(spiked.highs == 9).tolist() == [column]
    assert spiked.clipped == 9 or spiked.high == 9
    values[row] = -9.0
    dipped = strip_of(values)
    assert np.flatnonzero(dipped.lows == -9).tolist() == [column]
    assert dipped.clipped_low == -9 or dipped.low == -9
    for lost in (np.nan, np.inf, -np.inf):
        values[row] = lost
        assert np.flatnonzero(strip_of(values).bad).tolist() == [column]


def test_a_line_never_crosses_what_is_not_finite_or_a_gap() -> None:
    """It stops before, and begins anew after; between rows that are far apart it goes on."""
    values = falling(COLUMNS)
    whole = strip_of(values)
    assert np.flatnonzero(~whole.joined).tolist() == [0]
    broken = values.copy()
    broken[40:60] = np.nan
    assert np.flatnonzero(~strip_of(broken).joined & ~np.isnan(strip_of(broken).highs)).tolist() == [0, 60]
    gap = Gap("loss", 40, 59, 20, at_end=False)
    steps = np.concatenate((np.arange(40), np.arange(60, COLUMNS)))
    series = Series("loss", steps, values[steps], "test")
    frame = Frame(0, COLUMNS - 1, COLUMNS)
    assert np.flatnonzero(
        ~drawn_strip(series, frame, gaps=[gap]).joined & np.isin(np.arange(COLUMNS), steps)
    ).tolist() == [0, 60]
    assert drawn_strip(series, frame).joined[60]


FLOATS = arrays(np.float64, st.integers(1, 60), elements=st.floats(allow_subnormal=True))


@settings(max_examples=150, deadline=None)
@given(values=FLOATS, columns=st.integers(1, 40), width=st.integers(20, 120), plain=st.booleans())
def test_any_series_is_drawn_within_bounds(values: np.ndarray, columns: int, width: int, *, plain: bool) -> None:
    """The axis is finite and holds what it says, and both drawings come out, the same twice."""
    before = values.copy()
    strip = strip_of(values, columns)
    assert np.array_equal(values, before, equal_nan=True)
    assert np.isfinite([strip.low, strip.high]).all()
    assert strip.low <= strip.high
    good = values[np.isfinite(values)]
    if len(good):
        assert np.nanmax(strip.highs) == good.max()
        assert np.nanmin(strip.lows) == good.min()
        assert (strip.clipped is None) == (strip.high >= good.max())
        assert (strip.clipped_low is None) == (strip.low <= good.min())
    last = max(len(values) - 1, 1)
    of = Figure(0, last, columns, (replace(strip, first=plain),), (Mark(0, "restart", "0"), Mark(last, "onset", "9")))
    lines = strips(of, width, ascii=plain)
    assert len(lines) == 3
    assert len({sum(len(text) for text, _ in line) for line in lines}) == 1
    picture = svg(of)
    assert "nan" not in picture.replace("NaN", "")
    assert "inf" not in picture.replace("infinite", "")
    assert picture == svg(of)


def drawn(metrics: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> list[str]:
    """The series of the figure of a run with these metrics and these columns that nobody knows."""
    run = replace(make_run(metrics), others=make_run(others).series)
    found = diagnose(run, load_trees(run))
    shown = figure(found, main_finding(found), COLUMNS)
    assert shown is not None
    return [strip.metric for strip in shown.strips]


def test_a_loss_that_did_not_move_is_drawn_last() -> None:
    """What moved comes first, a column that nobody knows among it; a loss that moved leads."""
    at = np.arange(600)
    random = np.random.default_rng(3)
    loss = 1.0 + 0.02 * random.normal(0, 1, 600)
    others = {"own_score": 0.7 * np.exp(random.normal(0, 0.05, 600)) / np.where(at < 400, 1, 30)}
    reward = 1 + np.minimum(at, 300) / 100 + random.normal(0, 0.1, 600) - 3.5 * (at > 400)
    shown = drawn({"loss": loss, "reward": reward}, others)
    assert shown == ["reward", "own_score", "loss"]
    assert drawn({"loss": np.where(at < 400, loss, loss + 5.0)}, others) == ["loss", "own_score"]


def test_steps_counted_in_tokens_are_marked_as_few() -> None:
    """A checkpoint every two of 4e11 tokens is no list of them, as it once was; fewer tokens fail at it first."""
    loss = np.where(np.arange(400) < 300, falling(400), np.nan)
    for tokens in (10**3, 10**9):
        found = diagnose(make_run({"loss": loss}, tokens * np.arange(1, 401), checkpoint_every=2), load_trees())
        whole = whole_figure(found, main_finding(found))
        assert whole
        assert [mark.kind for mark in whole.marks] == ["restart", "onset", "doubt", "trouble"]
        assert 'class="checkpoint"' not in html(found)
