"""Long tables: a row holds a name and a value, as pandas `melt`, R and several trackers write them.

Each name is a series. Read as it stands, the column of values would be one series of loss, rate and norm in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.text import clean
from stabtree.loaders.tables.cells import is_text
from stabtree.loaders.tables.collected import Collected
from stabtree.metrics.names import EPOCH, PHASE, RUN, STEP
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

NAMES = ("metric", "metric_name", "key", "tag", "name", "variable", "variant", "measure", "series")
VALUES = ("value", "metric_value", "scalar_value", "val")
KINDS = ("type", "kind")
SETTINGS = frozenset(("parameter", "param", "hyperparameter", "config"))
MAX_SERIES = 20_000


class LongLayout(NamedTuple):
    """Where in a row of a long table what stands; -1 for what it has no column of."""

    # The texts that make the name of a series, in this order: train or eval, the metric, its variant.
    names: tuple[int, ...]
    value: int  # the value
    step: int  # the step, or the epoch
    counter: str  # what the steps count: `step` or `epoch`
    run: int  # the run
    kind: int  # what sort of row it is, of which settings are one
    says: str  # a note that names these columns


def long_layout(columns: Sequence[str], names: Names, rows: Iterable[Sequence[Any]]) -> LongLayout | None:
    """Return the layout of a long table, by its columns and its first rows; None for any other table."""
    plain = [normalize(column) for column in columns]
    values = [name for name in VALUES if name in plain]
    labels = [plain.index(name) for name in NAMES if name in plain]
    value = plain.index(values[0]) if values else -1
    # A user who takes the values for one metric errs: they are of all.
    if (
        len(values) != 1
        or not labels
        or any(names.metric(name) for place, name in enumerate(columns) if place != value)
    ):
        return None
    whole = [row for row in rows if len(row) == len(columns)]
    texts = [" ".join(str(row[place]) for place in labels) for row in whole]
    if 2 * sum(is_text(text) for text in texts) <= len(texts) or all(is_text(str(row[value])) for row in whole):
        return None
    roles = {names.role(column): place for place, column in reversed([*enumerate(columns)]) if place not in labels}
    roles.pop("", None)
    counter = next((role for role in (STEP, EPOCH) if role in roles), "")
    if not counter and len(set(texts)) == len(texts):
        return None  # final values, each named once
    kind = next((plain.index(name) for name in KINDS if name in plain), -1)
    phase = [roles[PHASE]] if roles.get(PHASE, kind) != kind else []
    says = f"One series for each name in {clean(' and '.join(columns[place] for place in labels), 60)}"
    says += f", its values from {clean(columns[value], 40)}." if counter else ": its values are numbered."
    return LongLayout((*phase, *labels), value, roles.get(counter, -1), counter or STEP, roles.get(RUN, -1), kind, says)


class LongTable(Struct):
    """Collects the rows of a long table."""

    layout: LongLayout  # what stands where in them
    names: Names  # what names mean
    runs: dict[str, Collected] = field(default_factory=dict)  # the values of each run
    crowded: int = 0  # values of names beyond the first `MAX_SERIES`

    def add(self, row: Sequence[Any]) -> None:
        """Add a row, as wide as the layout."""
        layout = self.layout
        run = self.runs.setdefault(str(row[layout.run]) if layout.run >= 0 else "", Collected())
        parts = [str(row[place]).strip() for place in layout.names]
        name = parts[0] if len(parts) == 1 else "/".join(dict.fromkeys(filter(None, parts)))
        if layout.kind >= 0 and normalize(str(row[layout.kind])) in SETTINGS:
            run.config[name] = row[layout.value]
        elif name not in run.names and len(run.names) >= MAX_SERIES:
            self.crowded += 1
        else:
            run.add(name, row[layout.step] if layout.step >= 0 else None, row[layout.value])

    def tables(self, path: str, format_: str, notes: Sequence[str] = ()) -> tuple[Table, ...]:
        """Return the table of each run.

        Raises:
            StabtreeError: if there are no values.
        """
        every = (*notes, self.layout.says)
        if self.crowded:
            every = (*every, f"Values of more than {MAX_SERIES:,} names: {self.crowded:,}, left out.")
        runs = {name: run for name, run in self.runs.items() if run.names} or {"": Collected()}
        tables = []
        for name, run in runs.items():
            table = run.table(path, f"{format_}, long", self.names, counter=self.layout.counter, notes=every)
            tables.append(replace(table, run=clean(name, 80)) if len(runs) > 1 else table)
        return tuple(tables)
