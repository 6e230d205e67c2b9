"""Event folders side by side: a resumed run is one, unrelated runs stay several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run, load_runs
from tests.loaders.make import write
from tests.loaders.make_binary import write_events

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run


def stretch(folder: Path, first: int, last: int, start: float, *, every: int = 1, tag: str = "train/loss") -> Path:
    """An event folder with the rows of some steps, written from some time on."""
    return write_events(folder, [(step, {tag: 4 - step / 100, "lr": 0.1}) for step in range(first, last, every)], start)


def runs_in(folder: Path) -> list[Run]:
    """The runs of a folder."""
    return [item.run for item in load_runs(folder) if not isinstance(item.run, StabtreeError)]


@pytest.mark.parametrize("begin", [60, 90, 101])
def test_a_run_resumed_in_a_new_folder_is_one(tmp_path: Path, begin: int) -> None:
    """Its second folder begins at a checkpoint of the first, or right after its end, and later in time."""
    stretch(tmp_path / "b_host", 1, 101, 1.7e9)
    stretch(tmp_path / "a_host", begin, 200, 1.8e9)
    run = load_run(tmp_path)
    assert run.series["loss"].steps.tolist() == list(range(1, 200))
    assert len(run.resumes) == (begin < 101)
    assert "b_host goes on in a_host: one run with its resumes." in run.notes


def test_a_run_that_crashed_again_and_again_is_one(tmp_path: Path) -> None:
    """Each resume begins within what stands before it, however far the one before it got."""
    for number, (first, last) in enumerate(((1, 100), (51, 70), (51, 90), (81, 200))):
        stretch(tmp_path / f"run{number}", first, last, 1.7e9 + number * 1e6)
    assert [len(run.series["loss"]) for run in runs_in(tmp_path)] == [199]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        pytest.param({"first": 1, "last": 200}, "it begins at the first step", id="from scratch"),
        pytest.param({"first": 10, "last": 200, "every": 10}, "its first row is one interval in", id="logged rarely"),
        pytest.param({"first": 50, "last": 101}, "it ends where the other one does", id="a branch"),
        pytest.param({"first": 150, "last": 300}, "steps between the two are missing", id="far behind"),
        pytest.param({"first": 50, "last": 200, "tag": "nll"}, "it logs something else", id="other tags"),
        pytest.param({"first": 50, "last": 200, "start": 1.7e9 + 10}, "they ran side by side", id="at the same time"),
    ],
)
def test_unrelated_runs_stay_several(tmp_path: Path, second: dict[str, float], why: str) -> None:
    """Nothing but a seam in steps and in time puts two folders together."""
    stretch(tmp_path / "a", 1, 101, 1.7e9)
    stretch(tmp_path / "b", **{"start": 1.8e9, **second})  # type: ignore[arg-type]
    assert len(load_runs(tmp_path)) == 2, why


def test_a_resume_that_may_be_of_two_runs_is_of_neither(tmp_path: Path) -> None:
    """Where two runs could go on there, nothing is proved."""
    stretch(tmp_path / "a", 1, 101, 1.7e9)
    stretch(tmp_path / "b", 1, 101, 1.75e9)
    stretch(tmp_path / "c", 60, 200, 1.8e9)
    assert len(load_runs(tmp_path)) == 3


def test_a_folder_that_was_used_twice_holds_two_attempts(tmp_path: Path) -> None:
    """A second event file that begins at the first step again is no resume."""
    stretch(tmp_path, 1, 60, 1.7e9)
    stretch(tmp_path, 1, 101, 1.8e9)
    assert [len(run.series["loss"]) for run in runs_in(tmp_path)] == [59, 100]


def test_text_that_is_named_like_an_event_file_is_none(tmp_path: Path) -> None:
    """A module `read_tfevents.py` in a project hides no run and is none."""
    write(tmp_path, "import struct\n", "read_tfevents.py")
    with pytest.raises(StabtreeError, match="holds no file that stabtree can read"):
        load_run(tmp_path)
    stretch(tmp_path / "runs" / "a", 1, 60, 1.7e9)
    assert len(load_run(tmp_path).series["loss"]) == 59
