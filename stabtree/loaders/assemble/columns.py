"""From a table's columns to the metrics that they carry, on the steps at which they were logged."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.assemble import steps as steps_
from stabtree.loaders.assemble.checkpoints import epoch_ends, saved
from stabtree.loaders.assemble.choice import choose
from stabtree.loaders.assemble.loss_parts import with_total
from stabtree.loaders.assemble.misread import misread
from stabtree.loaders.assemble.uses import Plan, column_uses
from stabtree.loaders.source import NAME_METRICS
from stabtree.metrics.final_values import check_columns
from stabtree.metrics.names import AXES, NAMELESS, RUN
from stabtree.metrics.pace import TIMES
from stabtree.metrics.table import normalize
from stabtree.run import FileUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Ints
    from stabtree.loaders.assemble.misread import Misread
    from stabtree.loaders.assemble.steps import Steps
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names

LISTED = 12
# `train/loss` at evaluations beside `train/step_loss` at every step: the second is the training loss.
DENSER = 5
# A count of optimizer steps that many rows lack would give these the step of a row before.
STEP_DENSER = 1.1
# Steps that stand still or go back in more of the rows are no count, where so many rows are counted otherwise.
LENGTH_ROWS, LENGTH_SHARE = 8, 0.2

# A rank column with more empty cells than this tells no ranks apart.
MAX_RANKLESS = 0.01


@dataclass(frozen=True, slots=True)
class MetricRows:
    """The rows of a table in file order, columns by what they carry.

    Attributes:
        steps: int64 (n,).
        metrics: by canonical metric, in file order.
        origins: the column that each metric was read from.
        ranks: int64 (n,), the rank that wrote each row; None where no column says.
        source: how the file was read.
        notes: what was assumed or ignored.
        loss_kind: of a loss that moves by nature which it is, `adversarial`, `policy` or `value`; else nothing.
        epoch_ends: the epochs that end in a table of steps, by their last step.
        saved: the steps at which a text log says that a checkpoint was saved, with the number of the line.
    """

    steps: Ints
    metrics: Mapping[str, Column]
    origins: Mapping[str, str]
    ranks: Ints | None
    source: FileUse
    notes: tuple[str, ...]
    loss_kind: str = ""
    epoch_ends: Mapping[int, int] = field(default_factory=dict)
    saved: Mapping[int, int] = field(default_factory=dict)


def to_rows(table: Table, names: Names, *, alone: bool = True) -> MetricRows:
    """Give each column its meaning and each row its step; `alone` says whether the table is the whole run.

    Raises:
        StabtreeError: where there is nothing to judge a run by, or a column that the user named is not there.
    """
    if not table.rows:
        raise StabtreeError(
            "holds no rows", where=table.path, hint="name the file that the trainer wrote its metrics to"
        )
    check_columns(table.columns, table.rows, table.path, names)
    table, names, summed = with_total(table, names)
    choice = choose(table, names, alone=alone)
    if not choice.enough and not table.ended_in_error:
        raise _no_loss(table, names)
    names = choice.names
    roles = _roles(table, names)
    used = {role: _best(table, carriers, DENSER) for role, carriers in roles.items()}
    if "step" in roles:
        used["step"] = _best_step(table, roles["step"])
    wrong = {
        role: found
        for role, name in used.items()
        if (column := table.columns[name]) and (found := misread(column, role))
    }
    metrics = _metrics(table, used, names, wrong)
    steps = _steps(table, used, asked=names.step_column is not None)
    ranks = _ranks(table, used.get("rank"))
    at = steps.values
    epochs = table.columns.get(used.get("epoch", ""))
    ends = {} if steps.source == used.get("epoch") else epoch_ends(at, epochs, steps.keep)
    saves = saved(at, table.saves)
    if steps.keep is not None:
        at, ranks = at[steps.keep], None if ranks is None else ranks[steps.keep]
        metrics = {name: column.pick(steps.keep) for name, column in metrics.items()}
    source = FileUse(
        path=table.path,
        format=table.format,
        rows=table.rows,
        columns=column_uses(table, Plan(roles, used, steps.source, wrong, summed.names, steps.lost)),
        skipped=table.skipped,
        skipped_count=table.skipped_count,
        steps_from=clean(steps.source, 80),
        lost_share=table.lost_share,
    )
    return MetricRows(
        steps=at,
        metrics=metrics,
        origins={metric: used[metric] for metric in metrics},
        ranks=ranks,
        source=source,
        notes=(*table.notes, *summed.notes, *choice.notes, *steps.notes, *_bad_notes(table, used, wrong)),
        loss_kind=choice.kind,
        epoch_ends=ends,
        saved=saves,
    )


def _metrics(table: Table, used: Mapping[str, str], names: Names, wrong: Mapping[str, Misread]) -> dict[str, Column]:
    """The columns that hold metrics.

    Raises:
        StabtreeError: where the loss is one of them and holds nothing.
    """
    metrics = {
        role: column.without(wrong[role].cells) if role in wrong else column
        for role, name in used.items()
        if role not in AXES and (column := table.columns[name]) and column.count
    }
    if "loss" in used and "loss" not in metrics:
        column = table.columns[used["loss"]]
        cells = f": {column.bad:,} cells are none, such as {column.bad_example}" if column and column.bad else ""
        raise StabtreeError(
            f"holds no {'number' if cells else 'value'} in its loss column {clean(used['loss'], 60)!r}{cells}",
            where=table.path,
            hint=names.naming_a_loss(name for name in table.columns if name != used["loss"]) or NAME_METRICS,
        )
    return metrics


def _roles(table: Table, names: Names) -> dict[str, tuple[str, ...]]:
    """Every role's columns, best first: those that the user named alone, else by alias and place."""
    for role, name in names.asked.items():
        if name not in table.columns:
            raise _no_column(table, names, role, name)
    found: dict[str, list[tuple[int, str]]] = {}
    for name in table.columns:
        role, place = names.match(name)
        if role and role != RUN:
            found.setdefault(role, []).append((place, name))
    return {role: tuple(name for _, name in sorted(named, key=lambda item: item[0])) for role, named in found.items()}


def _best(table: Table, names: tuple[str, ...], denser: float) -> str:
    """The column of the best alias, unless another one was logged `denser` times as often."""
    counts = {name: column.count if (column := table.columns[name]) else 0 for name in names}
    most = max(counts.values())
    return next(name for name, count in counts.items() if count * denser >= most)


def _best_step(table: Table, names: tuple[str, ...]) -> str:
    """The best step column that stands in nearly every row that has one and holds steps."""
    if len(names) == 1:
        return names[0]
    usable = [
        name
        for name in names
        if (column := table.columns[name]) and not isinstance(steps_.from_column(name, column), str)
    ]
    return _best(table, tuple(usable) or names, STEP_DENSER)


def _no_column(table: Table, names: Names, role: str, name: str) -> StabtreeError:
    option = "--step-column" if role == "step" else "--column"
    # The column of the steps is no metric, and the learning rate no loss, however alike the names are.
    free = {"", *(AXES if role in AXES else ())}
    able = [str(column) for column in table.columns if names.role(column) in free]
    close = difflib.get_close_matches(name, able, n=1, cutoff=0.4)
    wanted = close[0] if close else None
    typed = wanted and (clean(wanted) if role == "step" else f"{role}={clean(wanted)}")
    return StabtreeError(
        f"has no column {clean(name, 60)!r} for {option}",
        where=table.path,
        hint=f"type {option} {typed}" if typed else f"its columns are {_listing(table)}",
    )


def _no_loss(table: Table, names: Names) -> StabtreeError:
    hint = names.naming_a_loss(table.columns) or "name the file that the trainer wrote its loss to"
    if one := next((name for name in table.columns if normalize(name) == NAMELESS), ""):
        hint = f"say what it holds: --column loss={clean(one)}, or --column reward={clean(one)}"
    return StabtreeError(
        f"has no column that is known as the training loss; its columns are {_listing(table)}",
        where=table.path,
        hint=hint,
    )


def _listing(table: Table) -> str:
    names = [clean(name, 40) for name in table.columns]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _steps(table: Table, used: Mapping[str, str], *, asked: bool) -> Steps:
    """Steps from their column, else from epochs, else the row number; the notes say which and why."""
    why = "No column holds the step"
    epochs = table.columns[used["epoch"]] if "epoch" in used else None
    if "step" in used:
        column = table.columns[used["step"]]
        loss = table.columns[used["loss"]] if "loss" in used else None
        losses = loss.mask if loss and "rank" not in used else None
        found = steps_.from_column(used["step"], column, losses) if column else "the step column was not read"
        if isinstance(found, str):
            if asked:
                raise StabtreeError(
                    found.replace("column", "--step-column", 1), where=table.path, hint="name another one"
                )
            why = found[0].upper() + found[1:]
        elif not asked and _in_epoch(found, epochs):
            why = f"Column {used['step']} starts again in each epoch"
        elif not asked and epochs and _is_length(found, epochs):
            return steps_.Steps(epochs.values.astype(np.int64), None, used["epoch"], (_length_note(used),))
        else:
            return found
    elif epochs and _whole(epochs):
        found = steps_.from_column(used["epoch"], epochs)
        if not isinstance(found, str) and len(np.unique(found.values)) == len(found.values):
            note = f"No column holds the step: {used['epoch']} is used instead."
            return steps_.Steps(found.values, found.keep, used["epoch"], (note,))
        why = f"No column holds the step, and {used['epoch']} is not another one in every row"
    return steps_.row_numbers(table.rows, why)


def _in_epoch(found: Steps, epochs: Column | None) -> bool:
    if epochs is None or found.keep is not None or not _whole(epochs):
        return False
    return steps_.restarts_with(found.values, epochs.values)


def _is_length(found: Steps, epochs: Column) -> bool:
    """Whether the steps are how long each episode took: they go up and down while the episodes are counted."""
    if found.keep is not None or not _whole(epochs) or len(found.values) < LENGTH_ROWS:
        return False
    counted = epochs.values == np.floor(epochs.values)
    rises = np.diff(epochs.values) > 0
    back = np.diff(found.values) <= 0
    return bool(counted.all() and rises.all() and np.count_nonzero(back) > LENGTH_SHARE * len(back))


def _length_note(used: Mapping[str, str]) -> str:
    length, count = clean(used["step"], 40), clean(used["epoch"], 40)
    return f"Column {length} goes up and down, as the length of an episode does: {count} is used as the step."


def _whole(column: Column) -> bool:
    return column.logged is None and bool(np.isfinite(column.values).all())


def _ranks(table: Table, name: str | None) -> Ints | None:
    """The rank of each row, where one column tells several ranks apart."""
    column = table.columns[name] if name else None
    if not column or not len(column.values):
        return None
    logged = column.mask
    if np.count_nonzero(~logged) > MAX_RANKLESS * len(logged) or not logged[0]:
        return None
    # A row without a rank is of the one before it: one empty cell must not mix the ranks up.
    values = column.values[np.maximum.accumulate(np.where(logged, np.arange(len(logged)), 0))]
    # The rank of a matrix is a metric: it has fractions, or a new value in every other row.
    distinct, places = np.unique(values, return_inverse=True)
    whole = bool(np.isfinite(distinct).all()) and bool((np.abs(distinct) < steps_.MAX_STEP).all())
    if not whole or (distinct != np.floor(distinct)).any() or not 1 < len(distinct) <= len(values) / 2:
        return None
    return places.astype(np.int64) if column.coded else values.astype(np.int64)


def _bad_notes(table: Table, used: Mapping[str, str], wrong: Mapping[str, Misread]) -> list[str]:
    found = []
    for role, name in used.items():
        if role in TIMES:
            continue  # a clock may well be printed as 0:12:31
        shown, column = clean(name, 40), table.columns[name]
        if column and column.bad:
            found.append(f"Cells of {shown} that are not numbers: {column.bad}, not logged ({column.bad_example}).")
        if role in wrong:
            found += wrong[role].notes(shown)
    return found
