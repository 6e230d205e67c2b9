"""Numbers that a file proves not to be what was logged are counted, told, and no green verdict rests on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import diagnose, load_run
from stabtree.report.json import to_dict
from stabtree.report.screen import full, headline
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


def test_no_green_verdict_rests_on_misread_values(tmp_path: Path) -> None:
    """A tenth of the loss that is no number leaves the run unjudged, and a note counts it."""
    assert verdict(load(tmp_path, str)) in ("ok", "note")
    run = load(tmp_path, lambda _cell: "oops")
    assert any("that are not numbers" in note and str(np.count_nonzero(ODD)) in note for note in run.notes)
    assert verdict(run) not in ("ok", "note")


def test_cells_of_other_kinds_are_counted(tmp_path: Path) -> None:
    """A list, an object or a boolean where the other rows hold a number is told, not taken for one."""
    odd = [True, [1.2], {"v": 9}]
    rows = [{"step": i, "loss": odd[i % 3] if i % 2 else 2.5} for i in range(60)]
    run = load_run(write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl"))
    assert len(run.series["loss"]) == 30
    assert "Cells of loss that are not numbers: 30, not logged (line 2: '[1.2]')." in run.notes
    assert run.sources[0].columns[1].misread == 30


ARABIC = str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")


def as_csv(cells: list[str]) -> str:
    """Rows with commas between."""
    return "step,loss\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))


def as_lines(cells: list[str]) -> str:
    """Objects, their cells as texts."""
    return "".join(json.dumps({"step": i, "loss": cell}) + "\n" for i, cell in enumerate(cells))


def as_columns(cells: list[str]) -> str:
    """One object of columns."""
    return json.dumps({"step": [*range(len(cells))], "loss": cells})


def as_text(cells: list[str]) -> str:
    """Lines that a trainer prints."""
    return "".join(f"step {i} loss {cell} lr 0.1\n" for i, cell in enumerate(cells))


@pytest.mark.parametrize("form", [as_csv, as_lines, as_columns, as_text])
@pytest.mark.parametrize("odd", ["1_234.5", "3.5".translate(ARABIC)], ids=["underscore", "arabic"])
def test_what_python_alone_takes_for_a_number_is_none(
    tmp_path: Path, form: Callable[[list[str]], str], odd: str
) -> None:
    """Neither `1_234` nor digits of other scripts are a loss, in any format: they are counted and not judged."""
    run = load_run(write(tmp_path, form([odd if at else cell for cell, at in zip(LOSS, ODD, strict=True)]), "a.log"))
    count = np.count_nonzero(ODD)
    assert len(run.series["loss"]) == len(LOSS) - count
    assert any(f"{count}" in note and odd in note for note in run.notes)
    assert verdict(run) == "unknown"


@pytest.mark.parametrize("other", ["03.12.2024", "03.12", "12.30", "4.096", "10.5"])
@pytest.mark.parametrize("mark", [";", "\t"])
def test_no_loss_is_read_a_thousand_times_as_large(tmp_path: Path, other: str, mark: str) -> None:
    """A loss with three digits behind its comma is a fraction, whatever has points in another column."""
    rows = "".join(f"{i}{mark}{3.5 - i / 200:.3f}".replace(".", ",") + f"{mark}{other}\n" for i in range(600))
    run = load_run(write(tmp_path, f"step{mark}loss{mark}x\n" + rows))
    assert run.series["loss"].values[0] == 3.5
    assert len(run.series["loss"]) == 600


def test_the_headline_says_what_was_misread(tmp_path: Path) -> None:
    """Not that too little was logged: which column, how many values of how many, and what to do."""
    found = diagnose(load(tmp_path, lambda _cell: "oops"))
    told = f"The log was misread: {np.count_nonzero(ODD)} of 600 values of loss are not what was logged"
    assert found.verdict == "unknown"
    assert told in headline(found)
    assert "stabtree inspect" in headline(found)
    assert "write the log again" in " ".join(full(found).split())
    assert to_dict(found)["misread"] == told.partition(": ")[2]
    lines = "step,loss\n" + "".join(
        f"{i},{cell}{',1' if at else ''}\n" for i, (cell, at) in enumerate(zip(LOSS, ODD, strict=True))
    )
    unread = diagnose(load_run(write(tmp_path, lines)))
    assert f"{np.count_nonzero(ODD)} of 600 lines could not be read" in headline(unread)
    short = diagnose(load_run(write(tmp_path, as_csv(LOSS[:2]))))
    assert "Nothing wrong in §1; §2 and §4 not judged" in headline(short)
