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
from stabtree.loaders.table import Column, Table, affordable, check_width, unless_all
from stabtree.loaders.tables.cells import Cell, ColumnBuilder, builder_of, example, is_text
from stabtree.metrics.table import normalize
from stabtree.run import RUN_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Ints
    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.collected import LongTable
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

# Deeper than any logger nests its keys.
MAX_DEPTH = 8
PENDING = 16384
SEVERAL_RUNS = "The file holds"  # begins the note on them
MAX_NAMED = 3
_KIND_KEYS = ("type", "event", "kind", "_type", "record")
_KINDS = frozenset((*WRAPPERS, "header", "meta", "metadata", "manifest", "run", "start", "run_start", "train_begin"))
# Keys that a logger puts around all metrics of a row, and that say nothing of them.
_ENVELOPES = frozenset(("data", "metrics", "logs", "log", "values", "scalars"))
_NESTING = {dict, list}


class FileRuns(Struct):
    """Follows the runs of a Recorder in a file: which one its rows are of, and which ones came before.

    A run begins with the first row after its header (its id, when it was begun, and whether it goes on), so that a
    process that ended before that hides no other run.
    """

    config: dict[str, ConfigScalar] = field(default_factory=dict)  # the settings of the run that the last row is of
    # When the runs that were left out started, and their rows.
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
        (self.config if self._next is None else self._next[1]).update(config)

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
            self.builder.add([_done(cell) for cell in self.cells] if self.progress else self.cells, self.lines)
            self.indices.append(np.array(self.rows, dtype=np.int64))
            self.rows, self.cells, self.lines = [], [], []


class JsonRows(Struct):
    """Rows of a JSON file."""

    names: Names  # what the keys mean, and so which are kept
    path: str  # the file as the user named it
    long: LongTable | None = None  # where the rows go if each holds a name and a value
    count: int = 0  # rows so far
    # Every key that was met and whether its cells are kept, in the order of first appearance.
    keys: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # settings of the wrong kind
    # The configuration among the rows, and the runs of a Recorder that are left out.
    runs: FileRuns = field(default_factory=FileRuns)
    _cells: dict[str, _Cells] = field(default_factory=dict)
    _odd: dict[str, tuple[list[int], str]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Append one object, which is in `line`; a row of configuration goes to `config`."""
        if self.long:
            self.long.add([row.get(name) for name in self.long.columns])
        elif (settings := _config_row(row, self.names)) is not None:
            config, notes = settings
            self.runs.add(row, config, self.count)
            self.notes += notes
        else:
            self._append([row], [line])

    def add_all(self, entries: Sequence[Any], places: Sequence[int]) -> int:
        """Append the objects of a list, `places[i]` the line of the i-th entry; return how many entries are none."""
        dropped = len(entries)
        for begin in range(0, len(entries), PENDING):
            block = entries[begin : begin + PENDING]
            lines = [line for line, row in zip(places[begin:], block, strict=False) if isinstance(row, dict)]
            rows = [row for row in block if isinstance(row, dict)]
            dropped -= len(rows)
            if self.long or any(_may_be_config(keys, self.names) for keys in dict.fromkeys(map(tuple, rows))):
                for line, row in zip(lines, rows, strict=True):
                    self.add(row, line)
            elif rows:
                self._append(rows, lines)
        return dropped

    def _append(self, rows: Sequence[Mapping[str, Any]], lines: Sequence[int]) -> None:
        """Append rows of metrics, `lines[i]` the line of the i-th."""
        if self.runs.begins(self.count):  # what came before is another run
            self.count = 0
            self.keys, self._cells, self._odd = {}, {}, {}
        self._append_by_kind(rows, range(self.count, self.count + len(rows)), lines)
        self.count += len(rows)

    def _append_by_kind(self, rows: Sequence[Mapping[str, Any]], places: Sequence[int], lines: Sequence[int]) -> None:
        kinds: dict[tuple[str, ...], list[int]] = {}
        for index, row in enumerate(rows):
            kinds.setdefault(tuple(row), []).append(index)
        for keys, indices in kinds.items():
            alike = [rows[index] for index in indices]
            self._append_alike(keys, alike, [places[index] for index in indices], [lines[index] for index in indices])

    def _append_alike(
        self, keys: Sequence[str], rows: Sequence[Mapping[str, Any]], places: Sequence[int], lines: Sequence[int]
    ) -> None:
        """Append rows with the same keys; those that hold objects by the keys that they have when they are flat."""
        columns = [list(map(itemgetter(key), rows)) for key in keys]
        if all(_NESTING.isdisjoint(map(type, cells)) for cells in columns):
            for key, cells in zip(keys, columns, strict=True):
                self._append_cells(key, cells, places, lines)
            return
        for key, cells in zip(keys, columns, strict=True):
            if self.names.wanted(key):
                odd = [index for index, cell in enumerate(cells) if isinstance(cell, list | dict) and cell]
                for index in odd:
                    self._odd.setdefault(key, ([], example(lines[index], cells[index])))[0].append(places[index])
        self._append_by_kind([dict(flatten(row, within=keys)) for row in rows], places, lines)

    def _append_cells(self, name: str, cells: list[Cell], rows: Sequence[int], lines: Sequence[int]) -> None:
        """Append cells of one key, unless they are text under a name that nobody knows."""
        if name not in self.keys:
            check_width(len(self.keys) + 1, self.path)
            self.keys[name] = self.names.wanted(name) or not is_text(cells[0])
        if not self.keys[name]:
            return
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

    def table(self, source: Source, format_: str, notes: Sequence[str]) -> Table:
        """Return the rows as the table of a source, with the configuration among them."""
        notes = (*self.runs.notes(), *notes, *self.notes)
        described = source.describe(format_)
        return Table(source.path, described, self.count, self.columns(), self.runs.config, notes=tuple(notes))

    def tables(self, source: Source, format_: str, notes: Sequence[str]) -> tuple[Table, ...]:
        """Return the table of the rows, or of each run in them where each row holds a name and a value."""
        if self.long:
            return self.long.tables(source.path, source.describe("json"), (*notes, *self.notes))
        return (self.table(source, format_, notes),)

    def _column(self, name: str) -> Column:
        """Return a column, garbled where its rows hold lists and objects instead of numbers."""
        cells = self._cells[name]
        column, indices = cells.builder.column(), np.concatenate(cells.indices)
        values = np.zeros(self.count)
        logged, garbled = (np.zeros(self.count, dtype=np.bool_) for _ in range(2))
        values[indices], logged[indices] = column.values, column.mask
        if column.garbled is not None:
            garbled[indices] = column.garbled
        column = replace(column, values=values, logged=unless_all(logged), garbled=None)
        if garbled.any():
            column = replace(column, garbled=garbled)
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


def flatten(
    row: Mapping[str, Any], prefix: str = "", depth: int = 0, within: Sequence[str] = ()
) -> Iterator[tuple[str, Cell]]:
    """Yield the cells of an object, nested keys joined with `/`; lists and anything too deep are left out.

    Args:
        row: the object.
        prefix: what comes before its keys.
        depth: how deep it is nested.
        within: the keys beside it, which one inside a mere envelope such as `data` must not repeat.
    """
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if not depth and within and key in _ENVELOPES and value.keys().isdisjoint(within):
                yield from flatten(value, "", depth + 1)
            elif depth < MAX_DEPTH:
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
