"""What a watch reports, a line of JSON an event, for machines.

`{"schema": 1, "event": "finding", ...}` for each event that is opened, worse or renamed, and `over` for one that is
withdrawn or closed, as `--exec` gets them too; `note` for what is out of the ordinary with the files; `end` at the end,
with the verdict of each run. Keys are only added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import ORDER, UNREAD, worst
from stabtree.report.json.machine import SCHEMA, finding_dict
from stabtree.report.json.shapes import Schema, count, flag, many, maybe, of, record, text, word
from stabtree.report.json.values import written
from stabtree.tools.live.event import EventChange

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


def event_schemas() -> dict[str, Schema]:
    """Return what each of these lines holds, by the name of its definition."""
    verdicts = [*map(str, ORDER)]
    judged = [verdict for verdict in verdicts if verdict != UNREAD]
    finding = {
        "run": text("The run's name."),
        "last_step": maybe(count("The last step of its log then; null where it holds none.")),
        "rows": count("How many rows its log held, of all runs in that file."),
        "first_rows": count("How many it held when it was first found."),
        "again": flag("Whether it was reported before, and now goes by another leaf or has begun anew."),
        "change": word("What happened to the incident.", [*map(str, EventChange)]),
        "incident": count("Its number within the watch: all its changes have the same."),
        "before": maybe(text("The leaf that it was last reported as; null where it is new.")),
        "verdict": word("The verdict of the run then.", judged),
        "finding": of("finding", "What was found, as in `findings`."),
    }
    end = {
        "run": text("The run's name."),
        "verdict": word("Its last verdict.", verdicts),
        "error": maybe(text("Why it can't be read; null where it can.")),
    }
    ending = {
        "why": text("Why the watch ended."),
        "verdict": word("The worst verdict of all; null where nothing was judged.", [*verdicts, None]),
        "exit_code": count("The exit code."),
        "runs": many("The runs.", record("A run.", end)),
    }
    return {
        "finding_event": _event_schema("An incident that is opened, worse or renamed.", FINDING, finding),
        "over_event": _event_schema("An incident that is withdrawn or closed.", OVER, finding),
        "note_event": _event_schema("Something with the files.", "note", {"note": text("What it is.")}),
        "end_event": _event_schema("The end of a watch.", "end", ending),
    }


def _event_schema(about: str, name: str, keys: dict[str, Schema]) -> Schema:
    head: dict[str, Schema] = {
        "schema": {"description": "The number of this contract.", "const": SCHEMA},
        "event": {"description": "What happened.", "const": name},
        "time": text("When, by the clock of the machine that watches, as of ISO 8601."),
    }
    return record(about, head | keys)
