"""Columns of numbers that no metric names are series of the run too, in every format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import load_run
from stabtree.loaders import table as tables
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize("kind", ["jsonl", "jsonl with null", "text", "columns"])
def test_in_other_formats(tmp_path: Path, kind: str) -> None:
    """The same series, whichever way it was logged."""
    if kind == "text":
        name, log = "a.log", "".join(f"step {i} loss: {3 - i / 30:.4f} my_own: {own}\n" for i, own in enumerate(OWN))
    elif kind == "columns":
        own = {"step": list(range(ROWS)), "loss": [3 - i / 30 for i in range(ROWS)], "my_own": OWN}
        name, log = "a.json", json.dumps(own)
    else:
        beside = {"nothing": None} if kind == "jsonl with null" else {}
        name, log = "a.jsonl", jsonl([{"my_own": own, "host": "node7", **beside} for own in OWN])
    run = load_run(write(tmp_path, log, name))
    assert list(run.others) == ["my_own"]
    assert run.others["my_own"].values.tolist() == OWN
    assert run.others["my_own"].steps.tolist() == list(range(ROWS))


def test_rows_that_are_not_finite_are_evidence(tmp_path: Path) -> None:
    """A NaN is a value there as well, and a number too large for exact whole numbers is one."""
    cells: list[object] = [*OWN[:-3], float("nan"), float("inf"), 10**18]
    for log, name in ((csv(own=cells), "a.csv"), (jsonl([{"own": cell} for cell in cells]), "a.jsonl")):
        own = load_run(write(tmp_path, log, name)).others["own"].values
        assert np.isnan(own[-3])
        assert own[-2:].tolist() == [np.inf, 1e18]


@pytest.mark.parametrize("cells", ["text", "true and false", "dates", "mostly text"])
def test_text_is_no_series(tmp_path: Path, cells: str) -> None:
    """Names, dates and flags are left out, in a table as in JSON."""
    column = {
        "text": ["node7"] * ROWS,
        "true and false": ["true", "false"] * (ROWS // 2),
        "dates": ["2024-01-01 10:00:00"] * ROWS,
        "mostly text": ["7"] * 3 + ["?x"] * (ROWS - 3),
    }[cells]
    assert not load_run(write(tmp_path, csv(own=column))).others
    assert not load_run(write(tmp_path, jsonl([{"own": cell} for cell in column]), "a.jsonl")).others


def test_a_second_column_of_a_metric(tmp_path: Path) -> None:
    """What another column of the same metric holds is kept; one whose name is that of a metric says so."""
    run = load_run(write(tmp_path, csv(train_nll=OWN)), columns={"loss": "train_nll"})
    assert run.series["loss"].values.tolist() == OWN
    assert list(run.others) == ["loss (column)"]


def test_a_resume_replaces_their_rows_too(tmp_path: Path) -> None:
    """They lie on the same steps as the metrics."""
    rows = [*range(40), *range(20, 60)]
    log = "step,loss,own\n" + "".join(f"{step},{3 - step / 30:.3f},{index}\n" for index, step in enumerate(rows))
    own = load_run(write(tmp_path, log)).others["own"]
    assert own.steps.tolist() == list(range(60))
    assert own.values.tolist() == [*range(20), *range(40, 80)]


def test_ranks_are_averaged(tmp_path: Path) -> None:
    """As for metrics: the mean over the ranks."""
    for rank in (0, 1):
        write(tmp_path, csv(own=[rank * 2.0] * ROWS), f"rank{rank}.csv")
    run = load_run(tmp_path / "rank0.csv", tmp_path / "rank1.csv", ranks=True)
    assert set(run.others["own"].values.tolist()) == {1.0}


def test_there_is_an_end_to_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON whose rows all have keys of their own would make a table of rows times rows."""
    monkeypatch.setattr(tables, "MAX_CELLS", 20 * ROWS)
    run = load_run(write(tmp_path, jsonl([{f"own_{i}": i} for i in range(ROWS)]), "a.jsonl"))
    assert list(run.series) == ["loss"]
    assert 10 < len(run.others) < 20
