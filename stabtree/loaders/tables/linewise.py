"""The rows of delimited text line by line, whatever it looks like.

A record is a line. The stdlib reader lets one stray quote swallow the rest of a broken file, so a quoted
field is followed over a line end only where a quote closes it as CSV has it, the number of fields comes out
right, and no line that it would swallow is a row by itself. A header that comes again is read anew: the rows
below it have its columns, in its order.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from stabtree.loaders.tables.cells import LACKING, number
from stabtree.loaders.tables.layout import QUOTED_LINES, Layout, distinct, numeric, share_of_numbers, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.loaders.table import Skips

LONG_LINE = 1 << 20
# A header that comes again has a known name in one of so many of the first columns that have names.
ANCHORS = 3
# What may stand around the text of a cell.
BLANKS = " \t'\"\0"
CUT = "is cut: the file ends inside this line"
# So many rows show what the last cell of a row is like.
SHOWING = 10
# A number is larger than all above it by this factor where its negative exponent, or the last digit of it, is lost.
EXPONENT_LOST = 5.0

# A number, or as much of it as was written.
_BEGUN = re.compile(r"\s*[+-]?\d*[.,]?\d*([eE][+-]?\d*)?")

Record = tuple[int, list[str]]


class Below(NamedTuple):
    """Rows below one header.

    Attributes:
        layout: of that header.
        rows: (line number, one cell for each name).
    """

    layout: Layout
    rows: list[Record]


def records(
    text: str, first: int, layout: Layout, skips: Skips, *, last: bool, above: Sequence[str] = ()
) -> tuple[list[Below], str]:
    """The rows of a text below the header, and what to read later.

    What is left begins at a quote that is open so near the end that the lines which may close it are missing.

    Args:
        text: whole lines; the very last one of a file may lack its line end.
        first: the number of the first line.
        layout: how the file is laid out so far.
        skips: takes note of what can't be read.
        last: whether nothing follows, so that nothing may be left.
        above: the last cells of the rows above.
    """
    lines = text.split("\n")
    ended = not lines[-1]
    if ended:
        lines.pop()
    parts = [Below(layout, [])]
    at = 0
    while at < len(lines):
        line, place, used = lines[at], first + at, 1
        layout = parts[-1].layout
        if line.startswith("#"):
            skips.add(place, "begins with #, as a comment does")
        elif "\0" in line:
            skips.add(place, "holds NUL bytes")
        elif not _is_blank(line, layout.delimiter):
            if line.count('"') % 2:
                if not last and at + QUOTED_LINES >= len(lines):
                    return parts, "\n".join(lines[at:]) + ("\n" if ended else "")
                line, used = _join(lines[at : at + 1 + QUOTED_LINES], layout)
                skips.quotes += used == 1
            cut = not ended and at + used == len(lines) and not line.endswith('"')
            fields = _fields(line, place, layout, skips)
            if header_again(fields, layout):
                parts += _renewed(fields, place, layout, skips)
            elif cut and len(fields) == len(layout.names) and _is_cut(fields[-1], above):
                skips.add(place, CUT)
                if not all(map(_is_finite, fields[:-1])):  # what broke the run may stand in its last line
                    parts[-1].rows.append((place, [*fields[:-1], ""]))
            elif row := _fitted(fields, place, layout, skips, cut=cut):
                parts[-1].rows.append((place, row))
        at += used
    return parts, ""


def _is_blank(line: str, delimiter: str) -> bool:
    """Whether a line holds nothing; one of empty cells is a row, be they parted by commas or by tabs."""
    return not line.strip() and (delimiter == " " or delimiter not in line)


def _fields(line: str, place: int, layout: Layout, skips: Skips) -> list[str]:
    """The fields of a line; none where there are far too many."""
    width = len(layout.names)
    many = line.count(layout.delimiter) if len(line) > LONG_LINE else 0
    if many > 10 * width:
        # Two million fields are not worth a list to count them in.
        skips.add(place, f"has some {many + 1} fields where the header has {width}")
        return []
    fields = split(line, layout.delimiter)
    if len(fields) != width and line.count('"') % 2:
        # What follows an open quote may be cells all the same.
        plain = line.split(layout.delimiter)
        fields = plain if len(plain) == width else fields
    if layout.dangling and len(fields) > width and not any(cell.strip() for cell in fields[width:]):
        del fields[width:]
    return fields


def _fitted(fields: list[str], place: int, layout: Layout, skips: Skips, *, cut: bool) -> list[str]:
    """The cells of a row, `LACKING` for each that is missing; none where the line is no row."""
    width = len(layout.names)
    if len(fields) > width:
        skips.add(place, f"has {len(fields)} fields where the header has {width}")
        return []
    if fields and len(fields) < width:
        if cut:
            skips.add(place, CUT)
            return []
        skips.short += 1
        fields += [LACKING] * (width - len(fields))
    return fields


def _is_cut(cell: str, above: Sequence[str]) -> bool:
    """Whether a number breaks off where the file ends: it is shorter than all above it, or has lost its exponent.

    What begins no number, such as `nan`, is taken as it stands.
    """
    if len(above) < SHOWING or not _BEGUN.fullmatch(cell):
        return False
    if cell[-1:] in ("e", "E", "-", "+") or all(len(cell) < len(other) for other in above):
        return True
    small = any("e-" in other.lower() for other in above)
    return small and _size(cell) > EXPONENT_LOST * max(map(_size, above))


def _is_finite(cell: str) -> bool:
    """Whether a cell holds no NaN and no infinity."""
    try:
        return math.isfinite(number(cell) or 0.0)
    except (ValueError, OverflowError):
        return True


def _size(cell: str) -> float:
    """How large a number is; 0 for what is none, or not finite."""
    try:
        size = abs(float(cell.replace(",", ".")))
    except ValueError:
        return 0.0
    return size if math.isfinite(size) else 0.0


@lru_cache(maxsize=4)
def anchors(names: tuple[str, ...]) -> tuple[int, ...]:
    """The places of which a header that comes again has a known name in one at least."""
    return tuple(islice((place for place, name in enumerate(names) if name != f"column {place + 1}"), ANCHORS))


def header_again(fields: list[str], layout: Layout) -> bool:
    """Whether the fields are a header: no numbers among them, and at least half of them, and two, known names."""
    names, width = layout.names, len(layout.names)
    if len(fields) == width and all(bare(fields[place]) not in names for place in anchors(names)):
        return False
    words = [bare(cell) for cell in fields]
    known = frozenset(names)
    met = sum(word in known for word in words)
    return met >= max(len(words) / 2, min(width, 2)) and not any(numeric(word) for word in words if word)


def _renewed(fields: list[str], place: int, layout: Layout, skips: Skips) -> list[Below]:
    """What begins below a header that comes again: nothing new where its columns are those of the one above."""
    names = distinct(fields)
    if names == layout.names:
        skips.add(place, "repeats the header")
        return []
    skips.headers.append(place)
    return [Below(replace(layout, names=names), [])]


def bare(cell: str) -> str:
    """The text of a cell without blanks, quotes and NUL bytes around it."""
    return cell.strip(BLANKS)


def _join(lines: list[str], layout: Layout) -> tuple[str, int]:
    """The first line with those that its open quote reaches over, and how many they are."""
    for used, line in enumerate(lines[1:], 2):
        if line.count('"') % 2:
            text = "\n".join(lines[:used])
            whole = _closes(line, layout) and len(split(text, layout.delimiter)) == len(layout.names)
            return (text, used) if whole else (lines[0], 1)
        if _is_row(line, layout):
            break
    return lines[0], 1


def _closes(line: str, layout: Layout) -> bool:
    """Whether the first quote of a line that is none of two ends a field, and does not begin one."""
    mark = layout.delimiter
    closing = re.match(r'(?:[^"]|"")*+"', line)
    if not closing or not re.match(rf"[ \t]*({re.escape(mark)}|$)", line[closing.end() :]):
        return False
    opens = line[: closing.end() - 1].rstrip(" ").endswith(mark)
    return not (opens and _is_row(line, layout))


def _is_row(line: str, layout: Layout) -> bool:
    """Whether a line is a row by itself: as many fields as the header has, half of them numbers or more."""
    cells = line.split(layout.delimiter)
    return len(cells) == len(layout.names) > 1 and any(map(bare, cells)) and share_of_numbers(cells) >= 0.5
