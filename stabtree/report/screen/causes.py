"""Causes beside their fixes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import SILENT
from stabtree.report.model.words import state_counts
from stabtree.report.text import clipped, in_lines
from stabtree.report.verdicts import CAUSE_SIGNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import CauseState
    from stabtree.report.model.report import CauseRow, Report
    from stabtree.report.page import Page
    from stabtree.report.text import Line

MAX_CAUSES, FEW_CAUSES = 5, 3
INDENT, GAP = 2, 2
LINES_OF_A_CAUSE = 2
MAX_SHARE = 55  # percent of the room that the causes may take
MIN_BESIDE = 22  # columns that a fix must have to be beside its cause


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the state, the causes and their fixes; 0 for the last where the fixes are not beside the causes."""

    head: int
    left: int
    right: int


def causes(page: Page, report: Report, *, most: int, lines: int = LINES_OF_A_CAUSE) -> None:
    """Add the causes that may be, strongest first, then the others in a line; what is left out is counted."""
    if not report.causes:
        return
    shown, silent, hidden = _sorted_out(report.causes, most)
    columns = _columns(page, [*shown, *silent], [row for row in shown if row.fixes and not row.action])
    _heading(page, columns)
    for row in shown:
        _row(page, row, columns, lines)
    for state in SILENT:
        _together(page, state, [row for row in silent if row.state is state], columns.head)
    if hidden:
        page.line((f"and {len(hidden)} more: {state_counts(hidden)}", ""), indent=2)


def _sorted_out(rows: Sequence[CauseRow], most: int) -> tuple[list[CauseRow], list[CauseRow], list[CauseRow]]:
    """Return the causes that get a row each, those that share a line, and those that are only counted."""
    open_ = [row for row in rows if not row.silent]
    silent = [row for row in rows if row.silent]
    shown, hidden = open_[:most], open_[most:]
    if open_ and most <= FEW_CAUSES:
        return shown, [], [*hidden, *silent]
    return shown, silent, hidden


def _heading(page: Page, columns: Columns) -> None:
    """Add the heads of the columns."""
    head = "Causes"
    if columns.right:
        head = f"{head:<{INDENT + columns.head + columns.left + GAP}}and what fixes them"
    page.line((head, "heading"))


def _columns(page: Page, rows: Sequence[CauseRow], fixed: Sequence[CauseRow]) -> Columns:
    head = max((len(page.plain(_head(row.state))) for row in rows), default=0) + GAP
    room = page.width - INDENT - head - GAP
    longest = max((len(page.plain(row.judged.cause.text)) for row in fixed), default=0)
    left = max(room // 2, min(longest, room * MAX_SHARE // 100))
    if fixed and room - left >= MIN_BESIDE:
        return Columns(head, left, room - left)
    return Columns(head, room + GAP, 0)


def _head(state: CauseState) -> str:
    return f"{CAUSE_SIGNS[state]} {state}"


def _row(page: Page, row: CauseRow, columns: Columns, lines: int) -> None:
    """Add a cause and its first fix, or the number of the action that is this fix."""
    cause, room, fixes = row.judged.cause, columns.left, [""]
    if columns.right and row.fixes and not row.action:
        fix = _fitting(page.plain(row.fixes[0]), page.plain(cause.short_fix), columns.right)
        fixes = in_lines(fix, columns.right, lines)
    else:
        room = page.width - INDENT - columns.head
    if row.action:
        tail = f" ({row.action}. above)"
        text = _fitting(page.plain(cause.text), page.plain(cause.short), room - len(tail))
        texts = [clipped(text, room - len(tail)) + tail]
    else:
        texts = in_lines(_fitting(page.plain(cause.text), page.plain(cause.short), room), room, lines)
    drawn: list[Line] = []
    head = page.plain(_head(row.state))
    for text, fix in zip_longest(texts, fixes, fillvalue=""):
        beside = f"{text:<{columns.left + GAP}}" if fix else text
        drawn.append([(f"{head:<{columns.head}}", row.state), (beside, ""), (fix, "")])
        head = ""
    page.lines(drawn, indent=INDENT)


def _fitting(text: str, short: str, room: int) -> str:
    """Return a text where it fits on a line, else its short form where it has one."""
    if len(text) <= room:
        return text
    return short or text


def _together(page: Page, state: CauseState, rows: Sequence[CauseRow], width: int) -> None:
    if not rows:
        return
    room = page.width - INDENT - width
    whole = page.plain(" · ".join(row.judged.cause.text for row in rows))
    brief = page.plain(" · ".join(row.judged.cause.short or row.judged.cause.text for row in rows))
    page.item(
        (_head(state), state), [(clipped(_fitting(whole, brief, room), room), "")], indent=INDENT, head_width=width
    )
