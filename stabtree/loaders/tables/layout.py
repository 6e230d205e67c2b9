"""How a delimited file is laid out, found from its first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.loaders.tables.cells import Comma, number

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIMITERS = (",", ";", "\t", "|", " ")
# Banners and configuration that trainers print before the header; beyond that a text log is likelier.
HEADER_WITHIN = 30
LOOK_AT = HEADER_WITHIN + 50
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank"}

# Three digits after the comma may be thousands, unless a zero precedes it.
_SURE_DECIMAL = re.compile(r"[+-]?(0?,\d+|\d*,(\d{1,2}|\d{4,}))(e[+-]?\d+)?", re.IGNORECASE)
# 03.12 is a day.
_POINT = re.compile(r"[+-]?(?!0\d)\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
# A quoted field, such as a logged sample text, may run over this many lines.
QUOTED_LINES = 50

Line = tuple[int, str]  # its number and its text


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the header is and what separates its fields.

    Attributes:
        delimiter: one character; a blank means any number of blanks.
        names: the header's fields, unquoted, made distinct.
        header_line: its line number, from 1; 0 where there is none.
        comma: what a comma inside a number means.
        rows: rows of data found below it in the first lines.
        agree: the share of those that have as many fields as the header.
        commas: the columns that have numbers with commas there, and none with a point.
        dangling: whether rows, but not the header, end with a delimiter, so that they seem to have one field more.
    """

    delimiter: str
    names: tuple[str, ...]
    header_line: int
    comma: Comma
    rows: int
    agree: float
    commas: frozenset[str] = frozenset()
    dangling: bool = False


def split(line: str, delimiter: str) -> list[str]:
    """Split a line into its fields. Quotes are honoured; one that is never closed ends with the line."""
    if delimiter == " ":
        if '"' not in line:
            return line.split()
        return next(csv.reader([" ".join(line.split())], delimiter=" "))
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return line.split(delimiter)


# Sniffing asks, then reading asks again.
@lru_cache(maxsize=4)
def find_layout(head: str) -> Layout | None:
    """Return the layout of the file that begins with `head`; None if it is not a delimited file.

    A file without a header comes back with `header_line` 0.
    """
    lines = head.split("\n", LOOK_AT)
    if len(lines) > 2:
        del lines[-1]  # the head may end inside a line
    numbered = [(line_number, line) for line_number, line in enumerate(lines[:LOOK_AT], 1) if line.strip(" \0")]
    plain = [(line_number, line) for line_number, line in numbered if not line.startswith("#")]
    readings = [plain, _uncommented(numbered, plain)]
    if '"' in head:
        # Where each row holds a text of several lines, no single line has the right number of fields.
        whole = head[: head.rfind("\n")].split("\n", LOOK_AT * QUOTED_LINES)[: LOOK_AT * QUOTED_LINES]
        readings.append(_joined(whole))
    layouts = chain.from_iterable(map(_layouts, filter(None, readings)))
    return max(filter(None, layouts), key=_quality, default=None)


def _layouts(reading: list[Line]) -> Iterator[Layout | None]:
    """Yield the layout by each delimiter; of those that no line holds, all of which give one, by the first alone."""
    absent = False
    for delimiter in DELIMITERS:
        here = any(delimiter in line for _, line in reading[:LOOK_AT])
        if here or not absent or delimiter == " ":
            yield _try(reading[:LOOK_AT], delimiter)
        absent |= not here


def _quality(layout: Layout) -> tuple[float, ...]:
    """Return the sort key of a layout: the best one is highest."""
    return (
        layout.rows > 0,
        layout.agree * min(layout.rows, 20),
        layout.header_line > 0,
        # `0;3,010;0,001` is no header of three names.
        not any(name[:1].isdigit() for name in layout.names),
        len(layout.names),
    )


def _uncommented(numbered: list[Line], plain: list[Line]) -> list[Line]:
    """Return the lines with the last comment above the data for a header, as `numpy.savetxt` writes it."""
    first = plain[0][0] if plain else 0
    above = [(line_number, line) for line_number, line in numbered if line.startswith("#") and line_number < first]
    if not above:
        return []
    line_number, line = above[-1]
    return [(line_number, line.lstrip("# \t")), *plain]


def _joined(lines: list[str]) -> list[Line]:
    """Return the lines that may be rows, those of a field in quotes joined."""
    found: list[Line] = []
    open_since = 0
    for line_number, line in enumerate(lines, 1):
        if open_since:
            first, text = found[-1]
            found[-1] = first, f"{text}\n{line}"
            if line.count('"') % 2 or line_number - open_since >= QUOTED_LINES:
                open_since = 0
        elif line.strip(" \0") and not line.startswith("#"):
            found.append((line_number, line))
            if line.count('"') % 2:
                open_since = line_number
    if open_since:
        return found[:-1]
    return found


def _try(numbered: list[Line], delimiter: str) -> Layout | None:
    """Return the layout of lines that are split at a delimiter; None if they make no table."""
    rows = [[cell.strip() for cell in split(line, delimiter)] for _, line in numbered]
    width = _usual_width(rows)
    if delimiter == " " and width < 2:
        return None
    for index, fields in enumerate(rows[:HEADER_WITHIN]):
        below = rows[index + 1 :]
        if _has_header_width(fields, below, width) and _is_header(fields):
            return _layout(delimiter, distinct(fields), numbered[index][0], below)
    first = next((fields for fields in rows[:HEADER_WITHIN] if len(fields) == width), [])
    if width >= 2 and first and all(map(numeric, filter(None, first))):
        return _layout(delimiter, distinct([""] * width), 0, rows)
    return None


def _has_header_width(fields: list[str], below: list[list[str]], width: int) -> bool:
    """Return whether a header of these fields may belong to the rows below it, which are `width` wide."""
    # Some writers end every row with a delimiter, but not the header.
    dangling = len(fields) == width - 1 > 0 and all(_fits(cells, len(fields)) for cells in below)
    return len(fields) == width or dangling


def _layout(delimiter: str, names: tuple[str, ...], header_line: int, below: list[list[str]]) -> Layout | None:
    """Return a layout, unless the rows below the header don't look like rows of numbers."""
    if not below:
        return _bare_header(delimiter, names, header_line)
    fit = [cells for cells in below if _fits(cells, len(names))]
    agree = len(fit) / len(below)
    plausible = _count_plausible(fit, delimiter)
    if plausible < 0.5 * len(below):
        return None
    if (delimiter == " " or len(names) == 1) and agree < 0.8:
        return None
    dangling = sum(len(cells) > len(names) for cells in fit) > 0.5 * len(fit)
    commas = _commas(delimiter, names, fit)
    return Layout(delimiter, names, header_line, _comma(delimiter, fit), len(fit), agree, commas, dangling)


def _bare_header(delimiter: str, names: tuple[str, ...], header_line: int) -> Layout | None:
    """Return the layout of a header without rows: one whose words are separated by more than blanks."""
    if delimiter == " " or len(names) < 2:
        return None
    return Layout(delimiter, names, header_line, "thousands", 0, 0.0)


def _count_plausible(rows: list[list[str]], delimiter: str) -> int:
    """Count the rows that are empty or hold enough numbers."""
    # Words separated by blanks are prose unless the rows are nothing but numbers.
    min_share = 0.75 if delimiter == " " else 0.01
    return sum(not any(cells) or has_numbers(cells, min_share) for cells in rows)


def _fits(cells: list[str], width: int) -> bool:
    """Return whether a row has so many fields, not counting empty ones at its end."""
    return len(cells) == width or (len(cells) > width and not any(cells[width:]))


def _usual_width(rows: list[list[str]]) -> int:
    """Return the usual number of fields; the larger of two that are equally usual."""
    counts = Counter(map(len, rows))
    return max(counts, key=lambda width: (counts[width] + (width > 1), width))


def _is_header(fields: list[str]) -> bool:
    """Return whether the fields are names: mostly words, and not all the same, though each may occur twice."""
    if len(fields) > 1 and not fields[0]:
        fields = fields[1:]  # the index of a data frame has no name
    # `0;4` is no number either, and no name: it is what is left of one where another delimiter is tried.
    words = [name for name in fields if any(map(str.isalpha, name)) and not numeric(name)]
    return len(words) > 0.5 * len(fields) and len(set(words)) >= max(0.5 * len(words), min(2, len(words)))


def has_numbers(cells: list[str], min_share: float) -> bool:
    """Return whether such a share of the filled cells, of which there are some, hold numbers."""
    filled = [cell for cell in cells if cell]
    found = 0
    for cell in filled:
        found += numeric(cell)
        if found / len(filled) >= min_share:
            return True
    return False


def numeric(cell: str) -> bool:
    """Return whether a cell holds a number."""
    try:
        return number(cell, "decimal") is not None
    except ValueError:
        return False


def distinct(fields: list[str]) -> tuple[str, ...]:
    """Return the names, an empty one as `column N`, a repeated one with its count: `loss`, `loss (2)`."""
    seen: Counter[str] = Counter()
    names = []
    for position, text in enumerate(fields, 1):
        name = text.strip(" \t'\"\0") or f"column {position}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def _commas(delimiter: str, names: tuple[str, ...], rows: list[list[str]]) -> frozenset[str]:
    if delimiter == ",":
        return frozenset()
    columns = zip(names, zip(*(row[: len(names)] for row in rows), strict=True), strict=True)
    return frozenset(name for name, cells in columns if _has_commas_only(cells))


def _has_commas_only(cells: tuple[str, ...]) -> bool:
    """Return whether a column has a number with a comma, and no cell with a point."""
    return any("," in cell and numeric(cell) for cell in cells) and not any("." in cell for cell in cells)


def _comma(delimiter: str, rows: list[list[str]]) -> Comma:
    """Return what a comma in a number means: certainly its decimal point once `0,5` or `1,25` is seen."""
    if delimiter == ",":
        return "thousands"
    cells = list(chain.from_iterable(rows))
    if any(map(_SURE_DECIMAL.fullmatch, cells)):
        return "decimal"
    # A date such as 03.12.2024 has points, too, but no number has two of them and no comma.
    if delimiter == ";" and not any(map(_POINT.fullmatch, cells)):
        return "decimal"
    return "thousands"
