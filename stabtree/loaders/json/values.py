"""Values that are in memory already: a DataFrame, a mapping of columns, or records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json.columns import columns_table
from stabtree.loaders.json.frame import kept_in, within
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.source import Source

if TYPE_CHECKING:
    from stabtree.loaders.json.frame import Spans
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

DENSE = 0.5  # of the rows: a column with fewer values is one that is not logged at every row
KINDS = "a DataFrame, a mapping of column to values, a list of records, or a Run"


def values_table(data: object, names: Names) -> Table:
    """The table of a DataFrame (pandas, polars), an Arrow table, columns (`{"loss": [...]}`) or records.

    A cell of a DataFrame that is NaN may be a NaN that was logged or nothing at all: it is taken for nothing in a
    column with a value in fewer than half of its rows, and in rows that hold values of such columns alone, as rows of
    an evaluation do. Of columns and records, None is nothing and NaN is a value.

    Raises:
        StabtreeError: where it is none of these, or holds what can't be columns.
    """
    if hasattr(data, "collect_schema") and not hasattr(data, "rows"):
        raise StabtreeError(f"a {type(data).__name__} holds no values yet", hint="give what its .collect() returns")
    if hasattr(data, "column_names") and hasattr(data, "to_pydict"):
        _check_distinct(list(data.column_names))
        data = data.to_pydict()
    if hasattr(data, "columns") and not isinstance(data, Mapping):
        return columns_table(_source("DataFrame"), "DataFrame", _frame(data), names, ())
    if isinstance(data, Mapping):
        lists = _even({str(name): _plain(cells, str(name)) for name, cells in data.items()})
        return columns_table(_source("columns"), "columns", lists, names, ())
    if isinstance(data, Iterable) and not isinstance(data, str | bytes) and getattr(data, "ndim", None) != 0:
        source = _source("records")
        rows = JsonRows(names, source.path)
        records = [_record(item) for item in data]
        if records and not any(isinstance(item, Mapping) for item in records):
            raise StabtreeError("values without a name", hint='give them one, as {"loss": values}')
        dropped = rows.add_all(records)
        note = (f"Records that are no mappings: {dropped:,}, skipped.",) if dropped else ()
        return rows.table(source, "records", (*rows.notes, *note))
    raise StabtreeError(f"a {type(data).__name__} is no run", hint=f"give a path, {KINDS}")


def _source(called: str) -> Source:
    return Source(called, None, b"", 0)


def _record(item: object) -> object:
    return {str(key): _scalar(value) for key, value in item.items()} if isinstance(item, Mapping) else item


def _scalar(value: object) -> object:
    """A value of an array library as a plain one."""
    if _is_missing(value):
        return None
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "size", None) in (1, None) else value


def _plain(cells: Any, name: str) -> list[Any]:
    """The values of a column as a list.

    Raises:
        StabtreeError: where they are no sequence of single values.
    """
    for way in ("tolist", "to_list"):
        if hasattr(cells, way):
            cells = getattr(cells, way)()
            break
    if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable):
        raise StabtreeError(
            f"the column {clean(name, 40)!r} is no list of values",
            hint='give columns as {"step": [...], "loss": [...]}',
        )
    return [_scalar(cell) for cell in cells]


def _even(lists: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns, which must be of one length.

    Raises:
        StabtreeError: where they are not: nobody knows which rows belong together.
    """
    longest = max(lists, key=lambda name: len(lists[name]), default="")
    for name, cells in lists.items():
        if len(cells) != len(lists[longest]):
            problem = f"{clean(longest, 40)} has {len(lists[longest]):,} values, {clean(name, 40)} {len(cells):,}"
            raise StabtreeError(problem, hint="give columns of one length, None where nothing was logged")
    return lists


def _check_distinct(names: list[str]) -> None:
    """Raise where two columns have one name.

    Raises:
        StabtreeError: where they have.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StabtreeError(f"has two columns called {clean(twice, 40)!r}", hint="rename one of them")


def _frame(frame: Any) -> dict[str, list[Any]]:
    """The columns of a DataFrame, its index among them where that has a name; empty cells as None."""
    _check_distinct([str(name) for name in frame.columns])
    lists = {str(name): _plain(frame[name], str(name)) for name in frame.columns}
    index = getattr(frame, "index", None)  # polars has none
    name = str(getattr(index, "name", None) or "")
    if not name and str(getattr(index, "dtype", "")).startswith("int") and "step" not in lists:
        places = _plain(index, "step")
        rises = all(late > early for early, late in itertools.pairwise(places))
        name = "step" if rises and places != list(range(len(places))) else ""
    if name and name not in lists:
        lists = {name: _plain(index, name), **lists}
    spans = kept_in(frame).not_logged
    steps = lists.get("step", [])
    told = {name: _blanked(lists[name], steps, spans[name]) for name in spans if name in lists and steps}
    rest = {name: cells for name, cells in lists.items() if name not in told}
    return {**lists, **(_without_empty(rest) if not spans else rest), **told}


def _blanked(cells: list[Any], steps: list[Any], spans: Spans) -> list[Any]:
    """The cells of a metric, None where the run that they are of did not log it."""
    return [None if out and _is_nan(cell) else cell for cell, out in zip(cells, within(steps, spans), strict=True)]


def _is_missing(cell: object) -> bool:
    """Whether a cell is one of pandas' own signs for nothing (`NaT`, `NA`), which are no float."""
    return type(cell).__name__ in ("NaTType", "NAType")


def _without_empty(lists: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns with None for each NaN that stands for nothing."""
    held = {name: [not _is_nan(cell) for cell in cells] for name, cells in lists.items()}
    rows = max(map(len, lists.values()), default=0)
    whole = {name for name, there in held.items() if sum(there) == rows}
    sparse = {name for name, there in held.items() if 0 < sum(there) < DENSE * rows}
    dense = [name for name in lists if name not in whole | sparse]
    # Rows of an evaluation: a sparse column has a value there, and no dense one has.
    apart = [
        any(held[name][row] for name in sparse) and not any(held[name][row] for name in dense) for row in range(rows)
    ]
    return {
        name: [
            None if not there and (name in sparse or empty) else cell
            for cell, there, empty in zip(cells, held[name], apart, strict=True)
        ]
        for name, cells in lists.items()
    }


def _is_nan(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))
