"""spaCy's own log of training (`spacy.ConsoleLogger.v2`, `output_file`): JSON lines with sums of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders.json.lines import values
from stabtree.loaders.json.rows import flatten
from stabtree.loaders.table import Skips
from stabtree.loaders.tables.collected import Collected
from stabtree.loaders.tables.delimited import SUMS

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names


def read(source: Source, names: Names) -> Table:
    """Read the losses per step, and the scores.

    Raises:
        StabtreeError: if it holds none.
    """
    found, last, skips = Collected(), -1, Skips()
    lines = source.lines()
    for row in values(lines, skips):
        step = row.get("step") if isinstance(row, dict) else None
        if not isinstance(step, int):
            skips.count += 1
            continue
        steps = step - last if step > last else 1  # a new run was appended
        last = step
        for name, value in flatten(row):
            if name.startswith("losses/") and isinstance(value, int | float):
                found.add(name, step, value / steps)
            elif name != "step":
                found.add(name, step, value)
    notes = (*lines.notes, SUMS, *skips.notes("Lines without a step"))
    return found.table(source.path, "spacy", names, notes=notes)
