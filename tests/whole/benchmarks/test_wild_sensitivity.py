"""The table of what rests on each threshold counts the logs of an index."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.sensitivity import Knob
from benchmarks.wild_sensitivity import Logs, count, report
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SIGMA = Knob("spike", "sigma", 3.0)
LABELS = {"healthy": "healthy", "spike-unexplained": "spike", "gone": "spike", "unclear": "unclear"}


def test_a_moved_threshold_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spike is found as shipped and missed at a thousand sigmas; what can't be read or told counts nowhere."""
    for name in LABELS:
        if name in ("healthy", "spike-unexplained"):
            shutil.copytree(FIXTURES / "phase19" / name, tmp_path / name)
    rows = [f"{name},owner/{name},{label}" for name, label in LABELS.items()]
    (tmp_path / "INDEX.csv").write_text("\n".join(["file,repo,label", *rows, ""]), encoding="utf-8")
    logs = Logs(tmp_path, None)
    shipped, moved = count(logs, None), count(logs, (SIGMA, 1000.0))
    assert shipped.verdicts.keys() == {"healthy", "spike-unexplained"}
    assert (shipped.false_alarms, shipped.missed) == (0, 0)
    assert (moved.false_alarms, moved.missed) == (0, 1)
    report(shipped, {(SIGMA, 1000.0): moved, (SIGMA, 1.0): shipped})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert printed[-1].split() == ["spike.sigma", "3", "1000", "0", "1", "1"]
