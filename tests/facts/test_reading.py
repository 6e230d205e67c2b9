"""What was not read of a log keeps it from being judged healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 100


def judged(path: Path, text: str) -> str:
    """The verdict of a log."""
    path.write_text(text, encoding="utf-8")
    return diagnose(load_run(path)).verdict


def test_steps_that_no_number_holds_exactly_are_not_passed_over(tmp_path: Path) -> None:
    """A NaN may be in their rows."""
    rows = [f"{2**53 - ROWS // 2 + row},{3 - row / ROWS}" for row in range(ROWS)]
    assert judged(tmp_path / "run.csv", "\n".join(["step,loss", *rows])) == "unknown"


def test_of_a_key_that_occurs_twice_the_nan_is_read(tmp_path: Path) -> None:
    """JSON parsers keep the last value, which would hide it."""
    rows = [f'{{"step": {row}, "loss": {"NaN" if row > 60 else 3 - row / ROWS}, "loss": 1.2}}' for row in range(ROWS)]
    assert judged(tmp_path / "run.jsonl", "\n".join(rows)) == "critical"
