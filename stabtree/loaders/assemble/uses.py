"""What became of each column of a table: which metric it was read as, or why it was ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.metrics.names import RUN, Names
from stabtree.run import ColumnUse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Floats
    from stabtree.loaders.assemble.misread import Misread
    from stabtree.loaders.table import Column, Table

PART = 1 << 15


@dataclass(frozen=True, slots=True)
class Plan:
    """Which column carries what.

    Attributes:
        columns: by role (a canonical metric, `step`, `epoch` or `rank`) all columns that could, best first.
        used: by role the column that does.
        steps_from: the column that the steps were read from, or `row number`.
        wrong: by role the cells that are proved to be misread.
        parts: columns whose sum stands for a loss.
        lost: rows without a step that hide a loss.
    """

    columns: Mapping[str, tuple[str, ...]]
    used: Mapping[str, str]
    steps_from: str
    wrong: Mapping[str, Misread]
    parts: frozenset[str] = frozenset()
    lost: int = 0


def column_uses(table: Table, plan: Plan) -> tuple[ColumnUse, ...]:
    """The use of every column, in the order of the file."""
    roles = {name: role for role, names in plan.columns.items() for name in names}
    uses = []
    for name, column in table.columns.items():
        role = roles.get(name)
        shown = clean(name, 80)
        if role is None or column is None:
            uses.append(ColumnUse(shown, None, _unknown(name, plan, known=role is not None)))
        elif why := _ignored(name, role, column, plan):
            uses.append(ColumnUse(shown, None, why))
        else:
            uses.append(_use(shown, role, column, plan.wrong.get(role), plan.lost if role == "step" else 0))
    return tuple(uses)


def _unknown(name: str, plan: Plan, *, known: bool) -> str:
    """Why a column has no role, or one but no values: there was no room for it."""
    role = Names().role(name)  # what the name means where the user names no column
    if role == RUN:
        return "names the run"
    if name in plan.parts:
        return "a part of the loss"
    return "left out to save memory" if known else "another column was asked for" if role else "not a known metric"


def _ignored(name: str, role: str, column: Column, plan: Plan) -> str:
    """Why a column with a known name was not used; nothing if it was."""
    if not column.count:
        return "never logged"
    if plan.used[role] != name:
        first = plan.columns[role].index(name) > plan.columns[role].index(plan.used[role])
        why = "" if first else ", which has far more values"
        return f"{role} is read from {clean(plan.used[role], 40)}{why}"
    if role in ("step", "epoch") and plan.steps_from != name:
        return (
            f"steps are read from {clean(plan.steps_from, 40)}" if role == "epoch" else "no usable steps, see the notes"
        )
    return ""


def _use(shown: str, role: str, column: Column, wrong: Misread | None, lost: int) -> ColumnUse:
    values = column.held
    no_steps = _no_steps(values) if role == "step" else 0
    finite = np.isfinite(values)
    bad = int(len(values) - np.count_nonzero(finite))
    if bad:
        values = values[finite]
    why = "labels" if column.coded else f"{column.bad} cells are not numbers" if column.bad else ""
    return ColumnUse(
        name=shown,
        metric=role,
        why=why,
        logged=len(finite),
        first=float(values[0]) if len(values) else None,
        last=float(values[-1]) if len(values) else None,
        nonfinite=bad,
        misread=max(column.bad, lost) + no_steps + (wrong.total if wrong else 0),
        filled=len(finite) + max(column.bad, lost),
    )


def _no_steps(values: Floats) -> int:
    """How many values can be no step: part by part, since a copy of a long column takes longer than the look."""
    parts = (values[start : start + PART] for start in range(0, len(values), PART))
    return sum(int(np.count_nonzero((part < 0) | (part != np.floor(part)))) for part in parts)
