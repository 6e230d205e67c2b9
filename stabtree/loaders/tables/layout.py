"""How a delimited file is laid out, told from its first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from stabtree.loaders.tables.cells import Comma, number

DELIMITERS = (",", ";", "\t", "|", " ")
# Banners and configuration that trainers print before the header; beyond that a text log is likelier.
HEADER_WITHIN = 30
LOOK_AT = HEADER_WITHIN + 50
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank"}

# Three digits after the comma may be thousands, unless a zero stands before it.
_SURE_DECIMAL = re.compile(r"[+-]?(0?,\d+|\d*,(\d{1,2}|\d{4,}))(e[+-]?\d+)?", re.IGNORECASE)
# 03.12 is a day.
_POINT = re.compile(r"[+-]?(?!0\d)\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
# A quoted field, such as a logged sample text, may run over this many lines.
QUOTED_LINES = 50


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the header stands and what separates its fields.

    Attributes:
        delimiter: one character; a blank stands for any run of blanks.
        names: the header's fields, unquoted, made distinct.
        header_line: its line number, from 1; 0 where there is none.
        comma: what a comma inside a number means.
        rows: rows of data seen below it in the first lines.
        agree: the share of those that have as many fields as the header.
        commas: the columns that have numbers with commas there, and none with a point.
        dangling: whether rows end with a delimiter more than the header, so that an empty field too many is none.
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
    """The fields of one line. Quotes are honoured; one that is never closed ends with the line."""
    if delimiter == " ":
        return line.split() if '"' not in line else next(csv.reader([" ".join(line.split())], delimiter=" "))
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return line.split(delimiter)


# Sniffing asks, then reading asks again.
@lru_cache(maxsize=4)
def find_layout(head: str) -> Layout | None:
    """The layout of the file that begins with `head`; None where it is not a delimited file.

    A file without a header comes back with `header_line` 0.
    """
    lines = head.split("\n", LOOK_AT)
    # The head may end inside a line.
    lines = (lines[:-1] if len(lines) > 2 else lines)[:LOOK_AT]
    numbered = [(place, line) for place, line in enumerate(lines, 1) if line.strip(" \0")]
    plain = [(place, line) for place, line in numbered if not line.startswith("#")]
    readings = [plain, _uncommented(numbered, plain)]
    if '"' in head:
        # Where each row holds a text of several lines, no single line has the right number of fields.
        whole = head[: head.rfind("\n")].split("\n", LOOK_AT * QUOTED_LINES)[: LOOK_AT * QUOTED_LINES]
        readings.append(_joined(whole))
    layouts = [
        layout for reading in readings if reading for mark in DELIMITERS if (layout := _try(reading[:LOOK_AT], mark))
    ]
    return max(
        layouts,
        key=lambda found: (
            found.rows > 0,
            found.agree * min(found.rows, 20),
            found.header_line > 0,
            # `0;3,010;0,001` is no header of three names.
            sum(not name[:1].isdigit() for name in found.names) == len(found.names),
            len(found.names),
        ),
        default=None,
    )


def _uncommented(numbered: list[tuple[int, str]], plain: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines with the last comment above the data for a header, as `numpy.savetxt` writes it."""
    above = [(place, line) for place, line in numbered if line.startswith("#") and plain and place < plain[0][0]]
    if not above:
        return []
    place, line = above[-1]
    return [(place, line.lstrip("# \t")), *plain]


def _joined(lines: list[str]) -> list[tuple[int, str]]:
    """The lines that may be rows, those of a field in quotes joined."""
    found: list[tuple[int, str]] = []
    open_since = 0
    for place, line in enumerate(lines, 1):
        if open_since:
            first, text = found[-1]
            found[-1] = first, f"{text}\n{line}"
            if line.count('"') % 2 or place - open_since >= QUOTED_LINES:
                open_since = 0
        elif line.strip(" \0") and not line.startswith("#"):
            found.append((place, line))
            open_since = place if line.count('"') % 2 else 0
    return found[:-1] if open_since else found


def _try(numbered: list[tuple[int, str]], delimiter: str) -> Layout | None:
    rows = [(place, [cell.strip() for cell in split(line, delimiter)]) for place, line in numbered]
    width = _width(rows)
    if delimiter == " " and width < 2:
        return None
    for index, (place, fields) in enumerate(rows[:HEADER_WITHIN]):
        below = [cells for _, cells in rows[index + 1 :]]
        # Some writers end every row with a delimiter, but not the header.
        dangling = len(fields) == width - 1 > 0 and all(_fits(cells, len(fields)) for cells in below)
        if (len(fields) == width or dangling) and _is_header(fields):
            return _layout(delimiter, distinct(fields), place, below)
    first = next((fields for _, fields in rows[:HEADER_WITHIN] if len(fields) == width), [])
    if width >= 2 and first and all(numeric(cell) for cell in first if cell):
        return _layout(delimiter, tuple(f"column {i}" for i in range(1, width + 1)), 0, [cells for _, cells in rows])
    return None


def _layout(delimiter: str, names: tuple[str, ...], place: int, below: list[list[str]]) -> Layout | None:
    """A layout, unless the rows below the header don't look like rows of numbers."""
    if not below:
        # One line of words is a header only if its words are separated by more than blanks.
        return Layout(delimiter, names, place, "thousands", 0, 0.0) if delimiter != " " and len(names) > 1 else None
    fit = [cells for cells in below if _fits(cells, len(names))]
    agree = len(fit) / len(below)
    # Words separated by blanks are prose unless the rows are nothing but numbers.
    least = 0.75 if delimiter == " " else 0.01
    plausible = [cells for cells in fit if not any(cells) or share_of_numbers(cells) >= least]
    if (len(plausible) < 0.5 * len(below) and len(below) > 1) or not plausible:
        return None
    if (delimiter == " " or len(names) == 1) and agree < 0.8:
        return None
    dangling = sum(len(cells) > len(names) for cells in fit) > 0.5 * len(fit)
    commas = _commas(delimiter, names, fit)
    return Layout(delimiter, names, place, _comma(delimiter, fit), len(fit), agree, commas, dangling)


def _fits(cells: list[str], width: int) -> bool:
    """Whether a row has so many fields, not counting empty ones at its end."""
    return len(cells) == width or (len(cells) > width and not any(cells[width:]))


def _width(rows: list[tuple[int, list[str]]]) -> int:
    """The usual number of fields; the larger of two that are equally usual."""
    counts = Counter(len(fields) for _, fields in rows)
    return max(counts, key=lambda width: (counts[width] + (width > 1), width))


def _is_header(fields: list[str]) -> bool:
    """Whether the fields are names: mostly words, and not the same word all along, though each may stand twice."""
    if len(fields) > 1 and not fields[0]:
        fields = fields[1:]  # the index of a data frame has no name
    # `0;4` is no number either, and no name: it is what is left of one where another delimiter is tried.
    words = [name for name in fields if any(map(str.isalpha, name)) and not numeric(name)]
    return len(words) > 0.5 * len(fields) and len(set(words)) >= max(0.5 * len(words), min(2, len(words)))


def share_of_numbers(cells: list[str]) -> float:
    """The share of the filled cells that hold numbers."""
    filled = [cell for cell in cells if cell]
    return sum(map(numeric, filled)) / len(filled)


def numeric(cell: str) -> bool:
    """Whether a cell holds a number."""
    try:
        return number(cell, "decimal") is not None
    except ValueError:
        return False


def distinct(fields: list[str]) -> tuple[str, ...]:
    """The names, an empty one as `column N`, a repeated one with its count: `loss`, `loss (2)`."""
    seen: Counter[str] = Counter()
    names = []
    for place, text in enumerate(fields, 1):
        name = text.strip(" \t'\"\0") or f"column {place}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def _commas(delimiter: str, names: tuple[str, ...], rows: list[list[str]]) -> frozenset[str]:
    if delimiter == ",":
        return frozenset()
    columns = zip(names, zip(*(row[: len(names)] for row in rows), strict=True), strict=True)
    return frozenset(
        name
        for name, cells in columns
        if any("," in cell and numeric(cell) for cell in cells) and not any("." in cell for cell in cells)
    )


def _comma(delimiter: str, rows: list[list[str]]) -> Comma:
    """Whether a comma in a number is its decimal point: sure once `0,5` or `1,25` is seen."""
    if delimiter == ",":
        return "thousands"
    cells = [cell for row in rows for cell in row if "," in cell]
    if any(_SURE_DECIMAL.fullmatch(cell) for cell in cells):
        return "decimal"
    # A date such as 03.12.2024 has points, too, but no number has two of them and no comma.
    points = any(_POINT.fullmatch(cell) for row in rows for cell in row)
    return "decimal" if delimiter == ";" and not points else "thousands"
