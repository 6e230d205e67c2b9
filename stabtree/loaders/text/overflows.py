"""Steps that were skipped because a gradient was not finite, as text logs report them: which step each was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.loaders.text.cells import Dense
from stabtree.loaders.text.lines.grammar import role
from stabtree.loaders.text.rows import SKIPPED_NAN

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools
    from stabtree.loaders.table import Column
    from stabtree.loaders.text.rows import LogRows
    from stabtree.metrics.names import Names


def restore_nan(rows: LogRows, dense: dict[str, Dense], losses: Bools, event: Bools) -> list[str]:
    """Write the losses that are NaN, which Megatron leaves out of its lines; return the note about it.

    Args:
        rows: the rows of the log.
        dense: their columns, of which that of the loss is changed.
        losses: bool (n,), the rows that hold a loss; changed too.
        event: bool (n,), the rows that are overflows.
    """
    counted = dense.get(SKIPPED_NAN)
    if not counted:
        return []
    nan = counted.logged & (counted.values > 0)
    for name, (values, logged) in dense.items():
        if role(name, rows.names).role == "grad_norm":
            nan |= counted.logged & logged & np.isnan(values)
    nan &= ~losses & ~event
    if not nan.any():
        return []
    loss = next((name for name in dense if role(name, rows.names).role == "loss"), None)
    if not loss:
        loss = dict(rows.names.columns).get("loss", "lm loss")
        rows.wanted(loss)
        dense[loss] = Dense.empty(len(nan))
    dense[loss].values[nan], dense[loss].logged[nan] = np.nan, True
    losses |= nan
    return [f"Lines without a loss whose gradient norm or count of iterations is NaN: {int(nan.sum())}, read as NaN."]


def locate_events(columns: dict[str, Dense], names: Names, step: Dense, event: Bools) -> Dense:
    """Return the steps with one for each overflow, whose gradient was not finite; none if the log names no steps."""
    if not event.any():
        return step
    norm = columns[names.column("grad_norm")]
    if not (step.logged & ~event).any():
        norm.values[event & ~norm.logged], norm.logged[event] = np.inf, True
        return step
    step = _with_events(step, event)
    known = np.zeros(len(event), dtype=np.bool_)
    for name, (_, logged) in columns.items():
        if role(name, names).role == "grad_norm":
            known |= logged
    alone = event & ~norm.logged & ~np.isin(step.values, step.values[known & ~event])
    norm.values[alone], norm.logged[alone] = np.inf, True
    return step


def _with_events(step: Dense, event: Bools) -> Dense:
    """Return the steps with those of overflows: the last ones between two logged steps, the second included."""
    steps, logged = step.values.copy(), step.logged.copy()
    metric = np.flatnonzero(logged & ~event)
    missing = np.flatnonzero(event & ~logged)
    after = np.searchsorted(metric, missing)
    for index in np.unique(after).tolist():
        group = missing[after == index]
        count = len(group)
        previous = steps[metric[index - 1]] if index else -1.0
        if index == len(metric):
            steps[group] = previous + 1 + np.arange(count)
            continue
        following = steps[metric[index]]
        lowest = min(previous + 1, following) if following > previous else following - count
        steps[group] = np.maximum(following - np.arange(count)[::-1], max(0.0, lowest))
    logged[missing] = True
    return Dense(steps, logged)


def mark_sporadic(columns: dict[str, Column | None], cells: dict[str, Dense], names: Names, event: Bools) -> None:
    """Mark columns that only overflow lines write: their silence means nothing."""
    for name in (names.column("loss_scale"), names.column("grad_norm")):
        found = columns.get(name)
        if found and not (cells[name].logged & ~event).any():
            columns[name] = replace(found, sporadic=True)
