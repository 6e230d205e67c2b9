"""What a watch reports, a line of JSON an event, for machines.

`{"schema": 1, "event": "finding", ...}` for each event that is opened, worse or renamed, and `over` for one that is
withdrawn or closed, as `--exec` gets them too; `note` for what is out of the ordinary with the files; `end` at the end,
with the verdict of each run. Keys are only added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import worst
from stabtree.report.contract import SCHEMA, FindingPart, JsonPart, Verdict, Version
from stabtree.report.json import finding_dict, written

FINDING, OVER = "finding", "over"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stabtree.judging.outcome import Outcome
    from stabtree.tools.live.news import News


def finding_event(news: News, time: datetime) -> str:
    """Return a change when it is reported; `finding` holds what `findings` of --json hold."""
    run = news.diagnosis.run
    return _event(
        FINDING if news.change.is_finding else OVER,
        time,
        run=news.run,
        last_step=run.last_step,
        rows=news.rows,
        first_rows=news.first_rows,
        again=news.again,
        change=str(news.change),
        incident=news.incident,
        before=news.before or None,
        verdict=str(news.diagnosis.verdict),
        finding=finding_dict(news.finding, run),
    )


def note_event(text: str, time: datetime) -> str:
    """Return what is out of the ordinary with the files."""
    return _event("note", time, note=text)


def end_event(outcomes: Sequence[Outcome], why: str, code: int, time: datetime) -> str:
    """Return the end of a watch, and the last verdict of each run: what `diagnose` says of the log as it is then."""
    verdict = None
    if outcomes:
        verdict = worst(outcomes)
    runs = [{"run": item.name, "verdict": item.verdict, "error": _problem(item)} for item in outcomes]
    return _event("end", time, why=why, verdict=verdict, exit_code=code, runs=runs)


def _problem(outcome: Outcome) -> str | None:
    if isinstance(outcome.found, StabtreeError):
        return outcome.found.problem
    return None


def _event(name: str, time: datetime, **values: object) -> str:
    return written({"schema": SCHEMA, "event": name, "time": time.isoformat(timespec="seconds"), **values}, indent=None)


class WatchEvent(JsonPart):
    """A line of a watch."""

    schema: Version
    event: Annotated[str, "What happened."]
    time: Annotated[str, "When, by the clock of the machine that watches, as of ISO 8601."]


class IncidentEvent(WatchEvent):
    """What happened to an incident."""

    run: Annotated[str, "The run's name."]
    last_step: Annotated[int | None, "The last step of its log then; null where it holds none."]
    rows: Annotated[int, "How many rows its log held, of all runs in that file."]
    first_rows: Annotated[int, "How many it held when it was first found."]
    again: Annotated[bool, "Whether it was reported before, and now goes by another leaf or has begun anew."]
    change: Annotated[Literal["opened", "worse", "renamed", "withdrawn", "closed"], "What happened to the incident."]
    incident: Annotated[int, "Its number within the watch: all its changes have the same."]
    before: Annotated[str | None, "The leaf that it was last reported as; null where it is new."]
    verdict: Annotated[Verdict, "The verdict of the run then."]
    finding: Annotated[FindingPart, "What was found, as in `findings`."]


class FindingEvent(IncidentEvent):
    """An incident that is opened, worse or renamed."""

    event: Annotated[Literal["finding"], "What happened."]


class OverEvent(IncidentEvent):
    """An incident that is withdrawn or closed."""

    event: Annotated[Literal["over"], "What happened."]


class NoteEvent(WatchEvent):
    """Something with the files."""

    event: Annotated[Literal["note"], "What happened."]
    note: Annotated[str, "What it is."]


class EndedRun(JsonPart):
    """A run at the end of a watch."""

    run: Annotated[str, "The run's name."]
    verdict: Annotated[Verdict | Literal["unread"], "Its last verdict."]
    error: Annotated[str | None, "Why it can't be read; null where it can."]


class EndEvent(WatchEvent):
    """The end of a watch."""

    event: Annotated[Literal["end"], "What happened."]
    why: Annotated[str, "Why the watch ended."]
    verdict: Annotated[Verdict | Literal["unread"] | None, "The worst verdict of all; null where nothing was judged."]
    exit_code: Annotated[int, "The exit code."]
    runs: Annotated[list[EndedRun], "The runs."]


def event_schemas() -> tuple[type[WatchEvent], ...]:
    """Return what each of these lines holds."""
    return FindingEvent, OverEvent, NoteEvent, EndEvent
