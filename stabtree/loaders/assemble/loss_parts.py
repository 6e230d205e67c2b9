"""The loss of trainers that log its parts only: Ultralytics, whose parts carry their weights already.

Nobody else's parts are summed. What weights the terms of a physics-informed network, an encoder-decoder or
a pair of adversaries have is not in the log, so their sum would be a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.loaders.table import Column
from stabtree.metrics.table import match
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.table import Table

_PART = re.compile(r"\s*(train|val)/(box|obj|cls|dfl|seg|sem|pose|kobj|rle|angle)_(?:loss|om)\s*")
_METRICS = {"train": "loss", "val": "eval_loss"}


@dataclass(frozen=True, slots=True)
class Summed:
    """Which columns were summed up, and the notes that say so."""

    names: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def is_part(name: str) -> bool:
    """Whether a column holds a part of a loss whose parts may be summed."""
    return _PART.fullmatch(name) is not None


def with_total(table: Table, columns: Mapping[str, str]) -> tuple[Table, Mapping[str, str], Summed]:
    """The table with a column for the sum of its loss's parts, where it has parts and no loss, and how to find it.

    Args:
        table: what was read.
        columns: metric -> column, as the user asked for.
    """
    known = {found[0] for name in table.columns if (found := match(name))}
    names: list[str] = []
    notes = []
    for split, metric in _METRICS.items():
        parts = [name for name in table.columns if (part := _PART.fullmatch(name)) and part[1] == split]
        held = [column for name in parts if (column := table.columns[name])]
        if len(held) < 2 or metric in known or metric in columns:
            continue
        total = " + ".join(name.strip() for name in parts)
        table = replace(table, columns={**table.columns, total: _sum(held)})
        columns = {**columns, metric: total}
        names += parts
        notes.append(f"No column holds the {metric}: it is the sum of its parts, {clean(total, 120)}.")
    return table, columns, Summed(frozenset(names), tuple(notes))


def _sum(parts: list[Column]) -> Column:
    """Cell by cell; not logged where any part is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.sum([part.values for part in parts], axis=0)
    logged = [part.logged for part in parts if part.logged is not None]
    example = next((part.bad_example for part in parts if part.bad), "")
    return Column(values, np.all(logged, axis=0) if logged else None, sum(part.bad for part in parts), example)
