"""`inspect` of a folder lists its runs, what was not read with the reason, and what holds no metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stabtree.loaders import find_runs
from stabtree.report.files import files_dict, files_text
from tests.cli.command import run
from tests.loaders.make import write
from tests.loaders.paths.make import KINDS, LAYOUTS, healthy

if TYPE_CHECKING:
    from pathlib import Path


def folder(top: Path, runs: int) -> Path:
    """Return a folder of some runs with a file that can't be read and one that holds no metrics."""
    for number in range(runs):
        write(top, KINDS["csv"](healthy(number))[1], f"run{number}.csv")
    write(top, "", "empty.csv")
    write(top, "torch==2.1\n", "requirements.txt")
    return top


def test_several_runs_are_listed_with_all_that_is_beside_them(tmp_path: Path) -> None:
    """On the screen by a line each, in JSON whole."""
    page = " ".join(run("inspect", str(folder(tmp_path, 2))).stdout.split())  # a long path breaks lines
    assert "2 runs; name one to see how it is read" in page
    assert "run1.csv: csv, up to step 890" in page
    assert "empty.csv is empty" in page
    assert "requirements.txt: holds" in page
    found = json.loads(run("inspect", str(tmp_path), "--json").stdout)
    assert [one["name"] for one in found["runs"]] == ["run0", "run1"]
    assert [one["reason"] for one in found["unread"]] == ["is empty"]
    assert len(found["ignored"]) == 1


def test_one_run_is_shown_whole_with_the_same_lists(tmp_path: Path) -> None:
    """As its file alone, and what else lies in the folder."""
    found = json.loads(run("inspect", str(folder(tmp_path, 1)), "--json").stdout)
    assert found["series"][0]["metric"] == "loss"
    assert [one["path"] for one in found["unread"]] == [str(tmp_path / "empty.csv")]
    assert "Not read" in run("inspect", str(tmp_path)).stdout


def test_a_folder_where_all_is_read_has_no_lists(tmp_path: Path) -> None:
    """Nothing is said of what is part of the run."""
    LAYOUTS["spread"](tmp_path)
    found = find_runs(tmp_path)
    assert files_text(found) == ""
    assert files_dict(found) == {"unread": [], "ignored": []}
