"""Causes beside what mends them."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import SILENT, CauseState
from stabtree.render.sections.fit import clipped, in_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.page import Page
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
INDENT, STATE = 2, 16
LINES_OF_A_CAUSE = 2
LEAST_BESIDE = 22  # columns that both sides must have to stand side by side


def causes(page: Page, report: Report, *, most: int, lines: int = LINES_OF_A_CAUSE) -> None:
    """The causes that may be, strongest first, then the others in a line; what is left out is counted."""
    if not report.causes:
        return
    open_ = [row for row in report.causes if row.judged.state not in SILENT]
    silent = [row for row in report.causes if row.judged.state in SILENT]
    width = (page.width - INDENT - STATE - 2) // 2
    beside = width >= LEAST_BESIDE and any(row.mends for row in open_[:most])
    told = "and what mends them" if beside else ""
    page.line((f"{'Causes':<{INDENT + STATE + width + 2}}" if beside else "Causes", "heading"), (told, "heading"))
    for row in open_[:most]:
        _row(page, row, width if beside else 0, lines)
    rest = open_[most:]
    if most > FEW_CAUSES or not open_:
        for state in SILENT:
            _together(page, state, [row for row in silent if row.judged.state is state])
    else:
        rest += silent
    if rest:
        counts = Counter(str(row.judged.state) for row in rest)
        page.line((f"and {len(rest)} more: {', '.join(f'{n} {state}' for state, n in counts.items())}", ""), indent=2)


def _row(page: Page, row: CauseRow, beside: int, lines: int) -> None:
    state, text = row.judged.state, page.plain(row.judged.cause.text)
    mends = page.plain(row.mends[0]) if row.mends and beside else ""
    left = in_lines(text, beside if mends else page.width - INDENT - STATE, lines)
    right = in_lines(mends, beside, lines) if mends else []
    head = f"{MARKS[state]} {state}"
    drawn = []
    for place, (cause, mend) in enumerate(zip_longest(left, right, fillvalue="")):
        pad = f"{cause:<{beside + 2}}" if mend else cause
        drawn.append([(f"{page.plain(head) if not place else '':<{STATE}}", state), (pad, ""), (mend, "")])
    page.lines(drawn, indent=INDENT)


def _together(page: Page, state: CauseState, rows: Sequence[CauseRow]) -> None:
    if rows:
        told = " · ".join(row.judged.cause.text for row in rows)
        text = clipped(page.plain(told), page.width - INDENT - STATE)
        page.item((f"{MARKS[state]} {state}", state), [(text, "")], indent=INDENT, head_width=STATE)
