"""A finished log that is let grow again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.growing import growing
from stabtree.loaders import load_run

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"step": step, "loss": 3 - 0.1 * step} for step in range(12)]
STATE = {"log_history": ROWS, "global_step": 11, "max_steps": 12}
LOGS = {
    "log.csv": "step,loss\n" + "".join(f"{row['step']},{row['loss']}\n" for row in ROWS),
    "log.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    "trainer_state.json": json.dumps(STATE, indent=1),
    "log.txt": "".join(f"step {row['step']}: loss {row['loss']:.4f}\n" for row in ROWS),
}


@pytest.mark.parametrize("name", LOGS)
def test_it_grows_to_what_it_was(name: str, tmp_path: Path) -> None:
    """After each piece the log holds the first rows of the finished one, at last all."""
    (tmp_path / name).write_text(LOGS[name], encoding="utf-8")
    whole = load_run(tmp_path / name).series["loss"]
    (folder := tmp_path / "again").mkdir()
    held = 0
    for path, _ in growing(tmp_path / name).grow(folder):
        loss = load_run(path).series["loss"]
        held = len(loss)
        assert np.array_equal(loss.values, whole.values[:held])
    assert held == len(ROWS)
