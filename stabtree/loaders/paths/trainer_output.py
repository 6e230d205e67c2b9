"""What is beside the state of the Hugging Face trainer: its events, the model's configuration, the checkpoints."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_HALF
from stabtree.common.text import clean
from stabtree.frameworks.model_config import of_model
from stabtree.loaders.assemble.several_runs import split
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import MODEL, settings_file
from stabtree.loaders.json import trainer_state
from stabtree.run import REDUCED

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

EVENTS = "runs"  # where the trainer writes events if nobody says otherwise
# Events hold single precision.
SAME = 1e-5
# The share of rows in which the events of the run and its state are the same; the rest was trained again.
SAME_SHARE = SHARE_HALF
# A loss that begins below this share of ln(vocabulary), but not at 0, is that of a model which was trained before.
UNTRAINED = SHARE_HALF


def whole(folder: Path, state: Table, names: Names) -> tuple[Table, ...]:
    """Return the run of an output folder with all that belongs to it, and other runs whose events are in it.

    Args:
        folder: the output folder.
        state: the rows of its newest state.
        names: what the columns mean.
    """
    own: list[Table] = []
    others: list[Table] = []
    events, notes = _events(folder / EVENTS, names)
    for table in events:
        (own if _is_same(table, state, names) else others).append(table)
    parts = _joined(state, own, names)
    config = _config(folder, [*parts, state, *own], names)
    name = trainer_state.NAME if others else ""
    first, *rest = (replace(part, run=name) for part in parts)
    return (replace(first, config=config, notes=(*first.notes, *notes)), *rest, *others)


def _events(folder: Path, names: Names) -> tuple[list[Table], tuple[str, ...]]:
    """Return the runs whose events are in a folder, each under its name, and notes about what could not be read."""
    from stabtree.loaders.tensorboard.loader import events_in, runs_below

    notes: list[str] = []
    found: list[Table] = []
    for home, table in runs_below(folder, events_in(folder), names):
        if isinstance(table, StabtreeError):
            notes.append(f"Events in {EVENTS} {table.problem}.")
            continue
        name = f"{EVENTS}/{clean(home.name, 60)}" if home != folder else EVENTS
        found += (replace(one, run=f"{name} {one.run}".strip()) for one in split(table, names))
    return found, tuple(notes)


def _axes(table: Table, names: Names) -> tuple[Column, Column] | None:
    """Return the columns of the steps and of the loss."""
    steps = table.columns.get("step")
    loss = next((column for name, column in table.columns.items() if column and names.role(name) == "loss"), None)
    if steps and loss:
        return steps, loss
    return None


def _losses(table: Table, names: Names) -> dict[int, float]:
    """Return the loss by step, the last value of each."""
    axes = _axes(table, names)
    if not axes:
        return {}
    steps, loss = axes
    rows = loss.mask & steps.mask & np.isfinite(steps.values)
    return dict(zip(steps.values[rows].astype(np.int64).tolist(), loss.values[rows].tolist(), strict=True))


def _is_same(events: Table, state: Table, names: Names) -> bool:
    """Whether the events are of the run whose state this is: the same losses at the same steps."""
    here, there = _losses(events, names), _losses(state, names)
    shared = sorted(here.keys() & there.keys())
    one, other = np.array([here[step] for step in shared]), np.array([there[step] for step in shared])
    if (np.isfinite(other) & ~np.isfinite(one)).any():
        return False  # what the state does not show must be judged
    return bool(shared) and bool(np.isclose(one, other, SAME, SAME, equal_nan=True).mean() >= SAME_SHARE)


def _joined(state: Table, events: list[Table], names: Names) -> list[Table]:
    """Return the rows of the run: the state's, or those of events that hold more: a resume, or later steps."""
    known = _losses(state, names)
    if not known:
        return [state]
    begin, end = min(known), max(known)
    for table in sorted(events, key=lambda table: -table.rows):
        steps = list(_losses(table, names))
        first, last = min(steps), max(steps)
        note = f"Read with its events ({table.run}), which hold more than its newest state, of step {end:,}."
        if first <= begin and last >= end and (last > end or _goes_back(table, names)):
            return [replace(table, notes=(note, *table.notes))]
        if last > end:
            return [state, _after(end, replace(table, notes=(note, *table.notes)))]
    return [state]


def _after(end: int, table: Table) -> Table:
    """Return the rows of a table after a step."""
    column = table.columns["step"]
    if column is None:
        return table
    later = column.values > end
    columns = {name: one and one.pick(later) for name, one in table.columns.items()}
    return replace(table, rows=int(later.sum()), columns=columns)


def _goes_back(table: Table, names: Names) -> bool:
    axes = _axes(table, names)
    return axes is not None and bool((np.diff(axes[0].values[axes[1].mask]) < 0).any())


def _config(folder: Path, tables: list[Table], names: Names) -> dict[str, ConfigScalar]:
    """Return the settings of the trainer and of the model."""
    config = _model_config(folder)
    for table in reversed(tables):
        config.update(table.config)
    size, losses = config.get("vocab_size"), _losses(tables[0], names)
    if isinstance(size, int) and losses and 0 < losses[min(losses)] <= UNTRAINED * math.log(size):
        del config["vocab_size"]
    return config


def _model_config(folder: Path) -> dict[str, ConfigScalar]:
    checkpoints = trainer_state.checkpoints(folder)
    homes = [folder / trainer_state.NAME, *(file for _, file in checkpoints)]
    models = (settings_file(home.with_name(MODEL))[0] for home in homes)
    model, _ = read_config(of_model(next(filter(None, models), {})))
    if model.get("dtype") not in REDUCED:
        model.pop("dtype", None)  # mixed precision has weights in fp32 too
    return model
