"""What else was found, why a run was not judged, and what of the log a user should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.model.words import first_ids
from stabtree.report.screen.act import LABEL, labelled
from stabtree.report.text import clipped
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Incident
    from stabtree.report.model.report import Open, Report
    from stabtree.report.page import Page
    from stabtree.report.text import Line

NOT_CHECKED = 13
MAX_OPEN = 3
ACTED_ON = ("Set by ", "No column has a known name of the loss")


def also(page: Page, report: Report) -> None:
    """Add what else was found in a line: the first of it, and how much more there is."""
    if not report.also:
        return
    first, *others = report.also
    word = BADGES[first.leaf.severity].word.lower()
    tail = f" (and {len(others)} more)" if others else ""
    text = _finding(first)
    room = page.width - LABEL - len(word) - 1 - len(tail)
    pieces: Line = [(f"{'Also':<{LABEL}}", "heading"), (word, f"{first.leaf.severity} word")]
    page.lines([[*pieces, (f" {clipped(page.plain(text), room)}{tail}", "")]])


def _finding(finding: Incident) -> str:
    leaf, at = finding.leaf, ""
    if finding.onset_step is not None:
        at = f" at {finding.unit} {finding.onset_step:,}"
    return f"{leaf.id}{at}: {leaf.title[:1].lower()}{leaf.title[1:]}"


def not_checked(page: Page, report: Report, *, most: int) -> None:
    """Add what keeps a run from a verdict, a line each; nothing of a run that has one."""
    if report.finding is not None:
        return
    head = "Not checked"
    for item in report.open[:most]:
        text = clipped(page.plain(_opened(item)), page.width - NOT_CHECKED)
        page.lines([[(f"{head:<{NOT_CHECKED}}", "heading"), (text, "")]])
        head = ""


def _opened(item: Open) -> str:
    """Return what to log, and what for."""
    if not item.how:
        return f"{first_ids(item.unlocks)}: {item.text}"
    return f"log {item.text} → {next(iter(item.decides), first_ids(item.unlocks))}"


def notes(page: Page, report: Report) -> None:
    """Add the first note that a user may act on: what settings changed, what was guessed, what nothing explains."""
    shown = report.diagnosis.setting_notes  # which the head has
    others = [note for note in report.diagnosis.run.notes if note not in shown]
    acted_on = [note for begin in ACTED_ON for note in others if note.startswith(begin)]
    labelled(page, "Note", next(iter([*acted_on, *report.unexplained]), ""))
