"""Lines of a text log that hold numbers beside the rows of training: where in the run their values belong.

An evaluation, a reward, a score on a line of its own names no loss and often no step: its values belong to the row that
was current when they were printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.loaders.text.cells import Dense

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.text.rows import LogRows


class Placed(NamedTuple):
    """Where the values of a log's asides went.

    Attributes:
        step: of each row, (n,).
        epoch: of each row, (n,).
        keep: bool (n,), the rows that hold anything still.
        notes: what was replaced.
    """

    step: Dense
    epoch: Dense
    keep: Bools
    notes: tuple[str, ...] = ()


def place(rows: LogRows, dense: Mapping[str, Dense], step: Dense, epoch: Dense, event: Bools) -> Placed:
    """Give the rows of asides the step of the row before; without steps, write their values into that row.

    A value whose cell is taken keeps a row of its own where rows are numbered, and replaces the other one where epochs
    are: an epoch is one row.

    Args:
        rows: the rows of the log.
        dense: its columns, which are written to.
        step: of each row, (n,).
        epoch: of each row, (n,).
        event: bool (n,), the rows that are overflows.
    """
    keep = np.ones(rows.count, dtype=np.bool_)
    aside = rows.is_aside()
    main = np.flatnonzero(~aside & ~event)
    if not aside.any() or not len(main):
        return Placed(step, epoch, keep)
    at = np.flatnonzero(aside)
    target = main[np.maximum(np.searchsorted(main, at) - 1, 0)]
    if step.logged[main].any():
        return Placed(_filled(step, main, at), _filled(epoch, main, at), keep)
    by_epoch = bool(epoch.logged[main].all()) and len(np.unique(epoch.values[main])) == len(main) and not event.any()
    if by_epoch:
        target = _of_epoch(epoch, main, at, target)
    left = np.zeros(rows.count, dtype=np.bool_)
    replaced = sum(_fold(column, at, target, left, replace=by_epoch) for column in dense.values())
    keep[at] = left[at]
    notes = (f"Values of one epoch that were printed more than once: {replaced:,}, the later one counts.",)
    return Placed(step, _filled(epoch, main, at), keep, notes if replaced else ())


def _filled(axis: Dense, main: Ints, at: Ints) -> Dense:
    """Return steps or epochs with those of the row before for the asides that name none."""
    named = main[axis.logged[main]]
    empty = at[~axis.logged[at]]
    if not len(named) or not len(empty):
        return axis
    before = named[np.maximum(np.searchsorted(named, empty) - 1, 0)]
    values, logged = axis.values.copy(), axis.logged.copy()
    values[empty], logged[empty] = values[before], True
    return Dense(values, logged)


def _of_epoch(epoch: Dense, main: Ints, at: Ints, target: Ints) -> Ints:
    """Return the row of the epoch that an aside names, else the row before it."""
    order = np.argsort(epoch.values[main], kind="stable")
    epochs = epoch.values[main][order]
    found = np.minimum(np.searchsorted(epochs, epoch.values[at]), len(epochs) - 1)
    named = epoch.logged[at] & (epochs[found] == epoch.values[at])
    return np.where(named, main[order][found], target)


def _fold(column: Dense, at: Ints, target: Ints, left: Bools, *, replace: bool) -> int:
    """Move the cells of asides into their target rows; mark those that stay, and return how many were replaced."""
    values, logged = column
    held = logged[at]
    cells, into = at[held], target[held]
    if not len(cells):
        return 0
    if replace:
        taken = int(np.count_nonzero(logged[into])) + len(into) - len(np.unique(into))
        values[into], logged[into], logged[cells] = values[cells], True, False
        return taken
    free, first = np.unique(into, return_index=True)
    first = first[~logged[free]]
    values[into[first]], logged[into[first]], logged[cells[first]] = values[cells[first]], True, False
    left[cells[logged[cells]]] = True
    return 0
