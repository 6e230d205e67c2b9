"""What a loader returns: raw columns. Only `metrics.names` knows what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.files import Skipped
from stabtree.common.lazy import np
from stabtree.common.stats import median

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.common.files import UnreadKind
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import ConfigScalar, LogLine


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a file, one entry a row.

    Attributes:
        values: float64 (n,). NaN and inf are data where `logged` is true, meaningless elsewhere.
        logged: bool (n,), false where the cell was empty, null or missing; None when all were logged.
        bad: cells that hold text which is no number (they count as not logged).
        bad_example: the first such cell as `line N: 'text'`.
        coded: whether the values are codes of text labels, fit for comparing for equality only.
        labels: the text behind each code.
        garbled: bool (n,), cells that hold something, but not what was logged; None where there are none.
        sporadic: whether it is written only when something happens, so that its silence means nothing.
    """

    values: Floats
    logged: Bools | None = None
    bad: int = 0
    bad_example: str = ""
    coded: bool = False
    labels: Mapping[float, str] = field(default_factory=dict)
    sporadic: bool = False
    garbled: Bools | None = None

    @property
    def mask(self) -> Bools:
        """The cells that hold a value, bool (n,)."""
        if self.logged is None:
            return np.ones(len(self.values), dtype=np.bool_)
        return self.logged

    @property
    def count(self) -> int:
        """The number of cells that hold a value."""
        if self.logged is None:
            return len(self.values)
        return int(np.count_nonzero(self.logged))

    @property
    def held(self) -> Floats:
        """The values of the cells that hold one."""
        if self.logged is None:
            return self.values
        return self.values[self.logged]

    def pick(self, rows: Bools | Ints) -> Column:
        """Return the cells of some of the rows."""
        logged = None if self.logged is None else self.logged[rows]
        garbled = None if self.garbled is None else self.garbled[rows]
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


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one file.

    Attributes:
        path: the file as the user named it.
        format: the loader's name with what it found.
        rows: number of data rows.
        columns: by name, in file order; None for a column that nobody asked for.
        config: configuration that the file itself holds, canonical keys.
        skipped: the first lines that could not be read (at most 20), and `skipped_count` of all.
        notes: what was changed or assumed while reading.
        run: the name of the run, where the file or folder holds several; tables of one name are its parts or ranks.
        lines: lines of a text log that may report errors.
        ended_in_error: whether these lines say that the program ended in an error.
        lost_share: the share of its bytes that are damaged, of a file that is read in records.
        config_from: the file beside this one that `config` is from; empty for this file itself.
        saves: where a text log says that a checkpoint was saved.
        unread: the lines of a text log that hold numbers and were not read, by kind.
    """

    path: str
    format: str
    rows: int
    columns: Mapping[str, Column | None]
    config: Mapping[str, ConfigScalar] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0
    notes: tuple[str, ...] = ()
    run: str = ""
    lines: tuple[LogLine, ...] = ()
    ended_in_error: bool = False
    lost_share: float = 0.0
    config_from: str = ""
    saves: tuple[Save, ...] = ()
    unread: tuple[UnreadKind, ...] = ()


# Every parameter of a large model with some figures each comes to a few thousand.
MAX_COLUMNS = 20_000


def check_width(columns: int, path: str) -> None:
    """Refuse a file with more columns than any logger writes, before time is spent on each.

    Raises:
        StabtreeError: where it has.
    """
    if columns > MAX_COLUMNS:
        raise StabtreeError(
            f"has more than {MAX_COLUMNS:,} columns",
            where=path,
            hint="export the columns that matter: step, loss, grad_norm, lr",
        )


# Cells of all columns together, some 450 MB: names that are logged at steps of their own make wide tables.
MAX_CELLS = 50_000_000


def affordable(others: Sequence[str], known: int, rows: int) -> Sequence[str]:
    """Return the first of the columns that nobody knows, as many as there is room for beside the known ones."""
    return others[: max(0, MAX_CELLS // max(rows, 1) - known)]


# A run has this many rows at least; a shorter stretch is a stray row, or a restart that failed at once.
MIN_ROWS = 3
# So many stretches of one length are epochs; two may as well be two attempts.
MIN_EPOCHS = 3
# So many stretches show whether they are epochs.
MAX_ASKED = 200
# Two levels differ if they are so many times the change from row to row apart.
APART = 3.0


def beginnings(axis: Ints | Floats, anew: Callable[[int, int], bool], min_after: int = MIN_ROWS) -> list[int]:
    """Return the rows at which a run begins, 0 among them: its axis goes back, is back at its start, and repeats it.

    Rows that are merely out of order repeat no step.

    Args:
        axis: (n,), the steps of the rows, or what counts them.
        anew: whether the second row begins a run in the same way as the first row begins one.
        min_after: the minimum number of rows from the last beginning on.
    """
    starts = [0]
    for row in (np.flatnonzero(axis[1:] < axis[:-1]) + 1).tolist():
        begin = starts[-1]
        if row - begin < MIN_ROWS or len(axis) - row < min_after or not anew(begin, row):
            continue
        if np.isin(axis[begin:row], axis[row : 2 * row - begin + MIN_ROWS]).any():
            starts.append(row)
    return starts


def is_fresh(values: Floats, index: int, *, apart: float = 0.0) -> bool | None:
    """Whether a metric is back at its first level, rather than at the one just before; None where nothing was logged.

    Args:
        values: (n,), those that were logged.
        index: the first of them that may be of another attempt.
        apart: the minimum distance between the first values and those before `index`.
    """
    first, before, after = values[:MIN_ROWS], values[max(0, index - MIN_ROWS) : index], values[index : index + MIN_ROWS]
    if not len(before) or not len(after):
        return None
    if np.isfinite(after).all() and np.isfinite(first).all() and not np.isfinite(before).any():
        return True  # what goes on from a NaN stays one
    start, last, now = (median(part) for part in (first, before, after))
    return abs(now - start) < abs(now - last) and abs(start - last) >= apart


def are_epochs(axis: Ints | Floats, starts: Sequence[int], loss: Floats) -> bool:
    """Whether steps that fall back are counted within epochs: each time after as many, while the loss goes on.

    Args:
        axis: (n,), the steps of the rows that carry the loss.
        starts: the rows at which it is back at its start, 0 among them.
        loss: (n,), the loss.
    """
    if len(starts) < MIN_EPOCHS:
        return False
    firsts, lasts = axis[list(starts)], axis[[start - 1 for start in starts[1:]]]
    if (firsts != firsts[0]).any() or (lasts != lasts[0]).any() or axis[-1] > lasts[0]:
        return False
    finite = loss[np.isfinite(loss)]
    apart = APART * median(np.abs(np.diff(finite))) if len(finite) > 1 else 0.0
    asked = starts[1 :: 1 + len(starts) // MAX_ASKED]
    return 2 * sum(bool(is_fresh(loss, start, apart=apart)) for start in asked) < len(asked)


def running_on(steps: Floats, starts: Sequence[int]) -> Floats:
    """Return steps that start again at each of `starts`, counted on instead.

    Args:
        steps: (n,), one or more rows for each step.
        starts: the rows at which they begin anew, 0 among them.
    """
    first = steps[: starts[1]]
    rises = np.diff(first)
    whole = first.max() - first.min() + (median(rises[rises > 0]) if (rises > 0).any() else 1.0)
    epoch = np.zeros(len(steps))
    epoch[list(starts[1:])] = 1
    return np.asarray(steps + whole * np.cumsum(epoch), dtype=np.float64)


def attempt(number: int, count: int, begin: int) -> tuple[str, ...]:
    """Return the note of one of several attempts in a log, from row `begin` on; none where it is the only one."""
    if count > 1:
        return (f"Attempt {number} of {count} in one log: its rows from {begin + 1:,} on.",)
    return ()


def epochs_note(what: str, count: int) -> str:
    """Return the note where steps are counted within so many epochs."""
    return f"{what} begin again in each of {count} epochs: they are counted on."


SKIPS_KEPT = 20


@dataclass(slots=True)
class Skips:
    """Collects skipped lines while a file is read.

    Attributes:
        first: the first lines that were skipped.
        count: how many there were.
        short: rows that were read although they have too few fields.
        quotes: lines with a quote that is never closed, each read as a row by itself.
        headers: lines with another header, which the rows below were read by.
        comments: how many lines of words begin with `#`; nothing of the log is lost with them.
        first_comment: the number of the first of them.
    """

    first: list[Skipped] = field(default_factory=list)
    count: int = 0
    short: int = 0
    quotes: int = 0
    headers: list[int] = field(default_factory=list)
    comments: int = 0
    first_comment: int = 0

    def add(self, line: int, reason: str) -> None:
        """Count a line, and remember it if it is among the first."""
        self.count += 1
        if len(self.first) < SKIPS_KEPT:
            self.first.append(Skipped(line, reason))

    def add_comment(self, line: int) -> None:
        """Count a comment line."""
        self.comments += 1
        self.first_comment = self.first_comment or line
