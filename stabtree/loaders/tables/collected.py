"""Values with a name and a step, which become the table of a run: what every tracker comes to, and long tables.

A row of a long table holds a name and a value, as pandas `melt`, R and several trackers write them. Each name is a
series. Read as it stands, the column of values would be one series of loss, rate and norm in turn.
"""

from __future__ import annotations

import zipfile
import zlib
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.table import Points, Table, in_step_order, tabulate
from stabtree.loaders.tables.cells import is_text, number
from stabtree.metrics.names import EPOCH, PHASE, RUN, STEP
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

MAX_TEXT = 512 << 20  # bytes of a file inside an archive, which is read whole
_NO_NUMBER = (ValueError, TypeError, OverflowError)


class Collected(Struct):
    """Values in the order in which they were written."""

    names: dict[str, int] = field(default_factory=dict)  # what was logged, each name with its number
    cells: array[float] = field(default_factory=lambda: array("d"))  # number of the name, step, time and value of each
    bad: int = 0  # values that are no numbers, or have no whole step
    config: dict[str, Any] = field(default_factory=dict)  # settings that are stored beside them
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, step: Any, value: Any, time: Any = 0) -> bool:
        """Add a value; of None as a step, the values of the name are counted. Return whether it can be read."""
        if step is None:
            step = self._counts[name] = self._counts.get(name, -1) + 1
        try:
            logged, at, when = number(value), number(step), number(time)
            if logged is None or at is None or when is None or at != int(at) or not abs(at) < 2**53:
                raise ValueError("not a value, a step and a time")
        except _NO_NUMBER:
            self.bad += 1
            return False
        self.cells.extend((self.names.setdefault(name, len(self.names)), at, when, logged))
        return True

    def points(self) -> Points:
        """Return the values in their order."""
        name, step, time, value = np.array(self.cells).reshape(-1, 4).T.copy()
        return Points(tuple(self.names), name.astype(np.int64), step.astype(np.int64), time, value)

    def table(
        self,
        path: str,
        format_: str,
        names: Names,
        *,
        points: Points | None = None,
        counter: str = "step",
        notes: tuple[str, ...] = (),
    ) -> Table:
        """Return the table of a run: one column a name, one row a step.

        Args:
            path: what the user named.
            format_: the name of the format.
            names: what the columns mean.
            points: the values where something was done to them.
            counter: what to call the column of steps.
            notes: what was assumed so far.

        Raises:
            StabtreeError: if there are no values.
        """
        if not self.names:
            hint = "name the log that the trainer wrote its loss to"
            raise StabtreeError("holds no values of any metric", where=path, hint=hint)
        found = in_step_order(self.points() if points is None else points)
        rows, columns, more = tabulate(found, names, counter=counter)
        config, mistakes = read_config({key: value for key, value in self.config.items() if value is not None})
        bad = (f"Values that are no numbers, or have no step: {self.bad:,}, not read.",) * (self.bad > 0)
        return Table(path, format_, rows, columns, config, notes=(*notes, *bad, *more, *mistakes))


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """Return what to call each of several runs, by its number: its title, with the number where others share it."""
    times = Counter(titles.values())
    return {id_: title if times[title] == 1 else f"{title}-{id_}" for id_, title in titles.items()}


def archive(source: Source) -> zipfile.ZipFile | None:
    """Return the zip archive that a source is; None where it is none, or damaged."""
    if not source.data.startswith(b"PK\x03\x04") or source.file is None or source.packed:
        return None
    try:
        return zipfile.ZipFile(source.file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def is_offline(source: Source, files: Collection[str], mark: str) -> bool:
    """Return whether a source is a zip archive with some files, or the log in it, which begins with a mark."""
    packed = archive(source)
    if packed is None:
        return mark in source.head[:1000]
    with packed:
        return set(files) <= set(packed.namelist())


def member(source: Source, name: str) -> str:
    """Return the text of a file in a zip archive, or of a source that is such a file itself.

    Raises:
        StabtreeError: if it can't be unpacked.
    """
    packed = archive(source)
    if packed is None:
        return "\n".join(source.lines())
    try:
        with packed, packed.open(name) as stream:
            data = stream.read(MAX_TEXT + 1)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError, KeyError, zlib.error) as error:
        raise StabtreeError(f"can't be unpacked: {clean(error, 120)}", where=source.path, hint="unzip it") from None
    if len(data) > MAX_TEXT:
        raise StabtreeError(f"holds a {name} of more than 512 MiB", where=source.path, hint="unzip it")
    return data.decode("utf-8", "replace")


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
