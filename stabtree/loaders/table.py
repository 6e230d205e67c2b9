"""What a loader returns: raw columns. Only `metrics.names` knows what they mean."""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.files import Skipped
from stabtree.common.lazy import np
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.common.files import UnreadKind
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar, LogLine

SKIPS_KEPT = 20
MAX_COLUMNS = 20_000  # every parameter of a large model with some figures each comes to a few thousand
# Cells of all columns together, some 450 MB: names that are logged at steps of their own make wide tables.
MAX_CELLS = 50_000_000


def unless_all(logged: Bools) -> Bools | None:
    """Return which cells were logged, as a column has it: None for all."""
    if logged.all():
        return None
    return logged


class Column(Struct, frozen=True, eq=False, weakref=True):
    """One column of a file, one entry a row. Compared by identity, as a series is."""

    values: Floats  # (n,); NaN and inf are data where `logged` is true, meaningless elsewhere
    logged: Bools | None = None  # (n,), false where the cell was empty, null or missing; None when all were logged
    bad: int = 0  # cells that hold text which is no number (they count as not logged)
    bad_example: str = ""  # the first such cell as `line N: 'text'`
    coded: bool = False  # whether the values are codes of text labels, fit for comparing for equality only
    labels: Mapping[float, str] = field(default_factory=dict)  # the text behind each code
    sporadic: bool = False  # whether it is written only when something happens, so that its silence means nothing
    garbled: Bools | None = None  # (n,), cells that hold something, but not what was logged

    @property
    def mask(self) -> Bools:
        """The cells that hold a value, bool (n,)."""
        if self.logged is None:
            return np.ones(len(self.values), dtype=np.bool_)
        return self.logged

    @property
    def count(self) -> int:
        """The number of cells that hold a value."""
        return int(np.count_nonzero(self.mask))

    @property
    def held(self) -> Floats:
        """The values of the cells that hold one."""
        if self.logged is None:
            return self.values
        return self.values[self.logged]

    def pick(self, rows: Bools | Ints) -> Column:
        """Return the cells of some of the rows."""
        logged, garbled = (None if cells is None else cells[rows] for cells in (self.logged, self.garbled))
        return replace(self, values=self.values[rows], logged=logged, garbled=garbled)

    def without(self, rows: Bools) -> Column:
        """Return the column with some cells, bool (n,), marked as garbled."""
        garbled = rows if self.garbled is None else self.garbled | rows
        return replace(self, logged=self.mask & ~rows, garbled=garbled)


class Save(NamedTuple):
    """A line that says that a checkpoint was saved: the row before it, its own number, and the numbers in it."""

    row: int
    line: int
    numbers: tuple[int, ...]


class Table(Struct, frozen=True):
    """The rows of one file."""

    path: str  # the file as the user named it
    format: str  # the loader's name with what it found
    rows: int
    columns: Mapping[str, Column | None]  # by name, in file order; None for a column that nobody asked for
    config: Mapping[str, ConfigScalar] = field(default_factory=dict)  # what the file itself holds, canonical keys
    skipped: tuple[Skipped, ...] = ()  # the first lines that could not be read, at most 20
    skipped_count: int = 0
    notes: tuple[str, ...] = ()  # what was changed or assumed while reading
    run: str = ""  # its name, where the file or folder holds several; tables of one name are its parts or ranks
    lines: tuple[LogLine, ...] = ()  # lines of a text log that may report errors
    ended_in_error: bool = False  # whether these lines say that the program ended in an error
    lost_share: float = 0.0  # the share of its bytes that are damaged, of a file that is read in records
    saves: tuple[Save, ...] = ()  # where a text log says that a checkpoint was saved
    unread: tuple[UnreadKind, ...] = ()  # the lines of a text log that hold numbers and were not read, by kind
    counter: str | None = None  # the column that counts the rows, nothing where none does; None where nobody asked yet
    restarts: str = ""  # what it means where that column starts again, and how sure this is


def check_width(columns: int, path: str) -> None:
    """Raise a StabtreeError for more columns than any logger writes, before time is spent on each."""
    if columns > MAX_COLUMNS:
        hint = "export the columns that matter: step, loss, grad_norm, lr"
        raise StabtreeError(f"has more than {MAX_COLUMNS:,} columns", where=path, hint=hint)


def affordable(others: Sequence[str], known: int, rows: int) -> Sequence[str]:
    """Return the first of the columns that nobody knows, as many as there is room for beside the known ones."""
    return others[: max(0, MAX_CELLS // max(rows, 1) - known)]


class Skips(Struct):
    """Collects skipped lines while a file is read."""

    first: list[Skipped] = field(default_factory=list)  # the first lines that were skipped
    count: int = 0  # of all
    short: int = 0  # rows that were read although they have too few fields
    quotes: int = 0  # lines with a quote that is never closed, each read as a row by itself
    headers: list[int] = field(default_factory=list)  # lines with another header, which the rows below were read by
    comments: int = 0  # lines of words that begin with `#`; nothing of the log is lost with them
    first_comment: int = 0  # the number of the first of them

    def add(self, line: int, reason: str, text: str = "") -> None:
        """Count a line, and remember it, with its text, if it is among the first."""
        self.count += 1
        if len(self.first) < SKIPS_KEPT:
            self.first.append(Skipped(line, f"{reason}: {clean(text, 40)!r}" if text else reason))

    def notes(self, what: str) -> tuple[str, ...]:
        """Return a note with their number, where there are any."""
        return (f"{what}: {self.count:,}, not read.",) * (self.count > 0)


class Points(Struct, frozen=True):
    """Values in the order in which they were written."""

    names: tuple[str, ...]  # what can be logged
    name: Ints  # (n,), which of `names` each value is of
    step: Ints  # (n,)
    time: Floats  # (n,), when it was written, in any unit
    value: Floats  # (n,)

    @classmethod
    def nothing(cls) -> Points:
        """Return no points at all."""
        none = np.zeros(0, dtype=np.int64)
        return cls((), none, none, np.zeros(0), np.zeros(0))

    def pick(self, rows: Bools | Ints) -> Points:
        """Return some of the points, or all in another order."""
        return Points(self.names, self.name[rows], self.step[rows], self.time[rows], self.value[rows])


def in_step_order(points: Points) -> Points:
    """Return the points of a log that keeps one series after the other by step; each series keeps its own order.

    A series that goes back, as after a resume, goes on behind what all series wrote before that.
    """
    changes = int(np.count_nonzero(np.diff(points.name)))
    if changes >= 2 * len(points.names):
        return points  # the series take turns: the order of the file is that of time
    stretch = np.zeros(len(points.name), dtype=np.int64)
    for index in range(len(points.names)):
        own = np.flatnonzero(points.name == index)
        stretch[own[1:]] = np.cumsum(np.diff(points.step[own]) < 0)
    return points.pick(np.lexsort((points.step, stretch)))


def merge(parts: Sequence[Points]) -> Points:
    """Return the points of several files in the order in which they were written; each file keeps its own order."""
    if len(parts) == 1:
        return parts[0]
    names = tuple(dict.fromkeys(chain.from_iterable(part.names for part in parts)))
    # A clock that was set back, or a NaN, must not tear a file apart.
    clocks = [np.maximum.accumulate(np.where(np.isfinite(part.time), part.time, -np.inf)) for part in parts]
    order = np.argsort(np.concatenate(clocks), kind="stable")
    index = {name: number for number, name in enumerate(names)}
    own = [np.array([index[name] for name in part.names], dtype=np.int64)[part.name] for part in parts]
    step, time, value = (
        np.concatenate(arrays)[order]
        for arrays in zip(*((part.step, part.time, part.value) for part in parts), strict=True)
    )
    return Points(names, np.concatenate(own)[order], step, time, value)


def tabulate(
    points: Points, names: Names, *, timed: bool = False, counter: str = "step"
) -> tuple[int, dict[str, Column | None], tuple[str, ...]]:
    """Return the number of rows, the columns, and notes: a row holds what was written of one step without a break.

    The column `counter` is left out where nothing but 0 was logged as a step, which is what loggers write
    that were given none. `timed` says that the times are seconds: they become a column as well.
    """
    if not len(points.name):
        return 0, dict.fromkeys(points.names), ()
    row = _rows(points)
    rows = int(row.max()) + 1
    columns: dict[str, Column | None] = {}
    notes: list[str] = []

    def add(name: str, of: Ints, values: Ints | Floats) -> None:
        cells, logged = np.zeros(rows), np.zeros(rows, dtype=np.bool_)
        cells[of], logged[of] = values, True
        free = chain([name], (f"{name} ({number})" for number in count(2)))  # `step` is also what steps are called
        columns[next(one for one in free if one not in columns)] = Column(cells, unless_all(logged))

    if rows == 1 or points.step.any():
        add(counter, row, points.step)
    else:
        notes.append("Every value was logged at step 0.")
    if timed and "wall_time" not in points.names and points.time.any():
        add("wall_time", row, points.time)
    order = np.argsort(points.name, kind="stable")
    ends = np.searchsorted(points.name[order], np.arange(len(points.names) + 1))
    wanted = [name for name in points.names if names.wanted(name)]
    room = max(8, MAX_CELLS // max(1, rows))
    read = set(sorted(wanted, key=lambda name: "/" in (names.role(name) or "/"))[:room])  # whole metrics before layers'
    if len(read) < len(wanted):
        notes.append(f"Series left out to save memory: {len(wanted) - len(read):,} of {len(wanted):,}.")
    read.update(affordable([name for name in points.names if not names.wanted(name)], len(read), rows))
    for index, name in enumerate(points.names):
        if name in read:
            own = order[ends[index] : ends[index + 1]]
            add(name, row[own], points.value[own])
        else:
            columns.setdefault(name, None)
    return rows, columns, tuple(notes)


def _rows(points: Points) -> Ints:
    """Return the row of each point: a new one where the step changes, or a name comes again."""
    stretch = np.cumsum(np.diff(points.step, prepend=points.step[:1]) != 0)
    cell = stretch * len(points.names) + points.name
    order = np.argsort(cell, kind="stable")
    first = np.flatnonzero(np.diff(cell[order], prepend=-1))
    if len(first) == len(cell):
        return stretch
    again = np.empty_like(cell)
    again[order] = np.arange(len(cell)) - np.repeat(first, np.diff(first, append=len(cell)))
    _, row = np.unique(stretch * (int(again.max()) + 1) + again, return_inverse=True)
    return np.asarray(row, dtype=np.int64)
