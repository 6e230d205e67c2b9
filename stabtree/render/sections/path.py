"""The path on a screen: a line a question while there is room, else as a chain."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from stabtree.render.sections.fit import clipped, in_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.render.page import Page
    from stabtree.render.plot import Piece
    from stabtree.render.report.model import Report, Turn, Walk

LONGEST_SHORT = 28
INDENT = 2
LEAST_NUMBER = 12  # columns that a number must have to be told beside its question


def path_rows(page: Page, report: Report, *, lines: int) -> None:
    """Each question with its answer and the number that decided it, in at most so many lines."""
    page.line(("Path", "heading"))
    turns = [turn for walk in report.walks for turn in walk.turns]
    told = {turn.id: page.plain(clipped(turn.short, LONGEST_SHORT)) for turn in turns}
    widths = [max(map(len, column)) + 2 for column in (told, told.values(), [turn.answer for turn in turns])]
    for place, walk in enumerate(report.walks):
        if place:
            page.line(("and further, past the first diagnosis:", "dim"), indent=INDENT)
        for group in turn_groups(report, walk):
            _row(page, group, told, widths, lines)
        if place + 1 < len(report.walks):
            page.line((walk.ends, ""), indent=INDENT)


def _row(page: Page, group: list[Turn], told: Mapping[str, str], widths: list[int], lines: int) -> None:
    turn, *others = group
    cells, number = (turn.id, told[turn.id], turn.answer), turn.number
    if others:
        cells, number = (turn.id, f"and {len(others)} more", "not asked"), ", ".join(other.id for other in others)
    styles = ("id", "", "answer" if turn.checked else "")
    head = list(zip((f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)), styles, strict=True))
    room = page.width - INDENT - sum(widths)
    most = len(group) if others else lines  # ids are never cut
    numbers = in_lines(page.plain(number), room, most) if room >= LEAST_NUMBER else [""]
    for place, text in enumerate(numbers or [""]):
        page.lines([[*(head if not place else [(" " * sum(widths), "")]), (text, "")]], indent=INDENT)


def path_chain(page: Page, report: Report, *, shorts: bool, number: bool) -> None:
    """The questions one after the other, in words and with the number that decided the last one where that is asked."""
    for place, walk in enumerate(report.walks):
        pieces: list[Piece] = [("further ", "dim")] if place else []
        pieces += chain(report, walk, shorts=shorts)
        last = walk.turns[-1]
        if number and last.checked and last.number:
            pieces += [(f": {clipped(page.plain(last.number), 2 * page.width // 3)}", "")]
        page.item(("" if place else "Path", "heading"), pieces, indent=0, head_width=6)


def chain(report: Report, walk: Walk, *, shorts: bool) -> list[Piece]:
    """The questions of a walk in a row: their ids, with `shorts` in words, and the answers."""
    pieces: list[Piece] = []
    for group in turn_groups(report, walk):
        pieces += [(" › ", "dim")] if pieces else []
        pieces += _link(group, shorts=shorts)
    return pieces


def _link(group: list[Turn], *, shorts: bool) -> list[Piece]:
    if len(group) > 1:
        return [(", ".join(turn.id for turn in group), "id"), (" not asked", "")]
    turn = group[0]
    asked = f" {clipped(turn.short, LONGEST_SHORT)} " if shorts else " "
    answer = turn.answer if turn.checked or shorts else "?"
    return [(turn.id, "id"), (asked, ""), (answer, "answer" if turn.checked else "")]


def turn_groups(report: Report, walk: Walk) -> Iterator[list[Turn]]:
    """The turns one by one, neighbouring questions for a person that nobody answered together."""
    tests = report.diagnosis.tree.questions
    for unasked, turns in groupby(walk.turns, key=lambda turn: not turn.checked and not tests[turn.id].test):
        found = list(turns)
        yield from [found] if unasked else ([turn] for turn in found)
