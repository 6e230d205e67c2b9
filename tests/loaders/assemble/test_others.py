"""Columns of numbers that no metric names are series of the run too, in every format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stabtree import load_run
from stabtree.loaders import table as tables
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROWS = 60


def jsonl(rows: list[dict[str, object]]) -> str:
    """The rows, each with its step and loss, a line each."""
    return "".join(json.dumps({"step": i, "loss": 3 - i / 30} | row) + "\n" for i, row in enumerate(rows))


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
