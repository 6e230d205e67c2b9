"""What `inspect` tells about how a run was read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.loaders import find_runs, load_run
from stabtree.report.inspect import files_dict, files_text, inspect_dict, inspect_text
from tests.cli.command import run
from tests.loaders.make import text, write
from tests.loaders.paths.make import KINDS, LAYOUTS, healthy

if TYPE_CHECKING:
    from pathlib import Path


def report(folder: Path, content: str, width: int = 100, **options: Any) -> str:
    """The text for a file."""
    return inspect_text(load_run(write(folder, content), **options), width=width)


def test_every_column_is_accounted_for(tmp_path: Path) -> None:
    """Used columns stand in a table with their first and last value, others with the reason."""
    page = report(tmp_path, "step,epoch_loss,loss,vram,lr\n0,4,5,9,\n10,3,nan,9,\n20,2,4,9,\n")
    assert "3 rows" in page
    lines = [line.split() for line in page.splitlines()]
    assert ["loss", "=", "loss", "3", "5", "4", "1"] in lines
    assert ["ignored", "vram", "(clock:", "not", "a", "known", "metric)"] in lines
    assert "epoch_loss  (loss: loss is read from loss)" in page
    assert "lr  (rate: never logged)" in page
    assert "0 to 20, from step" in page
    assert "every 10 steps: loss" in page


def test_what_went_wrong_while_reading_is_told(tmp_path: Path) -> None:
    """Skipped lines, resumes and gaps are named with their place."""
    rows = [f"{i},{'' if i > 40 else 5 - i / 20},0.1" for i in [*range(50), *range(30, 70)]]
    page = report(tmp_path, "step,loss,lr\n" + "\n".join(rows) + "\n71,2")
    assert "the first is line 92, which is cut: the file ends inside this line." in " ".join(page.split())
    assert "after step 40 the log goes back to 30 and replaces 20 rows." in page
    assert "loss is missing in 29 rows of steps 41 to 69 while the log goes on." in page


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("color", [False, True])
def test_the_report_fits_its_width(tmp_path: Path, width: int, color: bool) -> None:
    """No line is wider than the terminal, and without colour nothing but text is printed."""
    write(
        tmp_path,
        json.dumps({"metrics_file": "metrics.csv", "dtype": "fp16", "optimizer": {"name": "adamw"}}),
        "manifest.json",
    )
    page = inspect_text(load_run(write(tmp_path, text() + "x" * 300 + "\n")), width=width, color=color)
    if color:
        assert "\x1b[" in page
    else:
        assert all(len(line) <= width and (line.isprintable() or not line) for line in page.split("\n"))


def test_a_file_cannot_style_the_report(tmp_path: Path) -> None:
    """Markup and escape sequences in names come out as text."""
    page = report(tmp_path, "step,loss,[red]x[/red],\x1b[31my\n0,1,1,1\n1,1,1,1\n")
    assert "[red]x[/red]" in page
    assert "\x1b" not in page


def test_json_holds_the_same_and_no_nan(tmp_path: Path) -> None:
    """Machines get everything, with numbers that JSON knows."""
    run = load_run(write(tmp_path, "step,loss,vram\n0,nan,1\n1,inf,1\n2\n"), dtype="fp16")
    found = json.loads(json.dumps(inspect_dict(run)))
    assert found["schema"] == 1
    assert found["config"] == {"dtype": {"value": "fp16", "source": "--dtype"}}
    assert found["series"] == [
        {
            "metric": "loss",
            "column": "loss",
            "points": 2,
            "first_step": 0,
            "last_step": 1,
            "interval_steps": 1.0,
            "nonfinite": 2,
        }
    ]
    (source,) = found["sources"]
    assert [column["first"] for column in source["columns"]] == [0.0, None, 1.0]
    assert source["steps_from"] == "step"
    assert [column["misread"] for column in source["columns"]] == [0, 0, 0]
    assert "NaN" not in json.dumps(found)


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
    assert "run1" in page
    assert "empty.csv: is empty" in page
    assert "requirements.txt: holds" in page
    found = json.loads(run("inspect", str(tmp_path), "--json").stdout)
    assert [one["name"] for one in found["runs"]] == ["run0", "run1"]
    assert [one["reason"] for one in found["unread"]] == ["is empty"]
    assert len(found["ignored"]) == 1


def test_a_folder_where_all_is_read_has_no_lists(tmp_path: Path) -> None:
    """Nothing is said of what is part of the run."""
    LAYOUTS["spread"](tmp_path)
    found = find_runs(tmp_path)
    assert files_text(found) == ""
    assert files_dict(found) == {"unread": [], "ignored": []}
