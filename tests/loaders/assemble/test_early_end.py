"""A log that stops without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run

if TYPE_CHECKING:
    from pathlib import Path

CASES = {
    "far from its end": (300, "max_steps: 10000", "", True),
    "near its end": (290, "max_steps: 300", "", False),
    "at its end": (300, "max_steps: 300", "", False),
    "nobody says where it ends": (300, "seed: 1", "", False),
    "a NaN says why": (300, "max_steps: 10000", "step 300 loss nan", False),
    "an error says why": (300, "max_steps: 10000", "RuntimeError: CUDA out of memory", False),
}


@pytest.mark.parametrize(("rows", "setting", "last", "told"), CASES.values(), ids=CASES)
def test_a_log_that_ends_long_before_the_plan_is_told(
    tmp_path: Path, rows: int, setting: str, last: str, told: bool
) -> None:
    """It is a note, with both steps, only where the planned steps are known and neither error nor NaN ended the log."""
    log = tmp_path / "train.log"
    lines = [setting, *(f"step {step} loss {2 - step / 400:.4f} lr 1e-4" for step in range(rows)), last]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    notes = [note for note in load_run(log).notes if "without an error" in note]
    assert bool(notes) is told
    assert all(f"step {rows - 1:,} of 10,000 planned" in note for note in notes)
