"""JSON of records that hold a name and a value: an array of them, or one a line."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean
from stabtree.loaders.json.document import objects
from stabtree.loaders.json.lines import parse, values
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Skips
from stabtree.loaders.tables.long import long_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.loaders.tables.long import LongTable
    from stabtree.metrics.names import Names

LOOK_AT = 100


def sniff(source: Source, names: Names) -> Sure:
    """Return how surely these are records of a long table."""
    return Sure.SURELY if not source.binary and _layout(source, names)[1] else Sure.NO


def _layout(source: Source, names: Names) -> tuple[list[str], LongTable | None]:
    """Return the keys of the records and which of them hold what."""
    head = "\n".join(source.head.split("\n", LOOK_AT)[:LOOK_AT])
    first = list(islice(objects(head, head.find("{")), LOOK_AT))
    keys = list(dict.fromkeys(key for record in first for key in record))
    return keys, long_table(keys, names, ([record.get(key) for key in keys] for record in first))


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read one series for each name.

    Raises:
        StabtreeError: if there are no values.
    """
    keys, layout = _layout(source, names)
    lines, skips = source.lines(), Skips()
    found: list[LongTable] = [layout] if layout else []
    for place, record in enumerate(_records(source, lines, skips), 1):
        if isinstance(record, dict):
            for table in found:
                table.add([record.get(key) for key in keys])
        else:
            skips.add(place, f"is no object: {clean(record, 40)!r}")
    notes = (*lines.notes, *(f"Not read: {skip.reason}." for skip in skips.first[:3]))
    return found[0].tables(source.path, source.describe("json"), notes)


def _records(source: Source, lines: Any, skips: Skips) -> Iterator[Any]:
    if not source.head.lstrip().startswith("["):
        yield from values(lines, skips)
        return
    text = "\n".join(lines)
    try:
        yield from parse(text)
    except ValueError as error:
        skips.add(1, f"the array {clean(error, 120)}: the complete objects before that were read")
        yield from objects(text, text.find("[") + 1)
