"""Lines of a text log that hold numbers beside the rows of training: where in the run their values belong.

An evaluation, a reward, a score on a line of its own names no loss and often no step: its values belong to the row that
was current when they were printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.loaders.text.cells import Dense
from stabtree.loaders.text.lines import grammar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def is_aside(rows: LogRows) -> Bools:
    """Return which rows are asides, bool (n,)."""
    found = np.zeros(rows.count, dtype=np.bool_)
    found[rows.asides.tolist()] = True
    return found


def steps(rows: LogRows) -> Dense:
    """Return the step of each row, of asides those that are spelled like those of the other rows."""
    values, logged = rows.dense("step")
    beside = rows.aside_steps.get(rows.step_name())
    if beside and (logged.any() or not rows.own):
        at = np.frombuffer(beside.rows, dtype=np.int64)
        values[at], logged[at] = np.frombuffer(beside.values, dtype=np.float64), True
    return Dense(values, logged)


def place(rows: LogRows, dense: Mapping[str, Dense], step: Dense, epoch: Dense, event: Bools) -> Placed:
    """Write the values of asides into the row of training before them, or that of the step or epoch that they name.

    What finds its cell taken stays a row of its own where steps are logged. Without steps rows are counted, which are
    those of training: of several values between two of them the later counts, or one that is not finite.

    Args:
        rows: the rows of the log.
        dense: its columns, which are written to.
        step: of each row, (n,).
        epoch: of each row, (n,).
        event: bool (n,), the rows that are overflows.
    """
    keep = np.ones(rows.count, dtype=np.bool_)
    aside = is_aside(rows)
    main = np.flatnonzero(~aside & ~event)
    if not aside.any() or not len(main):
        return Placed(step, epoch, keep)
    at = np.flatnonzero(aside)
    before = np.maximum(np.searchsorted(main, at) - 1, 0)
    if step.logged[main].any():
        after = np.minimum(before + 1, len(main) - 1)
        target = _of_step(step, epoch, at, main[before], main[after])
        keep[at] = target < 0
        for column in dense.values():
            _fold_free(column, at, target, keep)
        return Placed(_filled(step, main, at), _filled(epoch, main, at), keep)
    target = main[before]
    if epoch.logged[main].all():
        target = _of_epoch(epoch, main, at, target)
    replaced = sum(_fold(column, at, target) for column in dense.values())
    keep[at] = False
    text = f"Values that were printed more than once between two rows of the log: {replaced:,}, the later one counts."
    return Placed(step, epoch, keep, (text,) if replaced else ())


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


def _of_step(step: Dense, epoch: Dense, at: Ints, before: Ints, after: Ints) -> Ints:
    """Return the row that each aside belongs to, of those around it: of its step, or the one before; -1 for neither."""
    named = step.logged[at]
    found = np.where(named, -1, before)
    for row in (after, before):
        same = named & step.logged[row] & (step.values[row] == step.values[at])
        other = epoch.logged[row] & epoch.logged[at] & (epoch.values[row] != epoch.values[at])
        found = np.where(same & ~other, row, found)
    return found


def _of_epoch(epoch: Dense, main: Ints, at: Ints, target: Ints) -> Ints:
    """Return the only row of the epoch that an aside names, else the row before it."""
    epochs, first, counts = np.unique(epoch.values[main], return_index=True, return_counts=True)
    found = np.minimum(np.searchsorted(epochs, epoch.values[at]), len(epochs) - 1)
    named = epoch.logged[at] & (epochs[found] == epoch.values[at]) & (counts[found] == 1)
    return np.where(named, main[first[found]], target)


def _fold_free(column: Dense, at: Ints, target: Ints, keep: Bools) -> None:
    """Move the first value for each target row into it if its cell is free; mark the rows of the others."""
    values, logged = column
    held = logged[at] & (target >= 0)
    cells, into = at[held], target[held]
    rows, first = np.unique(into, return_index=True)
    first = first[~logged[rows]]
    values[into[first]], logged[into[first]], logged[cells[first]] = values[cells[first]], True, False
    keep[cells[logged[cells]]] = True


def _fold(column: Dense, at: Ints, target: Ints) -> int:
    """Move the values of asides into their target rows; return how many gave way to another one."""
    values, logged = column
    held = logged[at]
    cells, into = at[held], target[held]
    if not len(cells):
        return 0
    several = int(np.count_nonzero(logged[np.unique(into)])) + len(into) - len(np.unique(into))
    lasting = logged[into] & ~np.isfinite(values[into])
    # What is written last counts.
    order = np.argsort(~np.isfinite(values[cells]), kind="stable")
    order = order[~lasting[order]]
    values[into[order]], logged[into], logged[cells] = values[cells[order]], True, False
    return several


def printed_once(rows: LogRows, dense: Mapping[str, Dense], starts: Sequence[int]) -> list[str]:
    """Return the columns that began beside the rows, at one place of any run, and are no score: they are no series.

    Args:
        rows: the rows of the log.
        dense: its columns.
        starts: the row at which each run begins.
    """
    aside = is_aside(rows)
    if aside.all():
        return []
    place_of = np.cumsum(~aside)
    found = []
    for name in rows.printed_at.keys() & dense.keys():
        if grammar.QUALITY.search(name) or grammar.HELD_OUT.search(name):
            continue
        at = np.flatnonzero(dense[name].logged)
        runs = np.searchsorted(starts, at, side="right")
        places = np.unique(np.stack((runs, place_of[at])), axis=1)
        if not len(at) or np.bincount(places[0]).max() <= 1:
            found.append(name)
    return sorted(found)
