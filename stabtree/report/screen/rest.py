"""What else was found, what was not checked, and what was noted of the log."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree.report.model.words import first_ids
from stabtree.report.text import clipped, counted
from stabtree.report.verdicts import BADGES
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.report.model.report import Open, Report
    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece

HEAD = 6
NOTES_HEAD = 7
NOT_CHECKED = 13
MAX_OPEN = 2
MAX_NOTES = 2


def also(page: Page, report: Report, *, named: bool) -> None:
    """Add what else was found.

    Args:
        page: where to.
        report: what to say.
        named: whether each is named; else only critical findings are, and the others are counted.
    """
    pieces: list[Piece] = []
    for part in _also(report, named=named):
        pieces += [(" · ", part[0][1]), *part[1:]]
    if pieces:
        page.item(("Also", "heading"), pieces[1:], indent=0, head_width=HEAD)


def _also(report: Report, *, named: bool) -> Iterator[Line]:
    """Yield the parts, each after a piece in the style of the dot before it."""
    critical = [finding for finding in report.also if finding.leaf.severity is Severity.CRITICAL]
    others = [finding for finding in report.also if finding.leaf.severity is not Severity.CRITICAL]
    shown: Sequence[Incident] = critical
    if named:
        shown = report.also
    for finding in shown:
        yield [("", "dim"), *_finding(finding, named=named)]
    if others and not named:
        yield [("", ""), (_not_named(others, after_others=bool(critical)), "")]
    if report.seen_as:
        yield [("", ""), (f"the same event as {', '.join(report.seen_as)}", "")]


def _not_named(findings: Sequence[Incident], *, after_others: bool) -> str:
    """Count the findings of each severity."""
    severities = Counter(str(finding.leaf.severity) for finding in findings)
    text = ", ".join(counted(count, word) for word, count in severities.items())
    if after_others:
        text = f"and {text}"
    return f"{text} (--full names them)"


def _finding(finding: Incident, *, named: bool) -> Line:
    severity, at = finding.leaf.severity, ""
    if finding.onset_step is not None:
        at = f" at {finding.onset_step:,}"
    word: Piece = (BADGES[severity].word.lower(), f"{severity} word")
    if named:
        return [word, (f" {finding.leaf.title}{at} (", ""), (finding.leaf.id, "id"), (")", "")]
    return [word, (" ", ""), (finding.leaf.id, "id"), (at, "")]


def not_checked(page: Page, report: Report, *, most: int) -> None:
    """Add how much was not checked, and what to log next time, a line each."""
    shown, rest = report.open[:most], report.open[most:]
    head, begin = "Not checked", ""
    if report.unchecked:
        begin = f"{report.unchecked}; "
    for item in shown:
        tail = ""
        if rest and item is shown[-1]:
            tail = f" (and {len(rest)} more)"
        room = page.width - NOT_CHECKED - len(page.plain(begin + tail))
        texts = [page.plain(text) for text in _opened(item)]
        text = next((text for text in texts if len(text) <= room), clipped(texts[-1], room))
        page.item((head, "heading"), [(begin + text + tail, "")], indent=0, head_width=NOT_CHECKED)
        head = begin = ""


def _opened(item: Open) -> Iterator[str]:
    """Yield what to log, and what for: the longer text, and a shorter one."""
    ids = first_ids(item.unlocks)
    if not item.how:
        yield f"{ids}: {item.text}"
        return
    for decided in item.decides[:1]:
        yield f"log {item.text} → {decided}"
    yield f"log {item.text} → {ids}"


def notes(page: Page, report: Report, *, most: int) -> None:
    """Add what was noted of the log, a line each, or how much."""
    texts = [text for text in report.log_notes if text not in report.diagnosis.setting_notes]  # which the head shows
    if texts and not most:
        page.item(("Notes", "heading"), [(f"{len(texts)} on the log (--full)", "")], indent=0, head_width=NOTES_HEAD)
    head = "Notes"
    for index, note in enumerate(texts[:most], 1):
        rest = f" (and {len(texts) - most} more)" if index == most < len(texts) else ""
        text = clipped(page.plain(note), page.width - NOTES_HEAD - len(rest))
        page.item((head, "heading"), [(text + rest, "")], indent=0, head_width=NOTES_HEAD)
        head = ""
