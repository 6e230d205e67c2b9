"""Rows of a JSON file collected column by column, some thousands at a time."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.loaders.json.header import FileRuns, header_of
from stabtree.loaders.json.plain import by_keys, holds_boolean, numbers
from stabtree.loaders.json.settings_row import config_row, may_be_config
from stabtree.loaders.table import Column, Table, affordable, check_width
from stabtree.loaders.tables.cells import Cell, ColumnBuilder, as_cell, builder_of, example, is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# Deeper than any logger nests its keys.
MAX_DEPTH = 8
PENDING = 16384


@dataclass(slots=True)
class _Cells:
    """The cells of one key: their values, and the indices of the rows that hold them."""

    builder: ColumnBuilder
    progress: bool
    indices: list[Ints] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def flush(self) -> None:
        """Pass the pending cells on to the builder."""
        if self.cells:
            cells = [_done(cell) for cell in self.cells] if self.progress else self.cells
            self.builder.add(cells, self.lines)
            self.indices.append(np.array(self.rows, dtype=np.int64))
            self.rows, self.cells, self.lines = [], [], []


@dataclass(slots=True)
class JsonRows:
    """Rows of a JSON file.

    Attributes:
        names: what the keys mean, and so which are kept.
        path: the file as the user named it.
        count: rows so far.
        keys: every key that was met and whether its cells are kept, in the order of first appearance.
        notes: settings of the wrong kind.
        runs: the configuration found among the rows, and the runs of a Recorder that are left out.
        written: whether a None was written as null; in memory it is nothing.
    """

    names: Names
    path: str
    count: int = 0
    keys: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: FileRuns = field(default_factory=FileRuns)
    written: bool = True
    _cells: dict[str, _Cells] = field(default_factory=dict)
    _odd: dict[str, tuple[list[int], str]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Append one object, which is in `line`; a row of configuration goes to `config`."""
        if self._add_config(row):
            return
        self._begin()
        for name, cell in row.items():
            if isinstance(cell, list | dict) and cell and self.names.wanted(name):
                self._note_odd(name, cell, line)
        for name, cell in flatten(row):
            if not self._add_key(name, cell):
                continue
            held = self._held(name)
            held.rows.append(self.count)
            held.cells.append(cell)
            held.lines.append(line)
            if len(held.cells) >= PENDING:
                held.flush()
        self.count += 1

    def _add_config(self, row: Mapping[str, Any]) -> bool:
        """Take in the settings of a row of configuration; return whether it is one."""
        config = config_row(row, self.names)
        if config is None:
            return False
        found, notes = config
        self.runs.add(header_of(row), found, self.count)
        self.notes += notes
        return True

    def add_plain(self, rows: Sequence[Mapping[str, Any]], *, texts: bool) -> bool:
        """Append objects of one line each, if all of their known values are plain numbers.

        Args:
            rows: the objects.
            texts: whether some of their cells are texts.

        Returns:
            False if they are not; then nothing was appended.
        """
        parts = []
        for keys, indices in by_keys(rows):
            check_width(len(keys), self.path)
            alike = rows if len(indices) == len(rows) else [rows[index] for index in indices]
            known = [key for key in keys if self._is_known(key)]
            values = self._plain_values(alike, keys, known, texts=texts)
            if values is None:
                return False
            parts.append((alike, known, np.asarray(indices, dtype=np.int64), values))
        self._begin()
        for alike, known, own, values in parts:
            kept = [key for key, cell in alike[0].items() if self._add_key(key, cell)]
            for column, key in enumerate(known):
                held = self._held(key)
                held.flush()
                held.builder.add_numbers(values[:, column])
                held.indices.append(own + self.count)
            self._add_others(alike, [key for key in kept if key not in known], own)
        self.count += len(rows)
        return True

    def _add_others(self, rows: Sequence[Mapping[str, Any]], keys: list[str], own: Ints) -> None:
        """Append the cells of keys that nobody knows, of rows with the same keys at these indices of a block."""
        values = numbers(rows, keys, texts=True)
        for column, key in enumerate(keys):
            held = self._held(key)
            held.flush()
            if values is not None:
                held.builder.add_numbers(values[:, column])
                held.indices.append(own + self.count)
                continue
            cells = [as_cell(row[key]) for row in rows]
            logged = [index for index, cell in enumerate(cells) if cell is not None]
            held.builder.add([cells[index] for index in logged], logged)
            held.indices.append(own[logged] + self.count)

    def _plain_values(
        self, rows: Sequence[Mapping[str, Any]], keys: tuple[str, ...], wanted: list[str], *, texts: bool
    ) -> Floats | None:
        """Return the wanted values of rows with the same keys, (rows, wanted); None if they need a closer look."""
        if may_be_config(keys, self.names) or any(map(self.names.is_label, wanted)):
            return None
        if any(isinstance(value, list) for value in rows[0].values()):
            # Not a cell, so that its key is none of a column unless another row has one there.
            return None
        values = numbers(rows, wanted, texts=texts)
        if values is None or holds_boolean(rows, wanted, values):
            return None
        return values

    def _begin(self) -> None:
        """Leave out the rows so far where the row to come is the first one of another run."""
        if self.runs.begins(self.count):
            self.count = 0
            self.keys, self._cells, self._odd = {}, {}, {}

    def _note_odd(self, name: str, cell: object, line: int) -> None:
        rows, _ = self._odd.setdefault(name, ([], example(line, cell)))
        rows.append(self.count)

    def _is_known(self, name: str) -> bool:
        held = self._cells.get(name)
        return self.names.wanted(name) if held is None else not held.builder.optional

    def _add_key(self, name: str, cell: Cell) -> bool:
        """Remember a key; return whether its cells are kept: not those of text under a name that nobody knows."""
        if name not in self.keys:
            check_width(len(self.keys) + 1, self.path)
            self.keys[name] = self.names.wanted(name) or not is_text(cell)
        return self.keys[name]

    def _held(self, name: str) -> _Cells:
        if name not in self._cells:
            progress = self.names.role(name) == "step"
            self._cells[name] = _Cells(replace(builder_of(name, self.names), nulls=self.written), progress)
        return self._cells[name]

    def columns(self) -> dict[str, Column | None]:
        """Return one column for each key, a missing key not logged."""
        known = [name for name in self._cells if self.names.wanted(name)]
        others = [name for name, held in self._cells.items() if held.builder.optional and not held.builder.given_up]
        kept = [*known, *affordable(others, len(known), self.count)]
        return dict.fromkeys(self.keys) | {name: self._with_odd(name) for name in kept}

    def add_all(self, entries: Sequence[Any]) -> int:
        """Append the objects of a list, each counted as a line; return how many entries are none."""
        dropped = 0
        for line, entry in enumerate(entries, 1):
            if isinstance(entry, dict):
                self.add(entry, line)
            else:
                dropped += 1
        return dropped

    def add_parsed(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append objects that were parsed from JSON, each counted as a line; plain ones in one go."""
        for begin in range(0, len(entries), PENDING):
            block = entries[begin : begin + PENDING]
            if not self.add_plain(block, texts=True):
                for line, entry in enumerate(block, begin + 1):
                    self.add(entry, line)

    def table(self, source: Source, format_: str, notes: tuple[str, ...]) -> Table:
        """Return the rows as the table of a source, with the configuration among them."""
        return Table(
            path=source.path,
            format=source.describe(format_),
            rows=self.count,
            columns=self.columns(),
            config=self.runs.config,
            notes=(*self.runs.notes(), *notes),
            earlier_rows=sum(run.rows for run in self.runs.earlier),
        )

    def _with_odd(self, name: str) -> Column:
        """Return a column, garbled where its rows hold lists and objects instead of numbers."""
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
        indices = np.concatenate(held.indices)
        if len(indices) == self.count and (indices[1:] > indices[:-1]).all():
            return sparse
        values = np.zeros(self.count)
        # Of a key that a row holds twice, flat and nested, the later cell is kept.
        values[indices] = sparse.values
        return replace(
            sparse,
            values=values,
            logged=self._spread(sparse.mask, indices),
            garbled=None if sparse.garbled is None else self._spread(sparse.garbled, indices),
            blank=None if sparse.blank is None else self._spread(sparse.blank, indices),
        )

    def _spread(self, cells: Bools, indices: Ints) -> Bools:
        """Return flags of the cells of one key over all rows, false elsewhere."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[indices] = cells
        return found


def _done(cell: Cell) -> Cell:
    """Return the 40 of `40/438`, which ms-swift and others write for a step; any other cell as it is."""
    if isinstance(cell, str):
        done, slash, total = cell.partition("/")
        if slash and done.strip().isdecimal() and total.strip().isdecimal():
            return done
    return cell


def flatten(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Cell]]:
    """Yield the cells of an object, nested keys joined with `/`; lists and anything too deep are left out."""
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if depth < MAX_DEPTH:
                yield from flatten(value, f"{name}/", depth + 1)
        elif not isinstance(value, list):
            yield name, value
