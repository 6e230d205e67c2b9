"""What `python -m benchmarks.finetunes rate` counts, on two made logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.finetunes.plan import FAULTS, pairs
from benchmarks.finetunes.rate import Rated, rated, report
from benchmarks.finetunes.truth import Made, healthy, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

INDEX = """file,group,framework,healthy,fault,fault_step,visible,note
falls.csv,words,plain,yes,,,,
broken.csv,words,plain,no,half_overflow,40,yes,
"""


def test_each_log_is_judged_and_counted(tmp_path: Path) -> None:
    """A log that falls is no alarm; one that becomes NaN is found."""
    falling = [3 - step / 60 for step in range(60)]
    logs = {"falls.csv": falling, "broken.csv": [*falling[:40], *[float("nan")] * 20]}
    for name, losses in logs.items():
        rows = "".join(f"{step},{loss}\n" for step, loss in enumerate(losses))
        (tmp_path / name).write_text(f"step,loss\n{rows}", encoding="utf-8")
    (tmp_path / "INDEX.csv").write_text(INDEX, encoding="utf-8")
    healthy, broken = rated(tmp_path)
    assert (healthy.alarmed, broken.alarmed) == (False, True)
    text = report([healthy, broken])
    assert "0/1" in text
    assert "1/1" in text
    assert "FALSE" not in text
    assert "MISSED" not in text


def test_wrong_answers_are_listed() -> None:
    """An alarm on a healthy run and a visible fault without one are; a fault that no log shows is not."""
    runs = [
        Rated("a.csv", "plain", healthy=True, fault="", visible="", note="", verdict="warning", alarms=("flat@0",)),
        Rated("b.csv", "plain", healthy=False, fault="frozen", visible="yes", note="", verdict="ok", alarms=()),
        Rated("c.csv", "plain", healthy=False, fault="frozen", visible="no", note="", verdict="ok", alarms=()),
    ]
    lines = report(runs).splitlines()
    assert [line.split()[:3] for line in lines if line.startswith(("FALSE", "MISSED"))] == [
        ["FALSE", "warning", "a.csv"],
        ["MISSED", "ok", "b.csv"],
    ]


def test_each_healthy_run_has_a_broken_twin() -> None:
    """A hundred of each, and every fault occurs."""
    planned = list(pairs())
    assert len(planned) == 100
    assert not any(healthy.fault for healthy, _ in planned)
    assert {twin.fault for _, twin in planned} >= {fault for faults in FAULTS.values() for fault in faults}


def curves(losses: Sequence[float], evals: Sequence[float]) -> Made:
    """Return a run with these losses, evaluated as truly as can be."""
    return Made(Path("log"), list(enumerate(losses)), list(enumerate(evals)), list(enumerate(evals)))


def test_what_the_log_of_a_broken_run_shows() -> None:
    """Losses that are not finite, stay where they were, or rise on held-out samples are signs; the twin shows none."""
    falling = [3 - 0.002 * row for row in range(60)]
    twin = curves(falling, [3.0, 2.9])
    assert healthy(twin)
    assert visible(curves([*falling[:30], *[float("nan")] * 30], [3.0, 2.9]), twin)[0] == "yes"
    assert visible(curves([3 + 0.001 * (row % 2) for row in range(60)], [3.0, 2.999]), twin)[0] == "yes"
    assert visible(curves(falling, [3.0, 2.9, 3.1]), twin)[0] == "yes"
    assert visible(twin, twin) == ("no", "")
