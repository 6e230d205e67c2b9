"""From a table's columns to the metrics that they carry, on the steps at which they were logged.

This is the one place that knows the aliases.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.errors import StabtreeError
from stabtree.loaders.assemble import steps as steps_
from stabtree.loaders.assemble.final_values import check_table
from stabtree.loaders.assemble.loss_parts import is_part, with_total
from stabtree.loaders.assemble.uses import Plan, column_uses, count_logged
from stabtree.loaders.text.messages import ENDING
from stabtree.metrics.table import (
    EPOCH_ALIASES,
    METRICS,
    RANK_ALIASES,
    RUN_ALIASES,
    STEP_ALIASES,
    by_name,
    match,
    normalize,
)
from stabtree.run import Source
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree._lazy import Bools, Ints
    from stabtree.loaders.assemble.steps import Steps
    from stabtree.loaders.table import Column, Select, Table

_PLACES = {
    alias: (role, place)
    for role, aliases in (("step", STEP_ALIASES), ("epoch", EPOCH_ALIASES), ("rank", RANK_ALIASES))
    for place, alias in enumerate(aliases)
}
_KNOWN = frozenset((*_PLACES, *RUN_ALIASES))
LISTED = 12
# `train/loss` at evaluations beside `train/step_loss` at every step: the second is the training loss.
DENSER = 5
# A count of optimizer steps that many rows lack would give these the step of a row before.
STEP_DENSER = 1.1

# A rank column with more empty cells than this tells no ranks apart.
MAX_RANKLESS = 0.01


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table in file order, columns by what they carry.

    Attributes:
        steps: int64 (n,).
        metrics: by canonical metric, in file order.
        origins: the column that each metric was read from.
        ranks: int64 (n,), the rank that wrote each row; None where no column says.
        source: how the file was read.
        notes: what was assumed or ignored.
    """

    steps: Ints
    metrics: Mapping[str, Column]
    origins: Mapping[str, str]
    ranks: Ints | None
    source: Source
    notes: tuple[str, ...]


def selector(columns: Mapping[str, str], step_column: str | None) -> Select:
    """Says which columns of a file are worth parsing: all that could carry something known.

    Raises:
        StabtreeError: where `columns` names a metric that is not known.
    """
    for metric in columns:
        _check_metric(metric)
    named = {*columns.values(), step_column}

    def select(name: str) -> bool:
        return name in named or normalize(name) in _KNOWN or match(name) is not None or is_part(name)

    return select


def _check_metric(metric: str) -> None:
    base = metric.partition("/")[0]
    known = by_name().get(base)
    if known and (known.grouped or base == metric):
        return
    names = [entry.name for entry in METRICS]
    close = difflib.get_close_matches(base, names, n=1, cutoff=0.4)
    raise StabtreeError(
        f"{clean(metric, 40)!r} is not a metric",
        where="--column",
        hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}",
    )


def to_rows(table: Table, columns: Mapping[str, str], step_column: str | None) -> Rows:
    """Give each column its meaning and each row its step.

    Raises:
        StabtreeError: where there is no loss, or a column that the user named is not there.
    """
    if not table.rows:
        raise StabtreeError(
            "holds no rows", where=table.path, hint="name the file that the trainer wrote its metrics to"
        )
    check_table(table)
    table, columns, summed = with_total(table, columns)
    roles = _roles(table, columns, step_column)
    used = {role: _best(table, names, DENSER) for role, names in roles.items()}
    if "step" in roles:
        used["step"] = _best_step(table, roles["step"])
    metrics = _metrics(table, used)
    steps = _steps(table, used, asked=step_column)
    ranks = _ranks(table, used.get("rank"))
    at = steps.values
    if steps.keep is not None:
        at, ranks = at[steps.keep], None if ranks is None else ranks[steps.keep]
        metrics = {name: pick(column, steps.keep) for name, column in metrics.items()}
    source = Source(
        path=table.path,
        format=table.format,
        rows=table.rows,
        columns=column_uses(table, Plan(roles, used, steps.source, summed.names)),
        skipped=table.skipped,
        skipped_count=table.skipped_count,
        steps_from=clean(steps.source, 80),
    )
    return Rows(
        steps=at,
        metrics=metrics,
        origins={metric: used[metric] for metric in metrics},
        ranks=ranks,
        source=source,
        notes=(*table.notes, *summed.notes, *steps.notes, *_bad_notes(table, used)),
    )


def _metrics(table: Table, used: Mapping[str, str]) -> dict[str, Column]:
    """The columns that hold metrics, of which the loss has to be one, unless the run ended in an error message.

    Raises:
        StabtreeError: where there is no loss.
    """
    if "loss" not in used and not any(ENDING.search(line.text) for line in table.lines):
        raise _no_loss(table)
    metrics = {
        role: column
        for role, name in used.items()
        if role not in ("step", "epoch", "rank") and (column := table.columns[name]) and count_logged(column)
    }
    if "loss" in used and "loss" not in metrics:
        raise StabtreeError(
            f"holds no value in its loss column {clean(used['loss'], 60)!r}",
            where=table.path,
            hint="name another column: --column loss=NAME",
        )
    return metrics


def pick(column: Column, keep: Bools) -> Column:
    """The cells of some of the rows."""
    return replace(column, values=column.values[keep], logged=None if column.logged is None else column.logged[keep])


def _roles(table: Table, columns: Mapping[str, str], step_column: str | None) -> dict[str, tuple[str, ...]]:
    """Every role's columns, best first: those that the user named alone, else by alias and place."""
    asked = {**columns, **({"step": step_column} if step_column else {})}
    for role, name in asked.items():
        if name not in table.columns:
            raise _no_column(table, role, name)
    found: dict[str, list[tuple[int, str]]] = {}
    for name in table.columns:
        place = _PLACES.get(normalize(name)) or match(name)
        if place and place[0] not in asked and name not in asked.values():
            found.setdefault(place[0], []).append((place[1], name))
    ranked = {role: tuple(name for _, name in sorted(names, key=lambda item: item[0])) for role, names in found.items()}
    return {**ranked, **{role: (name,) for role, name in asked.items()}}


def _best(table: Table, names: tuple[str, ...], denser: float) -> str:
    """The column of the best alias, unless another one was logged `denser` times as often."""
    counts = {name: count_logged(column) if (column := table.columns[name]) else 0 for name in names}
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


def _no_column(table: Table, role: str, name: str) -> StabtreeError:
    option = "--step-column" if role == "step" else "--column"
    close = difflib.get_close_matches(name, [str(column) for column in table.columns], n=1, cutoff=0.4)
    wanted = close[0] if close else None
    typed = wanted and (clean(wanted) if role == "step" else f"{role}={clean(wanted)}")
    return StabtreeError(
        f"has no column {clean(name, 60)!r} for {option}",
        where=table.path,
        hint=f"type {option} {typed}" if typed else f"its columns are {_listing(table)}",
    )


def _no_loss(table: Table) -> StabtreeError:
    names = list(table.columns)
    guesses = [name for name in names if "loss" in name.lower() and not match(name)]
    # `val/box_loss` is no training loss where `train/box_loss` stands beside it.
    guesses.sort(key=lambda name: normalize(name).startswith(("val_", "valid", "eval", "test_", "dev_")))
    guesses += [name for name in names if normalize(name) in ("value", "train", "nll", "cost", "objective")]
    unknown = [name for name in names if not match(name) and normalize(name) not in _PLACES]
    guesses += difflib.get_close_matches("loss", unknown, n=1, cutoff=0.5)
    guess = clean(guesses[0]) if guesses else "NAME"
    return StabtreeError(
        f"has no column that is known as the training loss; its columns are {_listing(table)}",
        where=table.path,
        hint=f"name it: --column loss={guess}",
    )


def _listing(table: Table) -> str:
    names = [clean(name, 40) for name in table.columns]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _steps(table: Table, used: Mapping[str, str], asked: str | None) -> Steps:
    """Steps from their column, else from epochs, else the row number; the notes say which and why."""
    why = "No column holds the step"
    epochs = table.columns[used["epoch"]] if "epoch" in used else None
    if "step" in used:
        column = table.columns[used["step"]]
        found = steps_.from_column(used["step"], column) if column else "the step column was not read"
        if isinstance(found, str):
            if asked:
                raise StabtreeError(
                    found.replace("column", "--step-column", 1), where=table.path, hint="name another one"
                )
            why = found[0].upper() + found[1:]
        elif not asked and _in_epoch(found, epochs):
            why = f"Column {used['step']} starts again in each epoch"
        else:
            return found
    elif epochs and _whole(epochs):
        found = steps_.from_column(used["epoch"], epochs)
        if not isinstance(found, str) and (np.diff(found.values) > 0).all():
            note = f"No column holds the step: the {used['epoch']} stands for it."
            return steps_.Steps(found.values, found.keep, used["epoch"], (note,))
        why = f"No column holds the step, and {used['epoch']} does not rise in every row"
    return steps_.row_numbers(table.rows, why)


def _in_epoch(found: Steps, epochs: Column | None) -> bool:
    if epochs is None or found.keep is not None or not _whole(epochs):
        return False
    return steps_.restarts_with(found.values, epochs.values)


def _whole(column: Column) -> bool:
    return column.logged is None and bool(np.isfinite(column.values).all())


def _ranks(table: Table, name: str | None) -> Ints | None:
    """The rank of each row, where one column tells several ranks apart."""
    column = table.columns[name] if name else None
    if not column or not len(column.values):
        return None
    logged = np.ones(len(column.values), dtype=np.bool_) if column.logged is None else column.logged
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


def _bad_notes(table: Table, used: Mapping[str, str]) -> list[str]:
    return [
        f"Cells of {clean(name, 40)} that are no numbers: {column.bad}, not logged ({column.bad_example})."
        for name in used.values()
        if (column := table.columns[name]) and column.bad
    ]
