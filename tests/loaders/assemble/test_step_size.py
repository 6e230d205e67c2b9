"""Steps that count samples or tokens are told, and windows and plans are counted as they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree import diagnose, load_run
from tests.conftest import FIXTURES
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run


def counted(folder: Path, fixture: str, size: int, **config: object) -> Run:
    """A fixture whose steps count so many samples each."""
    source = FIXTURES / "phase19" / fixture
    manifest = json.loads((source / "manifest.json").read_text(encoding="utf-8"))
    names, *rows = (source / manifest["metrics_file"]).read_text(encoding="utf-8").splitlines()
    at = names.split(",").index("step")
    cells = [row.split(",") for row in rows]
    lines = [",".join([*row[:at], str(int(row[at]) * size), *row[at + 1 :]]) for row in cells]
    write(folder, "\n".join([names, *lines]) + "\n", "metrics.csv")
    manifest |= {"metrics_file": "metrics.csv", **config}
    return load_run(write(folder, json.dumps(manifest), "manifest.json"))


@pytest.mark.parametrize("fixture", ["spike-persistent", "spike-duplicate-batch", "healthy", "nan-forward"])
@pytest.mark.parametrize("size", [64, 1000])
def test_the_unit_of_the_steps_changes_nothing(tmp_path: Path, fixture: str, size: int) -> None:
    """A run that counts samples is told what it is told when it counts optimizer steps, at its own steps."""
    plain, run = load_run(FIXTURES / "phase19" / fixture), counted(tmp_path, fixture, size)
    assert run.step_size == size
    assert any("count samples or tokens" in note for note in run.notes)
    here, there = diagnose(plain), diagnose(run)
    assert [finding.leaf.id for finding in there.findings] == [finding.leaf.id for finding in here.findings]
    assert [finding.onset_step for finding in there.findings] == [
        finding.onset_step and finding.onset_step * size for finding in here.findings
    ]
