"""The path on a screen: its questions as a chain, with the number that decided the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.text import clipped, uncut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.report.model.report import Report, Turn, Walk
    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece

LONGEST_SHORT = 28
HEAD = 10
MIN_NUMBER = 36  # columns of the number that decided
LINK, CUT = " › ", "… › "
FURTHER = "and further, past the first diagnosis:"


def path_line(page: Page, report: Report, *, lines: int) -> None:
    """Add the walk that the verdict rests on: its last questions, and the number that decided.

    Args:
        page: where to.
        report: what to say.
        lines: in at most how many lines; a number that does not fit is left out.
    """
    walk = report.walks[-1]
    room = page.width - HEAD
    last = walk.turns[-1]
    links = [_link(group, shorts=False) for group in walk.groups if group[-1] is last or group[0].checked]
    number = page.plain(last.number) if last.checked else ""
    kept = _last(links, room - len(CUT) - min(len(number), MIN_NUMBER) - 2)
    pieces: Line = []
    if len(kept) < len(links):
        pieces.append((CUT, "dim"))
    pieces += kept[0]
    for link in kept[1:]:
        pieces += [(LINK, "dim"), *link]
    begin = sum(len(text) for text, _ in pieces) + 2
    # The number begins where the chain ends: as many columns of its first line are taken.
    shorter = filter(None, (number, number.rpartition(", ")[0]))
    shown = next(filter(None, (uncut("." * begin + text, room, lines) for text in shorter)), [])
    if shown:
        pieces.append((f": {' '.join(shown)[begin:]}", ""))
    page.item((f"{'Path':<{HEAD}}", "heading"), pieces, indent=0, head_width=HEAD)


def _last(links: Sequence[list[Piece]], room: int) -> Sequence[list[Piece]]:
    """Return as many of the last links as there is room for, and the very last one in any case."""
    begin = len(links) - 1
    while begin and _length(links[begin - 1 :]) <= room:
        begin -= 1
    return links[begin:]


def _length(links: Sequence[Sequence[Piece]]) -> int:
    return sum(len(text) for link in links for text, _ in link) + len(LINK) * (len(links) - 1)


def chain(walk: Walk, *, shorts: bool) -> list[Piece]:
    """Return the questions of a walk in a row: their ids, with `shorts` in words, and the answers."""
    pieces: list[Piece] = []
    for group in walk.groups:
        pieces += [(LINK, "dim"), *_link(group, shorts=shorts)]
    return pieces[1:]


def _link(group: Sequence[Turn], *, shorts: bool) -> list[Piece]:
    if len(group) > 1:
        return [(", ".join(turn.id for turn in group), "id"), (" not asked", "")]
    turn = group[0]
    asked = f" {clipped(turn.short, LONGEST_SHORT)} " if shorts else " "
    if turn.checked:
        return [(turn.id, "id"), (asked, ""), (turn.answer, "answer")]
    return [(turn.id, "id"), (asked, ""), (turn.answer if shorts else "?", "")]
