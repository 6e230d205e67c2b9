"""The table of an object that holds a list of cells for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean
from stabtree.loaders.table import Column, Table, check_width
from stabtree.loaders.tables.cells import ColumnBuilder, builder_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names


def without_settings(lists: Mapping[str, list[Any]], told: Collection[str]) -> dict[str, list[Any]]:
    """The lists that are no longer than those that are `told` to be logged; layer sizes and betas are configuration."""
    longest = max((len(lists[name]) for name in told), default=0)
    return {name: cells for name, cells in lists.items() if len(cells) <= longest or name in told}


def columns_table(
    source: Source, format_: str, lists: Mapping[str, list[Any]], names: Names, notes: tuple[str, ...]
) -> Table:
    """The table of an object of columns; what is shorter than the longest is not logged at the end.

    Raises:
        StabtreeError: where there are too many of them.
    """
    check_width(len(lists), source.path)
    rows = max(map(len, lists.values()), default=0)
    short = [clean(name, 40) for name, cells in lists.items() if len(cells) < rows]
    note = (f"Shorter than the longest series, so not logged at the end: {', '.join(short[:5])}.",) if short else ()
    columns = {
        name: _column(cells, rows, builder_of(name, names)) if names.wanted(name) else None
        for name, cells in lists.items()
    }
    return Table(source.path, source.describe(format_), rows, columns, notes=(*notes, *note))


def _column(cells: list[Any], rows: int, builder: ColumnBuilder) -> Column:
    builder.add([*cells, *[None] * (rows - len(cells))], range(1, rows + 1))
    return builder.column()
