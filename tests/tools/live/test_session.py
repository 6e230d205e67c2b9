"""When a growing log is judged, and what is found in the configuration that it holds."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.report.outputs import DEFAULT_OPTIONS, RUN, output
from stabtree.tools.live.events import Announcer
from stabtree.tools.live.session import GROWTH, LOOKS, MAX_READS, LogJudge, Signs, Watching
from tests.tools.live.growing import TestClock, broken, falling, lines, watching

if TYPE_CHECKING:
    from pathlib import Path

RATE = "rate-beyond-adam"


@pytest.mark.parametrize(
    ("metric", "value"),
    [("loss", math.nan), ("loss", 0.0), ("aux", math.inf), ("grad_norm", 0.0), ("loss_scale", 0.5)],
)
def test_a_sign_calls_for_a_look_at_it_and_at_what_follows(metric: str, value: float) -> None:
    """NaN, inf, an exact zero and a scale below 1 call for some rows, then no more."""
    signs = Signs()
    calm: dict[str, object] = {"loss": 2.0, "grad_norm": 1.0, "loss_scale": 1.0, "phase": "a"}
    assert not any(signs.in_row(calm) for _ in range(50))
    assert [signs.in_row({**calm, metric: value}) for _ in range(20)] == [True] * LOOKS + [False] * (20 - LOOKS)


@pytest.mark.parametrize(("sign", "times"), [(False, 1.1 / GROWTH), (True, MAX_READS + 1 / GROWTH)])
def test_all_judgements_together_read_a_log_some_times(sign: bool, times: float) -> None:
    """However long it grows, and where every row is a sign."""
    read: list[int] = []
    watch = Watching(lambda: read.append(size) or [], Announcer(), clock=lambda: 0.0)  # type: ignore[func-returns-value]
    for size in range(1, 20_000):
        watch.grown(size, sign=sign)
    assert 0 < sum(read) <= times * size
    assert np.diff(read).max() <= GROWTH * size + 2


def test_inside_a_loop_judging_takes_a_small_share_of_the_time() -> None:
    """A step that takes 10 ms is judged at most once a second, and 1% of the time after the first seconds."""
    clock, judged = TestClock(), []

    def judge() -> list[Any]:
        judged.append(clock.now)
        clock.now += 0.5
        return []

    watch = Watching(judge, Announcer(), in_loop=True, clock=clock)
    for size in range(1, 60_000):
        clock.now += 0.01
        watch.grown(100 * size)
    assert np.diff(judged).min() >= 1.0
    assert 4 <= len(judged) <= (2 + 0.01 * clock.now) / 0.5 + 2


def test_nan_is_reported_once_and_at_once(tmp_path: Path) -> None:
    """A loss that turns NaN for good is reported in its first row, and never again."""
    path, rows = tmp_path / "a.csv", lines("csv", broken(105, 90))
    watch, found = watching(path, lambda: 0.0), []
    for end in range(2, len(rows) + 1):
        path.write_text("".join(rows[:end]), encoding="utf-8")
        news = watch.grown(path.stat().st_size, sign="nan" in rows[end - 1])
        found += [(item.finding.leaf.id, item.rows) for item in news]
    assert [rows for _, rows in found][:1] == [91]
    assert len({leaf for leaf, _ in found}) == len(found)


def write(path: Path, rate: float, rows: int) -> Path:
    """Write a healthy log after the configuration that its trainer wrote."""
    config: dict[str, Any] = {"optimizer": "AdamW", "lr": rate, "max_steps": 400, "weight_decay": 0.1}
    path.write_text(json.dumps({"config": config}) + "\n" + "".join(lines("jsonl", falling(rows))), encoding="utf-8")
    return path


def judged(path: Path, **how: Any) -> list[Diagnosis]:
    """Judge a log as a watch does."""
    judges = LogJudge(Judging(**how))
    return [found for item in load_runs(path) if isinstance(found := judges.outcome(item).found, Diagnosis)]


def test_a_rate_that_check_warns_of_is_a_finding_from_the_first_rows(tmp_path: Path) -> None:
    """It is an event at the first judgement, and stays in the verdict although the log is healthy."""
    path, judges, announcer = tmp_path / "run.jsonl", LogJudge(Judging()), Announcer()
    reported, outcomes = [], []
    for rows in (2, 3, 100, 400):
        outcomes = [judges.outcome(item) for item in load_runs(write(path, 0.06, rows))]
        reported += [(item.finding.leaf.id, rows) for item in announcer.judged(outcomes)]
        assert outcomes[0].verdict == "warning"
    assert reported == [(RATE, 2)]
    found = outcomes[0].found
    assert isinstance(found, Diagnosis)
    for name in ("html", "screen", "json", "markdown"):
        assert RATE in str(output(RUN, name)(found, DEFAULT_OPTIONS))


@pytest.mark.parametrize(("rate", "ignored"), [(3e-4, ()), (0.06, (RATE, "plateau"))])
def test_a_usual_configuration_adds_nothing(tmp_path: Path, rate: float, ignored: tuple[str, ...]) -> None:
    """Nor one whose rule is ignored, beside a rule about logs."""
    (found,) = judged(write(tmp_path / "run.jsonl", rate, 400), ignore=ignored)
    assert (found.findings, found.verdict) == ((), "ok")
