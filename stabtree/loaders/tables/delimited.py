"""CSV and its kin: one header line, then a row a line, with comma, semicolon, tab, bar or blanks between.

`blocks` takes over a block of lines at once, `linewise` those in which something is odd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import NoRowsError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.source import HEAD_BYTES, NAME_METRICS, Sure
from stabtree.loaders.table import Table, check_width
from stabtree.loaders.tables.blocks import Body
from stabtree.loaders.tables.layout import DELIMITERS, NAMES, QUOTED_LINES, Layout, find_layout, numeric, split
from stabtree.loaders.tables.shifted import lack_a_cell_within, shifted_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from stabtree.common.lazy import Ints
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Column, Skips
    from stabtree.loaders.tables.cells import ColumnBuilder
    from stabtree.metrics.names import Names

LISTED = 5
LEAST_RESULTS = 8
# Where the head holds no more lines, more are looked at, of up to so many characters each.
FEW_LINES = 10
MAX_HEAD = 4 << 20
MAX_HEADER = 4096
WIDE_ROWS = 20
MAX_BLOCK = 8 << 20


def head_of(source: Source) -> str:
    """The first lines: of a file with few lines in its head, such as one with ten thousand columns, some more."""
    if len(source.data) < HEAD_BYTES or source.head.count("\n") > FEW_LINES:
        return source.head
    lines: list[str] = []
    for line in source.lines():
        if len(line) > MAX_HEAD or len(lines) > FEW_LINES:
            break
        lines.append(line)
    return "\n".join([*lines, ""]) if len(lines) > 1 else source.head


def oddity(source: Source, names: Names) -> StabtreeError | None:
    """What is wrong with a file that nobody reads, where its lines are longer, or its cells higher, than rows have."""
    first, _, below = source.head.partition("\n")
    if not below and len(source.data) >= HEAD_BYTES:
        return StabtreeError(
            f"has a first line longer than {HEAD_BYTES >> 10} KiB, and is in no format that stabtree knows",
            where=source.path,
            hint=f"take that line out, or {NAME_METRICS}",
        )
    known = any(names.role(name) for mark in DELIMITERS for name in first[:MAX_HEADER].split(mark))
    if known and any(line.count('"') % 2 for line in (first, *below.split("\n", QUOTED_LINES)[:QUOTED_LINES])):
        return StabtreeError(
            f"has a cell in quotes with more than {QUOTED_LINES} line breaks, which is read as broken rows",
            where=source.path,
            hint="write it without the columns of texts: step,loss,grad_norm,lr",
        )
    return None


def sniff(source: Source, _names: Names) -> Sure:
    """How surely this is a delimited file."""
    if source.binary or source.head.lstrip().startswith(("{", "[")):
        return Sure.NO
    layout = find_layout(head_of(source))
    if not layout:
        return Sure.NO
    if not layout.header_line or not layout.rows:
        return Sure.HARDLY
    return Sure.SURELY if layout.agree == 1.0 else Sure.LIKELY if 3 * layout.agree >= 1.0 else Sure.MAYBE


def read(source: Source, names: Names) -> Table:
    """The columns that are wanted.

    Raises:
        StabtreeError: where there is no header, or nothing below it, or more columns than any logger writes.
    """
    head = head_of(source)
    if "\n" not in head and len(source.data) >= HEAD_BYTES:
        raise StabtreeError(
            f"has a first line longer than {MAX_HEAD >> 20} MiB",
            where=source.path,
            hint="write the columns that matter, such as step, loss, grad_norm and lr, to a file of their own",
        )
    layout = find_layout(head)
    if not layout:
        raise StabtreeError("is not a delimited file", where=source.path, hint="check --format")
    if not layout.header_line:
        raise StabtreeError(
            "has no header line that names its columns",
            where=source.path,
            hint="add a first line such as step,loss,grad_norm,lr",
        )
    if _is_of_results(head, layout):
        raise StabtreeError(
            f"is a table of results: {clean(layout.names[0], 40)!r} names another thing in every row",
            where=source.path,
            hint="give the log of one of them, with a row a step or an epoch",
        )
    table = _read(source, layout, names)
    if not table.rows:
        kind = NoRowsError if any(map(names.metric, layout.names)) else StabtreeError
        raise kind(
            "is cut, and holds a header but no rows before that" if source.cut else "has a header but no rows",
            where=source.path,
            hint="check that the run logged anything before it stopped",
        )
    return table


def _is_of_results(head: str, layout: Layout) -> bool:
    """Whether the first column holds names without a digit, another one in each row, as no log's does."""
    seen: set[str] = set()
    for line in head.split("\n")[layout.header_line : -1]:
        if not line.strip():
            continue
        cell = split(line, layout.delimiter)[0].strip(' "')
        named = cell.replace("_", "").replace(" ", "").isalpha() and not numeric(cell)
        if not named or cell in seen:
            return False
        seen.add(cell)
    return len(seen) >= LEAST_RESULTS


def _read(source: Source, layout: Layout, names: Names) -> Table:
    check_width(len(layout.names), source.path)
    lines = source.lines()
    body = Body(layout, names)
    rest = ""
    # Each block costs a little for each column, so that one of a wide file holds many rows.
    least = min(MAX_BLOCK, WIDE_ROWS * sum(map(len, layout.names)))
    held: list[str] = []
    size = 0
    for block in lines.blocks():
        held.append(block)
        size += len(block)
        if size >= least:
            rest = body.add(rest + "".join(held))
            held, size = [], 0
    body.add(rest + "".join(held), last=True)
    built = {name: builder for name, builder in body.columns.items() if builder}
    for builder in built.values():
        builder.pad(body.rows)
    skips, rows = body.skips, body.rows
    columns = {name: built[name].column() if name in built else None for name in body.columns}
    keep = _in_place([*columns.values()], body)
    if keep is not None:
        columns = {name: column and column.pick(keep) for name, column in columns.items()}
        rows = len(keep)
    return Table(
        path=source.path,
        format=source.describe(format_name(layout)),
        rows=rows,
        columns=columns,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=(*lines.notes, *_twice(built, body.columns), *_notes(skips, built, layout)),
    )


def _in_place(columns: Sequence[Column | None], body: Body) -> Ints | None:
    """The rows whose cells stand below their names, as far as the file proves that others don't; None for all."""
    skips, first_line = body.skips, body.layout.header_line + 1
    rows: Ints | None = None
    if skips.headers:
        return None
    if body.short and lack_a_cell_within(columns, body.short):
        skips.add(first_line + body.short[0], "lacks a cell that is not the last, as others below it do")
        skips.count += len(body.short) - 1
        rows = np.delete(np.arange(body.rows), body.short)
        columns = [column and column.pick(rows) for column in columns]
    if shift := shifted_from(columns):
        first, side = shift
        rows = np.arange(body.rows) if rows is None else rows
        skips.add(first_line + int(rows[first]), f"is shifted one column to the {side}, as are all rows below it")
        skips.count += len(rows) - first - 1
        rows = rows[:first]
    return rows


def _twice(built: Mapping[str, ColumnBuilder], names: Collection[str]) -> Iterator[str]:
    """A word on columns that bear one name, of which the first is read."""
    twice = [name for name in built if f"{name} (2)" in names]
    if twice:
        shown = ", ".join(clean(name, 40) for name in twice[:LISTED])
        yield f"Columns that have the same name as one before them are not read: {shown}."


def _notes(skips: Skips, built: Mapping[str, ColumnBuilder], layout: Layout) -> Iterator[str]:
    if skips.headers:
        shown = ", ".join(str(line) for line in skips.headers[:LISTED])
        yield (
            f"Headers with other columns, or in another order: {len(skips.headers)} (line {shown}), "
            "the rows below were read by them."
        )
    if skips.quotes:
        yield f"Lines with a quote that is never closed: {skips.quotes}, each read as a row by itself."
    if skips.short:
        yield f"Rows with fewer fields than the header: {skips.short}, their missing cells are not logged."
    if decimal := [name for name, one in built.items() if one.comma == "decimal" != layout.comma]:
        shown = ", ".join(clean(name, 40) for name in decimal[:LISTED])
        yield f"Commas are read as decimal points in columns that have no points: {shown}."
    if grouped := next((builder.grouped for builder in built.values() if builder.grouped), ""):
        yield f"Commas inside numbers are read as thousands separators ({grouped})."


def format_name(layout: Layout) -> str:
    """`csv` with what is special about it."""
    named = "csv" if layout.delimiter == "," else f"csv, {NAMES[layout.delimiter]} separated"
    return f"{named}, decimal commas" if layout.comma == "decimal" else named
