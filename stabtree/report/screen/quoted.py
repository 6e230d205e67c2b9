"""The rows of the log that show an incident, on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stabtree.report.model.quoted import Quoted, QuotedLine
    from stabtree.report.page import Page
    from stabtree.report.text import Line, Piece

GAP = 2
INDENT = 2
MAX_NAME = 26
BEFORE_NOTE = "   "


def quoted(page: Page, table: Quoted, *, most: int) -> None:
    """Add the rows as a table, the first ones and those that are marked where there are too many.

    Args:
        page: where to.
        table: the rows.
        most: how many rows are shown.
    """
    lines = _kept(table, most)
    steps = [f"{line.step:,}" for line in lines]
    first = max(len(table.unit), *map(len, steps))
    widths = _widths(page, table, lines, first)
    head: Line = [(f"{table.unit:>{first}}", "dim")]
    head += [(f"{_name(page, name):>{width}}", "dim") for name, width in zip(table.metrics, widths, strict=False)]
    page.lines([head], indent=INDENT)
    for step, line in zip(steps, lines, strict=True):
        style = "number" if line.here else ""
        cells: list[Piece] = [(f"{step:>{first}}", style)]
        cells += [(f"{cell:>{width}}", _style(cell, style)) for cell, width in zip(line.cells, widths, strict=False)]
        note = (BEFORE_NOTE + line.note, "mark" if line.here else "dim")
        page.lines([[*cells, *([note] if line.note else [])]], indent=INDENT)


def _style(cell: str, style: str) -> str:
    return "mark" if cell in ("NaN", "inf", "-inf") else style


def _kept(table: Quoted, most: int) -> list[QuotedLine]:
    """Return at most so many rows, by step: those that are most worth it."""
    return [line for line in table.lines if line in sorted(table.lines, key=lambda line: line.rank)[:most]]


def _widths(page: Page, table: Quoted, lines: list[QuotedLine], first: int) -> list[int]:
    """Return the widths of the columns that fit beside the steps and what the rows are."""
    note = max((len(line.note) + len(BEFORE_NOTE) for line in lines), default=0)
    room = page.width - INDENT - first - min(note, page.width // 2)
    widths: list[int] = []
    for index, name in enumerate(table.metrics):
        cells = max(len(line.cells[index]) for line in lines)
        width = max(len(_name(page, name)), cells) + GAP
        if widths and sum(widths) + width > room:
            break
        widths.append(width)
    return widths


def _name(page: Page, name: str) -> str:
    """Return the name of a series, of a long one its last part, else the end of that."""
    text = page.plain(name)
    if len(text) > MAX_NAME:
        text = text.rpartition("/")[2]
    if len(text) <= MAX_NAME:
        return text
    return page.plain("…") + text[-(MAX_NAME - 1) :]
