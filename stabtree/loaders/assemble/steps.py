"""The steps of a table's rows: which column counts them, what to do where it is broken, and the runs it counts.

Rows of two runs must never become one series. So the runs of a table (separated by a column that names them, by columns
of their own, or by restarts) are handed on as tables of their own, and the user is asked for one.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.passes import PART, extremes, increases, remembered
from stabtree.common.text import clean
from stabtree.loaders import counters
from stabtree.loaders.counters import Dense
from stabtree.metrics.metric import Role
from stabtree.metrics.names import AXES, EPOCH, RANK, RUN, STEP, in_export
from stabtree.metrics.role import can_be_loss, describe_name
from stabtree.run import ROW_NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names

MAX_STEP = 2.0**53  # above this a float64 no longer holds every whole number: no step, a broken cell
MAX_FRACTIONAL = 0.01  # a column of steps may hold some broken cells; one with more fractions holds no steps
STEP_DENSER = 1.1  # a count of optimizer steps that many rows lack would give these the step of a row before
_OUTCOMES = frozenset((Role.LOSS, Role.HELD_OUT_LOSS, Role.QUALITY, Role.REWARD))
_COUNTS = frozenset((Role.COUNTER, Role.LABEL, Role.OTHER))
MAX_OUTCOMES = 4  # so many metrics show whether training begins anew


class Steps(Struct, frozen=True):
    """The step of each row."""

    values: Ints  # (n,)
    source: str  # what they were read from
    notes: tuple[str, ...] = ()  # what was assumed


def every(rows: int) -> Bools:
    """Return all of so many rows, bool (n,)."""
    return np.ones(rows, dtype=np.bool_)


def row_numbers(rows: int, why: str) -> Steps:
    """Return rows counted from 0, for a table without usable steps."""
    return Steps(np.arange(rows, dtype=np.int64), ROW_NUMBER, (f"{why}: rows are numbered from 0.",))


def from_column(name: str, column: Column) -> Steps | str:
    """Return the steps that a column of this name holds; if it holds none, the reason in words.

    A row without a step, or with an impossible one, has that of the row before.
    """
    steps = whole_steps(column)
    if steps is not None:
        return Steps(steps, name)
    values, present, shown = column.values, column.mask, clean(name, 40)
    with np.errstate(invalid="ignore"):
        whole = values == np.floor(values)
        usable = present & whole & (values >= 0) & (values < MAX_STEP)
    if not present.any():
        return f"column {shown} holds no number"
    if np.count_nonzero(present & np.isfinite(values) & ~whole) > MAX_FRACTIONAL * np.count_nonzero(present):
        return f"column {shown} holds fractions"
    if not usable.any():
        return f"column {shown} holds no step"
    last = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    filled = values[np.where(last < 0, int(np.argmax(usable)), last)].astype(np.int64)
    count = np.count_nonzero(~usable)
    note = f"Rows without a step in column {shown}: {count}, read with the step of the row before."
    return Steps(filled, name, (note,) * bool(count))


@remembered
def whole_steps(column: Column) -> Ints | None:
    """Return the steps of a column, int64 (n,), where every cell of it holds one; frozen."""
    own = extremes(column)
    if column.logged is not None or not (own.finite and own.lowest >= 0 and own.highest < MAX_STEP):
        return None
    steps = np.empty(len(column.values), np.int64)
    for begin in range(0, len(steps), PART):
        part = column.values[begin : begin + PART]
        steps[begin : begin + PART] = part
        if (steps[begin : begin + PART] != part).any():
            return None
    steps.flags.writeable = False
    return steps


def steps_of(table: Table, names: Names) -> Steps:
    """Return the steps of a table that is settled: from the column that counts it, else row numbers; notes say why."""
    name = table.counter or ""
    column, why = table.columns.get(name), "No column holds the step"
    if column is None:
        return row_numbers(table.rows, why)
    steps = from_column(name, column)
    if names.role(name) != EPOCH and isinstance(steps, Steps):
        return steps
    if isinstance(steps, str) or (np.diff(steps.values) == 0).sum() > counters.MAX_REPEATED * table.rows:
        return row_numbers(table.rows, f"{why}, and {name} is not another one in every row")
    return replace(steps, notes=(f"{why}: {name} is used instead.",))


def _dense(column: Column) -> Dense:
    return Dense(column.values, column.mask)


def _is_full(column: Column) -> bool:
    """Whether every cell holds a finite number."""
    return column.logged is None and extremes(column).finite


def settle(table: Table, names: Names) -> Table:
    """Return a table with the column that counts its rows named; counted on where it starts again in each epoch.

    Raises:
        StabtreeError: where the column that the user named holds no steps.
    """
    if table.counter is not None or not table.rows:
        return table
    epochs, candidates, notes = of_role(table, EPOCH, names), of_role(table, STEP, names), list[str]()
    most = max((column.count for _, column in candidates), default=0)
    candidates.sort(key=lambda item: item[1].count * STEP_DENSER < most)  # those that many rows lack come last
    loss = _loss(table, names)
    rows = every(table.rows) if loss is None else loss.mask
    for name, column in candidates:
        steps, shown = from_column(name, column), clean(name, 40)
        if isinstance(steps, str):
            if names.step_column is not None:
                problem = steps.replace("column", "--step-column", 1)
                raise StabtreeError(problem, where=table.path, hint="name another one")
            notes.append(f"{steps[0].upper()}{steps[1:]}: it counts no steps.")
            continue
        if names.step_column is not None or increases(steps.values):
            return replace(table, counter=name)
        values = steps.values.astype(np.float64)
        for epoch, of in epochs:
            counted = counters.count_on(Dense(values, every(table.rows)), _dense(of), rows)
            if counted is not None:
                text = f"The steps in column {shown} start again in each {clean(epoch, 40)}: they are counted on."
                meaning = f"starts again in each {clean(epoch, 40)!r} = epochs, sure"
                return _counted(replace(table, counter=name), counted, text, meaning)
        if _is_still(table, values, rows, names):
            notes.append(f"Column {shown} is {values[0]:g} in all {table.rows:,} rows: it counts no steps.")
            continue
        others = [column for other, column in (*epochs, *candidates) if other != name and _is_full(column)]
        if not any(counters.is_length(values[rows], other.values[rows]) for other in others):
            return replace(table, counter=name)
        notes.append(f"Column {shown} goes up and down, as the length of an episode does: it counts no steps.")
    counter = next((name for name, column in epochs if _is_full(column)), "")
    for name, counted in _unnamed(table, epochs, rows, names):
        text = f"Column {clean(name, 40)} starts again in each {clean(epochs[0][0], 40)}: it is counted on as the step."
        return _counted(replace(table, counter=name), counted, text)
    return replace(table, counter=counter, notes=(*table.notes, *notes))


def _unnamed(
    table: Table, epochs: Sequence[tuple[str, Column]], rows: Bools, names: Names
) -> Iterator[tuple[str, Floats]]:
    """Yield columns that count the rows within each epoch, whatever their names, and their values counted on."""
    if not epochs or not _is_full(epochs[0][1]):
        return
    epoch = epochs[0][1].values
    starts = np.flatnonzero(np.diff(epoch, prepend=epoch[0] - 1))
    if not 1 < len(starts) <= table.rows / 2:  # where each row is another epoch, that counts the rows
        return
    for name, column in table.columns.items():
        if column is None or column.coded or names.role(name) in AXES or whole_steps(column) is None:
            continue
        first, falls = column.values[starts], np.count_nonzero(np.diff(column.values) <= 0)
        if np.ptp(first) or falls != len(starts) - 1 or describe_name(name).role not in _COUNTS:
            continue
        counted = counters.count_on(_dense(column), _dense(epochs[0][1]), rows)
        if counted is not None and increases(counted):
            yield name, counted


def _is_still(table: Table, values: Floats, rows: Bools, names: Names) -> bool:
    """Whether a count never moves, in a table that has no labels of ranks or layers of one step, or of runs."""
    if np.count_nonzero(rows) < counters.MIN_ROWS or np.ptp(values):
        return False
    unread = (name for name, column in table.columns.items() if column is None)
    labels = (name for name in table.columns if names.role(name) in (RANK, RUN))
    return not any(labels) and all(describe_name(name).role is Role.CLOCK for name in unread)


def _counted(table: Table, counted: Floats, note: str, meaning: str = "") -> Table:
    """Return a table with the steps of its counter counted on."""
    name = table.counter or ""
    column = table.columns[name]
    columns = {**table.columns, name: column and replace(column, values=counted)}
    restarts = "; ".join(filter(None, (meaning, table.restarts)))
    return replace(table, columns=columns, restarts=restarts, notes=(*table.notes, note))


def _loss(table: Table, names: Names) -> Column | None:
    """Return the column of the training loss: the known one, else the first whose name says so."""
    known = [column for _, column in of_role(table, "loss", names)]
    likely = (column for name, column in of_role(table, "", names) if can_be_loss(describe_name(name)))
    return next((column for column in chain(known, likely) if column.count), None)


def of_role(table: Table, role: str, names: Names) -> list[tuple[str, Column]]:
    """Return the columns of a role that were read, the best first."""
    columns = [(name, column) for name, column in table.columns.items() if column and names.role(name) == role]
    return sorted(columns, key=lambda item: names.match(item[0]).priority)


def split(table: Table, names: Names) -> tuple[Table, ...]:
    """Return the tables of the runs in a table; the table itself where it holds one."""
    if table.run:
        return (table,)
    by_run: dict[str, dict[str, str]] = {}  # in an export of W&B, a run's columns by their names without the run's
    for name in table.columns:
        metric, run, whole = in_export(name), name.rpartition(" - ")[0], names.metric(name)
        if metric and run and (not whole or "/" in whole):
            by_run.setdefault(run, {})[metric] = name
    shared = {name: column for name, column in table.columns.items() if " - " not in name}
    if any(map(names.metric, shared)) or not any(map(names.metric, chain.from_iterable(by_run.values()))):
        by_run = {}
    tables = []
    for run, series in by_run.items():
        if len(by_run) == 1:  # its columns are named as the run logged them
            short = {full: metric for metric, full in series.items()}
            table = replace(table, columns={short.get(name, name): column for name, column in table.columns.items()})
            break
        own = {metric: table.columns[name] for metric, name in series.items()}
        keep = np.any([~every(table.rows), *(column.mask for column in own.values() if column)], axis=0)
        if keep.any():
            tables.append(_rows_of(replace(table, columns={**shared, **own}), keep, run))
    return tuple(tables) if len(tables) > 1 else _by_name(table, names) or _by_restart(table, names)


def _by_name(table: Table, names: Names) -> tuple[Table, ...]:
    """Return a table for each name in the column that names the run."""
    for name, column in of_role(table, RUN, names) if table.rows else ():
        # A row without a name is of the run of the row before.
        values = column.values[np.maximum.accumulate(np.where(column.mask, np.arange(table.rows), 0))]
        distinct, first = np.unique(values, return_index=True)
        if not np.isfinite(distinct).all() or not 1 < len(distinct) <= min(counters.MAX_RUNS, table.rows / 2):
            continue
        rest = replace(table, columns={**table.columns, name: None})
        ordered = distinct[np.argsort(first)].tolist()
        return tuple(_rows_of(rest, values == value, column.labels.get(value) or f"{value:.15g}") for value in ordered)
    return ()


def _by_restart(table: Table, names: Names) -> tuple[Table, ...]:
    """Return a table for each run that its counter is back at its start for; the steps are counted on in each."""
    table = settle(table, names)
    name = table.counter or ""
    column = table.columns.get(name)
    if column is None or of_role(table, RANK, names):
        return (table,)
    passes, counted = names.role(name) == EPOCH, column.values
    epochs = [] if passes else [_dense(own) for _, own in of_role(table, EPOCH, names) if _is_full(own)]
    if not passes:
        steps = from_column(name, column)
        if isinstance(steps, str):
            return (table,)
        if steps.values is not whole_steps(column):
            counted = steps.values.astype(np.float64)
    if increases(counters.lexicographic(counted, epochs[0].values if epochs else None)):
        return (replace(table, restarts=table.restarts or counters.NEVER_BACK),)
    loss = _loss(table, names)
    carries = every(table.rows) if loss is None else loss.mask
    outcomes = [] if loss is None else [loss]  # which show how far training has come
    for other, own in table.columns.items():
        if own and own is not loss and not own.coded and describe_name(other).role in _OUTCOMES:
            outcomes.append(own)
    rates = [_dense(own) for _, own in of_role(table, "lr", names)]
    shown = [_dense(own) for own in outcomes[:MAX_OUTCOMES]]
    main = Dense(counted, every(table.rows))
    runs = counters.runs_of(main, next(iter(epochs), None), carries, shown, rates, passes=passes)
    if len(runs.starts) + len(runs.epochs) > 1 or not table.restarts:
        table = replace(table, restarts="; ".join(filter(None, (table.restarts, runs.meaning))))
    if runs.epochs:  # the steps are counted on from each of the epochs
        note = runs.epochs_note(f"The steps in column {clean(name, 40)}")
        table = _counted(table, counters.counted_on(main, runs), note)
    return _attempts(table, counted, runs, names) if len(runs.starts) > 1 else (table,)


def _attempts(table: Table, axis: Floats, runs: counters.Runs, names: Names) -> tuple[Table, ...]:
    """Return a table for each run but those that were given up."""

    def reached(begin: int, end: int) -> tuple[int, str]:
        return end - begin, f"{clean(table.counter or '', 40)} {axis[begin:end].max():,.15g}"

    tables, at = [], np.arange(table.rows)
    for begin, end, number, notes in runs.attempts(table.rows, reached):
        part = _rows_of(table, (begin <= at) & (at < end), number)
        tables.append(settle(replace(part, notes=(*part.notes, *notes), counter=None), names))
    return tuple(tables)


def _rows_of(table: Table, keep: Bools, run: str) -> Table:
    """Return the kept rows as the table of a run. What could not be read may be of any run, so it stays with each."""
    columns = {name: column and column.pick(keep) for name, column in table.columns.items()}
    rows = np.cumsum(keep) - 1
    saves = tuple(save._replace(row=int(rows[save.row])) for save in table.saves if keep[save.row])
    return replace(table, rows=int(np.count_nonzero(keep)), columns=columns, run=clean(run, 80), saves=saves)
