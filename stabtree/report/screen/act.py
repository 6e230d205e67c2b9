"""The top and the bottom of the screen: what was found, what to do now, what happened, and the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.model.events import followers
from stabtree.report.model.words import MAX_ACCEPTED, accepted_notes
from stabtree.report.text import clipped, in_lines
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from stabtree.report.model.report import Action, Report
    from stabtree.report.page import Page
    from stabtree.report.text import Piece

MAX_EVENTS = 6
FEW_EVENTS = 3
LINES_OF_A_FIX = 2


def head(page: Page, report: Report, *, room: bool) -> None:
    """Add the verdict, the run in a line, and what was misread.

    Args:
        page: where to.
        report: what to say.
        room: whether there is room for what the finding means.
    """
    badge = f" {BADGES[report.badge].word} "
    title, indent = page.plain(report.title), len(badge) + 1
    pieces: list[Piece] = [(title, "heading")]
    if report.node:
        gap = page.width - indent - len(title) - len(report.node)
        pieces += [(" " * (gap if gap > 1 else 2), ""), (report.node, "id")]
    page.item((badge, report.badge), pieces, indent=0, head_width=indent)
    for text in filter(None, (report.facts, report.earlier, report.plainly)):
        page.line((text, ""), indent=indent)
    if report.misread:
        page.line((report.careful, "number"), (report.misread, ""), indent=indent)
    answers = (f"Your answers: {text}" for text in report.diagnosis.answer_notes)
    for text in (*report.diagnosis.setting_notes, *answers, *accepted_notes(report.diagnosis, most=MAX_ACCEPTED)):
        page.line((text, ""), indent=indent)
    if room and report.why:
        page.line((report.why, ""), indent=indent)


def do_now(page: Page, report: Report, *, room: bool) -> None:
    """Add what to do, numbered; the restart is never cut."""
    if not report.do_now:
        return
    page.line(("Do now", "heading"))
    for number, action in enumerate(report.do_now, 1):
        head, strong = f"{number}.", action.strong
        if action.branches:
            page.item((head, "number"), [(action.text, "heading")], indent=2, head_width=3)
            _branches(page, action)
            continue
        if room or strong:
            before, strong, after = action.parts()
            page.item((head, "number"), [(before, ""), (strong, "number"), (after, "")], indent=2, head_width=3)
            continue
        for text in in_lines(page.plain(action.text), page.width - 5, LINES_OF_A_FIX):
            page.item((head, "number"), [(text, "")], indent=2, head_width=3)
            head = ""


def _branches(page: Page, action: Action) -> None:
    """Add what may come out of a question, each with what to do then."""
    width = max(len(page.plain(word)) for word, _ in action.branches)
    for word, text in action.branches:
        page.item((f"{page.plain(word):<{width}} →", "answer"), [(text, "")], indent=5, head_width=width + 3)


def events(page: Page, report: Report, *, most: int) -> None:
    """Add what happened around the onset, a line for all series of a group that did the same."""
    groups = report.event_groups
    if not groups:
        return
    page.line(("What happened, in order", "heading"))
    width = max(len(f"{event.step:,}") for event, _ in groups) + 7
    for event, others in groups[:most]:
        more, mark = followers(others), "  ◀ first" if event.first else ""
        text = clipped(page.plain(event.sentence), page.width - width - 2 - len(page.plain(more + mark)))
        step = f"{event.unit} {event.step:,}"
        page.item((step, "number"), [(text + more, ""), (mark, "first")], indent=2, head_width=width)


def last_line(page: Page, report: Report) -> None:
    """Add the summary, and what to type for more."""
    word = BADGES[report.badge].word.lower()
    page.line((word, f"{report.badge} word"), (report.closing.removeprefix(word), ""))
    more = ["more: --full"]
    if report.node:
        more.append(f"stabtree explain {report.node}")
    if report.finding:
        more.append("--output html=report.html")
    page.lines([[(" · ".join(more), "dim")]])
