"""Seams: a resumed run that goes on, and one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from tests.conftest import falling
from tests.predicates.judged import ROWS

if TYPE_CHECKING:
    from pathlib import Path


def resumed(folder: Path, change: float, lr: float = 1e-3) -> Any:
    """A run whose log goes back from step 500 to 400, the loss `change` higher from there on."""
    values = falling(ROWS, 0.02)
    first = [(step, values[step], 1e-3) for step in range(500)]
    second = [(step, values[step] + change, lr) for step in range(400, ROWS)]
    file = folder / "metrics.csv"
    file.write_text("step,loss,lr\n" + "".join(f"{s},{v},{r}\n" for s, v, r in first + second), encoding="utf-8")
    return diagnose(load_run(file))


@pytest.mark.parametrize(("change", "leaf"), [(1.0, "resume-jump"), (-0.4, "resume-gain"), (0.0, "resume-ok")])
def test_a_resume_is_judged_at_its_seam(tmp_path: Path, change: float, leaf: str) -> None:
    """A loss that jumps, that gains, and that goes on."""
    found = resumed(tmp_path, change)
    ids = [finding.leaf.id for finding in found.findings]
    assert (leaf in ids) is (leaf != "resume-ok")
    assert not any(id_.startswith("spike") for id_ in ids)


def test_a_rate_that_is_not_restored_is_told(tmp_path: Path) -> None:
    """The jump comes with what else changed at the seam."""
    found = resumed(tmp_path, 1.0, lr=3e-3)
    texts = [item.text for finding in found.reached for item in finding.evidence if finding.leaf.id == "resume-jump"]
    assert any("lr goes from 0.001 to 0.003" in text for text in texts)
