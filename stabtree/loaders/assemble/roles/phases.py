"""Rows of training and of held-out data in the same columns: each phase gets columns of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.metrics.names import PHASE
from stabtree.metrics.table import words
from stabtree.metrics.vocabulary import HELD_OUT, TRAIN

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names


def by_phase(table: Table, names: Names) -> Table:
    """Return a table with one row for each row of training, and `val/loss` for the `loss` of the rows of `val`.

    A table that has no column of phases, or whose rows of held-out data belong to no row of training, stays as it is.
    """
    for name, column in table.columns.items():
        if column and names.role(name) == PHASE and (sides := _sides(column)):
            return _apart(table, name, sides, names) or table
    return table


def _sides(column: Column) -> dict[str, Bools]:
    """Return the rows of each phase, bool (n,), training first; none where the labels are not those of phases."""
    if column.logged is not None:
        return {}  # a row of no phase would be lost
    spelled = {code: set(words(label)) for code, label in column.labels.items()}
    if not all(word & (TRAIN | HELD_OUT) for word in spelled.values()):
        return {}
    trains = [code for code, word in spelled.items() if word & TRAIN]
    held_out = [code for code in spelled if code not in trains]
    if len(trains) != 1 or not held_out:
        return {}
    return {column.labels[code]: column.mask & (column.values == code) for code in (*trains, *held_out)}


def _apart(table: Table, phase: str, sides: dict[str, Bools], names: Names) -> Table | None:
    """Return the table without its column of phases; None where a row of held-out data has no row of training."""
    (_, trained), *held_out = sides.items()
    base = np.flatnonzero(trained)
    places = {label: _places(table, base, np.flatnonzero(rows), names) for label, rows in held_out}
    columns: dict[str, Column | None] = {}
    for name, column in table.columns.items():
        if name == phase:
            continue
        columns[name] = column.pick(base) if column else None
        if not column or names.counts(name):
            continue
        for label, rows in held_out:
            place = places[label]
            if place is None:
                return None
            if (column.mask & rows).any():
                columns[f"{label}/{name}"] = _placed(column.pick(rows), place, len(base))
    listed = ", ".join(clean(label, 20) for label in sides)
    note = f"{clean(phase, 40)} says which rows are of {listed}: each has columns of its own."
    return replace(table, rows=len(base), columns=columns, notes=(*table.notes, note))


def _places(table: Table, base: Ints, rows: Ints, names: Names) -> Ints | None:
    """Return for each row of held-out data the index of its row of training, each at most once; else None.

    It is the one of the same epoch or step, or the last one before it.
    """
    counted = (column for name, column in table.columns.items() if column and names.counts(name))
    for own in (column.values for column in counted if column.logged is None):
        found = _same(own[base], own[rows])
        if found is not None:
            return found
    before = np.maximum(np.searchsorted(base, rows) - 1, 0)
    return before if len(np.unique(before)) == len(before) else None


def _same(trained: Floats, held_out: Floats) -> Ints | None:
    """Return the indices of the rows of training that have the values of those of held-out data."""
    distinct, first = np.unique(trained, return_index=True)
    at = np.minimum(np.searchsorted(distinct, held_out), len(distinct) - 1)
    if len(distinct) < len(trained) or (distinct[at] != held_out).any() or len(np.unique(at)) < len(at):
        return None
    return np.asarray(first[at], dtype=np.int64)


def _placed(column: Column, place: Ints, rows: int) -> Column:
    """Return a column of so many rows that holds the cells of another one in some of them."""
    values, logged = np.zeros(rows), np.zeros(rows, dtype=np.bool_)
    values[place], logged[place] = column.values, column.mask
    return replace(column, values=values, logged=logged, garbled=None)
