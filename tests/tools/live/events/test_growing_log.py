"""Each kind of change, of a real log that grows by a row at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.answer import Evidence
from stabtree.diagnosis.result import Diagnosis
from stabtree.tools.live.event import RunEvent, assign
from stabtree.tools.live.news import HOLD_ROWS, News
from tests.conftest import make_run
from tests.tools.live.events.findings import found
from tests.tools.live.growing import TestClock, falling, lines, watching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stabtree.diagnosis.result import Incident


def grown(path: Path, loss: Sequence[float], *, rewritten: Sequence[float] = ()) -> list[News]:
    """What is reported while a log grows row by row, and at its end; then is written anew, and grows again."""
    clock = TestClock()
    watch, news = watching(path, clock), list[News]()
    for course in (loss, rewritten):
        whole = lines("csv", course)
        for end in range(2, len(whole) + 1):
            path.write_text("".join(whole[:end]), encoding="utf-8")
            news += watch.grown([{"loss": course[end - 2]}], path.stat().st_size)
    news += watch.ended(path.stat().st_size)
    return news


def said(news: Sequence[News]) -> list[tuple[int, str, str]]:
    """The number of each event, its change, and its leaf."""
    return [(item.incident, str(item.change), item.finding.leaf.id) for item in news]


def test_a_level_that_stays_is_one_event_that_becomes_worse(tmp_path: Path) -> None:
    """A jump of the loss that heals but slowly is first a spike, then a lasting one."""
    rows = np.arange(400)
    loss = falling(400) + np.where(rows >= 250, 1.8 * np.exp(-(rows - 250) / 90), 0)
    news = grown(tmp_path / "run.csv", loss.tolist())
    assert [(number, change) for number, change, _ in said(news)] == [(1, "opened"), (1, "worse")]
    assert news[0].rows <= 251 + HOLD_ROWS + 10
    assert news[-1].before == news[0].finding.leaf.id


def test_a_nan_that_the_run_survives_is_reported_at_once_and_renamed(tmp_path: Path) -> None:
    """It is critical in its first row; when the loss has come back it goes by a milder leaf, in the same event."""
    loss = falling(300).tolist()
    loss[200] = math.nan
    news = grown(tmp_path / "run.csv", loss)
    assert (news[0].rows, str(news[0].finding.leaf.severity)) == (201, "critical")
    assert {item.incident for item in news} == {1}
    assert str(news[-1].change) in ("renamed", "closed")
    assert str(news[-1].finding.leaf.severity) != "critical"


def test_what_a_new_log_no_longer_shows_is_withdrawn(tmp_path: Path) -> None:
    """A run that overwrites the log of a failed one takes its event back."""
    failed = [*falling(60).tolist(), *[math.nan] * 5]
    news = grown(tmp_path / "run.csv", failed, rewritten=falling(120, seed=1).tolist())
    assert said(news)[-1][:2] == (1, "withdrawn")
    assert [change for _, change, _ in said(news)].count("opened") == 1


def test_a_fault_that_a_rare_series_shows_too_is_one_event() -> None:
    """Weight norms of every hundredth row begin as late as the loss, though few rows of theirs are before it."""
    rows = np.arange(400)
    run = make_run({"loss": falling(400)})
    rare = make_run({"weight_norm/a": np.linspace(1, 2, 4)}, steps=rows[::100])
    both = replace(run, series={**run.series, **rare.series})
    judged = found(400, "spike-open", "weight-decay-low", onset=250)[0].found
    assert isinstance(judged, Diagnosis)
    spike, norms = judged.findings
    norms = replace(norms, evidence=(Evidence("the norm of a doubles", "weight_norm/a"),))
    events: list[RunEvent] = []

    def new(finding: Incident) -> RunEvent:
        event = RunEvent(len(events) + 1, "run", 400, 0.0)
        event.takes(finding, both)
        events.append(event)
        return event

    assert list(assign(events, [spike, norms], both, new)) == [1]


def test_what_was_never_reported_joins_what_began_in_the_same_rows() -> None:
    """A slow rise that was first dated long before a spike is part of it once its onset has moved there."""
    judged = found(400, "spike-open", "slow-rise", onset=250)[0].found
    assert isinstance(judged, Diagnosis)
    spike, rise = judged.findings
    reported, pending = RunEvent(1, "run", 300, 0.0), RunEvent(2, "run", 300, 0.0)
    reported.takes(spike, judged.run)
    reported.reported, reported.reported_step = spike, 399
    pending.takes(replace(rise, onset_step=100), judged.run)
    assert list(assign([reported, pending], [rise], judged.run, lambda _: pending)) == [1]
    pending.reported, pending.reported_step = rise, 399
    assert list(assign([reported, pending], [rise], judged.run, lambda _: pending)) == [2]
