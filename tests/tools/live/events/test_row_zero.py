"""The configuration of a watched run is judged when it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.report.options import DEFAULT_OPTIONS
from stabtree.report.outputs import RUN, output
from stabtree.tools.live.news import Announcer
from stabtree.tools.live.row_zero import RowZero
from tests.tools.live.growing import falling, lines

if TYPE_CHECKING:
    from pathlib import Path

RATE = "rate-beyond-adam"


def write(path: Path, rate: float, rows: int) -> Path:
    """Write a healthy log behind the configuration that its trainer wrote."""
    config: dict[str, Any] = {"optimizer": "AdamW", "lr": rate, "max_steps": 400, "weight_decay": 0.1}
    path.write_text(json.dumps({"config": config}) + "\n" + "".join(lines("jsonl", falling(rows))), encoding="utf-8")
    return path


def judged(path: Path, **how: Any) -> list[Diagnosis]:
    """Judge a log as a watch does."""
    judges = RowZero(Judging(**how))
    return [one for item in load_runs(path) if isinstance(one := judges.outcome(item).found, Diagnosis)]


def test_a_rate_that_check_warns_of_is_a_finding_from_the_first_rows(tmp_path: Path) -> None:
    """It is an event at the first judgement, and stays in the verdict although the log is healthy."""
    path, judges, announcer = tmp_path / "run.jsonl", RowZero(Judging()), Announcer()
    told = []
    for rows in (2, 3, 100, 400):
        outcomes = [judges.outcome(item) for item in load_runs(write(path, 0.06, rows))]
        told += [(item.finding.leaf.id, rows) for item in announcer.judged(outcomes)]
        assert outcomes[0].verdict == "warning"
    assert told == [(RATE, 2)]


def test_a_usual_configuration_adds_nothing(tmp_path: Path) -> None:
    """What `check` says nothing of is judged by its log alone."""
    (found,) = judged(write(tmp_path / "run.jsonl", 3e-4, 400))
    assert not found.findings
    assert found.verdict == "ok"


def test_a_default_that_the_trainer_logs_is_nothing_that_was_chosen(tmp_path: Path) -> None:
    """Keras clips nothing unless it is asked to; where one's own loop says so, somebody chose it."""
    path = tmp_path / "run.jsonl"
    for trainer, found in (({"framework": "keras"}, []), ({}, ["no-clipping"])):
        settings = {"optimizer": "adam", "lr": 1e-3, "dtype": "fp32", "grad_clip": 0.0, **trainer}
        rows = write(path, 1e-3, 400).read_text(encoding="utf-8").splitlines()[1:]
        path.write_text("\n".join([json.dumps({"config": settings}), *rows]) + "\n", encoding="utf-8")
        assert [item.leaf.id for item in judged(path)[0].findings if item.is_alarm] == found


def test_a_rule_of_the_configuration_can_be_ignored(tmp_path: Path) -> None:
    """`--ignore` takes the names of both: of what a log shows, and of what a configuration says."""
    (found,) = judged(write(tmp_path / "run.jsonl", 0.06, 400), ignore=(RATE, "plateau"))
    assert not found.findings


def test_every_output_shows_it(tmp_path: Path) -> None:
    """The page, the screen and the JSON of a run whose only finding is of its configuration."""
    (found,) = judged(write(tmp_path / "run.jsonl", 0.06, 400))
    for name in ("html", "screen", "json", "markdown"):
        assert RATE in str(output(RUN, name)(found, DEFAULT_OPTIONS))
