"""One JSON document of metrics: an array of records, an object of columns, or pretty-printed objects in a row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stabtree.errors import StabtreeError
from stabtree.loaders.json import text as jsontext
from stabtree.loaders.json.rows import Rows
from stabtree.loaders.source import HEAD_BYTES
from stabtree.loaders.table import Column, Select, Table
from stabtree.loaders.tables.cells import ColumnBuilder
from stabtree.metrics.table import EPOCH_ALIASES, STEP_ALIASES, is_label, match, normalize
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.source import Source

# The keys of an object of columns: each is followed by a list of cells, or by an object from row to cell.
_KEY = re.compile(r'"((?:[^"\\]|\\.){1,200})"\s*:\s*(?:\[\s*[^\s\[{\]]|\{\s*"\d{1,9}"\s*:)')
_ROW = re.compile(r"\d{1,9}")
_ARRAY = re.compile(r"\[\s*\{")
_TWO = re.compile(r"^\}\s*(?:,\s*)?\{", re.MULTILINE)


def sniff(source: Source) -> int:
    """How surely this is one document of metrics, 0 to 100."""
    head = source.head.lstrip()
    if source.binary or not head.startswith(("[", "{")):
        return 0
    if head.startswith("["):
        return 85 if _ARRAY.match(head) else 0
    first = head.split("\n", 1)[0].strip()
    if first == "{" and _TWO.search(head) and jsontext.objects(head):
        return 70
    known = {normalize(key) for key in _KEY.findall(head) if match(key) or normalize(key) in STEP_ALIASES}
    nested = re.search(r'"(series|metrics|history|log_history|rows|records)"\s*:', head)
    one = len(source.data) >= HEAD_BYTES or _is_one(head)
    return 88 if known and not nested and one else 0


def _is_one(text: str) -> bool:
    try:
        return isinstance(jsontext.whole(text), dict)
    except ValueError:
        return False


def read(source: Source, select: Select) -> Table:
    """The columns that `select` wants.

    Raises:
        StabtreeError: where the document holds no records and no columns.
    """
    notes: list[str] = []
    text = jsontext.text_of(source, notes)
    value = _parse(source, text, notes)
    if isinstance(value, dict):
        lists = _lists(value)
        if not lists:
            raise StabtreeError(
                "is an object that holds no columns",
                where=source.path,
                hint="name the file that the trainer wrote its metrics to",
            )
        return columns_table(source, "json columns", lists, select, tuple(notes))
    rows = Rows(select)
    for place, row in enumerate(value, 1):
        if isinstance(row, dict):
            rows.add(row, place)
    dropped = sum(not isinstance(row, dict) for row in value)
    if dropped:
        notes.append(f"Entries of the array that are no objects: {dropped}, skipped.")
    return Table(
        path=source.path,
        format=source.describe("json records"),
        rows=rows.count,
        columns=rows.columns(),
        config=rows.config,
        notes=(*notes, *rows.notes),
    )


def _parse(source: Source, text: str, notes: list[str]) -> dict[str, Any] | list[Any]:
    """The object or the array; of a broken one, and of objects in a row, those that stand whole.

    Raises:
        StabtreeError: where nothing can be read.
    """
    try:
        value = jsontext.whole(text)
    except ValueError as error:
        found = jsontext.objects(text, text.find("[") + 1 if text.lstrip().startswith("[") else 0)
        if not found:
            raise StabtreeError(clean(error, 120), where=source.path, hint="mend it, or export it again") from None
        if "Extra data" not in str(error):
            notes.append(
                f"The file {clean(error, 120)}: the {len(found):,} objects that stand whole before that were read."
            )
        return found
    if isinstance(value, dict | list):
        return value
    raise StabtreeError("holds one value, no metrics", where=source.path, hint="name the metrics file")


def _lists(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns of an object: its lists, and its objects from row to cell as pandas writes them."""
    lists = {}
    for name, cells in value.items():
        if isinstance(cells, list):
            lists[str(name)] = cells
        elif isinstance(cells, dict) and cells and all(_ROW.fullmatch(key) for key in cells):
            lists[str(name)] = [cells[key] for key in sorted(cells, key=int)]
    longest = max((len(cells) for name, cells in lists.items() if _counts(name)), default=0)
    # A list of layer sizes or of betas is configuration.
    return {name: cells for name, cells in lists.items() if len(cells) <= longest or _counts(name)}


def _counts(name: str) -> bool:
    return match(name) is not None or normalize(name) in (*STEP_ALIASES, *EPOCH_ALIASES)


def columns_table(
    source: Source, format_: str, lists: Mapping[str, list[Any]], select: Select, notes: tuple[str, ...]
) -> Table:
    """The table of an object of columns; what is shorter than the longest is not logged at the end."""
    rows = max(map(len, lists.values()), default=0)
    short = [clean(name, 40) for name, cells in lists.items() if len(cells) < rows]
    note = (f"Shorter than the longest series, so not logged at the end: {', '.join(short[:5])}.",) if short else ()
    columns = {name: _column(name, cells, rows) if select(name) else None for name, cells in lists.items()}
    return Table(source.path, source.describe(format_), rows, columns, notes=(*notes, *note))


def _column(name: str, cells: list[Any], rows: int) -> Column:
    builder = ColumnBuilder(labels=is_label(name))
    builder.add([*cells, *[None] * (rows - len(cells))], range(1, rows + 1))
    return builder.column()
