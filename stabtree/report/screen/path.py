"""The path on a screen: its questions as a chain, with the number that decided the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.text import clipped, uncut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.report.model.report import Report, Turn, Walk
    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece

LONGEST_SHORT = 28
HEAD = 10
LINK = " › "
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
    fitting = [pieces for pieces in map(_joined, _ends_of(links)) if _width(pieces) <= room] or [_joined(links[-1:])]
    for pieces in fitting:
        # The number goes on where the chain ends.
        begin = _width(pieces) + 2
        shown = uncut("." * begin + number, room, lines) if number else []
        if shown:
            pieces.append((f": {' '.join(shown)[begin:]}", ""))
            break
    else:
        pieces = fitting[0]
    page.item((f"{'Path':<{HEAD}}", "heading"), pieces, indent=0, head_width=HEAD)


def _ends_of(links: Sequence[Sequence[Piece]]) -> Iterator[Sequence[Sequence[Piece]]]:
    """Yield all links, then fewer and fewer of the last ones behind a mark that some are left out."""
    yield links
    for count in range(len(links) - 1, 0, -1):
        yield [[("…", "dim")], *links[-count:]]


def _joined(links: Sequence[Sequence[Piece]]) -> Line:
    pieces: Line = []
    for index, link in enumerate(links):
        pieces += [(LINK, "dim"), *link] if index else link
    return pieces


def _width(pieces: Sequence[Piece]) -> int:
    return sum(len(text) for text, _ in pieces)


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
