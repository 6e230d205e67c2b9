"""A run while it is watched: each finding as it is shown, the one line that shows how it goes, and the last line."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert, to_ascii
from stabtree.judging.outcome import ORDER
from stabtree.report.advice import do_now, restart_line
from stabtree.report.model import Report
from stabtree.report.page import new_page
from stabtree.report.screen import LONGEST_LINE, one_line
from stabtree.report.verdicts import BADGES, TICK_SIGNS, TICK_STYLES
from stabtree.report.words import step_prefix
from stabtree.tools.fleet.outputs.spark import spark
from stabtree.tools.live.event import EventChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from stabtree.judging.outcome import Outcome
    from stabtree.report.options import RenderOptions
    from stabtree.report.text import Line
    from stabtree.tools.live.news import News
    from stabtree.tools.live.session import RunStatus

OVER_WORDS = {EventChange.WITHDRAWN: "withdrawn: the log no longer shows it", EventChange.CLOSED: "closed: it is over"}
INDENT = 2
ROOMY = 79  # columns
LONGEST_NAME = 24  # of a run in the status line; its end distinguishes it
MINUTE, HOUR, DAY = 60, 3600, 86_400


def finding_text(news: News, time: datetime, look: RenderOptions, *, named: bool = False) -> str:
    """Return a finding when it is reported: when, what, from which step on, what to do first, and where to restart.

    Args:
        news: what is reported.
        time: when.
        look: how it is to look.
        named: whether the run is named, since it is one of several.
    """
    finding, run = news.finding, news.diagnosis.run
    severity = finding.leaf.severity
    page = new_page(look)
    badge = f" {BADGES[severity].word} "
    head = [(f"{time:%Y-%m-%d %H:%M:%S}", "dim")]
    if run.last_step is not None:
        head.append((f"  {run.unit} {run.last_step:,}", ""))
    head += [("  ", ""), (badge, severity)]
    if said := change_words(news):
        head.append((f"  {said}", "dim"))
    page.line(*head)
    if named:
        page.line((clean(news.run), "dim"), indent=INDENT)
    page.line(
        (f"{step_prefix(finding)}{finding.leaf.title}", "heading"), ("  ", ""), (finding.leaf.id, "id"), indent=INDENT
    )
    if not news.change.is_finding:
        return page.text()
    for word, pieces in zip(("First", "Then"), _steps_to_take(news), strict=False):
        page.item((word, "dim"), pieces, indent=INDENT, head_width=7)
    return page.text()


def change_words(news: News) -> str:
    """Return what happened to an event that was reported before; nothing for one that is new."""
    if news.change is EventChange.OPENED:
        return "again" if news.again else ""
    if news.change in OVER_WORDS:
        return OVER_WORDS[news.change]
    return f"{news.change}, was {news.before}"


def _steps_to_take(news: News) -> Iterator[Line]:
    """Yield what to do first, and where to restart."""
    finding = news.finding
    back: Line = []
    if finding.restart is not None:
        back = restart_line(finding.restart)
    restart = "".join(text for text, _ in back)
    for action in do_now(finding):
        if action.text != restart:
            yield [(action.text, "")]
            break
    if back:
        yield back


def finding_line(news: News, time: datetime, look: RenderOptions) -> str:
    """Return the same in one line."""
    finding = news.finding
    word = BADGES[finding.leaf.severity].word
    what = f"{step_prefix(finding)}{finding.leaf.title} [{finding.leaf.id}]"
    if said := change_words(news):
        what = f"{what}, {said}"
    return _as_line(f"{time:%Y-%m-%d %H:%M:%S}  {word}  {news.run}: {what}", look)


def status(how: RunStatus, name: str, look: RenderOptions) -> str:
    """Return how a run goes, in one line that fits; what matters least is left out first.

    Args:
        how: how it goes.
        name: what to call the log while it is not there.
        look: how wide the line may be, and what it may hold.
    """
    page = new_page(look)
    parts = [part for part in _parts(how, name, look) if part[1]]
    while len(parts) > 1 and _width([line for _, line in parts]) > look.width:
        parts.remove(max(parts, key=lambda part: part[0]))
    page.lines([_spaced(part for _, part in parts)])
    return page.text().rstrip("\n")


def _parts(how: RunStatus, name: str, look: RenderOptions) -> list[tuple[int, Line]]:
    """Return the parts of the line in their order, each with its rank: the highest is left out first."""
    quiet = duration(how.quiet_seconds)
    if not how.there:
        return [(0, [(f"waiting for {clean(name)}", "dim")]), (1, [(quiet, "dim")])]
    drawn: Line = []
    if how.losses:
        drawn = spark(how.losses, ascii=look.ascii)
    if len(how.outcomes) > 1:
        parts = _of_several(how.outcomes, _step(how.step), _loss(how.loss), drawn)
    else:
        parts = _of_one(how.outcomes, _step(how.step), _loss(how.loss), drawn)
    if how.rate is not None:
        digits = int(how.rate < 100)
        parts.append((5, [(f"{how.rate:,.{digits}f} rows/s", "dim")]))
    last_row = f"{quiet} ago"
    if look.width >= ROOMY:
        last_row = f"last row {last_row}"
    return [*parts, (3, [(last_row, "dim")])]


def _step(step: int | None) -> Line:
    if step is None:
        return []
    return [("step ", "dim"), (f"{step:,}", "number")]


def _loss(loss: float | None) -> Line:
    if loss is None:
        return []
    if math.isfinite(loss):
        return [("loss ", "dim"), (f"{loss:.4g}", "number")]
    return [("loss ", "dim"), ("not finite", "failed")]


def _of_one(outcomes: Sequence[Outcome], step: Line, loss: Line, drawn: Line) -> list[tuple[int, Line]]:
    sections: Line = []
    if outcomes and not isinstance(outcomes[0].found, StabtreeError):
        for id_, tick in Report(outcomes[0].found).ticks:
            if sections:
                sections.append((" ", "dim"))
            sections += [(f"§{id_} ", "dim"), (TICK_SIGNS[tick], TICK_STYLES[tick])]
    return [(2, step), (0, loss), (4, drawn), (1, sections)]


def _of_several(outcomes: Sequence[Outcome], step: Line, loss: Line, drawn: Line) -> list[tuple[int, Line]]:
    """Return how many are how; step and loss are those of the first that can be read, so they follow its name."""
    counts = {badge: sum(item.verdict == badge for item in outcomes) for badge in map(str, ORDER)}
    words = [f"{count} {BADGES[badge].word.lower()}" for badge, count in counts.items() if count]
    name = next((item.name for item in outcomes if not isinstance(item.found, StabtreeError)), "")
    name = clean(name, LONGEST_LINE)
    if len(name) > LONGEST_NAME:
        name = f"…{name[1 - LONGEST_NAME :]}"
    first: Line = []
    if step or loss:
        first = [(f"{name}: ", "dim"), *_spaced([step, loss])]
    return [(0, [(f"{len(outcomes)} runs: {', '.join(words)}", "")]), (2, first), (4, drawn)]


def _spaced(parts: Iterable[Line]) -> Line:
    """Return those parts that hold something as one line, with a space between them."""
    line: Line = []
    for part in parts:
        if line and part:
            line.append(("  ", ""))
        line += part
    return line


def _width(parts: Sequence[Line]) -> int:
    return sum(len(text) for text, _ in chain.from_iterable(parts)) + 2 * (len(parts) - 1)


def duration(seconds: float) -> str:
    """Return a time in its two largest units, as 90s, 12m 5s, 3h 20m."""
    whole = max(0, math.floor(seconds))
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m {whole % MINUTE}s"
    if whole < DAY:
        return f"{whole // HOUR}h {whole % HOUR // MINUTE}m"
    return f"{whole // DAY}d {whole % DAY // HOUR}h"


def closing(outcomes: Sequence[Outcome], why: str, look: RenderOptions) -> str:
    """Return the last lines: the verdict of each run as its log is then, a line each.

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


def _verdict(outcome: Outcome, look: RenderOptions) -> str:
    if not isinstance(outcome.found, StabtreeError):
        return one_line(outcome.found, outcome.name, look)
    return _as_line(f"{BADGES[outcome.verdict].word}  {outcome.name}: {outcome.found.problem}", look)


def _as_line(text: str, look: RenderOptions) -> str:
    """Return a text as one line that a terminal can show."""
    line = clean(text, LONGEST_LINE)
    if look.ascii:
        line = to_ascii(line)
    return inert(line)
