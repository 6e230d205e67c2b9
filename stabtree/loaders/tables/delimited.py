"""CSV and its kin: one header line, then a row a line, with comma, semicolon, tab, bar or blanks between.

`blocks` takes over a block of lines at once, `linewise` those in which something is odd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Table, check_width
from stabtree.loaders.tables.blocks import Body
from stabtree.loaders.tables.cells import ColumnBuilder
from stabtree.loaders.tables.layout import NAMES, Layout, find_layout

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names


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
        StabtreeError: where there is no header, or nothing below it, or more columns than any logger writes.
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
    table = _read(source, layout, names)
    if not table.rows:
        raise StabtreeError(
            "has a header but no rows",
            where=source.path,
            hint="check that the run logged anything before it stopped",
        )
    return table


def _read(source: Source, layout: Layout, names: Names) -> Table:
    check_width(len(layout.names), source.path)
    lines = source.lines()
    builders = {
        place: ColumnBuilder(labels=names.is_label(name), comma=layout.comma)
        for place, name in enumerate(layout.names)
        if names.wanted(name)
    }
    body = Body(layout, builders)
    rest = ""
    for block in lines.blocks():
        rest = body.add(rest + block)
    body.add(rest, last=True)
    skips = body.skips
    notes = lines.notes
    if skips.short:
        notes.append(f"Rows with fewer fields than the header: {skips.short}, their missing cells are not logged.")
    if grouped := [builder.grouped for builder in builders.values() if builder.grouped]:
        notes.append(f"Commas inside numbers are read as thousands separators ({grouped[0]}).")
    return Table(
        path=source.path,
        format=source.describe(format_name(layout)),
        rows=body.rows,
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
