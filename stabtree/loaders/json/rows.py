"""Rows of a JSON file collected column by column, with the rows among them that hold settings instead of metrics."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import WRAPPERS, canonical_key, read_config
from stabtree.loaders.table import Column, Table, affordable, check_width
from stabtree.loaders.tables.cells import Cell, ColumnBuilder, builder_of, example, is_text
from stabtree.metrics.table import normalize
from stabtree.run import RUN_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

# Deeper than any logger nests its keys.
MAX_DEPTH = 8
PENDING = 16384
SEVERAL_RUNS = "The file holds"  # begins the note on them
MAX_NAMED = 3
_KIND_KEYS = ("type", "event", "kind", "_type", "record")
_KINDS = frozenset((*WRAPPERS, "header", "meta", "metadata", "manifest", "run", "start", "run_start", "train_begin"))
_NESTING = {dict, list}


class FileRuns(Struct):
    """Follows the runs of a Recorder in a file: which one its rows are of, and which ones came before.

    A run begins with the first row after its header (its id, when it was begun, and whether it goes on), so that a
    process that ended before that hides no other run.

    Attributes:
        config: the settings of the run that the last row is of.
        earlier: when the runs that were left out started, and their rows.
    """

    config: dict[str, ConfigScalar] = field(default_factory=dict)
    earlier: list[tuple[str, int]] = field(default_factory=list)
    _header: tuple[str, str] | None = None
    _next: tuple[tuple[str, str], dict[str, ConfigScalar]] | None = None

    def add(self, row: Mapping[str, Any], config: Mapping[str, ConfigScalar], rows: int) -> None:
        """Take in a row of configuration, which may be a header, after so many rows of the current run."""
        record = row.get(RUN_HEADER)
        if isinstance(record, dict) and isinstance(record.get("id"), str):
            started = record.get("started")
            header = clean(record["id"], 40), clean(started, 40) if isinstance(started, str) else ""
            same = self._header is not None and self._header[0] == header[0]
            if same or (record.get("resumes") is True and rows):
                self._next = None
            elif rows:
                self._next = header, {}
            else:
                self.config = {} if self._header is not None else self.config  # a run of no rows
                self._header = header
        if self._next is None:
            self.config |= config
        else:
            self._next[1].update(config)

    def begins(self, rows: int) -> bool:
        """Return whether the row to come is the first one of another run than the rows so far."""
        if self._next is None:
            return False
        self.earlier.append((self._header[1] if self._header else "", rows))
        (self._header, self.config), self._next = self._next, None
        return True

    def notes(self) -> tuple[str, ...]:
        """Return the note on the runs that are left out."""
        if not self.earlier:
            return ()
        last = f", started {self._header[1]}" if self._header and self._header[1] else ""
        named = [
            f"{rows:,} row{'s' * (rows != 1)} of {f'the run started {started}' if started else 'a run before'}"
            for started, rows in self.earlier[-MAX_NAMED:]
        ]
        if len(self.earlier) > MAX_NAMED:
            named.insert(0, f"{len(self.earlier) - MAX_NAMED:,} more")
        count = len(self.earlier) + 1
        return (f"{SEVERAL_RUNS} {count} runs of a Recorder: the last is read{last}. Not read: {'; '.join(named)}.",)


class _Cells(Struct):
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


class JsonRows(Struct):
    """Rows of a JSON file.

    Attributes:
        names: what the keys mean, and so which are kept.
        path: the file as the user named it.
        count: rows so far.
        keys: every key that was met and whether its cells are kept, in the order of first appearance.
        notes: settings of the wrong kind.
        runs: the configuration among the rows, and the runs of a Recorder that are left out.
    """

    names: Names
    path: str
    count: int = 0
    keys: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: FileRuns = field(default_factory=FileRuns)
    _cells: dict[str, _Cells] = field(default_factory=dict)
    _odd: dict[str, tuple[list[int], str]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Append one object, which is in `line`; a row of configuration goes to `config`."""
        if (settings := _config_row(row, self.names)) is not None:
            config, notes = settings
            self.runs.add(row, config, self.count)
            self.notes += notes
            return
        self._leave_out_earlier()
        for name, cell in row.items():
            if isinstance(cell, list | dict) and cell and self.names.wanted(name):
                self._odd.setdefault(name, ([], example(line, cell)))[0].append(self.count)
        for name, cell in flatten(row):
            if self._is_kept(name, cell):
                self._append(name, [cell], [self.count], [line])
        self.count += 1

    def add_all(self, entries: Sequence[Any], first_line: int = 1) -> int:
        """Append the objects of a list, each in a line of its own; return how many entries are none."""
        dropped = 0
        for begin in range(0, len(entries), PENDING):
            block = entries[begin : begin + PENDING]
            if self._add_flat(block, first_line + begin):
                continue
            for line, entry in enumerate(block, first_line + begin):
                if isinstance(entry, dict):
                    self.add(entry, line)
                else:
                    dropped += 1
        return dropped

    def _add_flat(self, rows: Sequence[Any], line: int) -> bool:
        """Append objects without lists and objects inside in one go; return False, and append nothing, for others."""
        if not all(isinstance(row, dict) for row in rows):
            return False
        kinds: dict[tuple[str, ...], list[int]] = {}
        for index, row in enumerate(rows):
            kinds.setdefault(tuple(row), []).append(index)
        parts = []
        for keys, indices in kinds.items():
            if _may_be_config(keys, self.names):
                return False
            alike = [rows[index] for index in indices]
            columns = [list(map(itemgetter(key), alike)) for key in keys]
            if any(not _NESTING.isdisjoint(map(type, column)) for column in columns):
                return False
            parts.append((indices, dict(zip(keys, columns, strict=True))))
        self._leave_out_earlier()
        for indices, columns_of in parts:
            for name, cells in columns_of.items():
                if self._is_kept(name, cells[0]):
                    self._append(name, cells, [self.count + i for i in indices], [line + i for i in indices])
        self.count += len(rows)
        return True

    def _leave_out_earlier(self) -> None:
        """Leave out the rows so far where the row to come is the first one of another run."""
        if self.runs.begins(self.count):
            self.count = 0
            self.keys, self._cells, self._odd = {}, {}, {}

    def _is_kept(self, name: str, cell: Cell) -> bool:
        """Remember a key; return whether its cells are kept: not those of text under a name that nobody knows."""
        if name not in self.keys:
            check_width(len(self.keys) + 1, self.path)
            self.keys[name] = self.names.wanted(name) or not is_text(cell)
        return self.keys[name]

    def _append(self, name: str, cells: list[Cell], rows: list[int], lines: list[int]) -> None:
        if name not in self._cells:
            self._cells[name] = _Cells(builder_of(name, self.names), self.names.role(name) == "step")
        column = self._cells[name]
        column.rows += rows
        column.cells += cells
        column.lines += lines
        if len(column.cells) >= PENDING:
            column.flush()

    def columns(self) -> dict[str, Column | None]:
        """Return one column for each key, a missing key not logged."""
        for cells in self._cells.values():
            cells.flush()
        wanted = [name for name in self._cells if self.names.wanted(name)]
        others = [name for name, cells in self._cells.items() if cells.builder.optional and not cells.builder.given_up]
        kept = [*wanted, *affordable(others, len(wanted), self.count)]
        return dict.fromkeys(self.keys) | {name: self._column(name) for name in kept}

    def table(self, source: Source, format_: str, notes: tuple[str, ...]) -> Table:
        """Return the rows as the table of a source, with the configuration among them."""
        return Table(
            path=source.path,
            format=source.describe(format_),
            rows=self.count,
            columns=self.columns(),
            config=self.runs.config,
            notes=(*self.runs.notes(), *notes),
        )

    def _column(self, name: str) -> Column:
        """Return a column, garbled where its rows hold lists and objects instead of numbers."""
        cells = self._cells[name]
        column, indices = cells.builder.column(), np.concatenate(cells.indices)

        def spread(flags: Bools | None, at: Ints) -> Bools | None:
            """Return flags of some rows over all, false elsewhere."""
            whole = np.zeros(self.count, dtype=np.bool_)
            whole[at] = True if flags is None else flags
            return whole

        if len(indices) != self.count or (indices[1:] <= indices[:-1]).any():
            values = np.zeros(self.count)
            values[indices] = column.values  # of a key that a row holds twice, flat and nested, the later cell is kept
            column = replace(
                column,
                values=values,
                logged=spread(column.logged, indices),
                garbled=None if column.garbled is None else spread(column.garbled, indices),
            )
        if name not in self._odd:
            return column
        rows, first = self._odd[name]
        whole = replace(column, bad=column.bad + len(rows), bad_example=first or column.bad_example)
        return whole.without(np.isin(np.arange(self.count), rows) & ~column.mask)


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


def _config_row(row: Mapping[str, Any], names: Names) -> tuple[dict[str, ConfigScalar], list[str]] | None:
    """Return the configuration that a row of a log holds instead of metrics; None for a row of metrics."""
    keys = tuple(row)
    if not _may_be_config(keys, names):
        return None
    kind = normalize(next((row[key] for key in _KIND_KEYS if isinstance(row.get(key), str)), ""))
    if any(names.role(key) in ("loss", "eval_loss") for key in keys):
        is_config = kind in _KINDS - {"run"}
    else:
        wrapped = any(isinstance(row.get(key), dict) for key in WRAPPERS)
        is_config = wrapped or kind in _KINDS or _only_settings(keys, names)
    return read_config(row) if is_config else None


# A log of a million rows has a handful of different sets of keys.
@lru_cache(maxsize=64)
def _may_be_config(keys: tuple[str, ...], names: Names) -> bool:
    """Return whether a row with these keys can be one of configuration, which its values then decide."""
    if any(names.counts(key) for key in keys):
        return False
    return not {*_KIND_KEYS, *WRAPPERS}.isdisjoint(map(normalize, keys)) or _only_settings(keys, names)


def _only_settings(keys: tuple[str, ...], names: Names) -> bool:
    """Return whether a row without a step names settings that no row of metrics would."""
    if any(names.counts(key) or names.role(key) in ("loss", "eval_loss") for key in keys):
        return False
    return not {"dtype", "optimizer", "checkpoint_every", "name"}.isdisjoint(map(canonical_key, keys))
