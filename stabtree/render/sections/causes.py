"""Causes beside what mends them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import SILENT, CauseState
from stabtree.render.sections.fit import clipped, in_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.page import Page
    from stabtree.render.plot import Line
    from stabtree.render.report.model import CauseRow, Report

MARKS = {
    CauseState.CONFIRMED: "●",
    CauseState.LIKELY: "◐",
    CauseState.POSSIBLE: "○",
    CauseState.NOT_CONFIRMED: "·",
    CauseState.NOT_CHECKABLE: "?",
    CauseState.RULED_OUT: "–",
}
MOST_CAUSES, FEW_CAUSES = 5, 3
INDENT, GAP = 2, 2
LINES_OF_A_CAUSE = 2
MOST_SHARE = 55  # percent of the room that the causes may take
LEAST_BESIDE = 22  # columns that what mends a cause must have to stand beside it


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the state, the causes and what mends them; 0 for the last where it does not stand beside them."""

    head: int
    left: int
    right: int


def causes(page: Page, report: Report, *, most: int, lines: int = LINES_OF_A_CAUSE) -> None:
    """The causes that may be, strongest first, then the others in a line; what is left out is counted."""
    if not report.causes:
        return
    open_ = [row for row in report.causes if row.judged.state not in SILENT]
    silent = [row for row in report.causes if row.judged.state in SILENT]
    told = silent if most > FEW_CAUSES or not open_ else []
    mended = [row for row in open_[:most] if row.mends and not _place(report, row)]
    columns = _columns(page, [*open_[:most], *told], mended)
    head = f"{'Causes':<{INDENT + columns.head + columns.left + GAP}}and what mends them" if columns.right else "Causes"
    page.line((head, "heading"))
    for row in open_[:most]:
        _row(page, row, columns, lines, place=_place(report, row))
    for state in SILENT:
        _together(page, state, [row for row in told if row.judged.state is state], columns.head)
    rest = [*open_[most:], *(silent if not told else [])]
    if rest:
        counts = Counter(str(row.judged.state) for row in rest)
        page.line((f"and {len(rest)} more: {', '.join(f'{n} {state}' for state, n in counts.items())}", ""), indent=2)


def _place(report: Report, row: CauseRow) -> int:
    """Where the first fix of a cause stands among what to do now; 0 where it does not."""
    fix = row.mends[0] if row.mends else ""
    return next((place for place, action in enumerate(report.do_now, 1) if fix and action.fix == fix), 0)


def _columns(page: Page, rows: Sequence[CauseRow], mended: Sequence[CauseRow]) -> Columns:
    head = max((len(page.plain(_head(row.judged.state))) for row in rows), default=0) + GAP
    room = page.width - INDENT - head - GAP
    longest = max((len(page.plain(row.judged.cause.text)) for row in mended), default=0)
    left = max(room // 2, min(longest, room * MOST_SHARE // 100))
    beside = mended and room - left >= LEAST_BESIDE
    return Columns(head, left, room - left) if beside else Columns(head, room + GAP, 0)


def _head(state: CauseState) -> str:
    return f"{MARKS[state]} {state}"


def _row(page: Page, row: CauseRow, columns: Columns, lines: int, *, place: int) -> None:
    """A cause and its first fix; where that stands on top, the cause says so."""
    cause, state = row.judged.cause, row.judged.state
    tail = f" ({place}. above)" if place else ""
    alone = not columns.right or place or not row.mends
    room = page.width - INDENT - columns.head if alone else columns.left
    text = _fitting(page.plain(cause.text), page.plain(cause.short), room - len(tail))
    causes = [clipped(text, room - len(tail)) + tail] if tail else in_lines(text, room, lines)
    fix = "" if alone else _fitting(page.plain(row.mends[0]), page.plain(cause.mend), columns.right)
    fixes = in_lines(fix, columns.right, lines) if fix else []
    drawn: list[Line] = []
    for at, (one, other) in enumerate(zip_longest(causes, fixes, fillvalue="")):
        pad = f"{one:<{columns.left + GAP}}" if other else one
        drawn.append([(f"{'' if at else page.plain(_head(state)):<{columns.head}}", state), (pad, ""), (other, "")])
    page.lines(drawn, indent=INDENT)


def _fitting(text: str, short: str, room: int) -> str:
    """A text where it fits on a line, else its short form where it has one."""
    return text if len(text) <= room or not short else short


def _together(page: Page, state: CauseState, rows: Sequence[CauseRow], width: int) -> None:
    if not rows:
        return
    room = page.width - INDENT - width
    whole = page.plain(" · ".join(row.judged.cause.text for row in rows))
    brief = page.plain(" · ".join(row.judged.cause.short or row.judged.cause.text for row in rows))
    told = clipped(_fitting(whole, brief, room), room)
    page.item((_head(state), state), [(told, "")], indent=INDENT, head_width=width)
