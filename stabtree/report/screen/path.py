"""The path on a screen: a line a question while there is room, else as a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.text import clipped, in_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.report.model.report import Report, Turn, Walk
    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece

LONGEST_SHORT = 28
INDENT = 2
MIN_NUMBER = 12  # columns that a number must have to be shown beside its question
FURTHER = "and further, past the first diagnosis:"


def path_rows(page: Page, report: Report, *, lines: int) -> None:
    """Add each question with its answer and the number that decided it, in at most so many lines."""
    page.line(("Path", "heading"))
    turns: list[Turn] = []
    for walk in report.walks:
        turns += walk.turns
    shorts = {turn.id: page.plain(clipped(turn.short, LONGEST_SHORT)) for turn in turns}
    widths = [max(map(len, column)) + 2 for column in (shorts, shorts.values(), [turn.answer for turn in turns])]
    first, *others = report.walks
    _walk_rows(page, first, shorts, widths, lines)
    for before, walk in zip(report.walks, others, strict=False):
        page.line((before.ends, ""), indent=INDENT)
        page.line((FURTHER, "dim"), indent=INDENT)
        _walk_rows(page, walk, shorts, widths, lines)


def _walk_rows(page: Page, walk: Walk, shorts: dict[str, str], widths: list[int], lines: int) -> None:
    for turn, *others in walk.groups:
        answer_style = "answer" if turn.checked else ""
        cells, number, max_lines = [turn.id, shorts[turn.id], turn.answer], turn.number, lines
        if others:  # ids are never cut
            cells[1:] = f"and {len(others)} more", "not asked"
            number, max_lines = ", ".join(other.id for other in others), len(others) + 1
        room = page.width - INDENT - sum(widths)
        numbers = in_lines(page.plain(number), room, max_lines) if room >= MIN_NUMBER else []
        head: Line = [
            (f"{cell:<{width}}", style)
            for cell, width, style in zip(cells, widths, ("id", "", answer_style), strict=True)
        ]
        for text in numbers or [""]:
            page.lines([[*head, (text, "")]], indent=INDENT)
            head = [(" " * sum(widths), "")]


def path_chain(page: Page, report: Report, *, shorts: bool, number: bool) -> None:
    """Add the questions one after the other.

    Args:
        page: where to.
        report: what to say.
        shorts: whether they are shown in words too.
        number: whether the number that decided the last one is shown.
    """
    head = "Path"
    for walk in report.walks:
        pieces: list[Piece] = [] if head else [("further ", "dim")]
        pieces += chain(walk, shorts=shorts)
        last = walk.turns[-1]
        if number and last.checked and last.number:
            pieces += [(f": {clipped(page.plain(last.number), 2 * page.width // 3)}", "")]
        page.item((head, "heading"), pieces, indent=0, head_width=6)
        head = ""


def chain(walk: Walk, *, shorts: bool) -> list[Piece]:
    """Return the questions of a walk in a row: their ids, with `shorts` in words, and the answers."""
    pieces: list[Piece] = []
    for group in walk.groups:
        pieces += [(" › ", "dim"), *_link(group, shorts=shorts)]
    return pieces[1:]


def _link(group: Sequence[Turn], *, shorts: bool) -> list[Piece]:
    if len(group) > 1:
        return [(", ".join(turn.id for turn in group), "id"), (" not asked", "")]
    turn = group[0]
    asked = f" {clipped(turn.short, LONGEST_SHORT)} " if shorts else " "
    if turn.checked:
        return [(turn.id, "id"), (asked, ""), (turn.answer, "answer")]
    return [(turn.id, "id"), (asked, ""), (turn.answer if shorts else "?", "")]
