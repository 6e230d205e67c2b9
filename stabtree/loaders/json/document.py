"""One JSON document of metrics: an array of records, an object of columns, or pretty-printed objects in a row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json import nested
from stabtree.loaders.json.columns import columns_table, without_settings
from stabtree.loaders.json.lines import parse, parse_object, repeated_keys
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.json.whole import objects, text_of
from stabtree.loaders.json.wrapped import is_wrapped
from stabtree.loaders.source import HEAD_BYTES, Sure
from stabtree.loaders.table import Table, check_width
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# The keys of an object of columns: each is followed by a list of cells, or by an object from row to cell.
_KEY = re.compile(r'"((?:[^"\\]|\\.){1,200})"\s*:\s*(?:\[\s*[^\s\[{\]]|\{\s*"\d{1,9}"\s*:)')
_ROW_KEY = re.compile(r'\{\s*"\d')
_ROW = re.compile(r"\d{1,9}")
_ARRAY = re.compile(r"\[\s*\{")
_TWO = re.compile(r"^\}\s*(?:,\s*)?\{", re.MULTILINE)
_INNER = re.compile(r'"(series|metrics|history|log_history|rows|records)"\s*:')


def sniff(source: Source, names: Names) -> Sure:
    """Return how surely this is one document of metrics."""
    head = source.head.lstrip()
    if source.binary or not _is_json(head):
        return Sure.NO
    if _ARRAY.match(head):
        return Sure.LIKELY
    first = head.split("\n", 1)[0].strip()
    if first == "{" and _TWO.search(head) and objects(head):
        return Sure.MAYBE
    if _has_known_columns(head, names) and (len(source.data) >= HEAD_BYTES or parse_object(head) is not None):
        return Sure.SURELY
    return Sure.NO


def _is_json(head: str) -> bool:
    """Return whether a text begins as JSON that no logger has wrapped."""
    return head.startswith(("[", "{")) and not is_wrapped(head)


def _has_known_columns(head: str, names: Names) -> bool:
    """Return whether an object has a known column, and nothing inside that would hold the metrics."""
    # Rows of numbers hold neither lists nor objects from row to cell, and the search for keys is slow on them.
    if head.startswith("[") or not ("[" in head or _ROW_KEY.search(head)) or _INNER.search(head):
        return False
    return any(names.metric(key) or names.role(key) == "step" or describe_name(key).named for key in _KEY.findall(head))


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """Read the columns that hold numbers, and those that are known.

    Raises:
        StabtreeError: if the document holds no records and no columns.
    """
    notes: list[str] = []
    text = text_of(source, notes)
    value = _parse(source, text, notes)
    if isinstance(value, dict):
        lists = _lists(value, names, source.path)
        if not lists:
            return nested.read(value, source, names)
        return columns_table(source, "json columns", lists, names, (*notes, *repeated_keys(text, 1)))
    rows = JsonRows(names, source.path)
    notes += repeated_keys(text, 1)
    if dropped := rows.add_all(value):
        notes.append(f"Entries of the array that are not objects: {dropped}, skipped.")
    return rows.table(source, "json records", (*notes, *rows.notes))


def _parse(source: Source, text: str, notes: list[str]) -> dict[str, Any] | list[Any]:
    """Return the object or the array; of a broken one, and of objects in a row, the complete objects.

    Raises:
        StabtreeError: if nothing can be read.
    """
    try:
        value = parse(text)
    except ValueError as error:
        found = objects(text, text.find("[") + 1 if text.lstrip().startswith("[") else 0)
        if not found:
            raise StabtreeError(clean(error, 120), where=source.path, hint="correct it, or export it again") from None
        if "Extra data" not in str(error):
            notes.append(f"The file {clean(error, 120)}: the {len(found):,} complete objects before that were read.")
        return found
    if isinstance(value, dict | list):
        return value
    raise StabtreeError("holds one value, no metrics", where=source.path, hint="name the metrics file")


def _lists(value: Mapping[str, Any], names: Names, path: str) -> dict[str, list[Any]]:
    """Return the columns of an object: its lists, and its objects from row to cell as pandas writes them.

    Raises:
        StabtreeError: if there are too many columns.
    """
    lists = {}
    for name, cells in value.items():
        if isinstance(cells, list):
            lists[str(name)] = cells
        elif isinstance(cells, dict) and cells and all(map(_ROW.fullmatch, cells)):
            lists[str(name)] = [cells[key] for key in sorted(cells, key=int)]
    check_width(len(lists), path)
    return without_settings(lists, {name for name in lists if names.wanted(name) or names.counts(name)})
