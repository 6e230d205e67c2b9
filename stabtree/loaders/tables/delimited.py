"""CSV and its kin: one header line, then a row a line, with comma, semicolon, tab, bar or blanks between.

A record is a line. The stdlib reader lets one stray quote swallow the rest of a broken file, so a quoted
field is followed over a line end only where that makes the number of fields come out right.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Skips, Table
from stabtree.loaders.tables.bigcsv import read_big
from stabtree.loaders.tables.cells import ColumnBuilder
from stabtree.loaders.tables.layout import NAMES, QUOTED_LINES, Layout, distinct, find_layout, split
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.loaders.source import Lines, Source
    from stabtree.metrics.names import Names

CHUNK_ROWS = 16384
LONG_LINE = 1 << 20


def sniff(source: Source, _names: Names) -> Sure:
    """How surely this is a delimited file."""
    if source.binary or source.head.lstrip().startswith(("{", "[")):
        return Sure.NO
    layout = find_layout(source.head)
    if not layout:
        return Sure.NO
    if not layout.header_line or not layout.rows:
        return Sure.HARDLY
    return Sure.SURELY if layout.agree == 1.0 else Sure.LIKELY if 3 * layout.agree >= 1.0 else Sure.MAYBE


def read(source: Source, names: Names) -> Table:
    """The columns that are wanted.

    Raises:
        StabtreeError: where there is no header, or nothing below it.
    """
    layout = find_layout(source.head)
    if not layout:
        raise StabtreeError("is not a delimited file", where=source.path, hint="check --format")
    if not layout.header_line:
        raise StabtreeError(
            "has no header line that names its columns",
            where=source.path,
            hint="add a first line such as step,loss,grad_norm,lr",
        )
    table = read_big(source, layout, names) or _read_lines(source, layout, names)
    if not table.rows:
        raise StabtreeError(
            "has a header but no rows",
            where=source.path,
            hint="check that the run logged anything before it stopped",
        )
    return table


def _read_lines(source: Source, layout: Layout, names: Names) -> Table:
    """Line by line, whatever the file looks like."""
    skips = Skips()
    lines = source.lines()
    builders = {
        place: ColumnBuilder(labels=names.is_label(name), comma=layout.comma)
        for place, name in enumerate(layout.names)
        if names.wanted(name)
    }
    rows = 0
    records = _records(lines, layout, skips)
    while chunk := list(islice(records, CHUNK_ROWS)):
        places = [place for place, _ in chunk]
        rows += len(chunk)
        for index, builder in builders.items():
            builder.add([cells[index] for _, cells in chunk], places)
    notes = lines.notes
    if skips.short:
        notes.append(f"Rows with fewer fields than the header: {skips.short}, their missing cells are not logged.")
    if grouped := [builder.grouped for builder in builders.values() if builder.grouped]:
        notes.append(f"Commas inside numbers are read as thousands separators ({grouped[0]}).")
    return Table(
        path=source.path,
        format=source.describe(format_name(layout)),
        rows=rows,
        columns={
            name: builders[place].column() if place in builders else None for place, name in enumerate(layout.names)
        },
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=tuple(notes),
    )


def format_name(layout: Layout) -> str:
    """`csv` with what is special about it."""
    named = "csv" if layout.delimiter == "," else f"csv, {NAMES[layout.delimiter]} separated"
    return f"{named}, decimal commas" if layout.comma == "decimal" else named


def _records(lines: Lines, layout: Layout, skips: Skips) -> Iterator[tuple[int, list[str]]]:
    """The rows as (line number, one cell for each name)."""
    width = len(layout.names)
    # One row is held back: whether it is the last, and cut, shows only at the end of the file.
    held: tuple[int, list[str]] | None = None
    for place, line in _logical_lines(lines, layout, skips):
        many = line.count(layout.delimiter) if len(line) > LONG_LINE else 0
        if many > 10 * width:
            # Two million fields are not worth a list to count them in.
            skips.add(place, f"has some {many + 1} fields where the header has {width}")
            continue
        fields = split(line, layout.delimiter)
        if len(fields) > width and not any(cell.strip() for cell in fields[width:]):
            del fields[width:]
        if len(fields) > width:
            skips.add(place, f"has {len(fields)} fields where the header has {width}")
        elif _cell(fields[0]) in ("", layout.names[0]) and distinct(fields) == layout.names:
            skips.add(place, "repeats the header")
        else:
            if held:
                yield _padded(held, width, skips)
            held = place, fields
    if held and len(held[1]) < width and not lines.ended:
        skips.add(held[0], "is cut: the file ends inside this line")
    elif held:
        yield _padded(held, width, skips)


def _cell(text: str) -> str:
    return text.strip(" \t'\"\0")


def _padded(row: tuple[int, list[str]], width: int, skips: Skips) -> tuple[int, list[str]]:
    place, fields = row
    if len(fields) < width:
        skips.short += 1
        fields += [""] * (width - len(fields))
    return place, fields


def _logical_lines(lines: Lines, layout: Layout, skips: Skips) -> Iterator[tuple[int, str]]:
    """The lines below the header that may be rows, a quoted field's lines joined."""
    numbered = enumerate(lines, 1)
    waiting: list[tuple[int, str]] = []
    while True:
        place, line = waiting.pop(0) if waiting else next(numbered, (0, ""))
        if not place:
            return
        if place < layout.header_line and line.strip(" \0") and not line.startswith("#"):
            skips.add(place, f"stands before the header: {clean(line, 40)!r}")
        elif place > layout.header_line:
            if line.startswith("#"):
                skips.add(place, "begins with #, as a comment does")
            elif "\0" in line:
                skips.add(place, "holds NUL bytes")
            elif line.count('"') % 2:
                waiting += islice(numbered, QUOTED_LINES - len(waiting))
                joined, used = _join(line, waiting, layout)
                del waiting[:used]
                yield place, joined
            elif line.strip():
                yield place, line


def _join(line: str, following: list[tuple[int, str]], layout: Layout) -> tuple[str, int]:
    """The line with those that its open quote reaches over, and how many they were."""
    text = line
    for used, (_, more) in enumerate(following, 1):
        text += "\n" + more
        if more.count('"') % 2:
            fits = len(split(text, layout.delimiter)) == len(layout.names)
            return (text, used) if fits else (line, 0)
    return line, 0
