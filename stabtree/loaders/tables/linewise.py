"""The rows of delimited text line by line, whatever it looks like.

A record is a line. The stdlib reader lets one stray quote swallow the rest of a broken file, so a quoted
field is followed over a line end only where that makes the number of fields come out right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders.tables.layout import QUOTED_LINES, Layout, distinct, split

if TYPE_CHECKING:
    from stabtree.loaders.table import Skips

LONG_LINE = 1 << 20

Record = tuple[int, list[str]]


def records(text: str, first: int, layout: Layout, skips: Skips, *, last: bool) -> tuple[list[Record], str]:
    """The rows of a text below the header as (line number, one cell for each name), and what to read later.

    What is left begins at a quote that is open so near the end that the lines which may close it are missing.

    Args:
        text: whole lines; the very last one of a file may lack its line end.
        first: the number of the first line.
        layout: how the file is laid out.
        skips: takes note of what can't be read.
        last: whether nothing follows, so that nothing may be left.
    """
    lines = text.split("\n")
    ended = not lines[-1]
    if ended:
        lines.pop()
    found: list[Record] = []
    at = 0
    while at < len(lines):
        line, place, used = lines[at], first + at, 1
        if line.startswith("#"):
            skips.add(place, "begins with #, as a comment does")
        elif "\0" in line:
            skips.add(place, "holds NUL bytes")
        elif not _is_blank(line, layout.delimiter):
            if line.count('"') % 2:
                if not last and at + QUOTED_LINES >= len(lines):
                    return found, "\n".join(lines[at:]) + ("\n" if ended else "")
                line, used = _join(lines[at : at + 1 + QUOTED_LINES], layout)
            cut = not ended and at + used == len(lines)
            fields = _fields(line, place, layout, skips, cut=cut)
            if fields:
                found.append((place, fields))
        at += used
    return found, ""


def _is_blank(line: str, delimiter: str) -> bool:
    """Whether a line holds nothing; one of empty cells is a row, be they parted by commas or by tabs."""
    return not line.strip() and (delimiter == " " or delimiter not in line)


def _fields(line: str, place: int, layout: Layout, skips: Skips, *, cut: bool) -> list[str]:
    """The cells of a row, an empty one for each that is missing; none where the line is no row."""
    width = len(layout.names)
    many = line.count(layout.delimiter) if len(line) > LONG_LINE else 0
    if many > 10 * width:
        # Two million fields are not worth a list to count them in.
        skips.add(place, f"has some {many + 1} fields where the header has {width}")
        return []
    fields = split(line, layout.delimiter)
    if len(fields) > width and not any(cell.strip() for cell in fields[width:]):
        del fields[width:]
    if len(fields) > width:
        skips.add(place, f"has {len(fields)} fields where the header has {width}")
        return []
    if bare(fields[0]) in ("", layout.names[0]) and distinct(fields) == layout.names:
        skips.add(place, "repeats the header")
        return []
    if len(fields) < width:
        if cut:
            skips.add(place, "is cut: the file ends inside this line")
            return []
        skips.short += 1
        fields += [""] * (width - len(fields))
    return fields


def bare(cell: str) -> str:
    """The text of a cell without blanks, quotes and NUL bytes around it."""
    return cell.strip(" \t'\"\0")


def _join(lines: list[str], layout: Layout) -> tuple[str, int]:
    """The first line with those that its open quote reaches over, and how many they are."""
    text = lines[0]
    for used, more in enumerate(lines[1:], 2):
        text += "\n" + more
        if more.count('"') % 2:
            return (text, used) if len(split(text, layout.delimiter)) == len(layout.names) else (lines[0], 1)
    return lines[0], 1
