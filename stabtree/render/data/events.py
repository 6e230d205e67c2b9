"""What a watch tells, a line of JSON an event, for machines.

`{"schema": 1, "event": "finding", ...}` for each finding when it is told, as `--exec` gets it too; `note` for what is
out of the ordinary with the files; `end` at the end, with the verdict of each run. Keys are only added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import worst
from stabtree.render.data.machine import SCHEMA, finding_dict, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stabtree.judging.outcome import Outcome
    from stabtree.live.news import News


def finding_event(news: News, time: datetime) -> str:
    """A finding when it is told; `finding` holds what `findings` of --json hold."""
    run = news.diagnosis.run
    return _event(
        "finding",
        time,
        run=news.run,
        last_step=run.last_step,
        rows=news.rows,
        first_rows=news.first_rows,
        again=news.again,
        verdict=str(news.diagnosis.verdict),
        finding=finding_dict(news.finding, run),
    )


def note_event(text: str, time: datetime) -> str:
    """What is out of the ordinary with the files."""
    return _event("note", time, note=text)


def end_event(outcomes: Sequence[Outcome], why: str, code: int, time: datetime) -> str:
    """The end of a watch, and the last verdict of each run: what `diagnose` says of the log as it is then."""
    runs = [
        {
            "run": item.name,
            "verdict": item.verdict,
            "error": item.found.problem if isinstance(item.found, StabtreeError) else None,
        }
        for item in outcomes
    ]
    verdict = worst(outcomes) if outcomes else None
    return _event("end", time, why=why, verdict=verdict, exit_code=code, runs=runs)


def _event(name: str, time: datetime, **told: object) -> str:
    return written({"schema": SCHEMA, "event": name, "time": time.isoformat(timespec="seconds"), **told}, indent=None)
