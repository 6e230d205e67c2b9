"""Rows of a JSON file collected column by column, some thousands at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import config_row, may_be_config
from stabtree.loaders.table import Column, Table, check_width
from stabtree.loaders.tables.cells import Cell, ColumnBuilder, builder_of, odd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

# Deeper than any logger nests its keys.
MAX_DEPTH = 8
PENDING = 16384
# Up to here every whole number is a float64, so it does not matter which parser read it.
EXACT = 2.0**53


@dataclass(slots=True)
class _Cells:
    """The cells of one key: their values, and the rows that hold them."""

    builder: ColumnBuilder
    progress: bool
    places: list[Ints] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def flush(self) -> None:
        """Give what waits to the builder."""
        if self.cells:
            cells = [_done(cell) for cell in self.cells] if self.progress else self.cells
            self.builder.add(cells, self.lines)
            self.places.append(np.array(self.rows, dtype=np.int64))
            self.rows, self.cells, self.lines = [], [], []


@dataclass(slots=True)
class JsonRows:
    """Rows of a JSON file.

    Attributes:
        names: what the keys mean, and so which are kept.
        path: the file as the user named it.
        count: rows so far.
        keys: every key that was met and whether it is kept, in the order of first appearance.
        config: configuration found among the rows.
        notes: settings of the wrong kind.
    """

    names: Names
    path: str
    count: int = 0
    keys: dict[str, bool] = field(default_factory=dict)
    config: dict[str, ConfigScalar] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _cells: dict[str, _Cells] = field(default_factory=dict)
    _odd: dict[str, tuple[list[int], str]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Append one object, which stands in `line`; a row of configuration goes to `config`."""
        config = config_row(row, self.names)
        if config is not None:
            found, notes = config
            self.config |= found
            self.notes += notes
            return
        for name, cell in row.items():
            if isinstance(cell, list | dict) and cell and self.names.wanted(name):
                self._note_odd(name, cell, line)
        for name, cell in flatten(row):
            if not self._wanted(name):
                continue
            held = self._held(name)
            held.rows.append(self.count)
            held.cells.append(cell)
            held.lines.append(line)
            if len(held.cells) >= PENDING:
                held.flush()
        self.count += 1

    def add_plain(self, rows: Sequence[Mapping[str, Any]], *, texts: bool) -> bool:
        """Append objects of one line each, if they hold nothing but plain numbers where it matters.

        Args:
            rows: the objects.
            texts: whether some of their cells are texts.

        Returns:
            False where they don't; then nothing was appended.
        """
        parts = []
        for keys, alike in _alike(rows):
            wanted = [key for key in keys if (self.keys[key] if key in self.keys else self.names.wanted(key))]
            if may_be_config(keys, self.names) or any(self.names.is_label(key) for key in wanted):
                return False
            if any(isinstance(value, list) for value in rows[alike[0]].values()):
                # Not a cell, so that its key is none of a column unless another row has one there.
                return False
            own = rows if len(alike) == len(rows) else [rows[place] for place in alike]
            values = _numbers(own, wanted, texts=texts)
            if values is None or any(isinstance(row[key], bool) for key in _ones(wanted, values) for row in own):
                return False
            parts.append((keys, wanted, np.asarray(alike, dtype=np.int64) + self.count, values))
        for keys, wanted, places, values in parts:
            for key in keys:
                self._wanted(key)
            for column, key in enumerate(wanted):
                held = self._held(key)
                held.flush()
                held.builder.add_numbers(values[:, column])
                held.places.append(places)
        self.count += len(rows)
        return True

    def _note_odd(self, name: str, cell: object, line: int) -> None:
        rows, _ = self._odd.setdefault(name, ([], f"line {line}: {clean(cell, 40)!r}"))
        rows.append(self.count)

    def _wanted(self, name: str) -> bool:
        wanted = self.keys.get(name)
        if wanted is None:
            check_width(len(self.keys) + 1, self.path)
            wanted = self.keys[name] = self.names.wanted(name)
        return wanted

    def _held(self, name: str) -> _Cells:
        if name not in self._cells:
            progress = self.names.role(name) == "step"
            self._cells[name] = _Cells(builder_of(name, self.names), progress)
        return self._cells[name]

    def columns(self) -> dict[str, Column | None]:
        """One column for each key, a missing key not logged."""
        return {name: self._with_odd(name) if name in self._cells else None for name in self.keys}

    def add_all(self, entries: Sequence[Any]) -> int:
        """Append the objects of a list, each counted as a line; how many entries are none."""
        for place, entry in enumerate(entries, 1):
            if isinstance(entry, dict):
                self.add(entry, place)
        return sum(not isinstance(entry, dict) for entry in entries)

    def add_parsed(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append objects that were parsed from JSON, each counted as a line; plain ones in one go."""
        for begin in range(0, len(entries), PENDING):
            block = entries[begin : begin + PENDING]
            if not self.add_plain(block, texts=True):
                for place, entry in enumerate(block, begin + 1):
                    self.add(entry, place)

    def table(self, source: Source, format_: str, notes: tuple[str, ...]) -> Table:
        """The rows as the table of a source, with the configuration among them."""
        return Table(
            path=source.path,
            format=source.describe(format_),
            rows=self.count,
            columns=self.columns(),
            config=self.config,
            notes=notes,
        )

    def _with_odd(self, name: str) -> Column:
        """A column with the lists and objects that stand where it has numbers elsewhere."""
        column = self._column(self._cells[name])
        if name not in self._odd:
            return column
        rows, example = self._odd[name]
        garbled = np.zeros(self.count, dtype=np.bool_)
        garbled[rows] = True
        bad, example = column.bad + len(rows), example or column.bad_example
        return replace(column, bad=bad, bad_example=example).without(garbled & ~column.mask)

    def _column(self, held: _Cells) -> Column:
        held.flush()
        sparse = held.builder.column()
        places = np.concatenate(held.places)
        if len(places) == self.count and (places[1:] > places[:-1]).all():
            return sparse
        values = np.zeros(self.count)
        logged = np.zeros(self.count, dtype=np.bool_)
        # A key that stands twice in a row's nested forms: the later cell is kept.
        values[places] = sparse.values
        logged[places] = sparse.mask
        found = replace(sparse, values=values, logged=logged)
        if sparse.garbled is None:
            return found
        garbled = np.zeros(self.count, dtype=np.bool_)
        garbled[places] = sparse.garbled
        return replace(found, garbled=garbled)


def _alike(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[tuple[str, ...], Sequence[int]]]:
    """The places of the rows that hold the same keys, for each set of keys in the order of its first row."""
    if len(kinds := set(map(tuple, rows))) == 1:
        return [(kinds.pop(), range(len(rows)))]
    places: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(tuple(row), []).append(place)
    return places.items()


def _numbers(rows: Sequence[Mapping[str, Any]], keys: list[str], *, texts: bool) -> Floats | None:
    """The values of the rows as (rows, keys), where all are plain numbers."""
    if not keys:
        return np.zeros((len(rows), 0))
    get = itemgetter(*keys)
    try:
        cells: Iterable[Any] = chain.from_iterable(map(get, rows)) if len(keys) > 1 else map(get, rows)
        if texts:
            cells = list(cells)
            if str in set(map(type, cells)) and odd(cells):
                return None
        values = np.fromiter(cells, dtype=np.float64, count=len(rows) * len(keys))
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    # A null comes as NaN here, and beyond EXACT two parsers may differ.
    with np.errstate(invalid="ignore"):
        plain = bool((np.abs(values) <= EXACT).all())
    return values.reshape(len(rows), len(keys)) if plain else None


def _ones(keys: list[str], values: Floats) -> list[str]:
    """The keys that hold a 0 or a 1 somewhere, and so may hold a boolean."""
    return [key for key, some in zip(keys, ((values == 0) | (values == 1)).any(axis=0).tolist(), strict=True) if some]


def _done(cell: Cell) -> Cell:
    """The 40 of `40/438`, which ms-swift and others write for a step."""
    if isinstance(cell, str):
        done, slash, total = cell.partition("/")
        if slash and done.strip().isdecimal() and total.strip().isdecimal():
            return done
    return cell


def flatten(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Cell]]:
    """The cells of an object, nested keys joined with `/`; lists and anything too deep are left out."""
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if depth < MAX_DEPTH:
                yield from flatten(value, f"{name}/", depth + 1)
        elif not isinstance(value, list):
            yield name, value
