"""The rows of delimited text read line by line, whatever it looks like.

A record is a line. The reader of the standard library lets one stray quote swallow the rest of a broken file, so a
quoted field is followed over a line end only if a quote closes it as in CSV, the number of fields comes out right,
and no line that it would swallow is a row by itself. A repeated header is read anew: the rows below it have its
columns, in its order.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.dataclass import dataclass
from stabtree.loaders.tables.cells import MISSING_CELL, number
from stabtree.loaders.tables.layout import QUOTED_LINES, Layout, distinct, has_numbers, numeric, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.loaders.table import Skips

LONG_LINE = 1 << 20
# A repeated header has a known name in one of so many of the first columns that have names.
ANCHORS = 3
# What may surround the text of a cell.
BLANKS = " \t'\"\0"
CUT = "is cut: the file ends inside this line"
# Rows above that show what the last cell of a row is like.
MIN_ROWS_ABOVE = 10
# A number exceeds all above it by this factor if its negative exponent, or the last digit of it, is lost.
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
    """Read the rows of a text below the header.

    Args:
        text: whole lines; the very last one of a file may lack its line end.
        first: the number of the first line.
        layout: how the file is laid out so far.
        skips: takes note of what can't be read.
        last: whether nothing follows, so that nothing may be left.
        above: the last cells of the rows above.

    Returns:
        The rows, and the text to read later: it begins at a quote that is open so near the end that the lines which
        may close it are missing.
    """
    lines = text.split("\n")
    ended = not lines[-1]
    if ended:
        lines.pop()
    reader = _Reader(lines, first, ended, last, above, skips, [Below(layout, [])])
    index = 0
    while index < len(lines):
        used = reader.read(index)
        if not used:
            return reader.parts, "\n".join(lines[index:]) + "\n" * ended
        index += used
    return reader.parts, ""


@dataclass(slots=True)
class _Reader:
    """Reads one record after the other; for all but `parts` and `ended` see `records`.

    Attributes:
        ended: whether the last line has its line end.
        parts: the rows that were read.
    """

    lines: list[str]
    first: int
    ended: bool
    last: bool
    above: Sequence[str]
    skips: Skips
    parts: list[Below]

    def read(self, index: int) -> int:
        """Read the record that begins at a line; return how many lines it takes, 0 if it may go on in later text."""
        line, line_number = self.lines[index], self.first + index
        layout = self.parts[-1].layout
        used = 1
        if line.startswith("#"):
            _pass_over(line, line_number, layout, self.skips)
        elif "\0" in line:
            self.skips.add(line_number, "holds NUL bytes")
        elif not _is_blank(line, layout.delimiter):
            if line.count('"') % 2:
                if not self.last and index + QUOTED_LINES >= len(self.lines):
                    return 0
                line, used = _join(self.lines[index : index + 1 + QUOTED_LINES], layout)
                self.skips.quotes += used == 1
            cut = not self.ended and index + used == len(self.lines) and not line.endswith('"')
            self._add(_fields(line, line_number, layout, self.skips), line_number, cut=cut)
        return used

    def _add(self, fields: list[str], line_number: int, *, cut: bool) -> None:
        layout, rows = self.parts[-1]
        if is_header(fields, layout):
            self._start_header(distinct(fields), line_number)
        elif cut and len(fields) == len(layout.names) and _is_cut(fields[-1], self.above):
            self.skips.add(line_number, CUT)
            if not all(map(_is_finite, fields[:-1])):  # the last line may hold what broke the run
                rows.append((line_number, [*fields[:-1], ""]))
        elif row := _fitted(fields, line_number, layout, self.skips, cut=cut):
            rows.append((line_number, row))

    def _start_header(self, names: tuple[str, ...], line_number: int) -> None:
        layout = self.parts[-1].layout
        if names == layout.names:
            self.skips.add(line_number, "repeats the header")
            return
        self.skips.headers.append(line_number)
        self.parts.append(Below(replace(layout, names=names), []))


def _pass_over(line: str, place: int, layout: Layout, skips: Skips) -> None:
    """Count a line that begins with `#`: a comment, or a row of numbers, with which something of the log is lost."""
    fields = split(line.lstrip("# \t"), layout.delimiter)
    if len(fields) == len(layout.names) and 2 * sum(map(numeric, fields)) >= len(fields):
        skips.add(place, "begins with #, as a comment does")
    else:
        skips.add_comment(place)


def _is_blank(line: str, delimiter: str) -> bool:
    """Return whether a line holds nothing; one of empty cells is a row, be they separated by commas or by tabs."""
    return not line.strip() and (delimiter == " " or delimiter not in line)


def _fields(line: str, line_number: int, layout: Layout, skips: Skips) -> list[str]:
    """Split a line; return no fields if there are far too many."""
    width = len(layout.names)
    many = line.count(layout.delimiter) if len(line) > LONG_LINE else 0
    if many > 10 * width:
        # Two million fields are not worth a list to count them in.
        skips.add(line_number, f"has some {many + 1} fields where the header has {width}")
        return []
    fields = split(line, layout.delimiter)
    if len(fields) != width and line.count('"') % 2:
        # What follows an open quote may be cells all the same.
        unquoted = line.split(layout.delimiter)
        if len(unquoted) == width:
            return unquoted
    if layout.dangling and len(fields) > width and not any(cell.strip() for cell in fields[width:]):
        return fields[:width]
    return fields


def _fitted(fields: list[str], line_number: int, layout: Layout, skips: Skips, *, cut: bool) -> list[str]:
    """Return the cells of a row, `MISSING_CELL` for each that is missing; none if the line is no row."""
    width = len(layout.names)
    if len(fields) > width:
        skips.add(line_number, f"has {len(fields)} fields where the header has {width}")
        return []
    if fields and len(fields) < width:
        if cut:
            skips.add(line_number, CUT)
            return []
        skips.short += 1
        fields += [MISSING_CELL] * (width - len(fields))
    return fields


def _is_cut(cell: str, above: Sequence[str]) -> bool:
    """Return whether a number breaks off at the end of the file: it is shorter than all above, or lost its exponent.

    What begins no number, such as `nan`, is taken as it is.
    """
    if len(above) < MIN_ROWS_ABOVE or not _BEGUN.fullmatch(cell):
        return False
    if cell[-1:] in ("e", "E", "-", "+") or all(len(cell) < len(other) for other in above):
        return True
    small = any("e-" in other.lower() for other in above)
    return small and _size(cell) > EXPONENT_LOST * max(map(_size, above))


def _is_finite(cell: str) -> bool:
    """Return whether a cell holds neither NaN nor infinity."""
    try:
        return math.isfinite(number(cell) or 0.0)
    except (ValueError, OverflowError):
        return True


def _size(cell: str) -> float:
    """Return the absolute value of a number; 0 if it is none, or not finite."""
    try:
        size = abs(float(cell.replace(",", ".")))
    except ValueError:
        return 0.0
    return size if math.isfinite(size) else 0.0


@lru_cache(maxsize=4)
def anchors(names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indices of columns of which a repeated header has a known name in one at least."""
    return tuple(islice((index for index, name in enumerate(names) if name != f"column {index + 1}"), ANCHORS))


def is_header(fields: list[str], layout: Layout) -> bool:
    """Return whether the fields are a header: no numbers among them, and at least half, and two, known names."""
    names, width = layout.names, len(layout.names)
    if len(fields) == width and {bare(fields[index]) for index in anchors(names)}.isdisjoint(names):
        return False
    words = [bare(cell) for cell in fields]
    known = frozenset(names)
    found = sum(word in known for word in words)
    return found >= max(len(words) / 2, min(width, 2)) and not any(numeric(word) for word in words if word)


def bare(cell: str) -> str:
    """Return the text of a cell without blanks, quotes and NUL bytes around it."""
    return cell.strip(BLANKS)


def _join(lines: list[str], layout: Layout) -> tuple[str, int]:
    """Return the first line joined with those that its open quote reaches over, and how many they are."""
    for used, line in enumerate(lines[1:], 2):
        if line.count('"') % 2:
            text = "\n".join(lines[:used])
            if _closes(line, layout) and len(split(text, layout.delimiter)) == len(layout.names):
                return text, used
            break
        if _is_row(line, layout):
            break
    return lines[0], 1


def _closes(line: str, layout: Layout) -> bool:
    """Return whether the first quote of a line that is none of two ends a field, and does not begin one."""
    delimiter = layout.delimiter
    closing = re.match(r'(?:[^"]|"")*+"', line)
    if not closing or not re.match(rf"[ \t]*({re.escape(delimiter)}|$)", line[closing.end() :]):
        return False
    opens = line[: closing.end() - 1].rstrip(" ").endswith(delimiter)
    return not (opens and _is_row(line, layout))


def _is_row(line: str, layout: Layout) -> bool:
    """Return whether a line is a row by itself: as many fields as the header has, half of them numbers or more."""
    cells = line.split(layout.delimiter)
    return len(cells) == len(layout.names) > 1 and any(map(bare, cells)) and has_numbers(cells, 0.5)
