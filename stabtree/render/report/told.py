"""A run while it is watched: each finding as it is told, the one line that shows how it goes, and the last line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert, to_ascii
from stabtree.judging.outcome import ORDER
from stabtree.render.fleet.spark import spark
from stabtree.render.page import new_page
from stabtree.render.report.advice import do_now
from stabtree.render.report.build import report
from stabtree.render.report.model import Tick
from stabtree.render.report.restart import restart_line
from stabtree.render.report.words import step_of
from stabtree.render.screen import LONGEST_LINE, one_line
from stabtree.render.sections.healthy import TICK_STYLES, TICKS
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stabtree.judging.outcome import Outcome
    from stabtree.live.news import News
    from stabtree.live.session import Pulse
    from stabtree.render.look import Look
    from stabtree.render.plot import Line

INDENT = 2
ROOMY = 79  # columns
LONGEST_NAME = 24  # of a run in the status line; its end tells it from others
MINUTE, HOUR, DAY = 60, 3600, 86_400


def told(news: News, time: datetime, look: Look, *, named: bool = False) -> str:
    """A finding when it is told: when, what, from which step on, what to do first, and where to restart.

    Args:
        news: what is told.
        time: when.
        look: how it is to look.
        named: whether the run is named, since it is one of several.
    """
    finding, run = news.finding, news.diagnosis.run
    severity = finding.leaf.severity
    page = new_page(look)
    badge = f" {LOOKS[severity].word} "
    place = "" if run.last_step is None else f"  {run.unit} {run.last_step:,}"
    again = "  again" if news.again else ""
    page.line((f"{time:%Y-%m-%d %H:%M:%S}", "dim"), (f"{place}  ", ""), (badge, severity), (again, "dim"))
    if named:
        page.line((clean(news.run), "dim"), indent=INDENT)
    page.line(
        (f"{step_of(finding)}{finding.leaf.title}", "heading"), ("  ", ""), (finding.leaf.id, "id"), indent=INDENT
    )
    back = [] if finding.restart is None else restart_line(finding.restart)
    said = "".join(text for text, _ in back)
    first = [action.text for action in do_now(finding, news.diagnosis.timeline) if action.text != said][:1]
    for head, pieces in (("First", [(text, "") for text in first]), ("Then" if first else "First", back)):
        if pieces:
            page.item((head, "dim"), pieces, indent=INDENT, head_width=7)
    return page.text()


def told_line(news: News, time: datetime, look: Look) -> str:
    """The same in one line."""
    finding = news.finding
    word = LOOKS[finding.leaf.severity].word
    line = f"{time:%Y-%m-%d %H:%M:%S}  {word}  {news.run}: {step_of(finding)}{finding.leaf.title} [{finding.leaf.id}]"
    return inert(to_ascii(clean(line, LONGEST_LINE)) if look.ascii else clean(line, LONGEST_LINE))


def status(pulse: Pulse, name: str, look: Look) -> str:
    """How a run goes, in one line that fits; what matters least is left out first.

    Args:
        pulse: how it goes.
        name: what to call the log while it is not there.
        look: how wide the line may be, and what it may hold.
    """
    page = new_page(look)
    parts = [part for part in _parts(pulse, name, look) if part[1]]
    while len(parts) > 1 and _width([line for _, line in parts]) > look.width:
        parts.remove(max(parts, key=lambda part: part[0]))
    line: Line = []
    for _, part in parts:
        line += [*([("  ", "")] if line else []), *part]
    page.lines([line])
    return page.text().rstrip("\n")


def _parts(pulse: Pulse, name: str, look: Look) -> list[tuple[int, Line]]:
    """The parts of the line in their order, each with its rank: the highest is left out first."""
    quiet = duration(pulse.quiet_seconds)
    if not pulse.there:
        return [(0, [(f"waiting for {clean(name)}", "dim")]), (1, [(quiet, "dim")])]
    finite = pulse.loss is not None and math.isfinite(pulse.loss)
    shown = f"{pulse.loss:.4g}" if finite else "not finite"
    drawn = spark(pulse.losses, ascii=look.ascii) if pulse.losses else []
    step: Line = [] if pulse.step is None else [("step ", "dim"), (f"{pulse.step:,}", "number")]
    loss: Line = [("loss ", "dim"), (shown, "number" if finite else "failed")] if pulse.loss is not None else []
    return [
        *(_of_several if len(pulse.outcomes) > 1 else _of_one)(pulse.outcomes, step, loss, drawn),
        (5, [(f"{pulse.rate:,.{1 if pulse.rate < 100 else 0}f} rows/s", "dim")] if pulse.rate is not None else []),
        (3, [(f"{'last row ' if look.width >= ROOMY else ''}{quiet} ago", "dim")]),
    ]


def _of_one(outcomes: Sequence[Outcome], step: Line, loss: Line, drawn: Line) -> list[tuple[int, Line]]:
    sections: Line = []
    if outcomes and not isinstance(outcomes[0].found, StabtreeError):
        for id_, tick in report(outcomes[0].found).ticks:
            sections += [(f"{' ' if sections else ''}§{id_} ", "dim"), (TICKS[Tick(tick)], TICK_STYLES[Tick(tick)])]
    return [(2, step), (0, loss), (4, drawn), (1, sections)]


def _of_several(outcomes: Sequence[Outcome], step: Line, loss: Line, drawn: Line) -> list[tuple[int, Line]]:
    """How many are how; step and loss are those of the first that can be read, so they stand behind its name only."""
    counts = {badge: sum(item.verdict == badge for item in outcomes) for badge in map(str, ORDER)}
    words = [f"{count} {LOOKS[badge].word.lower()}" for badge, count in counts.items() if count]
    name = next((item.name for item in outcomes if not isinstance(item.found, StabtreeError)), "")
    name = clean(name, LONGEST_LINE)
    name = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"
    first: Line = [(f"{name}: ", "dim"), *step, *([("  ", "")] if step and loss else []), *loss]
    return [
        (0, [(f"{len(outcomes)} runs: {', '.join(words)}", "")]),
        (2, first if step or loss else []),
        (4, drawn),
    ]


def _width(parts: Sequence[Line]) -> int:
    return sum(len(text) for part in parts for text, _ in part) + 2 * (len(parts) - 1)


def duration(seconds: float) -> str:
    """A time in its two largest units, as 90s, 12m 5s, 3h 20m."""
    whole = max(0, math.floor(seconds))
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m {whole % MINUTE}s"
    if whole < DAY:
        return f"{whole // HOUR}h {whole % HOUR // MINUTE}m"
    return f"{whole // DAY}d {whole % DAY // HOUR}h"


def closing(outcomes: Sequence[Outcome], why: str, look: Look) -> str:
    """The last lines: the verdict of each run as its log is then, a line each.

    Where it is said why the watch ended, that comes behind them, and all are wrapped as findings are.
    """
    lines = [_verdict(item, look) for item in outcomes]
    if not why:
        return "\n".join(lines)
    page = new_page(look)
    for line in lines:
        page.line((line, ""), hanging=INDENT)
    page.line((f"{why} · exit {look.exit_code}", "dim"))
    return page.text().rstrip("\n")


def _verdict(outcome: Outcome, look: Look) -> str:
    if not isinstance(outcome.found, StabtreeError):
        return one_line(outcome.found, outcome.name, look)
    line = clean(f"{LOOKS[outcome.verdict].word}  {outcome.name}: {outcome.found.problem}", LONGEST_LINE)
    return inert(to_ascii(line) if look.ascii else line)
