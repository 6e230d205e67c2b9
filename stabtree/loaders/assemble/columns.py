"""From a table's columns to the metrics that they carry, on the steps at which they were logged."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import NoRowsError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.passes import sound_rows
from stabtree.common.stats import stretches, true_at_end
from stabtree.common.text import clean, first_few
from stabtree.loaders.assemble.choice import Choice, choose, is_usable, with_derived
from stabtree.loaders.assemble.course import without_filler
from stabtree.loaders.assemble.steps import MAX_STEP, Steps, from_column, of_role, settle, steps_of, whole_steps
from stabtree.loaders.source import NAME_METRICS, naming_a_loss
from stabtree.metrics.metric import Role
from stabtree.metrics.names import AXES, NAMELESS, PHASE, RUN, SHOWN, STEP, Names, check_columns, part_of
from stabtree.metrics.role import DENSER, FAR_MORE, UNKNOWN, describe_name
from stabtree.metrics.table import by_name, is_time, normalize, words
from stabtree.run import ColumnUse, FileUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.table import Column, Save, Table

LISTED = 12
ITEMS = frozenset(("name", "id", "layer", "module", "block", "param", "parameter", "index", "idx"))
MAX_EPOCHS = 100_000  # what is counted further is rows or episodes
MAX_RANKLESS = 0.01  # a rank column with more empty cells than this does not separate ranks


class MetricRows(Struct, frozen=True):
    """The rows of a table in file order, columns by what they carry."""

    steps: Ints  # (n,)
    metrics: Mapping[str, Column]  # by canonical metric, in file order
    origins: Mapping[str, str]  # the column that each metric was read from
    ranks: Ints | None  # (n,), the rank that wrote each row; None where no column says
    source: FileUse
    notes: tuple[str, ...]  # what was assumed or ignored
    choice: Choice
    epoch_ends: Mapping[int, int]  # the epochs that end in a table of steps, by their last step
    saved: Mapping[int, int]  # the steps at which a text log says that a checkpoint was saved, with the line's number
    others: Mapping[str, Column]  # the columns of numbers that no metric was read from, by name

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
    table = settle(table, names)
    _check_items(table, names)
    if table.counter and names.role(table.counter) not in AXES:  # it counts the rows, whatever its name
        names = replace(names, step_column=table.counter)
    steps = steps_of(table, names)
    table = without_filler(table, steps.values)
    table, names, summed, derived = with_derived(table, names.spelled_as_in(table.columns))
    choice = choose(table, names, alone=alone)
    if not choice.enough and not table.ended_in_error:
        raise _no_loss(table, names)
    names, used = choice.names, _carriers(table, choice.names)
    columns = {role: column for role, name in used.items() if (column := table.columns[name])}
    metrics = {role: column for role, column in columns.items() if role not in AXES and column.count}
    if "loss" in used and "loss" not in metrics:
        raise _empty_loss(table, used["loss"], names)
    bad = [
        f"Cells of {clean(used[role], 40)} that are not numbers: {column.bad}, not logged ({column.bad_example})."
        for role, column in columns.items()
        if column.bad and not is_time(role)  # a clock may well be printed as 0:12:31
    ]
    others = {
        name: column
        for name, column in table.columns.items()
        if column and not column.coded and column.count > column.bad and names.role(name) not in AXES
        if used.get(names.role(name)) != name
    }
    plan = Plan(used, steps.source, choice, summed)
    return MetricRows(
        steps=steps.values,
        metrics=metrics,
        origins={metric: used[metric] for metric in metrics},
        ranks=_ranks(columns.get("rank")),
        source=FileUse(
            path=table.path,
            format=table.format,
            rows=table.rows,
            columns=tuple(_use(name, table, plan) for name in table.columns),
            skipped=table.skipped,
            skipped_count=table.skipped_count,
            steps_from=clean(steps.source, 80),
            restarts=table.restarts if steps.source == table.counter else "",
            lost_share=table.lost_share,
            unread=table.unread,
        ),
        notes=(*table.notes, *derived, *choice.notes, *steps.notes, *bad),
        choice=choice,
        epoch_ends=_epoch_ends(steps.values, None if steps.source == used.get("epoch") else columns.get("epoch")),
        saved=_saved(steps.values, table.saves),
        others=others,
    )


def _check_items(table: Table, names: Names) -> None:
    """Refuse a table of one step whose rows have names, as those of layers do."""
    counts = [column for _, column in of_role(table, STEP, names) if column.count]
    # A logger that is given no step writes 0.
    if not counts or table.rows < 2 or any(np.ptp(column.held) or column.held[0] == 0 for column in counts):
        return
    for name, column in table.columns.items():
        if names.role(name) or ITEMS.isdisjoint(words(name)):
            continue
        if column is None or column.bad == table.rows or len(np.unique(column.held)) == table.rows:
            text = f"holds {table.rows:,} rows of one step, each of another {clean(name, 40)}, and no run's course"
            raise StabtreeError(text, where=table.path, hint=NAME_METRICS)


class Plan(NamedTuple):
    """Which column carries what."""

    used: Mapping[str, str]  # by role the column that carries it
    steps: str  # what the steps were read from
    choice: Choice
    parts: Mapping[str, str]  # columns that a metric was computed from, with the metric


def _use(name: str, table: Table, plan: Plan) -> ColumnUse:
    """Return which metric a column was read as, or why it was ignored, and how many values it holds."""
    column, role = table.columns[name], plan.choice.names.role(name)
    reading = plan.choice.readings.get(name) or describe_name(name)
    known = by_name().get(role.partition("/")[0])
    kind = reading.role  # what it is read as, unless its name is more exact
    if name in plan.parts and part_of(name):
        kind = Role.PART
    elif known and known.role is not Role.OTHER and not (reading.loss and reading.kind):
        kind = known.role
    why = _ignored(name, role, table, plan)
    use = ColumnUse(clean(name, SHOWN), plan.parts.get(name), why, role=kind)
    if column is None:
        return use
    held = column.held
    values = held[sound_rows(column)] if column.logged is None else held[np.isfinite(held)]
    first, last = map(float, values[[0, -1]]) if len(values) else (None, None)
    use = replace(use, logged=column.count, first=first, last=last, nonfinite=column.count - len(values))
    if not role or why:
        return use
    wrong = column.bad
    if role == "step" and whole_steps(column) is None:
        wrong += int(np.count_nonzero((held < 0) | (held >= MAX_STEP) | (held != np.floor(held))))
    why = "labels" * column.coded or f"{column.bad} cells are not numbers" * (column.bad > 0)
    last = 0
    if column.bad and column.garbled is not None:
        garbled = column.garbled[column.garbled | column.mask]
        last = true_at_end(garbled)
        last *= last > max((end - begin for begin, end in stretches(garbled[: len(garbled) - last])), default=0)
    return replace(use, metric=role, why=why, misread=wrong, misread_last=last, filled=column.count + column.bad)


def _ignored(name: str, role: str, table: Table, plan: Plan) -> str:
    """Return why a column carries no metric; nothing if it does."""
    column, own = table.columns[name], role or Names().role(name)  # what it means where the user names no column
    used = plan.used.get(own, "")
    if own in (RUN, PHASE):
        return f"names the {own}"
    if name in plan.parts:
        return "computed from it"
    if role and not column:
        return "left out to save memory"
    if not role and not used:
        return "not a known metric"
    if role and column and not column.count:
        return "never logged"
    if used and used != name:
        carrier = table.columns[used]
        far = bool(column and carrier and column.count * DENSER < carrier.count)
        return f"{own} is read from {clean(used, 40)}" + f", {FAR_MORE}" * far
    if plan.steps == name or role not in ("epoch", "step"):
        return ""
    return f"steps are read from {clean(plan.steps, 40)}" if role == "epoch" else "no usable steps, see the notes"


def _carriers(table: Table, names: Names) -> dict[str, str]:
    """Return by role (a metric, `step`, `epoch` or `rank`) the column that carries it.

    That is what the user named, else the best alias, unless another one was logged far more often.
    """
    by_role: dict[str, list[str]] = {}
    for role, name in names.asked.items():
        if name not in table.columns:
            raise _no_column(table, names, role, name)
    for name in table.columns:
        if (role := names.role(name)) not in ("", RUN, PHASE):
            by_role.setdefault(role, []).append(name)
    used = {}
    for role, carriers in by_role.items():
        carriers.sort(key=lambda name: names.match(name).priority)
        counts = {name: column.count if (column := table.columns[name]) else 0 for name in carriers}
        used[role] = next(name for name, count in counts.items() if count * DENSER >= max(counts.values()))
    if names.step_column is None:
        used.pop("step", None)
    if table.counter:  # which counts the rows, and no other does
        used[names.role(table.counter)] = table.counter
    return used


def _no_column(table: Table, names: Names, role: str, name: str) -> StabtreeError:
    """Return the error on a column that is not there; it proposes only one that can be read as that."""
    option, metric = ("--step-column", "") if role == "step" else ("--column", f"{role}=")
    # The column of the steps is no metric, and the learning rate no loss, however alike the names are.
    free = {"", *AXES} if role in AXES else {""}
    able = [
        str(other)
        for other, column in table.columns.items()
        if names.role(other) in free and column is not None and is_usable(column)
        if role != "step" or isinstance(from_column(other, column), Steps)
    ]
    close = difflib.get_close_matches(name, able, n=1, cutoff=0.4)
    hint = f"type {option} {metric}{clean(close[0])}" if close else f"its columns are {_listed(table)}"
    return StabtreeError(f"has no column {clean(name, 60)!r} for {option}", where=table.path, hint=hint)


def _naming_a_loss(table: Table, names: Names) -> str:
    """Return the option that reads a column of numbers as the loss; nothing where none can be."""
    usable = [name for name, column in table.columns.items() if is_usable(column)]
    nameless = next((name for name in usable if normalize(name) == NAMELESS), "")
    if nameless:
        return f"say what it holds: --column loss={clean(nameless)}, or --column reward={clean(nameless)}"
    return naming_a_loss(usable, names)


def _empty_loss(table: Table, name: str, names: Names) -> StabtreeError:
    column, problem = table.columns[name], f"holds no value in its loss column {clean(name, 60)!r}"
    if column and column.bad:
        problem = f"{problem.replace('value', 'number')}: {column.bad:,} cells are none, such as {column.bad_example}"
    return NoRowsError(problem, where=table.path, hint=_naming_a_loss(table, names) or NAME_METRICS)


def _no_loss(table: Table, names: Names) -> StabtreeError:
    problem = f"has no column that is known as the training loss; its columns are {_listed(table)}"
    hint = _naming_a_loss(table, names) or "name the file that the trainer wrote its loss to"
    return StabtreeError(problem, where=table.path, hint=hint)


def _listed(table: Table) -> str:
    return first_few([*table.columns], LISTED, 40)


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
    whole = (np.abs(distinct) < MAX_STEP).all() and (distinct == np.floor(distinct)).all()
    if not whole or not 1 < len(distinct) <= len(values) / 2:
        return None
    return (indices if column.coded else values).astype(np.int64)


def _epoch_ends(steps: Ints, epochs: Column | None) -> Mapping[int, int]:
    """Return the epochs that end within a log, by the last step of each; empty where they don't rise with the steps.

    A share of an epoch (2.37) counts what was done: 2 ends at the last row up to 2.0.
    """
    if epochs is None:
        return {}
    known = epochs.mask & np.isfinite(epochs.values)
    at, count = steps[known], epochs.values[known]
    if len(at) < 2 or (np.diff(at) < 0).any() or (np.diff(count) < 0).any() or count[0] < 0:
        return {}
    done = np.ceil(count)
    last = np.flatnonzero(np.diff(done) > 0)
    return {int(at[row]): int(done[row]) for row in last if at[row] > 0} if len(last) <= MAX_EPOCHS else {}


def _saved(steps: Ints, saves: Iterable[Save]) -> Mapping[int, int]:
    """Return the steps at which checkpoints were saved, with the numbers of the lines that say so.

    A line's step is a number in it between the steps of the rows around it, else that of the row before.
    """
    saved = {}
    for save in saves:
        before, after = int(steps[save.row]), int(steps[min(save.row + 1, len(steps) - 1)])
        step = max((number for number in save.numbers if before < number <= after), default=before)
        if step > 0:
            saved[step] = save.line
    return saved
