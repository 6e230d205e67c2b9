"""The top and the bottom of the screen: what was found, what to do now, what happened, and the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.render.report.words import MOST_KNOWN, grouped, known
from stabtree.render.sections.fit import clipped, in_lines
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from stabtree.render.page import Page
    from stabtree.render.plot import Piece
    from stabtree.render.report.model import Action, Report

MOST_EVENTS = 6
FEW_EVENTS = 3
LINES_OF_A_FIX = 2


def head(page: Page, report: Report, *, room: bool) -> None:
    """The verdict, the run in a line, and what was misread; with room for it what the finding means.

    Args:
        page: where to.
        report: what to say.
        room: whether there is room for more than must be told.
    """
    badge = f" {LOOKS[report.badge].word} "
    node = report.finding.leaf.of if report.finding else ""
    title, indent = page.plain(report.title), len(badge) + 1
    gap = page.width - indent - len(title) - len(node)
    beside: list[Piece] = [(" " * gap, ""), (node, "id")] if gap > 1 else [("  ", ""), (node, "id")] if node else []
    page.item((badge, report.badge), [(title, "heading"), *beside], indent=0, head_width=indent)
    page.line((report.facts, ""), indent=indent)
    if report.earlier:
        page.line((report.earlier, ""), indent=indent)
    if report.plainly:
        page.line((report.plainly, ""), indent=indent)
    if report.careful:
        careful = "" if report.verdict == UNKNOWN else "Careful: "
        page.line((careful, "number"), (report.careful, ""), indent=indent)
    for text in report.diagnosis.said:
        page.line((f"Your answers: {text}", ""), indent=indent)
    for text in known(report.diagnosis, most=MOST_KNOWN):
        page.line((text, ""), indent=indent)
    if room and report.why:
        page.line((report.why, ""), indent=indent)


def do_now(page: Page, report: Report, *, room: bool) -> None:
    """What to do, numbered; the restart is always told whole."""
    if not report.do_now:
        return
    page.line(("Do now", "heading"))
    for place, action in enumerate(report.do_now, 1):
        cut = not (room or action.strong)
        lines = in_lines(page.plain(action.text), page.width - 5, LINES_OF_A_FIX) if cut else [action.text]
        for row, text in enumerate(lines):
            page.item((f"{place}." if not row else "", "number"), _emphasised(action, text), indent=2, head_width=3)


def _emphasised(action: Action, text: str) -> list[Piece]:
    before, strong, after = text.partition(action.strong) if action.strong else (text, "", "")
    return [(before, ""), (strong, "number"), (after, "")]


def events(page: Page, report: Report, *, most: int) -> None:
    """What happened around the onset, a line for all series of a group that did as much."""
    groups = grouped(report.events)
    if len({event.metric.partition("/")[0] for event in report.events}) < 2:
        return  # only the trouble itself, which the headline tells
    page.line(("What happened, in order", "heading"))
    width = max(len(f"{event.step:,}") for event, _ in groups) + 7
    for event, others in groups[:most]:
        more = f" and {others} more after it" if others else ""
        mark = "  ◀ first" if event.first else ""
        room = page.width - width - 2 - len(page.plain(more + mark))
        told = clipped(page.plain(event.sentence), room)
        page.item(
            (f"{event.unit} {event.step:,}", "number"),
            [(told + more, ""), (mark, "first")],
            indent=2,
            head_width=width,
        )


def last_line(page: Page, report: Report) -> None:
    """The sum of it, and what to type for more."""
    word = LOOKS[report.badge].word.lower()
    page.line((word, f"{report.badge} word"), (report.closing.removeprefix(word), ""))
    node = report.finding.leaf.of if report.finding else ""
    more = ["more: --full"]
    more += [f"stabtree explain {node}"] if node else []
    more += ["--output html=report.html"] if report.finding else []
    page.lines([[(" · ".join(more), "dim")]])
