"""Numbers that a file proves not to be what was logged are counted, told, and no green verdict rests on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import diagnose, load_run
from stabtree.loaders.assemble.misread import misread
from stabtree.loaders.table import Column
from stabtree.tree.load import load_trees
from tests.conftest import falling
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.run import Run

LOSS = [f"{value:.5f}" for value in falling(600)]
ODD = np.random.default_rng(3).random(600) < 0.1


def load(folder: Path, change: Callable[[str], str], odd: np.ndarray = ODD) -> Run:
    """A falling loss of which some cells are changed."""
    cells = [change(cell) if at else cell for cell, at in zip(LOSS, odd.tolist(), strict=True)]
    return load_run(write(folder, "step,loss\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))))


def verdict(run: Run) -> str:
    """The verdict of the tree that fits the run."""
    return str(diagnose(run, load_trees(run)).verdict)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda cell: cell.replace(".", ""), "lost their decimal point"),
        (lambda cell: f"-{cell}", "whose sign is flipped"),
        (lambda _cell: "oops", "that are no numbers"),
    ],
    ids=["points", "signs", "words"],
)
def test_no_green_verdict_rests_on_misread_values(tmp_path: Path, change: Callable[[str], str], told: str) -> None:
    """A tenth of the loss that is not what was logged leaves the run unjudged, and a note counts it."""
    assert verdict(load(tmp_path, str)) in ("ok", "note")
    run = load(tmp_path, change)
    assert any(told in note and str(np.count_nonzero(ODD)) in note for note in run.notes)
    assert verdict(run) not in ("ok", "note")


def test_what_was_found_is_told_all_the_same(tmp_path: Path) -> None:
    """Misread values take no alarm away."""
    run = load(tmp_path, lambda cell: f"-{cell}")
    lines = [f"{i},{'nan' if i >= 300 else value}" for i, value in enumerate(run.series["loss"].values.tolist())]
    broken = load_run(write(tmp_path, "step,loss\n" + "\n".join(lines) + "\n", "broken.csv"))
    assert verdict(broken) == "critical"


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_a_few_odd_values_are_left_to_the_tree(tmp_path: Path, share: float) -> None:
    """Less than a twentieth proves nothing."""
    odd = np.random.default_rng(4).random(600) < share
    run = load(tmp_path, lambda cell: cell.replace(".", ""), odd)
    assert not any("decimal point" in note for note in run.notes)


def test_what_may_well_be_logged_is_not_misread() -> None:
    """Neither a loss that blows up, nor one around or below 0, nor numbers that are whole, all or for their size."""
    rng = np.random.default_rng(5)
    blown = np.append(falling(500), np.floor(np.exp(np.linspace(5, 15, 60))))
    for values in (
        blown,
        rng.normal(0.0, 1.0, 600),
        rng.normal(0.3, 0.3, 600),
        -falling(600),
        np.append(falling(300), -falling(250)),
        np.floor(100 * falling(600)),
        np.random.default_rng(6).lognormal(16, 2, 600).astype(np.float32).astype(np.float64),
        np.array([float(f"{value:.6g}") for value in np.random.default_rng(7).lognormal(9, 3, 600)]),
    ):
        assert misread(Column(values), "loss") is None


def test_cells_of_other_kinds_are_counted(tmp_path: Path) -> None:
    """A list, an object or a boolean where the other rows hold a number is told, not taken for one."""
    odd = [True, [1.2], {"v": 9}]
    rows = [{"step": i, "loss": odd[i % 3] if i % 2 else 2.5} for i in range(60)]
    run = load_run(write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl"))
    assert len(run.series["loss"]) == 30
    assert "Cells of loss that are no numbers: 30, not logged (line 2: '[1.2]')." in run.notes
    assert run.sources[0].columns[1].misread == 30


def test_flags_stay_numbers(tmp_path: Path) -> None:
    """What is logged as true or false is read as 1 or 0."""
    rows = [{"step": i, "loss": 2.5, "activation_finite/a": i < 5} for i in range(9)]
    run = load_run(write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl"))
    assert run.series["activation_finite/a"].values.tolist() == [1.0] * 5 + [0.0] * 4


def test_a_date_makes_no_decimal_comma_a_separator(tmp_path: Path) -> None:
    """`03.12.2024;0;3,007` holds the loss 3.007."""
    run = load_run(write(tmp_path, "Datum;step;loss\n" + "".join(f"03.12.2024;{i};2,99{i}\n" for i in range(9))))
    assert run.series["loss"].values.tolist() == [pytest.approx(2.99 + i / 1000) for i in range(9)]


def test_no_green_verdict_rests_on_half_of_the_rows(tmp_path: Path) -> None:
    """Rows that are left out for their negative step are misread like any other."""
    lines = [f"{i if i % 2 else -i - 2},{cell}" for i, cell in enumerate(LOSS)]
    run = load_run(write(tmp_path, "step,loss\n" + "\n".join(lines) + "\n"))
    assert any("impossible step in step: 300 skipped" in note for note in run.notes)
    assert verdict(run) == "unknown"
