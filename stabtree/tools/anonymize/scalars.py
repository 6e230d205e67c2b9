"""Files that can't be rewritten in place, as JSON lines: the settings and the series that stabtree reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stabtree.loaders.paths.read import read_files
from stabtree.metrics.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.loaders.paths.read import Found
    from stabtree.loaders.table import Column, Table
    from stabtree.tools.anonymize.scrub import Scrub


def scalars(path: str, scrub: Scrub, format_: str | None, run: str | None) -> Iterator[bytes]:
    """Return the lines: the settings first, then a row for each row that was read.

    Args:
        path: a file.
        scrub: takes the names out.
        format_: the name of a loader, if the user gave one.
        run: the run, if the file holds several.

    Raises:
        StabtreeError: if it can't be read, or holds several runs and none was named.
    """
    return lines_of(read_files([path], Names(), format_, run, {}), scrub)


def lines_of(found: Found, scrub: Scrub) -> Iterator[bytes]:
    """Yield the lines of what was read before."""
    settings = {key: _value(setting.value, scrub) for key, setting in found.settings.items()}
    if settings:
        yield _line({"config": settings})
    for table in found.tables:
        yield from map(_line, _rows(table, scrub))


def _rows(table: Table, scrub: Scrub) -> Iterator[dict[str, Any]]:
    columns = [(scrub.column(name), column, column.mask) for name, column in table.columns.items() if column]
    for index in range(table.rows):
        row = {name: _cell(column, index, scrub) for name, column, logged in columns if logged[index]}
        if row:
            yield row


def _cell(column: Column, index: int, scrub: Scrub) -> Any:
    value = float(column.values[index])
    if value in column.labels:
        return scrub.value(column.labels[value])
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _value(value: Any, scrub: Scrub) -> Any:
    if isinstance(value, str):
        return scrub.value(value)
    return value


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"
