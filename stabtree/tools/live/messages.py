"""What a watch prints: a finding as text, as one line, or as JSON; the status line; the last verdicts."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert, to_ascii
from stabtree.judging.verdict import worst
from stabtree.report.advice import do_now, restart_line
from stabtree.report.contract import SCHEMA, FindingPart, JsonPart, Verdict, Version
from stabtree.report.json import finding_dict, written
from stabtree.report.page import BADGES, new_page
from stabtree.report.screen import LONGEST_LINE, one_line
from stabtree.report.words import step_prefix
from stabtree.tools.live.events import EventChange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from stabtree.diagnosis.result import Incident
    from stabtree.judging.verdict import Outcome
    from stabtree.report.outputs import RenderOptions
    from stabtree.report.page import Line
    from stabtree.tools.live.events import News
    from stabtree.tools.live.watch import Round

OVER_WORDS = {EventChange.WITHDRAWN: "withdrawn: the log no longer shows it", EventChange.CLOSED: "closed: it is over"}
INDENT = 2


def finding_text(news: News, time: datetime, look: RenderOptions, *, named: bool = False) -> str:
    """Return a finding as it is reported: when, what, from which step on, what to do first, and where to restart.

    Args:
        news: what is reported.
        time: when.
        look: how it is to look.
        named: whether the run is named, since there are several.
    """
    finding, run = news.finding, news.diagnosis.run
    severity = finding.leaf.severity
    page = new_page(look)
    head = [(f"{time:%Y-%m-%d %H:%M:%S}", "dim")]
    if run.last_step is not None:
        head.append((f"  {run.unit} {run.last_step:,}", ""))
    head += [("  ", ""), (f" {BADGES[severity].word} ", severity)]
    if words := _change_words(news):
        head.append((f"  {words}", "dim"))
    page.line(*head)
    if named:
        page.line((clean(news.run), "dim"), indent=INDENT)
    title = f"{step_prefix(finding)}{finding.leaf.title}"
    page.line((title, "heading"), ("  ", ""), (finding.leaf.id, "id"), indent=INDENT)
    if news.change.is_finding:
        for label, pieces in zip(("First", "Then"), _what_to_do(finding), strict=False):
            page.item((label, "dim"), pieces, indent=INDENT, head_width=7)
    return page.text()


def _what_to_do(finding: Incident) -> Iterator[Line]:
    """Yield what to do first, and where to restart."""
    back: Line = []
    if finding.restart is not None:
        back = restart_line(finding.restart)
    back_text = "".join(piece for piece, _ in back)
    for action in [action for action in do_now(finding) if action.text != back_text][:1]:
        yield [(action.text, "")]
    if back:
        yield back


def _change_words(news: News) -> str:
    """Return what happened to an event that was reported before; nothing for a new one."""
    if news.change is EventChange.OPENED:
        return "again" if news.again else ""
    return OVER_WORDS.get(news.change, f"{news.change}, was {news.before}")


def finding_line(news: News, time: datetime, look: RenderOptions) -> str:
    """Return the same in one line."""
    finding = news.finding
    what = f"{step_prefix(finding)}{finding.leaf.title} [{finding.leaf.id}]"
    if words := _change_words(news):
        what = f"{what}, {words}"
    badge = BADGES[finding.leaf.severity].word
    return _as_line(f"{time:%Y-%m-%d %H:%M:%S}  {badge}  {news.run}: {what}", look)


def status_line(round_: Round, name: str, look: RenderOptions) -> str:
    """Return how the runs go, in one line that fits.

    Args:
        round_: how they go.
        name: what to call the log while it is not there.
        look: how wide the line may be.
    """
    parts = [f"waiting for {clean(name)}", duration(round_.quiet_seconds)]
    if round_.there:
        counts = Counter(BADGES[outcome.verdict].word for outcome in round_.outcomes)
        runs = [item.found.run for item in round_.outcomes if not isinstance(item.found, StabtreeError)]
        parts = [", ".join(f"{count} {word}" for word, count in counts.items()), f"last row {parts[1]} ago"]
        if len(round_.outcomes) == 1:
            parts[:1] = [*counts, *(f"{run.unit} {run.last_step:,}" for run in runs if run.last_step is not None)]
    return _as_line("  ".join(parts), look)[: look.width]


def duration(seconds: float) -> str:
    """Return a time in its two largest units, as 50s, 12m 5s, 3h 20m."""
    whole, parts = max(0, math.floor(seconds)), list[str]()
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if whole >= length or parts or unit == "s":
            parts.append(f"{whole // length}{unit}")
            whole %= length
    return " ".join(parts[:2])


def closing(outcomes: Sequence[Outcome], why: str, look: RenderOptions) -> str:
    """Return the last lines: the verdict of each run as its log is then, a line each.

    Where it says why the watch ended, that comes last, and all lines are wrapped as findings are.
    """
    lines = []
    for outcome in outcomes:
        if isinstance(outcome.found, StabtreeError):
            lines.append(_as_line(f"{BADGES[outcome.verdict].word}  {outcome.name}: {outcome.found.problem}", look))
        else:
            lines.append(one_line(outcome.found, outcome.name, look))
    if not why:
        return "\n".join(lines)
    page = new_page(look)
    for line in lines:
        page.line((line, ""), hanging=INDENT)
    page.line((f"{why} · exit {look.exit_code}", "dim"))
    return page.text().rstrip("\n")


def _as_line(words: str, look: RenderOptions) -> str:
    """Return a text as one line that a terminal can show."""
    line = clean(words, LONGEST_LINE)
    return inert(to_ascii(line) if look.ascii else line)


def finding_event(news: News, time: datetime) -> str:
    """Return a change as a line of JSON; `finding` holds what `findings` of --json hold."""
    run = news.diagnosis.run
    name = "finding" if news.change.is_finding else "over"
    return _event(
        "update" if news.is_update else name,
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


def note_event(note: str, time: datetime) -> str:
    """Return a note on the files as a line of JSON."""
    return _event("note", time, note=note)


def end_event(outcomes: Sequence[Outcome], why: str, code: int, time: datetime) -> str:
    """Return the end of a watch as a line of JSON, with the last verdict of each run."""
    runs = [
        {"run": item.name, "verdict": item.verdict, "error": getattr(item.found, "problem", None)} for item in outcomes
    ]
    verdict = worst(outcomes) if outcomes else None
    return _event("end", time, why=why, verdict=verdict, exit_code=code, runs=runs)


def _event(name: str, time: datetime, **values: object) -> str:
    return written({"schema": SCHEMA, "event": name, "time": time.isoformat(timespec="seconds"), **values}, indent=None)


class WatchEvent(JsonPart):
    """A line of a watch."""

    schema: Version
    event: Annotated[str, "What happened."]
    time: Annotated[str, "When, by the clock of the machine that watches, as of ISO 8601."]


class FindingEvent(WatchEvent):
    """What happened to an incident: it is opened, goes by another leaf (`update`), or is over."""

    event: Annotated[Literal["finding", "update", "over"], "What happened."]
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
    return FindingEvent, NoteEvent, EndEvent
