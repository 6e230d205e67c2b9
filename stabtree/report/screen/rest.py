"""What else was found, why a run was not judged, and what of the log a user should look at."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stabtree.judging.account import not_read
from stabtree.report.model.words import first_ids
from stabtree.report.screen.act import LABEL, labelled
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Incident
    from stabtree.report.model.report import Open, Report
    from stabtree.report.page import Page
    from stabtree.report.text import Line

NOT_CHECKED = 13
MAX_OPEN = 3
ACTED_ON = ("Set by ", "No column has a known name of the loss")


def also(page: Page, report: Report, *, lines: int) -> None:
    """Add what else was found, the first of it and how much more there is; only its name where the title is too long.

    Args:
        page: where to.
        report: what to say.
        lines: in at most how many lines.
    """
    if not report.also:
        return
    first, *others = report.also
    word = BADGES[first.leaf.severity].word.lower()
    tail = f" (and {len(others)} more)" if others else ""
    whole, name = f" {_finding(first)}{tail}", f" {_named(first)}{tail}"
    fits = len(textwrap.wrap(word + page.plain(whole), page.width - LABEL)) <= lines
    pieces: Line = [(word, f"{first.leaf.severity} word"), (whole if fits else name, "")]
    page.item((f"{'Also':<{LABEL}}", "heading"), pieces, indent=0, head_width=LABEL)


def _finding(finding: Incident) -> str:
    title = finding.leaf.title
    return f"{_named(finding)}: {title[:1].lower()}{title[1:]}"


def _named(finding: Incident) -> str:
    if finding.onset_step is None:
        return finding.leaf.id
    return f"{finding.leaf.id} at {finding.unit} {finding.onset_step:,}"


def not_checked(page: Page, report: Report, *, most: int) -> None:
    """Add what keeps a run from a verdict, the first few; nothing of a run that has one."""
    if report.finding is not None:
        return
    head = "Not checked"
    for item in report.open[:most]:
        page.item((f"{head:<{NOT_CHECKED}}", "heading"), [(_opened(item), "")], indent=0, head_width=NOT_CHECKED)
        head = ""


def _opened(item: Open) -> str:
    """Return what to log, and what for."""
    if not item.how:
        return f"{first_ids(item.unlocks)}: {item.text}"
    return f"log {item.text} → {next(iter(item.decides), first_ids(item.unlocks))}"


def notes(page: Page, report: Report) -> None:
    """Add the first note that a user may act on: what settings changed, what was guessed, what was not read.

    That a further series holds values which are not finite, as a ratio of 0 to 0 in the first row, changes no verdict.
    """
    shown = report.diagnosis.setting_notes  # which the head has
    others = [note for note in report.diagnosis.run.notes if note not in shown]
    acted_on = [note for begin in ACTED_ON for note in others if note.startswith(begin)]
    labelled(page, "Note", next(iter([*acted_on, *not_read(report.diagnosis.run)]), ""))
