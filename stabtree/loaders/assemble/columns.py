"""From a table's columns to the metrics that they carry, on the steps at which they were logged."""

from __future__ import annotations

import difflib
from dataclasses import field, replace
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import NoRowsError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean, first_few
from stabtree.loaders.assemble.checkpoints import epoch_ends, saved
from stabtree.loaders.assemble.counters import settle
from stabtree.loaders.assemble.misread import misread
from stabtree.loaders.assemble.placeholders import with_written_nan
from stabtree.loaders.assemble.roles.choice import Choice, choose
from stabtree.loaders.assemble.roles.loss_parts import with_total
from stabtree.loaders.assemble.roles.uses import Plan, column_uses
from stabtree.loaders.assemble.steps import MAX_STEP, steps_of
from stabtree.loaders.source import NAME_METRICS
from stabtree.metrics.final_values import check_columns
from stabtree.metrics.names import AXES, NAMELESS, PHASE, RUN
from stabtree.metrics.role import UNKNOWN
from stabtree.metrics.table import is_time, normalize
from stabtree.run import FileUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.assemble.misread import Misread
    from stabtree.loaders.table import Column, Table
    from stabtree.metrics.names import Names

LISTED = 12
# What TRL's RewardTrainer logs beside the mean of its scores.
OF_REWARD_MODEL = frozenset({"min_reward", "max_reward", "margin"})
# `train/loss` at evaluations beside `train/step_loss` at every step: the second is the training loss.
DENSER = 5
# A rank column with more empty cells than this does not separate ranks.
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
        choice: what the run is judged by.
        epoch_ends: the epochs that end in a table of steps, by their last step.
        saved: the steps at which a text log says that a checkpoint was saved, with the number of the line.
        others: the columns of numbers that no metric was read from, by name.
    """

    steps: Ints
    metrics: Mapping[str, Column]
    origins: Mapping[str, str]
    ranks: Ints | None
    source: FileUse
    notes: tuple[str, ...]
    choice: Choice
    epoch_ends: Mapping[int, int] = field(default_factory=dict)
    saved: Mapping[int, int] = field(default_factory=dict)
    others: Mapping[str, Column] = field(default_factory=dict)

    @property
    def evaluations(self) -> list[Column]:
        """The columns of held-out data that no metric was read from."""
        return [column for name, column in self.others.items() if self.choice.readings.get(name, UNKNOWN).held_out]

    def pick(self, keep: Bools) -> MetricRows:
        """Return some of the rows, bool (n,)."""
        metrics = {metric: column.pick(keep) for metric, column in self.metrics.items()}
        others = {name: column.pick(keep) for name, column in self.others.items()}
        ranks = None if self.ranks is None else self.ranks[keep]
        return replace(self, steps=self.steps[keep], metrics=metrics, others=others, ranks=ranks)


def to_rows(table: Table, names: Names, *, alone: bool = True) -> MetricRows:
    """Give each column its meaning and each row its step; `alone` says whether the table is the whole run.

    Raises:
        StabtreeError: where there is nothing to judge a run by, or a column that the user named is not there.
    """
    if not table.rows:
        raise StabtreeError("holds no rows", where=table.path, hint=NAME_METRICS)
    if not table.ended_in_error:
        check_columns(table.columns, table.rows, table.path, names)
    table = with_written_nan(settle(table, names), names)
    table, names, summed = with_total(table, names.spelled_as_in(table.columns))
    choice = choose(table, names, alone=alone)
    if not choice.enough and not table.ended_in_error:
        raise _no_loss(table, names)
    names = choice.names
    roles = _roles(table, names)
    used = {role: _best(table, carriers, DENSER) for role, carriers in roles.items()}
    _use_counter(used, table.counter, names)
    columns = {role: column for role, name in used.items() if (column := table.columns[name])}
    wrong = _misread_cells(columns)
    metrics = _metrics(columns, wrong)
    if "loss" in used and "loss" not in metrics:
        raise _empty_loss(table, used["loss"], names)
    steps = steps_of(table, used, columns, asked=names.step_column is not None)
    epochs = None if steps.source == used.get("epoch") else columns.get("epoch")
    rows = MetricRows(
        steps=steps.values,
        metrics=metrics,
        origins={metric: used[metric] for metric in metrics},
        ranks=_ranks(columns.get("rank")),
        source=_file_use(table, Plan(roles, used, steps.source, wrong, choice, summed.names, steps.lost)),
        notes=(*table.notes, *summed.notes, *choice.notes, *steps.notes, *_bad_notes(used, columns, wrong)),
        choice=choice,
        epoch_ends=epoch_ends(steps.values, epochs, steps.keep),
        saved=saved(steps.values, table.saves),
        others=_others(table, names, used),
    )
    return rows if steps.keep is None else rows.pick(steps.keep)


def _file_use(table: Table, plan: Plan) -> FileUse:
    return FileUse(
        path=table.path,
        format=table.format,
        rows=table.rows,
        columns=column_uses(table, plan),
        skipped=table.skipped,
        skipped_count=table.skipped_count,
        steps_from=clean(plan.steps_from, 80),
        restarts=table.restarts if plan.steps_from == table.counter else "",
        lost_share=table.lost_share,
        unread=table.unread,
    )


def _misread_cells(columns: Mapping[str, Column]) -> dict[str, Misread]:
    """Return by role the cells that are proved to be misread."""
    found = ((role, misread(column, role)) for role, column in columns.items())
    return {role: wrong for role, wrong in found if wrong}


def _metrics(columns: Mapping[str, Column], wrong: Mapping[str, Misread]) -> dict[str, Column]:
    """Return the columns that hold metrics, without the cells that are misread."""
    metrics = {role: column for role, column in columns.items() if role not in AXES and column.count}
    for role in wrong.keys() & metrics.keys():
        metrics[role] = metrics[role].without(wrong[role].cells)
    return metrics


def _others(table: Table, names: Names, used: Mapping[str, str]) -> dict[str, Column]:
    """Return the columns that hold mostly numbers and no metric was read from."""
    found = {}
    for name, column in table.columns.items():
        if column is None or column.coded or names.role(name) in AXES or used.get(names.role(name)) == name:
            continue
        if column.count > column.bad:
            found[name] = column
    return found


def _empty_loss(table: Table, name: str, names: Names) -> StabtreeError:
    column = table.columns[name]
    problem = f"holds no value in its loss column {clean(name, 60)!r}"
    if column and column.bad:
        cells = f"{column.bad:,} cells are none, such as {column.bad_example}"
        problem = f"holds no number in its loss column {clean(name, 60)!r}: {cells}"
    others = (other for other in table.columns if other != name)
    return NoRowsError(problem, where=table.path, hint=names.naming_a_loss(others) or NAME_METRICS)


def _roles(table: Table, names: Names) -> dict[str, tuple[str, ...]]:
    """Return by role its columns, best first: only the one that the user named, else all by the rank of their alias."""
    for role, name in names.asked.items():
        if name not in table.columns:
            raise _no_column(table, names, role, name)
    found: dict[str, list[tuple[int, str]]] = {}
    for name in table.columns:
        role, place = names.match(name)
        if role and role not in (RUN, PHASE):
            found.setdefault(role, []).append((place, name))
    if "reward" in found and names.asked.get("reward") is None and _scores_pairs(table):
        del found["reward"]
    return {role: tuple(name for _, name in sorted(named, key=lambda item: item[0])) for role, named in found.items()}


def _scores_pairs(table: Table) -> bool:
    """Return whether a reward model is trained: the mean of its scores may go anywhere, so it is no reward."""
    bare = {normalize(name).removeprefix("train_") for name in table.columns}
    return bare >= OF_REWARD_MODEL


def _best(table: Table, names: tuple[str, ...], denser: float) -> str:
    """Return the column of the best alias, unless another one was logged `denser` times as often."""
    counts = {name: column.count if (column := table.columns[name]) else 0 for name in names}
    max_count = max(counts.values())
    return next(name for name, count in counts.items() if count * denser >= max_count)


def _use_counter(used: dict[str, str], counter: str | None, names: Names) -> None:
    """Let the rows be counted by the column that does, and by no other."""
    if names.step_column is None:
        used.pop("step", None)
    if counter:
        used[names.role(counter)] = counter


def _no_column(table: Table, names: Names, role: str, name: str) -> StabtreeError:
    option = "--step-column" if role == "step" else "--column"
    # The column of the steps is no metric, and the learning rate no loss, however alike the names are.
    free = {"", *AXES} if role in AXES else {""}
    able = [str(column) for column in table.columns if names.role(column) in free]
    hint = f"its columns are {first_few([*table.columns], LISTED, 40)}"
    close = difflib.get_close_matches(name, able, n=1, cutoff=0.4)
    if close:
        hint = f"type {option} {'' if role == 'step' else f'{role}='}{clean(close[0])}"
    return StabtreeError(f"has no column {clean(name, 60)!r} for {option}", where=table.path, hint=hint)


def _no_loss(table: Table, names: Names) -> StabtreeError:
    hint = names.naming_a_loss(table.columns) or "name the file that the trainer wrote its loss to"
    nameless = next((name for name in table.columns if normalize(name) == NAMELESS), "")
    if nameless:
        hint = f"say what it holds: --column loss={clean(nameless)}, or --column reward={clean(nameless)}"
    columns = first_few([*table.columns], LISTED, 40)
    problem = f"has no column that is known as the training loss; its columns are {columns}"
    return StabtreeError(problem, where=table.path, hint=hint)


def _ranks(column: Column | None) -> Ints | None:
    """Return the rank of each row, if the column separates several ranks."""
    if not column or not len(column.values):
        return None
    logged = column.mask
    if np.count_nonzero(~logged) > MAX_RANKLESS * len(logged) or not logged[0]:
        return None
    # A row without a rank is of the one before it: one empty cell must not mix the ranks up.
    values = column.values[np.maximum.accumulate(np.where(logged, np.arange(len(logged)), 0))]
    # The rank of a matrix is a metric: it has fractions, or a new value in every other row.
    distinct, indices = np.unique(values, return_inverse=True)
    if not (np.abs(distinct) < MAX_STEP).all() or (distinct != np.floor(distinct)).any():
        return None
    if not 1 < len(distinct) <= len(values) / 2:
        return None
    return (indices if column.coded else values).astype(np.int64)


def _bad_notes(used: Mapping[str, str], columns: Mapping[str, Column], wrong: Mapping[str, Misread]) -> list[str]:
    found = []
    for role, column in columns.items():
        if is_time(role):
            continue  # a clock may well be printed as 0:12:31
        shown = clean(used[role], 40)
        if column.bad:
            found.append(f"Cells of {shown} that are not numbers: {column.bad}, not logged ({column.bad_example}).")
        if role in wrong:
            found += wrong[role].notes(shown)
    return found
