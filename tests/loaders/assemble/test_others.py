"""Columns of numbers that no metric names are series of the run too, in every format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from stabtree import load_run
from stabtree.loaders import table as tables
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROWS = 60
OWN = [round(0.5 + 0.01 * (i % 7), 3) for i in range(ROWS)]
RARE = [f"{i}.5" if i % 4 == 0 else "" for i in range(ROWS)]


def csv(**columns: object) -> str:
    """A log with a loss and these columns."""
    held = {"step": range(ROWS), "loss": [3 - i / 30 for i in range(ROWS)], **columns}
    rows = zip(*held.values(), strict=True)
    return ",".join(held) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def jsonl(rows: list[dict[str, object]]) -> str:
    """The rows, each with its step and loss, a line each."""
    return "".join(json.dumps({"step": i, "loss": 3 - i / 30} | row) + "\n" for i, row in enumerate(rows))


def test_a_column_that_nobody_knows(tmp_path: Path) -> None:
    """It is a series under its own name; an empty cell was not logged, and questions don't see it."""
    run = load_run(write(tmp_path, csv(my_own=OWN, rare=RARE)))
    assert list(run.series) == ["loss"]
    assert run.others["my_own"].values.tolist() == OWN
    assert run.others["rare"].steps.tolist() == list(range(0, ROWS, 4))
    assert not run.has("my_own")
    assert run.get("my_own") is None


def test_rows_that_are_not_finite_are_evidence(tmp_path: Path) -> None:
    """A NaN is a value there as well, and a number too large for exact whole numbers is one."""
    cells: list[object] = [*OWN[:-3], float("nan"), float("inf"), 10**18]
    for log, name in ((csv(own=cells), "a.csv"), (jsonl([{"own": cell} for cell in cells]), "a.jsonl")):
        own = load_run(write(tmp_path, log, name)).others["own"].values
        assert np.isnan(own[-3])
        assert own[-2:].tolist() == [np.inf, 1e18]


def test_a_resume_replaces_their_rows_too(tmp_path: Path) -> None:
    """They lie on the same steps as the metrics."""
    rows = [*range(40), *range(20, 60)]
    log = "step,loss,own\n" + "".join(f"{step},{3 - step / 30:.3f},{index}\n" for index, step in enumerate(rows))
    own = load_run(write(tmp_path, log)).others["own"]
    assert own.steps.tolist() == list(range(60))
    assert own.values.tolist() == [*range(20), *range(40, 80)]


def test_there_is_an_end_to_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON whose rows all have keys of their own would make a table of rows times rows."""
    monkeypatch.setattr(tables, "MAX_CELLS", 20 * ROWS)
    run = load_run(write(tmp_path, jsonl([{f"own_{i}": i} for i in range(ROWS)]), "a.jsonl"))
    assert list(run.series) == ["loss"]
    assert 10 < len(run.others) < 20
