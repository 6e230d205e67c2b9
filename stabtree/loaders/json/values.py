"""Values that are in memory already: a DataFrame, a mapping of columns, or records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_HALF
from stabtree.common.text import clean
from stabtree.loaders.json.document import columns_table, records_table
from stabtree.loaders.source import Source

if TYPE_CHECKING:
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

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
    filled = np.array([[not _is_nan(cell) for cell in cells] for cells in lists.values()], dtype=np.bool_)
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


def _is_nan(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))
