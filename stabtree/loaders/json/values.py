"""Values that are in memory already: a DataFrame, a mapping of columns, or records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_HALF
from stabtree.common.text import clean
from stabtree.loaders.json.document import columns_table
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.source import Source
from stabtree.run import FRAME_KEY, Resume, Setting

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar, Run

Spans = tuple[tuple[int, int], ...]
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
        return columns_table(_source("DataFrame"), "DataFrame", _frame(data), names, ())
    if isinstance(data, Mapping):
        lists = _even({str(name): _plain(cells, str(name)) for name, cells in data.items()})
        return columns_table(_source("columns"), "columns", lists, names, ())
    if isinstance(data, Iterable) and not isinstance(data, str | bytes) and getattr(data, "ndim", None) != 0:
        return _records_table(data, names)
    raise StabtreeError(f"a {type(data).__name__} is no run", hint=f"give a path, {KINDS}")


def _records_table(data: Iterable[object], names: Names) -> Table:
    source = _source("records")
    rows = JsonRows(names, source.path, written=False)
    records = [_record(item) for item in data]
    if records and not any(isinstance(item, Mapping) for item in records):
        raise StabtreeError("values without a name", hint='give them one, as {"loss": values}')
    if dropped := rows.add_all(records):
        rows.notes.append(f"Records that are no mappings: {dropped:,}, skipped.")
    return rows.table(source, "records", tuple(rows.notes))


def _source(name: str) -> Source:
    return Source(name, None, b"", 0)


def _record(item: object) -> object:
    if isinstance(item, Mapping):
        return {str(key): _scalar(value) for key, value in item.items()}
    return item


def _scalar(value: object) -> object:
    """Return a value of an array library as a plain one."""
    if _is_missing(value):
        return None
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "size", None) in (1, None):
        return item()
    return value


def _plain(cells: Any, name: str) -> list[Any]:
    """Return the values of a column as a list.

    Raises:
        StabtreeError: if they are no sequence of single values.
    """
    if hasattr(cells, "tolist"):
        cells = cells.tolist()
    elif hasattr(cells, "to_list"):
        cells = cells.to_list()
    if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable):
        raise StabtreeError(
            f"the column {clean(name, 40)!r} is no list of values",
            hint='give columns as {"step": [...], "loss": [...]}',
        )
    return [_scalar(cell) for cell in cells]


def _even(lists: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the columns, which must have the same length.

    Raises:
        StabtreeError: if they have not: nobody knows which rows belong together.
    """
    longest = max(lists, key=lambda name: len(lists[name]), default="")
    for name, cells in lists.items():
        if len(cells) != len(lists[longest]):
            problem = f"{clean(longest, 40)} has {len(lists[longest]):,} values, {clean(name, 40)} {len(cells):,}"
            raise StabtreeError(problem, hint="give columns of one length, None where nothing was logged")
    return lists


def _check_distinct(names: list[str]) -> None:
    """Raise if two columns have the same name.

    Raises:
        StabtreeError: if they have.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StabtreeError(f"has two columns called {clean(twice, 40)!r}", hint="rename one of them")


def _frame(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a DataFrame, with its index if that has a name; empty cells as None."""
    _check_distinct([str(name) for name in frame.columns])
    lists = {str(name): _plain(frame[name], str(name)) for name in frame.columns}
    index = getattr(frame, "index", None)  # polars has none
    name = _index_name(index, lists)
    if name and name not in lists:
        lists = {name: _plain(index, name), **lists}
    spans = kept_in(frame).not_logged
    if not spans:
        return _without_empty(lists)
    if steps := lists.get("step", []):
        for name in spans.keys() & lists.keys():
            lists[name] = _blanked(lists[name], steps, spans[name])
    return lists


def _index_name(index: Any, columns: Collection[str]) -> str:
    """Return the name of an index: `step` for one of rising integers that are not row numbers, if no column is it."""
    name = str(getattr(index, "name", None) or "")
    if name or "step" in columns or not str(getattr(index, "dtype", "")).startswith("int"):
        return name
    steps = _plain(index, "step")
    rises = all(late > early for early, late in itertools.pairwise(steps))
    return "step" if rises and steps != list(range(len(steps))) else ""


def _blanked(cells: list[Any], steps: list[Any], spans: Spans) -> list[Any]:
    """Return the cells of a metric, None where the run that they are of did not log it."""
    return [None if out and _is_nan(cell) else cell for cell, out in zip(cells, within(steps, spans), strict=True)]


def _is_missing(cell: object) -> bool:
    """Return whether a cell is one of pandas' own signs for nothing (`NaT`, `NA`), which are no float."""
    return type(cell).__name__ in ("NaTType", "NAType")


def _without_empty(lists: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the columns with None for each NaN that means nothing."""
    filled = {name: [not _is_nan(cell) for cell in cells] for name, cells in lists.items()}
    rows = max(map(len, lists.values()), default=0)
    sparse = [name for name, flags in filled.items() if 0 < sum(flags) < DENSE * rows]
    apart = _rows_apart(filled, sparse, rows)
    found = {}
    for name, cells in lists.items():
        empty = [True] * rows if name in sparse else apart
        found[name] = _emptied(cells, filled[name], empty)
    return found


def _rows_apart(filled: Mapping[str, list[bool]], sparse: list[str], rows: int) -> list[bool]:
    """Return for each row whether it is of an evaluation: a sparse column has a value there, and no dense one has."""
    dense = [name for name, flags in filled.items() if sum(flags) < rows and name not in sparse]
    of_sparse, of_dense = _any_filled(sparse, filled, rows), _any_filled(dense, filled, rows)
    return [some and not other for some, other in zip(of_sparse, of_dense, strict=True)]


def _emptied(cells: list[Any], filled: list[bool], empty: list[bool]) -> list[Any]:
    """Return the cells, None for each without a value in a row where that means nothing."""
    return [cell if there or not blank else None for cell, there, blank in zip(cells, filled, empty, strict=True)]


def _any_filled(names: list[str], filled: Mapping[str, list[bool]], rows: int) -> list[bool]:
    """Return for each row whether one of these columns has a value there."""
    if not names:
        return [False] * rows
    return list(map(any, zip(*(filled[name] for name in names), strict=True)))


def _is_nan(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


class Kept(NamedTuple):
    """What a frame keeps of the run that it was made of.

    Attributes:
        config: the settings, with their sources.
        not_logged: by metric, from which step to which it was not logged: a NaN elsewhere is one.
        steps_from: what the steps were read from.
        resumes: where the log went back.
        epoch_ends: the epochs by their last step.
        saved: the lines that report a checkpoint, by its step.
    """

    config: Mapping[str, Setting] = {}
    not_logged: Mapping[str, Spans] = {}
    steps_from: str = ""
    resumes: tuple[Resume, ...] = ()
    epoch_ends: Mapping[int, int] = {}
    saved: Mapping[int, int] = {}

    def added_to(self, run: Run) -> Run:
        """Return the run that was read from the frame, with what is kept of it up to its last step."""
        last = -1 if run.last_step is None else run.last_step
        return replace(
            run,
            sources=tuple(replace(file, steps_from=self.steps_from or file.steps_from) for file in run.sources),
            resumes=run.resumes or tuple(resume for resume in self.resumes if resume.to_step <= last),
            epoch_ends=run.epoch_ends or _up_to(last, self.epoch_ends),
            saved=_up_to(last, self.saved),
        )


def _up_to(last: int, steps: Mapping[int, int]) -> dict[int, int]:
    return {step: value for step, value in steps.items() if step <= last}


def kept_in(frame: Any) -> Kept:
    """Return what a frame keeps of its run; nothing if it was not made of one, or its `attrs` were changed."""
    try:
        kept = frame.attrs[FRAME_KEY]
        return Kept(
            config={str(key): Setting(_value(value), str(source)) for key, (value, source) in kept["config"].items()},
            not_logged={str(name): _spans(text) for name, text in kept["not_logged"].items()},
            steps_from=str(kept["steps_from"]),
            resumes=tuple(Resume(*map(int, item)) for item in kept["resumes"]),
            epoch_ends={int(step): int(epoch) for step, epoch in kept["epoch_ends"]},
            saved={int(step): int(line) for step, line in kept["saved"]},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Kept()


def _value(value: Any) -> ConfigScalar:
    if isinstance(value, list | tuple):
        return tuple(int(item) for item in value)
    if not isinstance(value, str | int | float | bool):
        raise TypeError(type(value).__name__)
    return value


def _spans(text: str) -> Spans:
    pairs = (span.partition("-") for span in text.split())
    return tuple((int(begin), int(end)) for begin, _, end in pairs)


def within(steps: Sequence[Any], spans: Spans) -> list[bool]:
    """Return for each step whether it is in one of the spans."""
    at = np.asarray(steps, dtype=np.float64)
    begins, ends = (np.array([span[side] for span in spans], dtype=np.float64) for side in (0, 1))
    index = np.searchsorted(begins, at, side="right") - 1
    found: list[bool] = ((index >= 0) & (at <= ends[index])).tolist()
    return found
