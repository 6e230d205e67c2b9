"""CSV and its kin: one header line, then a row a line, with comma, semicolon, tab, bar or blanks between.

`blocks` reads a block of lines at once, `linewise` those that are irregular.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.errors import NoRowsError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.source import HEAD_BYTES, NAME_METRICS, Sure
from stabtree.loaders.table import Table, check_width
from stabtree.loaders.tables import arrow
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
MIN_RESULTS = 8
# If the head holds no more lines, more are read, of up to so many characters each.
FEW_LINES = 10
MAX_HEAD = 4 << 20
MAX_HEADER = 4096
WIDE_ROWS = 20
MAX_BLOCK = 8 << 20


def head_of(source: Source) -> str:
    """Return the first lines: some more than the head if it holds few, as with ten thousand columns."""
    if len(source.data) < HEAD_BYTES or source.head.count("\n") > FEW_LINES:
        return source.head
    lines: list[str] = []
    for line in source.lines():
        if len(line) > MAX_HEAD or len(lines) > FEW_LINES:
            break
        lines.append(line)
    if len(lines) > 1:
        return "\n".join([*lines, ""])
    return source.head


def explain_unread(source: Source, names: Names) -> StabtreeError | None:
    """Return why no format reads a file: its lines are too long, or its cells have too many line breaks."""
    first, _, below = source.head.partition("\n")
    if not below and len(source.data) >= HEAD_BYTES:
        return StabtreeError(
            f"has a first line longer than {HEAD_BYTES >> 10} KiB, and is in no format that stabtree knows",
            where=source.path,
            hint=f"take that line out, or {NAME_METRICS}",
        )
    cells = chain.from_iterable(first[:MAX_HEADER].split(mark) for mark in DELIMITERS)
    known = any(map(names.role, cells))
    if known and any(line.count('"') % 2 for line in (first, *below.split("\n", QUOTED_LINES)[:QUOTED_LINES])):
        return StabtreeError(
            f"has a cell in quotes with more than {QUOTED_LINES} line breaks, which is read as broken rows",
            where=source.path,
            hint="write it without the columns of texts: step,loss,grad_norm,lr",
        )
    return None


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a delimited file."""
    if source.binary or source.head.lstrip().startswith(("{", "[")):
        return Sure.NO
    layout = find_layout(head_of(source))
    if not layout:
        return Sure.NO
    if not layout.header_line or not layout.rows:
        return Sure.HARDLY
    if layout.agree == 1.0:
        return Sure.SURELY
    if 3 * layout.agree >= 1.0:
        return Sure.LIKELY
    return Sure.MAYBE


def read(source: Source, names: Names) -> Table:
    """Read the columns that hold numbers.

    Raises:
        StabtreeError: if there is no header, or nothing below it, or more columns than any logger writes.
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
    if _holds_results(head, layout):
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


def _holds_results(head: str, layout: Layout) -> bool:
    """Return whether the first column holds names without a digit, another one in each row, as no log's does."""
    seen: set[str] = set()
    for line in head.split("\n")[layout.header_line : -1]:
        if not line.strip():
            continue
        cell = split(line, layout.delimiter)[0].strip(' "')
        named = cell.replace("_", "").replace(" ", "").isalpha() and not numeric(cell)
        if not named or cell in seen:
            return False
        seen.add(cell)
    return len(seen) >= MIN_RESULTS


def _read(source: Source, layout: Layout, names: Names) -> Table:
    check_width(len(layout.names), source.path)
    lines = source.lines()
    body = Body(layout, names, source.size)
    rest = ""
    # Each block costs a little for each column, so that one of a wide file holds many rows.
    min_size = min(MAX_BLOCK, WIDE_ROWS * sum(map(len, layout.names)))
    if body.large:
        min_size = arrow.BLOCK
    held: list[str] = []
    size = 0
    for block in lines.blocks():
        held.append(block)
        size += len(block)
        if size >= min_size:
            rest = body.add(rest + "".join(held))
            held, size = [], 0
    body.add(rest + "".join(held), last=True)
    columns: dict[str, Column | None] = dict.fromkeys(body.columns)
    for name, builder in body.columns.items():
        if not builder.given_up:
            builder.pad(body.rows)
            columns[name] = builder.column()
    built = {name: builder for name, builder in body.columns.items() if names.wanted(name)}
    skips, rows = body.skips, body.rows
    keep = _unshifted_rows([column if name in built else None for name, column in columns.items()], body)
    if keep is not None:
        columns = {name: column and column.pick(keep) for name, column in columns.items()}
        rows = len(keep)
    notes = chain(_duplicate_notes(built, body.columns), _row_notes(skips), _comma_notes(built, layout))
    return Table(
        path=source.path,
        format=source.describe(format_name(layout)),
        rows=rows,
        columns=columns,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=(*lines.notes, *notes),
    )


def _unshifted_rows(columns: Sequence[Column | None], body: Body) -> Ints | None:
    """Return the rows whose cells are not proved to be in the wrong columns; None for all."""
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


def _duplicate_notes(built: Mapping[str, ColumnBuilder], names: Collection[str]) -> Iterator[str]:
    """Describe the columns that have one name, of which the first is read."""
    if duplicates := [name for name in built if f"{name} (2)" in names]:
        yield f"Columns that have the same name as one before them are not read: {_listed(duplicates)}."


def _row_notes(skips: Skips) -> Iterator[str]:
    """Describe the rows that were read although something is wrong with them."""
    if skips.headers:
        lines = _listed(skips.headers)
        yield (
            f"Headers with other columns, or in another order: {len(skips.headers)} (line {lines}), "
            "the rows below were read by them."
        )
    if skips.comments:
        first = f"the first is line {skips.first_comment}"
        yield f"Comment lines, which begin with #: {skips.comments:,}, skipped; {first}."
    if skips.quotes:
        yield f"Lines with a quote that is never closed: {skips.quotes}, each read as a row by itself."
    if skips.short:
        yield f"Rows with fewer fields than the header: {skips.short}, their missing cells are not logged."


def _comma_notes(built: Mapping[str, ColumnBuilder], layout: Layout) -> Iterator[str]:
    """Describe how commas in numbers were read."""
    if decimal := [name for name, builder in built.items() if builder.comma == "decimal" != layout.comma]:
        yield f"Commas are read as decimal points in columns that have no points: {_listed(decimal)}."
    if grouped := next((builder.grouped for builder in built.values() if builder.grouped), ""):
        yield f"Commas inside numbers are read as thousands separators ({grouped})."


def _listed(items: Sequence[object]) -> str:
    return ", ".join(clean(item, 40) for item in items[:LISTED])


def format_name(layout: Layout) -> str:
    """Return `csv` with what is special about it."""
    if layout.delimiter == ",":
        named = "csv"
    else:
        named = f"csv, {NAMES[layout.delimiter]} separated"
    if layout.comma == "decimal":
        return f"{named}, decimal commas"
    return named
