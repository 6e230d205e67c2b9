"""Files with final values of a run and nothing of its course: they are refused, since one point looks clean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.files import recorded
from stabtree.common.text import clean
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.common.files import LogLine
    from stabtree.metrics.names import Names

# What W&B and the Hugging Face trainer write beside final values only.
_MARKS = frozenset(
    ("_wandb", "_runtime", "train_runtime", "train_samples_per_second", "eval_runtime", "total_flos", "best_epoch")
)
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
NO_COURSE = "It holds only final values of the run, not its course."
_HINT = "name the file with a row for each step: the run's history, its log or its event file"


def check_object(values: Mapping[str, Any], where: str, names: Names) -> None:
    """Refuse one object of final values.

    Raises:
        StabtreeError: if it is that.
    """
    if _is_final(values) or any(names.metric(key) and isinstance(value, int | float) for key, value in values.items()):
        raise StabtreeError("holds only final values of the run, not its course", where=where, hint=_HINT)


def nonfinite_losses(values: Mapping[str, Any]) -> tuple[LogLine, ...]:
    """Return a line for each final loss that is not finite; W&B writes it as the text `NaN`."""
    found = []
    for key, value in values.items():
        if "loss" in key.lower() and isinstance(value, str | float) and _NOT_FINITE.fullmatch(str(value)):
            found.append(recorded(f"final {clean(key, 60)}: {clean(value, 20)}"))
    return tuple(found)


def check_columns(columns: Iterable[str], rows: int, where: str, names: Names) -> None:
    """Refuse a table of final values: a single row of them or without a step, or a row for each of several runs.

    Raises:
        StabtreeError: if it is one.
    """
    words = {normalize(name) for name in columns}
    if {"name", "state"} <= words and words & {"runtime", "created"}:
        raise StabtreeError(
            "holds one row for each run, with its final values, and no run's course", where=where, hint=_HINT
        )
    if is_single(columns, rows, names):
        raise StabtreeError("holds only final values of the run, not its course", where=where, hint=_HINT)


def is_single(columns: Iterable[str], rows: int, names: Names) -> bool:
    """Return whether a table is a single row of final values, or one without a step."""
    return rows == 1 and (not any(map(names.counts, columns)) or _is_final(columns))


def _is_final(names: Iterable[str]) -> bool:
    return any(normalize(name.partition("/")[0]) in _MARKS for name in names)
