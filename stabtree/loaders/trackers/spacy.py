"""spaCy's log of training (`spacy.ConsoleLogger`): a table, or JSON lines (`output_file`), with sums of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.loaders.json.lines import values
from stabtree.loaders.json.rows import flatten
from stabtree.loaders.table import Skips
from stabtree.loaders.tables import delimited
from stabtree.loaders.tables.collected import Collected

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

SUMS = "spaCy adds its losses up from one evaluation to the next: they are divided by the steps between."


def read(source: Source, names: Names) -> Table:
    """Read the losses per step, and the scores.

    Raises:
        StabtreeError: if it holds none.
    """
    if source.data[:1] != b"{":
        return _printed(delimited.read(source, names)[0])
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


def _printed(table: Table) -> Table:
    """Return what spaCy prints with `#` as the step, and its losses divided by the steps that they are summed over."""
    columns = dict(table.columns)
    columns["step"] = step = columns.pop("#", None)
    if step is None:
        return table
    rises = np.ones(len(step.values))
    rises[step.mask] = np.diff(step.held, prepend=-1.0)
    for name, column in columns.items():
        if name.startswith("LOSS ") and column:
            columns[name] = replace(column, values=column.values / np.where(rises > 0, rises, 1.0))
    return replace(table, columns=columns, notes=(SUMS, *table.notes))
