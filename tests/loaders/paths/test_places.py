"""The line of a step is told where the log has one for it, and no line where that can't be known."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.loaders.paths.stored import with_places
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

LOSSES = {step: 4 - step / 100 for step in range(0, 300, 10)}


def places(folder: Path, content: str, name: str, *steps: int) -> dict[int, str]:
    """What stands in the lines that are told of some steps."""
    file = write(folder, content, name)
    lines = content.split("\n")
    return {step: lines[line - 1] for step, line in with_places(load_run(str(file)), steps).places.items()}


@pytest.mark.parametrize(
    ("name", "row", "head"),
    [
        ("a.csv", "{step},{loss}", "# a comment\nstep,loss"),
        ("b.csv", '"{step}";"{loss}"', '"step";"loss"'),
        ("c.tsv", "x\t{loss}\t{step}.0", "name\tloss\tstep"),
        ("d.jsonl", '{{"loss": {loss}, "step": {step}}}', ""),
        ("e.log", "12:00 INFO step {step}/300: loss {loss}, lr 0.001", "the training begins"),
        ("f.log", "Step={step} | loss={loss} | grad_norm=1.5", ""),
    ],
)
def test_the_line_is_that_of_the_step(tmp_path: Path, name: str, row: str, head: str) -> None:
    """Also where another cell or a longer number reads alike, below whatever stands above the rows."""
    rows = {step: row.format(step=step, loss=f"{loss:.4f}") for step, loss in LOSSES.items()}
    content = "\n".join([*([head] if head else []), *rows.values()]) + "\n"
    assert places(tmp_path, content, name, 0, 10, 290) == {step: rows[step] for step in (0, 10, 290)}


def test_it_is_the_later_line_after_a_resume(tmp_path: Path) -> None:
    """The rows that were run again are those that are judged."""
    rows = [f"{step},{loss}" for step, loss in LOSSES.items()] + [f"{step},1.5" for step in range(200, 400, 10)]
    assert places(tmp_path, "\n".join(["step,loss", *rows, ""]), "a.csv", 250) == {250: "250,1.5"}


def test_a_line_that_is_made_to_take_long_does_not(tmp_path: Path) -> None:
    """A log of digits without end is passed in the time that its bytes take."""
    rows = "\n".join(f"step {step}: loss {loss}" for step, loss in LOSSES.items())
    file = write(tmp_path, f"{rows}\nstep {'1' * 90_000}\nstep 10{'0' * 90_000}5\n", "a.log")
    run, begun = load_run(str(file)), time.perf_counter()
    with_places(run, [1, 10])
    assert time.perf_counter() - begun < 2


@pytest.mark.parametrize(
    ("name", "content", "leaf"),
    [
        ("status.json", '{"state": "FAILED"}', "exit-status"),
        ("status.json", '{"exit_code": 3}', "exit-status"),
        ("exit_code", "137\n", "host-memory"),
        ("exit_code", "0\n", ""),
        ("error.txt", "RuntimeError: shapes\n", "exception"),
        ("FAILED", "", "exit-status"),
        ("meta.yaml", "status: 4\n", "exit-status"),
        ("status.json", '{"failed_attempts": 0, "state": "running"}', ""),
    ],
)
def test_a_file_of_a_status_beside_a_log_counts(tmp_path: Path, name: str, content: str, leaf: str) -> None:
    """What a scheduler or a launcher says there is how the run ended."""
    log = tmp_path / "metrics.csv"
    log.write_text("step,loss\n" + "".join(f"{step},{3 - step / 50}\n" for step in range(60)))
    (tmp_path / name).write_text(content)
    assert [item.leaf.id for item in diagnose(log).findings] == [leaf] * bool(leaf)
