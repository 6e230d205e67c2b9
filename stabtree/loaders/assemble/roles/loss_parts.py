"""The loss of trainers that log its parts only: Ultralytics, whose parts carry their weights already.

Nobody else's parts are summed. What weights the terms of a physics-informed network, an encoder-decoder or
a pair of adversaries have is not in the log, so their sum would be a guess.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.table import Column
from stabtree.metrics.names import SHOWN, part_of

if TYPE_CHECKING:
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names


@dataclass(frozen=True, slots=True)
class Summed:
    """The columns that were summed up, and the notes that say so."""

    names: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def with_total(table: Table, names: Names) -> tuple[Table, Names, Summed]:
    """Return the table and names with a column for the sum of its loss's parts, if it has parts and no loss."""
    known = {names.role(name) for name in table.columns} | names.asked.keys()
    summed: list[str] = []
    notes = []
    for metric in ("loss", "eval_loss"):
        parts = [name for name in table.columns if part_of(name) == metric]
        held = [*filter(None, (table.columns[name] for name in parts))]
        total = " + ".join(name.strip() for name in parts)
        asked = clean(total, SHOWN) in names.asked.values()
        if len(held) < 2 or (metric in known and not asked):
            continue
        table = replace(table, columns={**table.columns, total: _sum(held)})
        if asked:
            names = names.spelled_as_in(table.columns)
            continue
        names = names.with_column(metric, total)
        summed += parts
        notes.append(f"No column holds the {metric}: it is the sum of its parts, {clean(total, 120)}.")
    return table, names, Summed(frozenset(summed), tuple(notes))


def _sum(parts: list[Column]) -> Column:
    """Add up columns cell by cell; not logged where any part is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.sum([part.values for part in parts], axis=0)
    logged = [part.logged for part in parts if part.logged is not None]
    example = next((part.bad_example for part in parts if part.bad), "")
    return Column(values, np.all(logged, axis=0) if logged else None, sum(part.bad for part in parts), example)
