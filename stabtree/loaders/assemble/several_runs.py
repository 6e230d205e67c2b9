"""Several runs in one table: told apart by a column that names them, by columns of their own, or by restarts.

Rows of two runs must never become one series. So runs are handed on as tables of their own, and the user is
asked for one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.assemble import steps as steps_
from stabtree.loaders.table import (
    MIN_ROWS,
    Column,
    are_epochs,
    attempt,
    beginnings,
    epochs_note,
    is_fresh,
    running_on,
)
from stabtree.metrics.names import EPOCH, RANK, RUN, STEP, in_export

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

MAX_RUNS = 1000


def split(table: Table, names: Names) -> tuple[Table, ...]:
    """The tables of the runs in a table; the table itself where it holds one."""
    if table.run:
        return (table,)
    table = _only_run(table, names)
    return _by_columns(table, names) or _by_name(table, names) or _by_restart(table, names) or (table,)


def _run_columns(table: Table, names: Names) -> dict[str, dict[str, str]]:
    """By run, its columns' names without the run's name; none where this is no such export."""
    found: dict[str, dict[str, str]] = {}
    for name in table.columns:
        metric, run = in_export(name), name.rpartition(" - ")[0]
        whole = names.metric(name)
        if metric and run and (not whole or "/" in whole):
            found.setdefault(run, {})[metric] = name
    known = any(names.metric(metric) for own in found.values() for metric in own)
    shared = [name for name in table.columns if " - " not in name and names.metric(name)]
    return found if known and not shared else {}


def _only_run(table: Table, names: Names) -> Table:
    """The table of an export that holds one run, its columns named as the run logged them."""
    found = _run_columns(table, names)
    if len(found) != 1:
        return table
    ((_, columns),) = found.items()
    short = {full: metric for metric, full in columns.items()}
    return replace(table, columns={short.get(name, name): column for name, column in table.columns.items()})


def _by_columns(table: Table, names: Names) -> tuple[Table, ...]:
    """A table for each run of a W&B export, of the rows that hold something of it."""
    found = _run_columns(table, names)
    if len(found) < 2:
        return ()
    shared = {name: column for name, column in table.columns.items() if " - " not in name}
    tables = []
    for run, series in found.items():
        own = {metric: table.columns[name] for metric, name in series.items()}
        held = [column for column in own.values() if column]
        keep = np.any([column.mask for column in held], axis=0) if held else np.zeros(table.rows, np.bool_)
        if keep.any():
            tables.append(_rows_of(replace(table, columns={**shared, **own}), keep, run))
    return tuple(tables) if len(tables) > 1 else ()


def _by_name(table: Table, names: Names) -> tuple[Table, ...]:
    """A table for each name in the column that names the run."""
    for name in _named(table, RUN, names):
        column = table.columns[name]
        if not column or not table.rows:
            continue
        logged = column.mask
        # A row without a name is of the run of the row before.
        last = np.maximum.accumulate(np.where(logged, np.arange(table.rows), 0))
        values = column.values[last]
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
    """A table for each stretch that begins anew at the first step, its loss or learning rate as at the first."""
    found = None if _never_back(table, names) else _steps(table, names)
    if found is None:
        return ()
    axis, steps = found
    starts = _starts(table, steps, names)
    if len(starts) < 2:
        return ()
    if epochs := _epochs(table, axis, steps, starts, names):
        return (epochs,)
    if len(starts) > MAX_RUNS or not _are_fresh(table, steps, starts, names):
        return ()
    tables = []
    for number, (begin, end) in enumerate(zip(starts, [*starts[1:], table.rows], strict=True), 1):
        keep = np.zeros(table.rows, dtype=np.bool_)
        keep[begin:end] = True
        own = _rows_of(table, keep, str(number))
        tables.append(replace(own, notes=(*own.notes, *attempt(number, len(starts), begin))))
    return tuple(tables)


def _epochs(table: Table, axis: str, steps: Ints, starts: list[int], names: Names) -> Table | None:
    """The table with its steps counted on, where they are counted within epochs that no column numbers."""
    loss = _first_of(table, "loss", names)
    if loss is None:
        return None
    rows = np.flatnonzero(loss.mask)
    if not are_epochs(steps[rows], np.searchsorted(rows, starts).tolist(), loss.values[rows]):
        return None
    note = epochs_note(f"The steps in column {clean(axis, 40)}", len(starts))
    columns = {**table.columns, axis: Column(running_on(steps.astype(np.float64), starts))}
    return replace(table, columns=columns, notes=(*table.notes, note))


def _never_back(table: Table, names: Names) -> bool:
    """Whether neither steps nor epochs ever go back, which is told before any of them is copied."""
    axes = [*_named(table, STEP, names), *_named(table, EPOCH, names)]
    columns = [column for name in axes if (column := table.columns[name])]
    return all(c.logged is None and bool((c.values[1:] >= c.values[:-1]).all()) for c in columns)


def _steps(table: Table, names: Names) -> tuple[str, Ints] | None:
    """The column of the steps, else of the epochs, and its values; None where there is neither, or several ranks."""
    if any(column for name in _named(table, RANK, names) if (column := table.columns[name])):
        return None
    epochs = [(name, column) for name in _named(table, EPOCH, names) if (column := table.columns[name])]
    for name in _named(table, STEP, names):
        column = table.columns[name]
        found = steps_.from_column(name, column) if column else ""
        if not isinstance(found, str) and found.keep is None:
            within = any(c.logged is None and _rises_where(found.values, c.values) for _, c in epochs)
            return None if within else (name, found.values)
    for name, column in epochs:
        found = steps_.from_column(name, column)
        if not isinstance(found, str) and found.keep is None and _one_a_row(found.values):
            return name, found.values
    return None


def _one_a_row(epochs: Ints) -> bool:
    """Whether each row is an epoch, but that a run may have been begun anew after its first one."""
    again = np.diff(epochs) == 0
    return not again.all() and bool((epochs[1:][again] == epochs[0]).all())


def _rises_where(steps: Ints, epochs: Floats) -> bool:
    """Whether the epoch rises at each place where the steps go back: then they are counted within the epoch."""
    back = np.flatnonzero(np.diff(steps) < 0)
    return len(back) > 0 and bool((epochs[back + 1] > epochs[back]).all())


def _starts(table: Table, steps: Ints, names: Names) -> list[int]:
    """The rows at which the log is at its first step anew, with the eval rows before it left to the run before."""
    loss = _first_of(table, "loss", names)
    rows = None if loss is None or loss.logged is None else np.flatnonzero(loss.logged)
    seen = steps if rows is None else steps[rows]
    if len(seen) < 2 * MIN_ROWS:
        return []
    starts = beginnings(seen, lambda _, place: bool(seen[place] <= seen[0]))
    return starts if rows is None else [0, *(int(rows[place]) for place in starts[1:])]


def _are_fresh(table: Table, steps: Ints, starts: list[int], names: Names) -> bool:
    """Whether at each start loss or learning rate are nearer to their first values than to those just before.

    Where neither was logged, one stretch that gets further than the one before it is that one resumed.
    """
    columns = [column for metric in ("lr", "loss") if (column := _first_of(table, metric, names))]
    held = [(np.flatnonzero(column.mask), column.held) for column in columns]
    told = [[is_fresh(values, int(np.searchsorted(rows, begin))) for rows, values in held] for begin in starts[1:]]
    if all(one is None for start in told for one in start):
        return len(starts) > 2 or bool(steps[: starts[1]].max() >= steps[starts[1] :].max())
    return all(any(start) or all(one is None for one in start) for start in told)


def _first_of(table: Table, metric: str, names: Names) -> Column | None:
    return next((column for name in _named(table, metric, names) if (column := table.columns[name])), None)


def _named(table: Table, role: str, names: Names) -> list[str]:
    """The columns of a role, the best first."""
    places = {name: names.match(name) for name in table.columns}
    return sorted((name for name, (of, _) in places.items() if of == role), key=lambda name: (places[name].place, name))


def _rows_of(table: Table, keep: Bools, run: str) -> Table:
    """The kept rows as the table of a run. What could not be read may be of any run, so it stays with each."""
    columns = {name: column and column.pick(keep) for name, column in table.columns.items()}
    places = np.cumsum(keep) - 1
    saves = tuple(save._replace(row=int(places[save.row])) for save in table.saves if keep[save.row])
    return replace(table, rows=int(np.count_nonzero(keep)), columns=columns, run=clean(run, 80), saves=saves)
