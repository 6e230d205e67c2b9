"""Files with final values of a run and nothing of its course: they are refused, since one point looks clean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.metrics.names import Names

# What W&B and the Hugging Face trainer write beside final values only.
_MARKS = frozenset(
    ("_wandb", "_runtime", "train_runtime", "train_samples_per_second", "eval_runtime", "total_flos", "best_epoch")
)
_HINT = "name the file with a row for each step: the run's history, its log or its event file"


def check_object(values: Mapping[str, Any], where: str, names: Names) -> None:
    """Refuse one object of final values.

    Raises:
        StabtreeError: if it is that.
    """
    if _is_final(values) or any(names.metric(key) and isinstance(value, int | float) for key, value in values.items()):
        raise StabtreeError("holds only final values of the run, not its course", where=where, hint=_HINT)


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
    if rows == 1 and (not any(map(names.counts, columns)) or _is_final(columns)):
        raise StabtreeError("holds only final values of the run, not its course", where=where, hint=_HINT)


def _is_final(names: Iterable[str]) -> bool:
    return any(normalize(name.partition("/")[0]) in _MARKS for name in names)
