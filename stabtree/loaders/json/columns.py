"""Tables of objects that hold a list of cells for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean
from stabtree.loaders.table import Column, Table, check_width
from stabtree.loaders.tables.cells import builder_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names


def without_settings(lists: Mapping[str, list[Any]], logged: Collection[str]) -> dict[str, list[Any]]:
    """Return the lists no longer than those known to be logged; layer sizes and betas are configuration."""
    longest = max((len(lists[name]) for name in logged), default=0)
    return {name: cells for name, cells in lists.items() if len(cells) <= longest or name in logged}


def columns_table(
    source: Source, format_: str, lists: Mapping[str, list[Any]], names: Names, notes: tuple[str, ...]
) -> Table:
    """Return the table of an object of columns; what is shorter than the longest is not logged at the end.

    Raises:
        StabtreeError: if there are too many columns.
    """
    check_width(len(lists), source.path)
    rows = max(map(len, lists.values()), default=0)
    short = [clean(name, 40) for name, cells in lists.items() if len(cells) < rows]
    if short:
        notes = (*notes, f"Shorter than the longest series, so not logged at the end: {', '.join(short[:5])}.")
    columns: dict[str, Column | None] = dict.fromkeys(lists)
    for name, cells in lists.items():
        builder = builder_of(name, names)
        builder.add(cells + [None] * (rows - len(cells)), range(1, rows + 1))
        columns[name] = None if builder.given_up else builder.column()
    return Table(source.path, source.describe(format_), rows, columns, notes=notes)
