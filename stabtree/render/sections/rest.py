"""What else was found, what was not checked, and what was noted of the log."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree.render.report.words import counted, some, unchecked
from stabtree.render.sections.fit import clipped
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Finding
    from stabtree.render.page import Page
    from stabtree.render.plot import Piece
    from stabtree.render.report.model import Open, Report

HEAD = 6
NOT_CHECKED = 13
MOST_OPEN = 2
MOST_NOTES = 2


def also(page: Page, report: Report, *, named: bool) -> None:
    """What else was found.

    Args:
        page: where to.
        report: what to say.
        named: whether each is named; else those that are critical are, and the others counted.
    """
    pieces: list[Piece] = []
    for finding in report.also:
        critical = finding.leaf.severity is Severity.CRITICAL
        if named or critical:
            pieces += [(" · ", "dim")] if pieces else []
            pieces += _named(finding) if named else _short(finding)
    others = Counter(str(f.leaf.severity) for f in report.also if f.leaf.severity is not Severity.CRITICAL)
    if not named and others:
        told = ", ".join(counted(count, word) for word, count in others.items())
        pieces.append((f"{' · and ' if pieces else ''}{told} (--full names them)", ""))
    if report.seen_as:
        pieces.append((f"{' · ' if pieces else ''}the same event as {', '.join(report.seen_as)}", ""))
    if pieces:
        page.item(("Also", "heading"), pieces, indent=0, head_width=HEAD)


def _named(finding: Finding) -> list[Piece]:
    return [*_word(finding), (f" {finding.leaf.title}{_at(finding)} (", ""), (finding.leaf.id, "id"), (")", "")]


def _short(finding: Finding) -> list[Piece]:
    return [*_word(finding), (" ", ""), (finding.leaf.id, "id"), (_at(finding), "")]


def _word(finding: Finding) -> list[Piece]:
    severity = finding.leaf.severity
    return [(LOOKS[severity].word.lower(), f"{severity} word")]


def _at(finding: Finding) -> str:
    return f" at {finding.onset_step:,}" if finding.onset_step is not None else ""


def not_checked(page: Page, report: Report, *, most: int) -> None:
    """How much was not checked, and what to log next time, a line each."""
    if not report.open:
        return
    shown = report.open[:most]
    count = unchecked(report.diagnosis) if report.diagnosis.missing else ""
    width = page.width - NOT_CHECKED
    for place, item in enumerate(shown):
        rest = len(report.open) - len(shown) if item is shown[-1] else 0
        tail = f" (and {rest} more)" if rest else ""
        begin = f"{count}; " if count and not place else ""
        room = width - len(page.plain(begin + tail))
        texts = [page.plain(text) for text in _opened(item)]
        told = next((text for text in texts if len(text) <= room), clipped(texts[-1], room))
        page.item(
            ("" if place else "Not checked", "heading"), [(begin + told + tail, "")], indent=0, head_width=NOT_CHECKED
        )


def _opened(item: Open) -> list[str]:
    """What to log, and what for: the longer text, and a shorter one."""
    ids = some(item.unlocks)
    if not item.how:
        return [f"{ids}: {item.text}"]
    return [*(f"log {item.text} → {decided}" for decided in item.decides[:1]), f"log {item.text} → {ids}"]


def notes(page: Page, report: Report, *, most: int) -> None:
    """What was noted of the log, a line each, or how much."""
    told = report.diagnosis.run.notes
    if not told:
        return
    if not most:
        page.item(("Notes", "heading"), [(f"{len(told)} on the log (--full)", "")], indent=0, head_width=HEAD + 1)
    for place, note in enumerate(told[:most]):
        rest = f" (and {len(told) - most} more)" if place + 1 == most < len(told) else ""
        text = clipped(page.plain(note), page.width - HEAD - 1 - len(rest))
        page.item(("Notes" if not place else "", "heading"), [(text + rest, "")], indent=0, head_width=HEAD + 1)
