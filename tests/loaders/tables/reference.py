"""A slow reader of delimited text, a line at a time with Python's csv module, that shares no code with the fast one.

Only the layout (the delimiter, the header's line) and what a single cell means are taken from the package.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from stabtree.loaders.source import open_source
from stabtree.loaders.tables.cells import number
from stabtree.loaders.tables.layout import find_layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.loaders.table import Table
    from stabtree.loaders.tables.layout import Layout


class Reference(NamedTuple):
    """What stands in a file.

    Attributes:
        layout: of its header.
        rows: its rows, a missing cell empty.
        odd: lines that have not as many cells as the header has names, or are otherwise no plain row.
        cut: whether the file ends inside a line.
    """

    layout: Layout
    rows: list[list[str]]
    odd: int
    cut: bool


def read(file: Path) -> Reference | None:
    """The rows of a file; None where it is no delimited file with a header."""
    source = open_source(file)
    layout = find_layout(source.head)
    if not layout or not layout.header_line:
        return None
    lines = list(source.lines())[layout.header_line :]
    cut = not file.read_bytes().endswith((b"\n", b"\r"))
    rows: list[list[str]] = []
    if any(line.count('"') % 2 for line in lines) and layout.delimiter != " " and not cut:
        # Where a text of several lines stands in quotes all over the file, as the module reads it.
        rows = [row for row in csv.reader((f"{line}\n" for line in lines), delimiter=layout.delimiter) if row]
        if not any("\0" in line or line.startswith("#") for line in lines) and all(
            len(row) == len(layout.names) and not _is_header(row, layout) for row in rows
        ):
            return Reference(layout, rows, 0, cut)
        rows = []
    odd = 0
    for place, line in enumerate(lines, 1):
        fields = _fields(line, layout.delimiter)
        while len(fields) > len(layout.names) and not fields[-1].strip():
            fields.pop()
        if line.startswith("#") or "\0" in line or line.count('"') % 2 or _is_header(fields, layout):
            odd += 1
        elif len(fields) == len(layout.names):
            rows.append(fields)
        elif any(map(str.strip, fields)) or len(fields) > 1:
            odd += 1
            if len(fields) < len(layout.names) and not (cut and place == len(lines)):
                rows.append(fields + [""] * (len(layout.names) - len(fields)))
    return Reference(layout, rows, odd, cut)


def _fields(line: str, mark: str) -> list[str]:
    if mark == " ":
        line = " ".join(line.split())
    quoting: Literal[0, 3] = csv.QUOTE_NONE if line.count('"') % 2 else csv.QUOTE_MINIMAL
    return next(csv.reader([line], delimiter=mark, quoting=quoting, skipinitialspace=True), [])


def _is_header(fields: list[str], layout: Layout) -> bool:
    """Whether a row holds two names of the header, or one where it has one only."""
    met = {cell.strip(" \t'\"") for cell in fields} & set(layout.names)
    return len(met) >= min(2, len(layout.names))


def differences(reference: Reference, table: Table) -> Iterator[str]:
    """What a table lacks or has otherwise, without a word on it."""
    told = table.skipped_count or any("line" in note or "quote" in note or "Rows" in note for note in table.notes)
    if reference.odd or reference.cut:
        if table.rows + table.skipped_count < len(reference.rows):
            yield f"{table.rows} rows and {table.skipped_count} skipped of {len(reference.rows)}"
        if table.rows != len(reference.rows) and not told:
            yield f"{table.rows} rows instead of {len(reference.rows)}, and no word on it"
    elif table.rows != len(reference.rows) and not table.skipped_count:
        yield f"{table.rows} rows instead of {len(reference.rows)}"
    if table.rows != len(reference.rows):
        return
    for place, name in enumerate(reference.layout.names):
        column = table.columns.get(name)
        if column is not None and not column.coded:
            values, bad = _values([row[place] for row in reference.rows], reference.layout)
            held = np.where(column.mask, column.values, np.nan)
            if bad != column.bad:
                yield f"{name}: {column.bad} cells that are not numbers, not {bad}"
            if not np.array_equal(held, values, equal_nan=True):
                yield f"{name} differs at row {int(np.flatnonzero(~np.isclose(held, values, 0, 0, equal_nan=True))[0])}"


def _values(cells: list[str], layout: Layout) -> tuple[np.ndarray, int]:
    """The values of a column, NaN where none was logged, and how many cells hold text that is no number."""
    values, bad = np.full(len(cells), np.nan), 0
    for place, cell in enumerate(cells):
        try:
            found = number(cell, layout.comma)
        except (ValueError, OverflowError):
            bad += 1
        else:
            values[place] = np.nan if found is None else found
    return values, bad
