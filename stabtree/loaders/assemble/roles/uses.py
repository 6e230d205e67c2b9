"""The use of each column of a table: which metric it was read as, or why it was ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.passes import sound_rows
from stabtree.common.text import clean
from stabtree.loaders.assemble.steps import MAX_STEP, whole_steps
from stabtree.metrics.metric import Role
from stabtree.metrics.names import PHASE, RUN, SHOWN, Names
from stabtree.metrics.ranking import FAR_MORE
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import by_name
from stabtree.run import ColumnUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.assemble.roles.choice import Choice
    from stabtree.loaders.table import Column, Table


@dataclass(frozen=True, slots=True)
class Plan:
    """Which column carries what.

    Attributes:
        columns: by role (a canonical metric, `step`, `epoch` or `rank`) all columns that could, best first.
        used: by role the column that does.
        steps_from: the column that the steps were read from, or `row number`.
        misread: by role the number of cells that are proved to be misread.
        choice: what the run is judged by.
        parts: columns that were summed up to a loss.
        lost: rows without a step that hide a loss.
    """

    columns: Mapping[str, tuple[str, ...]]
    used: Mapping[str, str]
    steps_from: str
    misread: Mapping[str, int]
    choice: Choice
    parts: frozenset[str] = frozenset()
    lost: int = 0


def column_uses(table: Table, plan: Plan) -> tuple[ColumnUse, ...]:
    """Return the use of every column, in the order of the file."""
    roles: dict[str, str] = {}
    for role, names in plan.columns.items():
        roles.update(dict.fromkeys(names, role))
    return tuple(
        replace(_use(name, roles.get(name), column, plan), role=_role(name, roles.get(name), plan))
        for name, column in table.columns.items()
    )


def _role(name: str, metric: str | None, plan: Plan) -> str:
    """Return what a column holds: what it is read as, unless its name is more exact."""
    reading = plan.choice.readings.get(name) or describe_name(name)
    known = by_name().get((metric or "").partition("/")[0])
    if name in plan.parts:
        return Role.PART
    if known is None or known.role is Role.OTHER or (reading.loss and reading.kind):
        return reading.role
    return known.role


def _use(name: str, role: str | None, column: Column | None, plan: Plan) -> ColumnUse:
    shown = clean(name, SHOWN)
    if column is None:
        return ColumnUse(shown, None, _unknown(name, plan, known=role is not None))
    ignored = _ignored(name, role, column, plan) if role else _unknown(name, plan, known=False)
    if role is None or ignored:
        return replace(_described(shown, column), why=ignored)
    unread = column.bad
    wrong = plan.misread.get(role, 0)
    if role == "step":
        unread = max(unread, plan.lost)
        wrong += _no_steps(column)
    use = _described(shown, column)
    return replace(use, metric=role, why=_odd(column), misread=unread + wrong, filled=column.count + unread)


def _described(shown: str, column: Column) -> ColumnUse:
    """Return how many values a column holds, and which are first and last."""
    if column.logged is None:
        values = column.values[sound_rows(column)]
    else:
        values = column.held[np.isfinite(column.held)]
    return ColumnUse(
        name=shown,
        metric=None,
        logged=column.count,
        first=float(values[0]) if len(values) else None,
        last=float(values[-1]) if len(values) else None,
        nonfinite=column.count - len(values),
    )


def _odd(column: Column) -> str:
    if column.coded:
        return "labels"
    if column.bad:
        return f"{column.bad} cells are not numbers"
    return ""


def _unknown(name: str, plan: Plan, *, known: bool) -> str:
    """Return why a column has no role, or one but no values: there was no room for it."""
    role = Names().role(name)  # what the name means where the user names no column
    if role == RUN:
        return "names the run"
    if role == PHASE:
        return "names the phase"
    if name in plan.parts:
        return "a part of the loss"
    if known:
        return "left out to save memory"
    if role in plan.used:
        return f"{role} is read from {clean(plan.used[role], 40)}{_far_more(name, plan)}"
    return "not a known metric"


def _far_more(name: str, plan: Plan) -> str:
    """Return that the column which was taken instead has far more values, if it has."""
    own = (one for one in plan.choice.ranking.candidates if one.column == name)
    return f", {FAR_MORE}" if any(one.why == FAR_MORE for one in own) else ""


def _ignored(name: str, role: str, column: Column, plan: Plan) -> str:
    """Return why a column with a known name was not used; nothing if it was."""
    if not column.count:
        return "never logged"
    used = plan.used.get(role, name)
    if used != name:
        names = plan.columns[role]
        why = ", which has far more values" if names.index(used) > names.index(name) else ""
        return f"{role} is read from {clean(used, 40)}{why}"
    if plan.steps_from == name:
        return ""
    if role == "epoch":
        return f"steps are read from {clean(plan.steps_from, 40)}"
    if role == "step":
        return "no usable steps, see the notes"
    return ""


def _no_steps(column: Column) -> int:
    """Count the values that can be no step."""
    if whole_steps(column) is not None:
        return 0
    values = column.held
    return int(np.count_nonzero((values < 0) | (values >= MAX_STEP) | (values != np.floor(values))))
