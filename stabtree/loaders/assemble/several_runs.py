"""Several runs in one table: separated by a column that names them, by columns of their own, or by restarts.

Rows of two runs must never become one series. So runs are handed on as tables of their own, and the user is
asked for one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.assemble.roles.phases import by_phase
from stabtree.loaders.assemble.steps import from_column
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
    """Return the tables of the runs in a table; the table itself where it holds one."""
    if table.run:
        return (table,)
    table = by_phase(_only_run(table, names), names)
    return _by_columns(table, names) or _by_name(table, names) or _by_restart(table, names) or (table,)


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
    for name, column in _columns(table, RUN, names):
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
    """Return a table for each stretch that begins anew at the first step, its loss or learning rate as at the first."""
    axis = None if _never_back(table, names) else _axis(table, names)
    if axis is None:
        return ()
    name, steps = axis
    starts = _starts(table, steps, names)
    if len(starts) < 2:
        return ()
    epochs = _epochs(table, name, steps, starts, names)
    if epochs:
        return (epochs,)
    if len(starts) > MAX_RUNS or not _are_fresh(table, steps, starts, names):
        return ()
    tables = []
    for number, (begin, end) in enumerate(pairwise([*starts, table.rows]), 1):
        keep = np.zeros(table.rows, dtype=np.bool_)
        keep[begin:end] = True
        own = _rows_of(table, keep, str(number))
        tables.append(replace(own, notes=(*own.notes, *attempt(number, len(starts), begin))))
    return tuple(tables)


def _epochs(table: Table, axis: str, steps: Ints, starts: list[int], names: Names) -> Table | None:
    """Return the table with its steps counted on, where they are counted within epochs that no column numbers."""
    loss = _first(table, "loss", names)
    if loss is None:
        return None
    rows = np.flatnonzero(loss.mask)
    if not are_epochs(steps[rows], np.searchsorted(rows, starts).tolist(), loss.values[rows]):
        return None
    note = epochs_note(f"The steps in column {clean(axis, 40)}", len(starts))
    columns = {**table.columns, axis: Column(running_on(steps.astype(np.float64), starts))}
    return replace(table, columns=columns, notes=(*table.notes, note))


def _never_back(table: Table, names: Names) -> bool:
    """Whether neither steps nor epochs ever go back, which is checked before any of them is copied."""
    axes = [*_columns(table, STEP, names), *_columns(table, EPOCH, names)]
    return all(c.logged is None and bool((c.values[1:] >= c.values[:-1]).all()) for _, c in axes)


def _axis(table: Table, names: Names) -> tuple[str, Ints] | None:
    """Return the column of the steps, else of the epochs, and its values; None for several ranks, or where both lack.

    Steps that are counted within epochs are no axis either.
    """
    if _columns(table, RANK, names):
        return None
    epochs = _columns(table, EPOCH, names)
    for name, column in _columns(table, STEP, names):
        steps = _all_steps(name, column)
        if steps is not None:
            within = any(c.logged is None and _rises_where(steps, c.values) for _, c in epochs)
            return None if within else (name, steps)
    for name, column in epochs:
        steps = _all_steps(name, column)
        if steps is not None and _one_a_row(steps):
            return name, steps
    return None


def _all_steps(name: str, column: Column) -> Ints | None:
    """Return the steps that a column holds, None where some row has none."""
    found = from_column(name, column)
    if isinstance(found, str) or found.keep is not None:
        return None
    return found.values


def _one_a_row(epochs: Ints) -> bool:
    """Whether each row is an epoch, allowing restarts after the first one."""
    again = np.diff(epochs) == 0
    return not again.all() and bool((epochs[1:][again] == epochs[0]).all())


def _rises_where(steps: Ints, epochs: Floats) -> bool:
    """Whether the epoch rises wherever the steps go back: then they are counted within the epoch."""
    back = np.flatnonzero(np.diff(steps) < 0)
    return len(back) > 0 and bool((epochs[back + 1] > epochs[back]).all())


def _starts(table: Table, steps: Ints, names: Names) -> list[int]:
    """Return the rows at which the log is at its first step anew; eval rows before one belong to the run before."""
    loss = _first(table, "loss", names)
    if loss is None or loss.logged is None:
        return _beginnings(steps)
    rows = np.flatnonzero(loss.logged)
    starts = _beginnings(steps[rows])
    return starts and [0, *rows[starts[1:]].tolist()]


def _beginnings(steps: Ints) -> list[int]:
    if len(steps) < 2 * MIN_ROWS:
        return []
    return beginnings(steps, lambda _, index: bool(steps[index] <= steps[0]))


def _are_fresh(table: Table, steps: Ints, starts: list[int], names: Names) -> bool:
    """Whether at each start loss or learning rate are nearer to their first values than to those just before.

    Where neither was logged, one stretch that gets further than the one before it is that one resumed.
    """
    columns = filter(None, (_first(table, metric, names) for metric in ("lr", "loss")))
    held = [(np.flatnonzero(column.mask), column.held) for column in columns]
    fresh = [_is_fresh(held, begin) for begin in starts[1:]]
    if fresh.count(None) == len(fresh):
        return len(starts) > 2 or bool(steps[: starts[1]].max() >= steps[starts[1] :].max())
    return False not in fresh


def _is_fresh(held: list[tuple[Ints, Floats]], begin: int) -> bool | None:
    """Whether one of some columns begins anew at a row; None where none was logged there."""
    answers = [is_fresh(values, int(np.searchsorted(rows, begin))) for rows, values in held]
    if answers.count(None) == len(answers):
        return None
    return any(answers)


def _first(table: Table, metric: str, names: Names) -> Column | None:
    return next((column for _, column in _columns(table, metric, names)), None)


def _columns(table: Table, role: str, names: Names) -> list[tuple[str, Column]]:
    """Return the columns of a role that were read, the best first."""
    found = []
    for name, column in table.columns.items():
        meaning = names.match(name)
        if meaning.role == role and column:
            found.append((meaning.priority, name, column))
    return [(name, column) for _, name, column in sorted(found, key=lambda item: item[:2])]


def _rows_of(table: Table, keep: Bools, run: str) -> Table:
    """Return the kept rows as the table of a run. What could not be read may be of any run, so it stays with each."""
    columns = {name: column and column.pick(keep) for name, column in table.columns.items()}
    rows = np.cumsum(keep) - 1
    saves = tuple(save._replace(row=int(rows[save.row])) for save in table.saves if keep[save.row])
    return replace(table, rows=int(np.count_nonzero(keep)), columns=columns, run=clean(run, 80), saves=saves)
