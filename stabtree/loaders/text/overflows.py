"""Steps that were skipped because a gradient was not finite, as text logs tell of them: which step each was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.rows import SKIPPED_NAN

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column
    from stabtree.loaders.text.rows import LogRows
    from stabtree.metrics.names import Names


def hidden_nan(rows: LogRows, dense: dict[str, tuple[Floats, Bools]], losses: Bools, event: Bools) -> list[str]:
    """Megatron leaves a loss that is NaN out of its line: write it where the line says so."""
    name = next((name for name in dense if role(name, rows.names).role == "loss"), None)
    counted = dense.get(SKIPPED_NAN)
    if not counted:
        return []
    nan = counted[1] & (counted[0] > 0)
    for other, (values, logged) in dense.items():
        if role(other, rows.names).role == "grad_norm":
            nan |= counted[1] & logged & np.isnan(values)
    nan &= ~losses & ~event
    if not nan.any():
        return []
    if not name:
        name = dict(rows.names.columns).get("loss", "lm loss")
        rows.columns[name] = True
        dense[name] = np.zeros(len(nan)), np.zeros_like(nan)
    values, logged = dense[name]
    values[nan], logged[nan] = np.nan, True
    losses |= nan
    return [f"Lines without a loss whose gradient norm or count of iterations is NaN: {int(nan.sum())}, read as NaN."]


def place_events(
    columns: dict[str, tuple[Floats, Bools]], names: Names, step: Floats, logged: Bools, event: Bools
) -> tuple[Ints, tuple[Floats, Bools]]:
    """Give each overflow its step, or its cells to the row below where the log names no steps.

    Returns:
        Which rows remain, and (steps, logged).
    """
    everything = np.arange(len(step))
    if not event.any():
        return everything, (step, logged)
    scale, norm = columns.get(names.column("loss_scale")), columns[names.column("grad_norm")]
    if not (logged & ~event).any():
        if event.all():
            norm[0][~norm[1]], norm[1][:] = np.inf, True
            return everything, (step, logged)
        _give_to_next(event, scale, norm)
        return np.flatnonzero(~event), (step, logged)
    step, logged = step.copy(), logged.copy()
    _number_events(step, logged, event)
    known = np.zeros(len(step), dtype=np.bool_)
    for name, (_, present) in columns.items():
        if role(name, names).role == "grad_norm":
            known |= present
    alone = event & ~norm[1] & ~np.isin(step, step[known & ~event])
    norm[0][alone], norm[1][alone] = np.inf, True
    return everything, (step, logged)


def _number_events(step: Floats, logged: Bools, event: Bools) -> None:
    """Overflows between two logged steps happened at the last of the steps between, the second included."""
    metric = np.flatnonzero(logged & ~event)
    places = np.flatnonzero(event & ~logged)
    after = np.searchsorted(metric, places)
    for index in np.unique(after).tolist():
        group = places[after == index]
        previous = step[metric[index - 1]] if index else -1.0
        if index == len(metric):
            step[group] = previous + 1 + np.arange(len(group))
        else:
            following = step[metric[index]]
            steps = following - np.arange(len(group))[::-1]
            least = min(previous + 1, following) if following > previous else max(0.0, following - len(group))
            step[group] = np.maximum(steps, max(0.0, least))
    logged[places] = True


def _give_to_next(event: Bools, scale: tuple[Floats, Bools] | None, norm: tuple[Floats, Bools]) -> None:
    own = np.flatnonzero(~event)
    for place in np.flatnonzero(event).tolist():
        after = int(np.searchsorted(own, place))
        target = int(own[min(after, len(own) - 1)])
        if scale and scale[1][place]:
            scale[0][target], scale[1][target] = scale[0][place], True
        if not norm[1][target]:
            norm[0][target], norm[1][target] = norm[0][place] if norm[1][place] else np.inf, True


def mark_sporadic(
    columns: dict[str, Column | None], cells: dict[str, tuple[Floats, Bools]], names: Names, event: Bools
) -> None:
    """Columns that only overflow lines write are silent while all is well."""
    for name in (names.column("loss_scale"), names.column("grad_norm")):
        found = columns.get(name)
        if found and not (cells[name][1] & ~event).any():
            columns[name] = replace(found, sporadic=True)
