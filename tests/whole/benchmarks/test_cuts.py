"""A log that is cut at any byte gets the verdict of its complete lines; `python -m benchmarks.cuts` cuts many more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.cuts import cuts
from tests.conftest import FIXTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("phase19/nan-forward", "phase19/spike-duplicate-batch", "convergence/no-gradient", "healthy/noisy")
REAL = ROOT.parent / "shared" / "logs"
LOGS = sorted(path for path in REAL.glob("*/*") if path.is_file() and 2000 < path.stat().st_size < 20_000)


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_log_is_told_what_its_complete_rows_are(name: str, tmp_path: Path) -> None:
    """Wherever a fixture's metrics are cut, which is seldom between two lines."""
    found = list(cuts(FIXTURES / name / "metrics.csv", 9, tmp_path))
    assert {cut.outcome for cut in found} <= {"same", "whole"}, found


@pytest.mark.skipif(not LOGS, reason="needs the real logs")
@pytest.mark.parametrize("log", LOGS[:: max(1, len(LOGS) // 8)], ids=lambda path: path.name)
def test_no_cut_of_a_real_log_crashes(log: Path, tmp_path: Path) -> None:
    """Whatever format it is of."""
    found = list(cuts(log, 5, tmp_path))
    assert not [cut for cut in found if cut.outcome == "crashed"]
