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
INDENT, STATE, GAP = 2, 17, 2
LINES_OF_A_CAUSE = 2
MOST_SHARE = 55  # percent of the room that the causes may take
LEAST_BESIDE = 22  # columns that what mends a cause must have to stand beside it


def causes(page: Page, report: Report, *, most: int, lines: int = LINES_OF_A_CAUSE) -> None:
    """The causes that may be, strongest first, then the others in a line; what is left out is counted."""
    if not report.causes:
        return
    open_ = [row for row in report.causes if row.judged.state not in SILENT]
    silent = [row for row in report.causes if row.judged.state in SILENT]
    rows = [(row.judged.state, *_texts(page, report, row)) for row in open_[:most]]
    room = page.width - INDENT - STATE - GAP
    longest = max((len(cause) for _, cause, mends in rows if mends), default=0)
    left = max(room // 2, min(longest, room * MOST_SHARE // 100))
    beside = room - left >= LEAST_BESIDE and any(mends for *_, mends in rows)
    head = f"{'Causes':<{INDENT + STATE + left + GAP}}and what mends them" if beside else "Causes"
    page.line((head, "heading"))
    for state, cause, mends in rows:
        _row(page, state, (cause, mends if beside else ""), left, lines)
    if most > FEW_CAUSES or not open_:
        for state in SILENT:
            _together(page, state, [row for row in silent if row.judged.state is state])
        silent = []
    rest = [*open_[most:], *silent]
    if rest:
        counts = Counter(str(row.judged.state) for row in rest)
        page.line((f"and {len(rest)} more: {', '.join(f'{n} {state}' for state, n in counts.items())}", ""), indent=2)


def _texts(page: Page, report: Report, row: CauseRow) -> tuple[str, str]:
    """A cause, and its first fix; where that stands on top, the cause says so."""
    cause, fix = row.judged.cause.text, row.mends[0] if row.mends else ""
    place = next((place for place, action in enumerate(report.do_now, 1) if fix and action.fix == fix), 0)
    if place:
        tail = f" ({place}. above)"
        return clipped(page.plain(cause), page.width - INDENT - STATE - len(tail)) + tail, ""
    return page.plain(cause), page.plain(fix)


def _row(page: Page, state: CauseState, texts: tuple[str, str], left: int, lines: int) -> None:
    cause, mends = texts
    room = page.width - INDENT - STATE
    causes = in_lines(cause, left if mends else room, lines)
    fixes = in_lines(mends, room - left - GAP, lines) if mends else []
    head = page.plain(f"{MARKS[state]} {state}")
    drawn: list[Line] = []
    for place, (one, other) in enumerate(zip_longest(causes, fixes, fillvalue="")):
        pad = f"{one:<{left + GAP}}" if other else one
        drawn.append([(f"{'' if place else head:<{STATE}}", state), (pad, ""), (other, "")])
    page.lines(drawn, indent=INDENT)


def _together(page: Page, state: CauseState, rows: Sequence[CauseRow]) -> None:
    if rows:
        told = " · ".join(row.judged.cause.text for row in rows)
        text = clipped(page.plain(told), page.width - INDENT - STATE)
        page.item((f"{MARKS[state]} {state}", state), [(text, "")], indent=INDENT, head_width=STATE)
