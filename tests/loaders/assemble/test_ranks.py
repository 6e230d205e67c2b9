"""Several files, or a rank column: ranks of one run, or parts of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.loaders.make import points, write

if TYPE_CHECKING:
    from pathlib import Path


def rank_file(folder: Path, name: str, values: list[str], start: int = 0) -> Path:
    """A file with one loss a step."""
    rows = "".join(f"{start + i},{value},{name[-5]}a{i}\n" for i, value in enumerate(values))
    return write(folder, "step,loss,batch_id\n" + rows, name)


def test_rank_files_are_averaged(tmp_path: Path) -> None:
    """The run is the mean over the ranks; ranks are named by their files' numbers and keep their series."""
    files = [rank_file(tmp_path, "rank1.csv", ["3", "4"]), rank_file(tmp_path, "rank0.csv", ["1", "2"])]
    run = load_run(*files)
    assert points(run)["loss"] == [(0, 2), (1, 3)]
    assert list(run.ranks) == ["0", "1"]
    assert run.ranks["1"]["loss"].values.tolist() == [3, 4]
    assert run.notes[0] == "The files are 2 ranks of one run: its series are the mean over the ranks."


def test_a_rank_column(tmp_path: Path) -> None:
    """Interleaved rows of several ranks are not steps that go back."""
    rows = "".join(f"{i},{rank},{rank + i}\n" for i in range(5) for rank in (0, 1))
    run = load_run(write(tmp_path, "step,rank,loss\n" + rows))
    assert list(run.ranks) == ["0", "1"]
    assert points(run)["loss"] == [(i, i + 0.5) for i in range(5)]
    assert not run.resumes


@pytest.mark.parametrize("overlap", [0, 2])
def test_parts_are_put_together(tmp_path: Path, overlap: int) -> None:
    """Files that each hold their own stretch of steps are one log, in the order of their steps."""
    first = rank_file(tmp_path, "part1.csv", [str(9 - i / 10) for i in range(10)])
    second = rank_file(tmp_path, "part2.csv", [str(5 - i / 10) for i in range(10)], start=10 - overlap)
    run = load_run(second, first)
    assert run.series["loss"].steps.tolist() == list(range(20 - overlap))
    assert run.series["loss"].values[10 - overlap] == 5.0
    assert not run.ranks
    assert run.notes[0].startswith("The files are parts of one run, read in this order:")
    assert len(run.resumes) == (1 if overlap else 0)
