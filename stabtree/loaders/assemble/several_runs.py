"""Several runs in one table: separated by a column that names them, by columns of their own, or by restarts.

Rows of two runs must never become one series. So runs are handed on as tables of their own, and the user is
asked for one.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.passes import increases
from stabtree.common.text import clean
from stabtree.loaders.assemble.steps import axis_of, evidence_of, from_column, of_role, settle
from stabtree.loaders.counters import NEVER_BACK, Count, Runs, counted_on, divide
from stabtree.loaders.table import attempt, epochs_note, given_up
from stabtree.metrics.names import RUN, in_export

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names

MAX_RUNS = 1000


def split(table: Table, names: Names) -> tuple[Table, ...]:
    """Return the tables of the runs in a table; the table itself where it holds one."""
    if table.run:
        return (table,)
    table = _only_run(table, names)
    return _by_columns(table, names) or _by_name(table, names) or _by_restart(table, names)


def _run_columns(table: Table, names: Names) -> dict[str, dict[str, str]]:
    """Return by run its columns by their names without the run's; nothing where this is no such export."""
    found: dict[str, dict[str, str]] = {}
    for name in table.columns:
        metric, run = in_export(name), name.rpartition(" - ")[0]
        whole = names.metric(name)
        if metric and run and (not whole or "/" in whole):
            found.setdefault(run, {})[metric] = name
    shared = any(" - " not in name and names.metric(name) for name in table.columns)
    if shared or not any(map(names.metric, chain.from_iterable(found.values()))):
        return {}
    return found


def _only_run(table: Table, names: Names) -> Table:
    """Return the table of an export that holds one run with its columns named as the run logged them."""
    found = _run_columns(table, names)
    if len(found) != 1:
        return table
    ((_, columns),) = found.items()
    short = {full: metric for metric, full in columns.items()}
    return replace(table, columns={short.get(name, name): column for name, column in table.columns.items()})


def _by_columns(table: Table, names: Names) -> tuple[Table, ...]:
    """Return a table for each run of a W&B export, of the rows that hold something of it."""
    found = _run_columns(table, names)
    if len(found) < 2:
        return ()
    shared = {name: column for name, column in table.columns.items() if " - " not in name}
    tables = []
    for run, series in found.items():
        own = {metric: table.columns[name] for metric, name in series.items()}
        keep = np.zeros(table.rows, np.bool_)
        for column in filter(None, own.values()):
            keep |= column.mask
        if keep.any():
            tables.append(_rows_of(replace(table, columns={**shared, **own}), keep, run))
    return tuple(tables) if len(tables) > 1 else ()


def _by_name(table: Table, names: Names) -> tuple[Table, ...]:
    """Return a table for each name in the column that names the run."""
    for name, column in of_role(table, RUN, names):
        if not table.rows:
            continue
        # A row without a name is of the run of the row before.
        values = column.values[np.maximum.accumulate(np.where(column.mask, np.arange(table.rows), 0))]
        distinct, first = np.unique(values, return_index=True)
        if not np.isfinite(distinct).all() or not 1 < len(distinct) <= min(MAX_RUNS, table.rows / 2):
            continue
        ordered = distinct[np.argsort(first)].tolist()
        rest = replace(table, columns={**table.columns, name: None})
        return tuple(_rows_of(rest, values == value, _label(column, value)) for value in ordered)
    return ()


def _label(column: Column, value: float) -> str:
    return column.labels.get(value) or f"{value:.15g}"


def _by_restart(table: Table, names: Names) -> tuple[Table, ...]:
    """Return a table for each run that its counter is back at its start for; the steps are counted on in each."""
    table = settle(table, names)
    axis = axis_of(table, names)
    if axis is None:
        return (table,)
    if increases(axis):
        return (replace(table, restarts=table.restarts or NEVER_BACK),)
    rows, evidence = evidence_of(table, axis, names)
    carries = np.zeros(table.rows, dtype=np.bool_)
    carries[rows] = True
    every = np.ones(table.rows, dtype=np.bool_)
    runs = divide(rows, evidence, Count(axis, every), carries)
    meaning = runs.meaning
    if table.restarts:
        meaning = f"{table.restarts}; {meaning}" if len(runs.starts) > 1 or runs.epochs else table.restarts
    table = replace(table, restarts=meaning)
    if runs.epochs:
        table = _counted_on(table, runs)
    return _attempts(table, axis, runs, names) if len(runs.starts) > 1 else (table,)


def _counted_on(table: Table, runs: Runs) -> Table:
    """Return the table with its counter counted on from each of the epochs."""
    name = table.counter or ""
    column = table.columns[name]
    if column is None:
        return table
    found = from_column(name, column)
    steps = np.asarray(column.values if isinstance(found, str) else found.values, np.float64)
    counted = counted_on(Count(steps, np.ones(table.rows, dtype=np.bool_)), runs)
    columns = {**table.columns, name: replace(column, values=counted)}
    note = epochs_note(f"The steps in column {clean(name, 40)}", len(runs.epochs) + 1)
    return replace(table, columns=columns, notes=(*table.notes, note))


def _attempts(table: Table, axis: Floats, runs: Runs, names: Names) -> tuple[Table, ...]:
    """Return a table for each run but those that were given up."""
    tables: list[Table] = []
    notes: list[str] = []
    count = len(runs.starts) - len(runs.gone)
    for index, (begin, end) in enumerate(pairwise([*runs.starts, table.rows])):
        if index in runs.gone:
            notes.append(given_up(end - begin, clean(table.counter or "", 40), float(axis[begin:end].max())))
            continue
        keep = np.zeros(table.rows, dtype=np.bool_)
        keep[begin:end] = True
        number = len(tables) + 1
        own = _rows_of(table, keep, str(number) if count > 1 else "")
        own = replace(own, notes=(*own.notes, *attempt(number, count, begin), *notes), counter=None)
        tables.append(settle(own, names))
        notes = []
    return tuple(tables)


def _rows_of(table: Table, keep: Bools, run: str) -> Table:
    """Return the kept rows as the table of a run. What could not be read may be of any run, so it stays with each."""
    columns = {name: column and column.pick(keep) for name, column in table.columns.items()}
    rows = np.cumsum(keep) - 1
    saves = tuple(save._replace(row=int(rows[save.row])) for save in table.saves if keep[save.row])
    return replace(table, rows=int(np.count_nonzero(keep)), columns=columns, run=clean(run, 80), saves=saves)
