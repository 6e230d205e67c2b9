"""What it takes to act: what was found, what it means, what to do now, its causes, and the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.judged import STRONG
from stabtree.report.model.words import MAX_ACCEPTED, accepted_notes
from stabtree.report.text import clipped, uncut
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.report.model.report import Action, CauseRow, Report
    from stabtree.report.page import Page
    from stabtree.report.text import Piece

LABEL = 10  # columns of the words before a line
STATE = 11  # and of a cause's state
MIN_NAME = 8  # columns of a run's name that is cut
MAX_BARE = 2  # causes with evidence beside which one without any is left out
SEPARATOR = " · "


def head(page: Page, report: Report) -> None:
    """Add the verdict, the run in a line, and what was misread or accepted."""
    badge = f" {BADGES[report.badge].word} "
    title, indent = page.plain(report.title), len(badge) + 1
    pieces: list[Piece] = [(title, "heading")]
    gap = page.width - indent - len(title) - len(report.node)
    if report.node and gap > 1:
        pieces += [(" " * gap, ""), (report.node, "id")]
    page.item((badge, report.badge), pieces, indent=0, head_width=indent)
    page.line((_facts(page, report.facts, page.width - indent), "dim"), indent=indent)
    if report.earlier:
        page.line((report.earlier, ""), indent=indent)
    if report.misread:
        page.line((report.careful, "number"), (report.misread, ""), indent=indent)
    answers = (f"Your answers: {text}" for text in report.diagnosis.answer_notes)
    for text in (*report.diagnosis.setting_notes, *answers, *accepted_notes(report.diagnosis, most=MAX_ACCEPTED)):
        page.line((text, ""), indent=indent)


def _facts(page: Page, facts: str, room: int) -> str:
    """Return who the run is on one line: of what is too long the name is cut in its middle, or the last parts go."""
    text, cut = page.plain(facts), page.plain("…")
    rest, separator, name = text.rpartition(page.plain(SEPARATOR))
    left = room - len(rest) - len(separator) - len(cut)
    if len(text) <= room:
        return text
    while left < MIN_NAME and len(rest) > room:
        rest = rest.rpartition(page.plain(SEPARATOR))[0]
    if left < MIN_NAME:
        return rest
    return f"{rest}{separator}{name[: left - left // 2]}{cut}{name[len(name) - left // 2 :]}"


def meaning(page: Page, report: Report, *, lines: int) -> None:
    """Add what the finding means, in at most so many lines: the sentences and clauses that fit."""
    texts = uncut(page.plain(report.meaning), page.width - LABEL, lines)
    if texts:
        page.item((f"{'Meaning':<{LABEL}}", "heading"), [("\n".join(texts), "")], indent=0, head_width=LABEL)


def do_now(page: Page, report: Report, *, lines: int) -> None:
    """Add what to do, numbered; neither a question nor the restart is ever cut."""
    if not report.do_now:
        return
    page.line(("Do now", "heading"))
    for number, action in enumerate(report.do_now, 1):
        head = (f"{number}.", "number")
        if action.branches:
            page.item(head, [(action.text, "number")], indent=2, head_width=3)
            _branches(page, action, lines)
        elif action.strong:
            before, strong, after = action.parts()
            page.item(head, [(before, ""), (strong, "number"), (after, "")], indent=2, head_width=3)
        else:
            texts = uncut(page.plain(action.text), page.width - 5, lines, needed=True)
            page.item(head, [("\n".join(texts), "")], indent=2, head_width=3)


def _branches(page: Page, action: Action, lines: int) -> None:
    """Add what may come out of a question, each with what to do then."""
    width = max(len(page.plain(word)) for word, _ in action.branches)
    wide = width > page.width // 3
    for word, text in action.branches:
        if wide:
            page.line((f"{word} →", "answer"), indent=5)
            page.line((text, ""), indent=7)
            continue
        texts = uncut(page.plain(text), page.width - 5 - width - 3, lines, needed=True)
        head = (f"{page.plain(word):<{width}} →", "answer")
        page.item(head, [("\n".join(texts), "")], indent=5, head_width=width + 3)


def causes(page: Page, report: Report, *, form: tuple[int, int]) -> None:
    """Add the strongest causes, each with what speaks for it beside it.

    Args:
        page: where to.
        report: what to say.
        form: how many causes, and in how many lines each.
    """
    most, max_lines = form
    rows, room = _distinct(report.shown_causes)[:most], page.width - LABEL - STATE
    seen = {row.judged.cause.id: page.plain(row.why) if row.judged.evidence else "" for row in rows}
    names = [clipped(_name(page, row, room - len(seen[row.judged.cause.id])), room) for row in rows]
    width = max(map(len, names), default=0) + 2
    head = "Causes"
    for row, name in zip(rows, names, strict=True):
        text = seen[row.judged.cause.id]
        whole = len(text) <= room - width
        pieces = [(f"{head:<{LABEL}}", "heading"), (f"{row.word:<{STATE}}", row.word)]
        page.lines([[*pieces, (f"{name:<{width}}", ""), (text if whole else "", "dim")]])
        if not whole and max_lines > 1:
            for why in uncut(text, room, max_lines - 1):
                page.lines([[(" " * (LABEL + STATE), ""), (why, "dim")]])
        head = ""


def _name(page: Page, row: CauseRow, room: int) -> str:
    """Return a cause, in its short form where the room beside what speaks for it is too small for the whole."""
    cause = row.judged.cause
    text = page.plain(cause.text)
    if len(text) + 2 <= room or not cause.short:
        return text
    return page.plain(cause.short)


def _distinct(rows: Sequence[CauseRow]) -> list[CauseRow]:
    """Return causes, each short text once; without evidence only where few others have some."""
    enough = sum(bool(row.judged.evidence) for row in rows) >= MAX_BARE
    found: dict[str, CauseRow] = {}
    for row in rows:
        if row.judged.evidence or row.state in STRONG or not enough:
            found.setdefault(row.judged.cause.short or row.judged.cause.text, row)
    return list(found.values())


def labelled(page: Page, label: str, text: str) -> None:
    """Add a text with a label before it, wrapped beside it."""
    if text:
        page.item((f"{label:<{LABEL}}", "heading"), [(text, "")], indent=0, head_width=LABEL)


def log_next(page: Page, report: Report) -> None:
    """Add what to log to decide between the causes."""
    labelled(page, "Log next", report.log_next)


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
