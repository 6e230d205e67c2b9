"""A figure in the terminal."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.diagnosis.walk import diagnose
from stabtree.report.plot import Figure, Mark, columns_for, figure, strips
from stabtree.report.words import main_finding
from stabtree.tree.load import load_trees
from tests.conftest import make_run


def made(values: np.ndarray, *marks: Mark, **given: object) -> Figure:
    """A figure of one loss, a value a step."""
    run = make_run({"loss": values})
    found = figure(diagnose(run, load_trees(run)), None, columns_for(80))
    assert found is not None
    strip = replace(found.strips[0], **given)
    return replace(found, strips=(strip,), marks=marks)


def drawn(of: Figure, width: int = 80, *, ascii: bool = False) -> list[str]:  # noqa: A002 - as in `strips`
    """The lines as text."""
    return ["".join(text for text, _ in line) for line in strips(of, width, ascii=ascii)]


NOISE = 2 + 0.1 * np.random.default_rng(0).normal(size=1000)
EMPTY = np.full(columns_for(80), np.nan)
MARKS = (Mark(500, "restart", "500"), Mark(560, "onset", "560"))


def test_a_value_beyond_the_axis_is_named() -> None:
    """A spike that is cut off shows at the upper edge, and how high it reached stands beside it."""
    values = NOISE.copy()
    values[700] = 40.0
    top, bottom, _ = drawn(made(values))
    assert "↑" in top
    assert "max 40" in bottom


def test_marks_stand_below_their_lines_with_both_ends_of_the_axis() -> None:
    """The arrow of a mark is in the column of its line, its step beside it, restart and onset of a style each."""
    of = made(NOISE, *MARKS, lows=EMPTY, highs=EMPTY, joined=EMPTY > 0)
    rows = strips(of, 80)
    lines = drawn(of)
    assert [i for i, c in enumerate(lines[0]) if c == "┊"] == [i for i, c in enumerate(lines[2]) if c == "▲"]
    assert "restart 500 ▲  ▲ onset 560" in lines[2]
    assert lines[2].split()[0] == "0"
    assert lines[2].endswith("999")
    assert [style for text, style in rows[0] if text == "┊"] == ["restart", "mark"]


NAN = float("nan")


@pytest.mark.parametrize(
    "columns",
    [
        {"loss": [NAN] * 60},
        {"loss": [2.3, *[NAN] * 60]},
        {"grad_norm": [NAN] * 60},
        {"eval_loss": [2.0, 1.0, NAN, NAN]},
    ],
)
def test_what_was_never_finite_is_drawn_as_crosses(columns: dict[str, list[float]]) -> None:
    """Also where no row is finite, or one, and where the loss was not logged at all."""
    found = diagnose(make_run(columns))
    shown = figure(found, main_finding(found), columns_for(80))
    assert shown is not None
    assert "×" in next(line for line in drawn(shown) if line.startswith(f"{next(iter(columns))} "))


def test_an_onset_is_drawn_only_where_something_happened() -> None:
    """Of two series of which one moved, only that one has the line; the step is named below both."""
    of = made(NOISE, Mark(500, "onset", "500"), lows=EMPTY, highs=EMPTY, joined=EMPTY > 0)
    still = replace(of.strips[0], moved=False)
    lines = drawn(replace(of, strips=(of.strips[0], still)))
    assert ["┊" in line for line in lines] == [True, True, False, False, False]
    assert "onset 500" in lines[-1]
