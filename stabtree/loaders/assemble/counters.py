"""Which column of a table counts its rows, and at which rows another run begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.passes import extremes, increases
from stabtree.common.text import clean
from stabtree.loaders.assemble.steps import from_column, whole_steps
from stabtree.loaders.counters.levels import Level
from stabtree.loaders.counters.starts import Counted
from stabtree.loaders.counters.within import Count, count_on, is_length, is_no_count, lexicographic
from stabtree.metrics.metric import Role
from stabtree.metrics.names import EPOCH, RANK, STEP
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names

# A count of optimizer steps that many rows lack would give these the step of a row before.
STEP_DENSER = 1.1
_OUTCOMES = frozenset((Role.LOSS, Role.HELD_OUT_LOSS, Role.QUALITY, Role.REWARD))
# So many metrics show whether training begins anew.
MAX_OUTCOMES = 4


def settle(table: Table, names: Names) -> Table:
    """Return a table with the column that counts its rows named; counted on where it starts again in each epoch."""
    if table.counter is not None or not table.rows:
        return table
    epochs = of_role(table, EPOCH, names)
    notes: list[str] = []
    candidates = _by_density(of_role(table, STEP, names))
    for name, column in candidates:
        found = from_column(name, column)
        if isinstance(found, str):
            notes.append(f"{found[0].upper()}{found[1:]}: it counts no steps.")
            continue
        if found.keep is not None or names.step_column is not None or increases(found.values):
            return replace(table, counter=name)
        steps = found.values.astype(np.float64)
        within = _within(table, name, steps, epochs, names)
        if within:
            return within
        others = [column for other, column in (*epochs, *candidates) if other != name]
        if not _is_length(table, steps, others, names):
            return replace(table, counter=name)
        shown = clean(name, 40)
        notes.append(f"Column {shown} goes up and down, as the length of an episode does: it counts no steps.")
    counter = next((name for name, column in epochs if _is_full(column)), "")
    return replace(table, counter=counter, notes=(*table.notes, *notes))


def _by_density(columns: list[tuple[str, Column]]) -> list[tuple[str, Column]]:
    """Return columns, best first: those that many rows lack come last."""
    most = max((column.count for _, column in columns), default=0)
    return sorted(columns, key=lambda item: item[1].count * STEP_DENSER < most)


def _within(table: Table, name: str, steps: Floats, epochs: list[tuple[str, Column]], names: Names) -> Table | None:
    """Return the table with its steps counted on, where they are counted within epochs."""
    every = np.ones(table.rows, dtype=np.bool_)
    loss = _loss(table, names)
    losses = every if loss is None else loss.mask
    column = table.columns[name]
    for epoch, of in epochs:
        counted = count_on(Count(steps, every), Count(of.values, of.mask), losses)
        if counted is None or column is None:
            continue
        shown = clean(epoch, 40)
        text = f"The steps in column {clean(name, 40)} start again in each {shown}: they are counted on."
        return replace(
            table,
            columns={**table.columns, name: replace(column, values=counted)},
            counter=name,
            restarts="; ".join(filter(None, (f"starts again in each {shown!r} = epochs, sure", table.restarts))),
            notes=(*table.notes, text),
        )
    return None


def _is_length(table: Table, steps: Floats, others: list[Column], names: Names) -> bool:
    """Return whether a column goes up and down in the rows with the loss, while another one counts or by itself."""
    loss = _loss(table, names)
    rows = np.ones(table.rows, dtype=np.bool_) if loss is None else loss.mask
    if any(_is_full(column) and is_length(steps[rows], column.values[rows]) for column in others):
        return True
    return is_no_count(steps[rows])


def axis_of(table: Table, names: Names) -> Floats | None:
    """Return what orders the rows of a table that is settled; None where nothing does, or where several ranks write."""
    if not table.counter or of_role(table, RANK, names):
        return None
    column = table.columns[table.counter]
    if column is None:
        return None
    if names.role(table.counter) == EPOCH:
        return column.values if _is_full(column) else None
    steps = from_column(table.counter, column)
    if isinstance(steps, str) or steps.keep is not None:
        return None
    counted = column.values if steps.values is whole_steps(column) else steps.values.astype(np.float64)
    return lexicographic(counted, _full_epochs(table, names))


def _full_epochs(table: Table, names: Names) -> Floats | None:
    """Return the best column of epochs that every row holds."""
    return next((column.values for _, column in of_role(table, EPOCH, names) if _is_full(column)), None)


def evidence_of(table: Table, axis: Floats, names: Names) -> tuple[Ints, Counted]:
    """Return the rows of a table that carry the loss, and what they show of where training begins anew."""
    loss = _loss(table, names)
    rows = np.arange(table.rows) if loss is None else np.flatnonzero(loss.mask)
    passes = names.role(table.counter or "") == EPOCH
    epochs = _full_epochs(table, names)
    rate = next((column for _, column in of_role(table, "lr", names)), None)
    levels = [Level.of(column.values[rows], column.mask[rows]) for column in _outcomes(table, names)]
    return rows, Counted(
        axis=axis[rows],
        outcomes=levels[:MAX_OUTCOMES],
        rate=Level.of(rate.values[rows], rate.mask[rows]) if rate else None,
        epochs=None if passes or epochs is None else epochs[rows],
        passes=passes,
    )


def _outcomes(table: Table, names: Names) -> list[Column]:
    """Return the columns that show how far training has come, the loss first."""
    loss = _loss(table, names)
    found = [] if loss is None else [loss]
    for name, column in table.columns.items():
        if column and column is not loss and not column.coded and describe_name(name).role in _OUTCOMES:
            found.append(column)
    return found


def _loss(table: Table, names: Names) -> Column | None:
    """Return the column of the training loss: the known one, else the first whose name says so."""
    known = [column for _, column in of_role(table, "loss", names)]
    for name, column in table.columns.items():
        like = describe_name(name)
        if column and not names.role(name) and like.loss and not like.held_out:
            known.append(column)
    return next((column for column in known if column.count), None)


def of_role(table: Table, role: str, names: Names) -> list[tuple[str, Column]]:
    """Return the columns of a role that were read, the best first."""
    found = []
    for name, column in table.columns.items():
        meaning = names.match(name)
        if meaning.role == role and column:
            found.append((meaning.priority, name, column))
    return [(name, column) for _, name, column in sorted(found, key=lambda item: item[:2])]


def _is_full(column: Column) -> bool:
    """Return whether every cell holds a finite number."""
    return column.logged is None and extremes(column).finite
