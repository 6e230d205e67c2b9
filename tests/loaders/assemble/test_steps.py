"""Which step a row has, and what happens where the steps go back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.loaders.assemble.course import history
from stabtree.report.markdown import markdown
from stabtree.report.screen import screen
from stabtree.run import Resume, Run
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def load(folder: Path, header: str, *rows: str, **options: str) -> Run:
    """The run of a CSV file."""
    return load_run(write(folder, "\n".join([header, *rows]) + "\n"), **options)  # type: ignore[arg-type]


def steps(run: Run) -> list[int]:
    """The steps of the loss."""
    return [int(step) for step in run.series["loss"].steps]


@pytest.mark.parametrize(
    "name",
    [
        "step",
        "Step",
        "global_step",
        "train/global_step",
        "trainer/global_step",
        "iter",
        "Iteration",
        "num_updates",
        "_step",
    ],
)
def test_step_columns_by_name(tmp_path: Path, name: str) -> None:
    """Every usual name of the step is known."""
    run = load(tmp_path, f"{name},loss", "10,2", "20,1")
    assert steps(run) == [10, 20]
    assert run.sources[0].steps_from == name
    assert not run.notes


@pytest.mark.parametrize("cell", ["nan", "inf", "-5", "1e300", "12.5"])
def test_an_impossible_step_is_that_of_the_row_before(tmp_path: Path, cell: str) -> None:
    """One broken step among many costs one row only."""
    run = load(tmp_path, "step,loss", *[f"{cell if i == 50 else i},1" for i in range(200)])
    assert steps(run) == [i for i in range(200) if i != 50]
    assert run.notes[0] == "Rows without a step in column step: 1, read with the step of the row before."


def test_a_resume_replaces_what_it_abandons(tmp_path: Path) -> None:
    """After a restart from a checkpoint the later rows are the run; the abandoned ones are counted."""
    rows = [f"{i * 10},{9 - i / 10}" for i in range(10)] + [f"{i * 10 + 5},{5 - i / 10}" for i in range(4, 12)]
    run = load(tmp_path, "step,loss", *rows)
    assert run.resumes == (Resume(90, 45, 5),)
    assert steps(run) == [0, 10, 20, 30, 40, *range(45, 120, 10)]


@pytest.mark.parametrize(("first", "last", "leaf"), [(0, 30, "not-shown"), (300, 30, "not-shown"), (0, 90, "healthy")])
def test_a_run_that_ends_no_further_gets_nowhere(tmp_path: Path, first: int, last: int, leaf: str) -> None:
    """Each attempt begins at one checkpoint, whether or not the log holds what was before it."""
    at = [*range(first, 330), *list(range(300, 330)) * 2, *range(300, 300 + last)]
    run = load(tmp_path, "step,loss", *[f"{i},{3 * 0.99**i + i * 7 % 11 / 1e3}" for i in at])
    assert diagnose(run).end.id == leaf


@pytest.mark.parametrize("every", [1, 10, 1000])
@pytest.mark.parametrize("count", [40, 300])
def test_rows_slightly_out_of_order_are_no_resumes(every: int, count: int) -> None:
    """Rows shuffled within five rows all stay: none of them is written twice."""
    rng = np.random.default_rng(count)
    order = np.concatenate([start + rng.permutation(5) for start in range(0, count, 5)]) * every
    past = history(order, np.ones(count, bool), np.zeros(count, bool))
    assert past.keep is None
    assert not past.resumes
    assert past.notes


def test_the_step_column_can_be_named(tmp_path: Path) -> None:
    """The user's word counts over the aliases."""
    run = load(tmp_path, "step,tokens,loss", "0,100,2", "1,200,1", step_column="tokens")
    assert steps(run) == [100, 200]


@pytest.mark.parametrize(
    ("name", "problem"), [("token", "has no column 'token' for --step-column"), ("words", "holds no number")]
)
def test_a_wrong_step_column_is_an_error(tmp_path: Path, name: str, problem: str) -> None:
    """A named column that can't be the step is not replaced silently."""
    with pytest.raises(StabtreeError) as caught:
        load(tmp_path, "step,tokens,words,loss", "0,100,a,2", "1,200,b,1", step_column=name)
    assert problem in caught.value.problem


def disordered(rows: list[str], how: str) -> list[str]:
    """The rows of a log, put out of order."""
    if how == "shuffled":
        return [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    if how == "sorted as text":
        return sorted(rows, key=lambda row: row.partition(",")[0])
    return rows[::-1] if how == "newest first" else rows[len(rows) // 2 :] + rows[: len(rows) // 2]


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("rows", [30, 300])
@pytest.mark.parametrize("disorder", ["shuffled", "newest first", "sorted as text", "parts changed over"])
def test_a_log_out_of_order_is_put_in_order_whole(tmp_path: Path, disorder: str, rows: int, every: int) -> None:
    """Rows of which each stands once are no resumes: all of them are judged, and a note tells what was done."""
    written = [f"{row * every},{'nan' if row > rows - 6 else 4 - row / rows}" for row in range(rows)]
    run = load(tmp_path, "step,loss", *disordered(written, disorder))
    assert steps(run) == [row * every for row in range(rows)]
    assert not run.resumes
    assert any("out of order" in note for note in run.notes)
    assert diagnose(run).verdict == "critical"


@pytest.mark.parametrize(
    "parts",
    [
        [range(0, 510, 10), range(300, 810, 10)],
        [range(0, 510, 10), range(455, 800, 10)],
        [range(0, 310, 10), range(200, 510, 10), range(400, 710, 10), range(600, 910, 10), range(800, 1110, 10)],
        [range(0, 310, 10), range(203, 510, 10), range(401, 710, 10), range(604, 910, 10), range(802, 1110, 10)],
    ],
    ids=["repeats steps", "at other steps", "often", "often, at other steps"],
)
def test_a_resumed_log_is_not_out_of_order(tmp_path: Path, parts: Sequence[range]) -> None:
    """What goes back and runs the same stretch again is a resume, whether or not it logs the same steps again."""
    run = load(tmp_path, "step,loss", *(f"{step},{4 - step / 1000}" for part in parts for step in part))
    assert [resume.to_step for resume in run.resumes] == [part[0] for part in parts[1:]]


@pytest.mark.parametrize("first", [2**62, 0.5, -900])
def test_a_log_without_steps_is_told_in_rows(tmp_path: Path, first: float) -> None:
    """A row number is no step: no step is named in its place, and no checkpoint assumed at one."""
    apart = 1 if first > 1 else 1 / 7
    rows = [f"{first + row * apart},{'nan' if row >= 200 else 4 - row / 300},1.0" for row in range(300)]
    run = load(tmp_path, "step,loss,grad_norm", *rows)
    assert (run.unit, run.sources[0].steps_from) == ("row", "row number")
    found = diagnose(run)
    restart = found.findings[0].restart
    assert restart is not None
    assert (restart.checkpoint_step, restart.unit, restart.assumed) == (None, "row", True)
    for draw in (screen, markdown):
        shown = draw(found)
        assert "ow 200" in shown
        assert not re.search(r"\bsteps? \d|\d steps", shown)
