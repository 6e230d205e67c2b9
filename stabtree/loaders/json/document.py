"""Metrics in one value: a JSON document, or what is in memory already.

A document is an array of records, an object of columns, objects in a row, or a course inside one; in memory there is a
DataFrame, a mapping of columns, or records.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_HALF
from stabtree.common.text import clean
from stabtree.loaders.json.lines import is_wrapped, objects, parse_fast, parse_object, rows_of
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.source import HEAD_BYTES, NAME_METRICS, Source, Sure
from stabtree.loaders.table import MAX_COLUMNS, Column, Table, check_width
from stabtree.loaders.tables.cells import builder_of
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stabtree.metrics.names import Names

# A document is parsed whole, at some ten times its size; no trainer's state comes near this.
MAX_TEXT = 512 << 20
MAX_DEPTH = 3
MIN_VALUES = 2  # values that make a list of them a course
MIN_ALIKE = 5  # values of two lists of one length, which are a course whatever their names
# The keys of an object of columns: each is followed by a list of cells, or by an object from row to cell.
_KEY = re.compile(r'"((?:[^"\\]|\\.){1,200})"\s*:\s*(?:\[\s*[^\s\[{\]]|\{\s*"\d{1,9}"\s*:)')
_ROW_KEY = re.compile(r'\{\s*"\d')
_ROW = re.compile(r"\d{1,9}")
_ARRAY = re.compile(r"\[\s*\{")
_TWO = re.compile(r"^\}\s*(?:,\s*)?\{", re.MULTILINE)
_INNER = re.compile(r'"(series|metrics|history|log_history|rows|records)"\s*:')
# What boosting libraries and others call the parts of the data; the first of several held-out ones has no number.
_SPLIT = re.compile(r"(train|training|learn|val|valid|validation|eval|test|dev)(?:_?[01])?", re.IGNORECASE)


def text_of(source: Source, notes: list[str]) -> str:
    """Return the text of a document, unless it is too large; what had to be replaced in it goes to `notes`."""
    lines, text = source.lines(), io.StringIO()
    for block in lines.blocks():
        text.write(block)
        if text.tell() > MAX_TEXT:
            hint = "write one object a line (JSON lines), which can be of any size"
            raise StabtreeError("is one JSON document of more than 512 MiB", where=source.path, hint=hint)
    notes += lines.notes
    return text.getvalue()


def records(values: Any) -> list[dict[str, Any]]:
    """Return the entries of a list that are objects; none if it is no list."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def records_table(source: Source, format_: str, entries: list[Any], names: Names, what: str = "") -> Table:
    """Return the table of a list of records; those that are no objects are counted as entries of `what`."""
    rows = JsonRows(names, source.path)
    add_entries(rows, entries, what)
    return rows.table(source, format_, ())


def add_entries(rows: JsonRows, entries: list[Any], what: str) -> None:
    """Add the records of a list."""
    if dropped := rows.add_all(entries, range(1, len(entries) + 1)):
        rows.notes.append(f"{what} that are not objects: {dropped:,}, skipped.")


def columns_table(
    source: Source, format_: str, lists: Mapping[str, list[Any]], names: Names, notes: tuple[str, ...]
) -> Table:
    """Return the table of an object of columns; what is shorter than the longest is not logged at the end."""
    check_width(len(lists), source.path)
    rows = max(map(len, lists.values()), default=0)
    short = [clean(name, 40) for name, cells in lists.items() if len(cells) < rows]
    if short:
        notes = (*notes, f"Shorter than the longest series, so not logged at the end: {', '.join(short[:5])}.")
    columns: dict[str, Column | None] = {}
    for name, cells in lists.items():
        builder = builder_of(name, names)
        builder.add(cells + [None] * (rows - len(cells)), range(1, rows + 1))
        columns[name] = None if builder.given_up else builder.column()
    return Table(source.path, source.describe(format_), rows, columns, notes=notes)


def sniff(source: Source, names: Names) -> Sure:
    """Return how surely this is one document of metrics."""
    head = source.head.lstrip()
    if source.binary or not head.startswith(("[", "{")) or is_wrapped(head):
        return Sure.NO
    if _ARRAY.match(head):
        return Sure.LIKELY
    if head.split("\n", 1)[0].strip() == "{" and _TWO.search(head) and objects(head):
        return Sure.MAYBE
    # Rows of numbers hold neither lists nor objects from row to cell, and the search for keys is slow on them.
    if head.startswith("[") or not ("[" in head or _ROW_KEY.search(head)) or _INNER.search(head):
        return Sure.NO
    known = (_is_judged(key, names) or names.metric(key) or names.role(key) == "step" for key in _KEY.findall(head))
    whole = len(source.data) >= HEAD_BYTES or parse_object(head) is not None
    return Sure.SURELY.when(whole and any(known))


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """Read the columns that hold numbers, and those that are known.

    Raises:
        StabtreeError: if the document holds no records and no columns.
    """
    notes: list[str] = []
    value = parse_document(source, notes)
    if isinstance(value, list):
        rows = rows_of(source, names)
        add_entries(rows, value, "Entries of the array")
        return rows.tables(source, "json records", notes)
    lists = {}
    for name, cells in value.items():
        if isinstance(cells, list):
            lists[str(name)] = cells
        elif isinstance(cells, dict) and cells and all(map(_ROW.fullmatch, cells)):  # as pandas writes them
            lists[str(name)] = [cells[key] for key in sorted(cells, key=int)]
    check_width(len(lists), source.path)
    lists = _without_settings(lists, {name for name in lists if names.wanted(name) or names.counts(name)})
    if not lists:
        return read_nested(value, source, names)
    return columns_table(source, "json columns", lists, names, tuple(notes))


def parse_document(source: Source, notes: list[str]) -> dict[str, Any] | list[Any]:
    """Return the object or the array; of a broken one, and of objects in a row, the complete objects.

    Raises:
        StabtreeError: if there are none.
    """
    text = text_of(source, notes)
    try:
        value = parse_fast(text)
    except ValueError as error:
        array = _ARRAY.search(text)
        complete = objects(text) or (objects(text, array.start() + 1) if array else [])
        if not complete:
            raise StabtreeError(clean(error, 120), where=source.path, hint="correct it, or export it again") from None
        if "Extra data" not in str(error):
            notes.append(f"The file {clean(error, 120)}: the {len(complete):,} complete rows before that were read.")
        return complete
    if isinstance(value, dict | list):
        return value
    raise StabtreeError("holds one value, no metrics", where=source.path, hint="name the metrics file")


class _Course(NamedTuple):
    """What was logged of a run: rows, or lists of values by name; and the keys that lead to it."""

    path: tuple[str, ...]
    rows: list[dict[str, Any]]
    lists: dict[str, list[Any]]


def holds_nested(content: Mapping[str, Any], names: Names) -> bool:
    """Return whether the course of a run is inside an object, below its own columns."""
    return any(course.path or course.rows or course.lists for course in _courses(content, names, ()))


def read_nested(content: Mapping[str, Any], source: Source, names: Names) -> tuple[Table, ...]:
    """Read the course inside an object, several for several runs.

    Raises:
        StabtreeError: if there is none.
    """
    courses = list(_courses(content, names, ()))
    if not courses:
        raise StabtreeError("is an object that holds no columns", where=source.path, hint=NAME_METRICS)
    if len({course.path[:-1] for course in courses}) == 1 and all(course.rows for course in courses):
        # By epoch and by step, say: of one run the longer one shows more.
        courses = [max(courses, key=lambda course: len(course.rows))]
    tables = []
    for course in courses:
        if course.lists:
            table = columns_table(source, "json columns", course.lists, names, ())
        else:
            table = records_table(source, "json records", course.rows, names)
        tables.append(replace(table, run=clean("/".join(course.path), 60)) if len(courses) > 1 else table)
    return tuple(tables)


def _courses(value: Mapping[str, Any], names: Names, path: tuple[str, ...]) -> Iterator[_Course]:
    """Yield what was logged in an object or below it."""
    lists = {str(key): cells for key, cells in value.items() if _is_list(cells)}
    by_split = _by_split(value)
    lists |= by_split
    lengths = {len(cells) for cells in lists.values()}
    alike = len(lists) > 1 and len(lengths) == 1 and min(lengths) >= MIN_ALIKE  # columns, whatever they are called
    if len(lists) > MAX_COLUMNS:  # refused where it is read, before time is spent on each name
        yield _Course(path, [], lists)
    elif judged := {key for key in lists if _is_judged(key, names)} or by_split.keys() or set(lists if alike else ()):
        yield _Course(path, [], _without_settings(lists, judged))
    else:
        for key, inner in value.items():
            if isinstance(inner, dict) and len(path) < MAX_DEPTH:
                yield from _courses(inner, names, (*path, str(key)))
            elif isinstance(inner, list) and _is_course(inner, names):
                yield _Course((*path, str(key)), records(inner), {})


def _by_split(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists inside the parts of the data that an object holds, two or more, each under its part's name."""
    splits = {str(key): inner for key, inner in value.items() if isinstance(inner, dict) and _SPLIT.fullmatch(str(key))}
    lists = dict[str, list[Any]]()
    for split, inner in splits.items():
        spelled = _SPLIT.fullmatch(split)
        name = spelled[1] if spelled and spelled[1] not in splits else split
        lists |= {f"{name}/{key}": cells for key, cells in inner.items() if _is_list(cells)}
    return lists if len(splits) > 1 else {}


def _is_list(cells: object) -> bool:
    if not isinstance(cells, list) or len(cells) < MIN_VALUES:
        return False
    return all(isinstance(cell, int | float | None) for cell in cells) and any(cell is not None for cell in cells)


def _without_settings(lists: Mapping[str, list[Any]], logged: Collection[str]) -> dict[str, list[Any]]:
    """Return the lists no longer than those known to be logged; layer sizes and betas are configuration."""
    longest = max((len(lists[name]) for name in logged), default=0)
    return {name: cells for name, cells in lists.items() if len(cells) <= longest or name in logged}


def _is_course(rows: list[Any], names: Names) -> bool:
    """Return whether these are the rows of a log: objects with a step and with what a run is judged by."""
    first: dict[str, Any] = {}
    for row in records(rows[:100]):
        first = {**row, **first}
    judged = any(_is_judged(str(key), names) or isinstance(cell, dict) for key, cell in first.items())
    return len(rows) >= MIN_VALUES and judged and any(names.counts(str(key)) for key in first)


def _is_judged(key: str, names: Names) -> bool:
    return names.metric(key) in ("loss", "eval_loss", "reward") or describe_name(key).named


DENSE = SHARE_HALF  # of the rows: a column with fewer values is one that is not logged at every row
KINDS = "a DataFrame, a mapping of column to values, a list of records, or a Run"


def values_table(data: object, names: Names) -> Table:
    """Return the table of a DataFrame (pandas, polars), an Arrow table, columns (`{"loss": [...]}`) or records.

    A NaN in a DataFrame may have been logged, or mean nothing at all: it is taken for nothing in a column with a value
    in fewer than half of its rows, and in rows that hold values of such columns alone, as rows of an evaluation do. In
    columns and records, None is nothing and NaN is a value.

    Raises:
        StabtreeError: if it is none of these, or holds what can't be columns.
    """
    if hasattr(data, "collect_schema") and not hasattr(data, "rows"):
        raise StabtreeError(f"a {type(data).__name__} holds no values yet", hint="give what its .collect() returns")
    if hasattr(data, "column_names") and hasattr(data, "to_pydict"):
        _check_distinct(list(data.column_names))
        data = data.to_pydict()
    if hasattr(data, "columns") and not isinstance(data, Mapping):
        return columns_table(Source("DataFrame", None, b"", 0), "DataFrame", _frame(data), names, ())
    if isinstance(data, Mapping):
        return columns_table(Source("columns", None, b"", 0), "columns", _columns(data), names, ())
    if isinstance(data, str | bytes) or not isinstance(data, Iterable) or getattr(data, "ndim", None) == 0:
        raise StabtreeError(f"a {type(data).__name__} is no run", hint=f"give a path, {KINDS}")
    records = [
        {str(key): _scalar(value) for key, value in item.items()} if isinstance(item, Mapping) else item
        for item in data
    ]
    if records and not any(isinstance(item, dict) for item in records):
        raise StabtreeError("values without a name", hint='give them one, as {"loss": values}')
    return records_table(Source("records", None, b"", 0), "records", records, names, "Records")


def _columns(data: Mapping[Any, Any]) -> dict[str, list[Any]]:
    """Return the columns of a mapping; of other lengths nobody knows which rows belong together."""
    lists = {str(name): _plain(cells, str(name)) for name, cells in data.items()}
    longest = max(lists, key=lambda name: len(lists[name]), default="")
    for name, cells in lists.items():
        if len(cells) != len(lists[longest]):
            problem = f"{clean(longest, 40)} has {len(lists[longest]):,} values, {clean(name, 40)} {len(cells):,}"
            raise StabtreeError(problem, hint="give columns of one length, None where nothing was logged")
    return lists


def _scalar(value: object) -> object:
    """Return a value of an array library as a plain one; pandas' own signs for nothing are no floats."""
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "size", None) in (1, None):
        return item()
    return value


def _plain(cells: Any, name: str) -> list[Any]:
    """Return the values of a column as a list."""
    if hasattr(cells, "tolist"):
        cells = cells.tolist()
    elif hasattr(cells, "to_list"):
        cells = cells.to_list()
    if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable):
        hint = 'give columns as {"step": [...], "loss": [...]}'
        raise StabtreeError(f"the column {clean(name, 40)!r} is no list of values", hint=hint)
    return [_scalar(cell) for cell in cells]


def _check_distinct(names: list[str]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StabtreeError(f"has two columns called {clean(twice, 40)!r}", hint="rename one of them")


def _frame(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a DataFrame, with its index if that has a name or counts; empty cells as None."""
    _check_distinct([str(name) for name in frame.columns])
    lists = {str(name): _plain(frame[name], str(name)) for name in frame.columns}
    index = getattr(frame, "index", None)  # polars has none
    name = str(getattr(index, "name", None) or "")
    if not name and "step" not in lists and str(getattr(index, "dtype", "")).startswith("int"):
        steps = _plain(index, "step")
        rises = all(late > early for early, late in itertools.pairwise(steps))
        name = "step" if rises and steps != list(range(len(steps))) else ""
    if name and name not in lists:
        lists = {name: _plain(index, name), **lists}
    rows = max(map(len, lists.values()), default=0)
    numbers = [[math.nan if cell is None else cell for cell in cells] for cells in lists.values()]
    filled = np.array([[cell == cell for cell in cells] for cells in numbers], dtype=np.bool_)  # noqa: PLR0124 - a NaN
    counts = filled.reshape(len(lists), rows).sum(axis=1)
    sparse = (counts > 0) & (counts < DENSE * rows)
    dense = (counts < rows) & ~sparse
    # Rows of an evaluation: a sparse column has a value there, and no dense one has.
    apart = filled[sparse].any(axis=0) & ~filled[dense].any(axis=0)
    kept = filled | ~(sparse[:, None] | apart)
    return {
        name: [cell if keep else None for cell, keep in zip(cells, flags.tolist(), strict=True)]
        for (name, cells), flags in zip(lists.items(), kept, strict=True)
    }
