"""Long tables: a row holds a name and a value, as pandas `melt`, R and several trackers write them.

Each name is a series. Read as it stands, the column of values would be one series of loss, rate and norm in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.text import clean
from stabtree.loaders.tables.cells import is_text
from stabtree.loaders.tables.collected import Collected
from stabtree.metrics.names import EPOCH, PHASE, RUN, STEP
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

NAMES = ("metric", "metric_name", "key", "tag", "name", "variable", "variant", "measure", "series")
VALUES = frozenset(("value", "metric_value", "scalar_value", "val"))
KINDS = frozenset(("type", "kind"))
SETTINGS = frozenset(("parameter", "param", "hyperparameter", "config"))
MAX_SERIES = 20_000


class LongTable(Struct):
    """Collects the rows of a long table. What it has no column of is at place -1."""

    columns: Sequence[str]  # the names of the columns
    titles: list[int]  # where the texts stand that make the name of a series: train or eval, the metric, its variant
    value: int  # where the value is
    step: int  # where the step is, or the epoch
    run: int  # where the run is
    kind: int  # where it says what sort of row it is, of which settings are one
    counter: str  # what the steps count: `step` or `epoch`
    note: str  # names these columns
    names: Names  # what names mean
    runs: dict[str, Collected] = field(default_factory=dict)  # the values of each run
    crowded: int = 0  # values of names beyond the first `MAX_SERIES`

    def add(self, row: Sequence[Any]) -> None:
        """Add a row, as wide as the header."""
        run = self.runs.setdefault(str(row[self.run]) if self.run >= 0 else "", Collected())
        parts = [str(row[place]).strip() for place in self.titles]
        name = parts[0] if len(parts) == 1 else "/".join(dict.fromkeys(filter(None, parts)))
        if self.kind >= 0 and normalize(str(row[self.kind])) in SETTINGS:
            run.config[name] = row[self.value]
        elif name not in run.names and len(run.names) >= MAX_SERIES:
            self.crowded += 1
        else:
            run.add(name, row[self.step] if self.step >= 0 else None, row[self.value])

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Add an object with the names of the columns as its keys."""
        self.add([record.get(name) for name in self.columns])

    def tables(self, path: str, format_: str, notes: Sequence[str] = ()) -> tuple[Table, ...]:
        """Return the table of each run.

        Raises:
            StabtreeError: if there are no values.
        """
        more = f"Values of more than {MAX_SERIES:,} names: {self.crowded:,}, left out."
        every = (*notes, self.note, *[more] * bool(self.crowded))
        runs = {name: run for name, run in self.runs.items() if run.names} or {"": Collected()}
        tables = {
            name: run.table(path, f"{format_}, long", self.names, counter=self.counter, notes=every)
            for name, run in runs.items()
        }
        if len(tables) == 1:
            return tuple(tables.values())
        return tuple(replace(table, run=clean(name, 80)) for name, table in tables.items())


def long_table(columns: Sequence[str], names: Names, rows: Iterable[Sequence[Any]]) -> LongTable | None:
    """Return what collects the rows of a long table, by its columns and its first rows; None for any other table."""
    plain = [normalize(column) for column in columns]
    values = [place for place, name in enumerate(plain) if name in VALUES]
    titles = [plain.index(name) for name in NAMES if name in plain]
    # A user who takes the values for one metric errs: they are of all.
    others = [name for place, name in enumerate(columns) if place not in values]
    if len(values) != 1 or not titles or any(map(names.metric, others)):
        return None
    whole = [row for row in rows if len(row) == len(columns)]
    texts = [" ".join(str(row[place]) for place in titles) for row in whole]
    if 2 * sum(map(is_text, texts)) <= len(texts) or all(is_text(str(row[values[0]])) for row in whole):
        return None
    roles = {names.role(column): place for place, column in reversed([*enumerate(columns)]) if place not in titles}
    counters = [role for role in (STEP, EPOCH) if role in roles]
    if not counters and len(set(texts)) == len(texts):
        return None  # final values, each named once
    kind = next((place for place, name in enumerate(plain) if name in KINDS), -1)
    note = f"One series for each name in {clean(' and '.join(columns[place] for place in titles), 60)}"
    note += f", its values from {clean(columns[values[0]], 40)}." if counters else ": its values are numbered."
    if roles.get(PHASE, kind) != kind:
        titles.insert(0, roles[PHASE])
    counter = [*counters, STEP][0]
    step = roles[counter] if counters else -1
    return LongTable(columns, titles, values[0], step, roles.get(RUN, -1), kind, counter, note, names)
