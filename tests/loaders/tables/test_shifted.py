"""Rows whose cells stand one column too far to a side are found, told and not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import diagnose, load_run
from tests.conftest import falling
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.run import Run

    Change = Callable[[list[str]], list[str]]

NAMES = ["step", "loss", "grad_norm", "lr", "eval_loss"]
LOSS = falling(400)
NORM = np.random.default_rng(8).lognormal(-1, 0.4, 400)
ROWS = [
    [str(i), f"{LOSS[i]:.5f}", f"{NORM[i]:.5f}", f"{0.01 * (1 - i / 400):.3g}", "1.5" if i % 20 == 0 else ""]
    for i in range(400)
]


def load(folder: Path, change: Change, places: range) -> Run:
    """A healthy run of which some rows are changed."""
    rows = [change(row) if i in places else row for i, row in enumerate(ROWS)]
    return load_run(write(folder, "\n".join(map(",".join, [NAMES, *rows])) + "\n"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row: [row[0], *row[2:], ""], "shifted one column to the left"),
        (lambda row: [row[0], *row[2:]], "lacks a cell"),
        (lambda row: [row[0], "", *row[1:-1]], "shifted one column to the right"),
        (lambda row: [row[0], "0.5", *row[1:]], "has 6 fields"),
    ],
    ids=["left", "left and short", "right", "right and long"],
)
def test_rows_that_shift_midway_are_not_read(tmp_path: Path, change: Change, told: str) -> None:
    """They are told, those above them are read to the last, and the run is not judged."""
    run = load(tmp_path, change, range(200, 400))
    assert any(told in note and "200 lines" in note for note in run.notes)
    assert run.series["loss"].values.tolist() == pytest.approx(LOSS[:200], abs=1e-5)
    assert diagnose(run).verdict == "unknown"


def test_single_rows_that_lack_a_cell_are_not_read(tmp_path: Path) -> None:
    """A row here and there without its loss has the gradient's norm there."""
    run = load(tmp_path, lambda row: [row[0], *row[2:]], range(7, 400, 9))
    assert any("lacks a cell" in note for note in run.notes)
    assert not set(run.series["loss"].steps.tolist()) & set(range(7, 400, 9))


def test_rows_that_end_early_are_read(tmp_path: Path) -> None:
    """A row without its last cells has the others in their places."""
    run = load(tmp_path, lambda row: row if row[-1] else row[:-1], range(0, 400, 3))
    assert len(run.series["loss"]) == 400
    assert diagnose(run).verdict in ("ok", "note")


def test_a_loss_that_dies_is_no_shift(tmp_path: Path) -> None:
    """A loss that falls empty while all else goes on as it was is a loss that is no longer logged."""
    run = load(tmp_path, lambda row: [row[0], "", *row[2:]], range(200, 400))
    assert len(run.series["grad_norm"]) == 400
    assert diagnose(run).findings[0].leaf.id == "nan-logged"


def test_a_cell_that_cant_be_read_is_no_silence(tmp_path: Path) -> None:
    """Words between numbers are misread cells and no NaN that was left out; at the end for good they may be one."""
    words = load(tmp_path, lambda row: [row[0], "error", *row[2:]], range(5, 300, 7))
    assert diagnose(words).verdict == "unknown"
    assert not diagnose(words).findings
    dead = load(tmp_path, lambda row: [row[0], "error", *row[2:]], range(300, 400))
    assert diagnose(dead).findings[0].leaf.id == "nan-logged"


def test_thousands_beside_decimal_commas_are_not_read(tmp_path: Path) -> None:
    """Where `1,25` stands, nobody knows whether `1,250` has thousands."""

    def german(row: list[str]) -> list[str]:
        digits = 5 - int(row[0]) % 2
        return [row[0], f'"{row[1].replace(".", ",")[:digits]}"', *row[2:]]

    run = load(tmp_path, german, range(9, 400, 5))
    assert run.series["loss"].values.max() < 10
    assert diagnose(run).verdict == "unknown"


def test_numbers_are_no_header_though_another_delimiter_is_tried(tmp_path: Path) -> None:
    """Decimal commas in every cell leave as many commas as semicolons."""
    text = "step;loss;lr\n" + "".join(f"{i};{LOSS[i]:.4f};0,001\n".replace(".", ",") for i in range(60))
    assert load_run(write(tmp_path, text)).series["loss"].values.tolist() == pytest.approx(LOSS[:60], abs=1e-4)
