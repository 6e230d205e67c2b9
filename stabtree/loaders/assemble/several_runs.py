"""Several runs in one table: told apart by a column that names them, by columns of their own, or by restarts.

Rows of two runs must never become one series. So runs are handed on as tables of their own, and the user is
asked for one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.loaders.assemble import steps as steps_
from stabtree.metrics.table import EPOCH_ALIASES, RANK_ALIASES, RUN_ALIASES, STEP_ALIASES, match, normalize
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree._lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column, Select, Table

MAX_RUNS = 1000
# A run has this many rows at least; a shorter stretch is a stray row or a restart that failed at once.
MIN_ROWS = 3
_EXTREMES = ("__MIN", "__MAX")


def wanted(select: Select) -> Select:
    """`select`, for columns that W&B names `run - metric` too."""

    def chosen(name: str) -> bool:
        return select(name) or (" - " in name and not name.endswith(_EXTREMES) and select(_metric(name)))

    return chosen


def split(table: Table) -> tuple[Table, ...]:
    """The tables of the runs in a table; the table itself where it holds one."""
    if table.run:
        return (table,)
    table = _only_run(table)
    return _by_columns(table) or _by_name(table) or _by_restart(table) or (table,)


def _metric(name: str) -> str:
    return name.rpartition(" - ")[2]


def _run_columns(table: Table) -> dict[str, dict[str, str]]:
    """By run, its columns' names without the run's name; none where this is no such export."""
    found: dict[str, dict[str, str]] = {}
    for name in table.columns:
        run, dash, metric = name.rpartition(" - ")
        whole = match(name)
        if dash and run and (not whole or "/" in whole[0]) and not metric.endswith(_EXTREMES):
            found.setdefault(run, {})[metric] = name
    known = any(match(metric) for names in found.values() for metric in names)
    shared = [name for name in table.columns if " - " not in name and match(name)]
    return found if known and not shared else {}


def _only_run(table: Table) -> Table:
    """The table of an export that holds one run, its columns named as the run logged them."""
    found = _run_columns(table)
    if len(found) != 1:
        return table
    ((_, columns),) = found.items()
    names = {full: metric for metric, full in columns.items()}
    return replace(table, columns={names.get(name, name): column for name, column in table.columns.items()})


def _by_columns(table: Table) -> tuple[Table, ...]:
    """A table for each run of a W&B export, of the rows that hold something of it."""
    found = _run_columns(table)
    if len(found) < 2:
        return ()
    shared = {name: column for name, column in table.columns.items() if " - " not in name}
    tables = []
    for run, names in found.items():
        own = {metric: table.columns[name] for metric, name in names.items()}
        held = [column for column in own.values() if column]
        keep = np.any([_logged(column) for column in held], axis=0) if held else np.zeros(table.rows, np.bool_)
        if keep.any():
            tables.append(_rows_of(replace(table, columns={**shared, **own}), keep, run))
    return tuple(tables) if len(tables) > 1 else ()


def _by_name(table: Table) -> tuple[Table, ...]:
    """A table for each name in the column that names the run."""
    for name in _named(table, RUN_ALIASES):
        column = table.columns[name]
        if not column or not table.rows:
            continue
        logged = _logged(column)
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


def _by_restart(table: Table) -> tuple[Table, ...]:
    """A table for each stretch that begins anew at the first step, its loss or learning rate as at the first."""
    steps = None if _never_back(table) else _steps(table)
    if steps is None:
        return ()
    starts = _starts(table, steps)
    if len(starts) < 2 or not _are_runs(table, steps, starts):
        return ()
    tables = []
    for number, (begin, end) in enumerate(zip(starts, [*starts[1:], table.rows], strict=True), 1):
        keep = np.zeros(table.rows, dtype=np.bool_)
        keep[begin:end] = True
        tables.append(_rows_of(table, keep, str(number)))
    return tuple(tables)


def _never_back(table: Table) -> bool:
    """Whether neither steps nor epochs ever go back, which is told before any of them is copied."""
    names = (*_named(table, STEP_ALIASES), *_named(table, EPOCH_ALIASES))
    columns = [column for name in names if (column := table.columns[name])]
    return all(c.logged is None and bool((c.values[1:] >= c.values[:-1]).all()) for c in columns)


def _steps(table: Table) -> Ints | None:
    """The steps of all rows, else their epochs; None where the table has neither, or several ranks."""
    if any(column for name in _named(table, RANK_ALIASES) if (column := table.columns[name])):
        return None
    epochs = [column for name in _named(table, EPOCH_ALIASES) if (column := table.columns[name])]
    for name in _named(table, STEP_ALIASES):
        column = table.columns[name]
        found = steps_.from_column(name, column) if column else ""
        if not isinstance(found, str) and found.keep is None:
            within = any(c.logged is None and _rises_where(found.values, c.values) for c in epochs)
            return None if within else found.values
    for column in epochs:
        found = steps_.from_column("epoch", column)
        if not isinstance(found, str) and found.keep is None and (np.diff(found.values) != 0).all():
            return found.values
    return None


def _rises_where(steps: Ints, epochs: Floats) -> bool:
    """Whether the epoch rises at each place where the steps go back: then they are counted within the epoch."""
    back = np.flatnonzero(np.diff(steps) < 0)
    return len(back) > 0 and bool((epochs[back + 1] > epochs[back]).all())


def _starts(table: Table, steps: Ints) -> list[int]:
    """The rows at which the log is at its first step anew, with the eval rows before it left to the run before."""
    loss = _first_of(table, "loss")
    rows = None if loss is None or loss.logged is None else np.flatnonzero(loss.logged)
    seen = steps if rows is None else steps[rows]
    if len(seen) < 2 * MIN_ROWS:
        return []
    again = np.flatnonzero((seen[1:] < seen[:-1]) & (seen[1:] <= seen[0])) + 1
    starts = [0]
    for place in again.tolist():
        if place - starts[-1] >= MIN_ROWS and len(seen) - place >= MIN_ROWS:
            starts.append(place)
    return starts if rows is None else [0, *rows[starts[1:]].tolist()]


def _are_runs(table: Table, steps: Ints, starts: list[int]) -> bool:
    """Whether these are runs of their own, not one that crashed early and was started again.

    One that crashed before its first checkpoint is short, and what it logged is made up for by the next.
    """
    ends = [*starts[1:], table.rows]
    reached = [int(steps[begin:end].max()) for begin, end in zip(starts, ends, strict=True)]
    several = len(starts) > 2 or reached[0] >= reached[1]
    return several and all(_fresh(table, begin) for begin in starts[1:])


def _fresh(table: Table, begin: int) -> bool:
    """Whether loss or learning rate, at a row, are nearer to their first values than to those just before."""
    judged = False
    for metric in ("lr", "loss"):
        column = _first_of(table, metric)
        if not column:
            continue
        logged = _logged(column)
        first = column.values[logged][:MIN_ROWS]
        before = column.values[:begin][logged[:begin]][-MIN_ROWS:]
        after = column.values[begin:][logged[begin:]][:MIN_ROWS]
        if not len(before) or not len(after):
            continue
        start, last, now = (float(np.median(part)) for part in (first, before, after))
        judged = True
        if abs(now - start) < abs(now - last):
            return True
    return not judged


def _first_of(table: Table, metric: str) -> Column | None:
    found = [(place[1], name) for name in table.columns if (place := match(name)) and place[0] == metric]
    return next((column for _, name in sorted(found) if (column := table.columns[name])), None)


def _named(table: Table, aliases: Iterable[str]) -> list[str]:
    """The columns with one of these names, the best first."""
    words = {normalize(name): name for name in table.columns}
    return [words[alias] for alias in aliases if alias in words]


def _logged(column: Column) -> Bools:
    return np.ones(len(column.values), dtype=np.bool_) if column.logged is None else column.logged


def _rows_of(table: Table, keep: Bools, run: str) -> Table:
    """The kept rows as the table of a run. What could not be read may be of any run, so it stays with each."""
    columns = {
        name: column
        and replace(column, values=column.values[keep], logged=None if column.logged is None else column.logged[keep])
        for name, column in table.columns.items()
    }
    return replace(table, rows=int(np.count_nonzero(keep)), columns=columns, run=clean(run, 80))
