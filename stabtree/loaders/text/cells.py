"""The cells of a text log: those of one column, and those of lines that share one layout."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.loaders.table import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints

FLUSH_ROWS = 8192


class Dense(NamedTuple):
    """A column over all rows of a log.

    Attributes:
        values: float64 (n,).
        logged: bool (n,), which of them were logged.
    """

    values: Floats
    logged: Bools

    @classmethod
    def empty(cls, count: int) -> Dense:
        """Return a column of so many rows in which nothing was logged."""
        return cls(np.zeros(count), np.zeros(count, dtype=np.bool_))

    def pick(self, rows: Ints) -> Dense:
        """Return a copy of some of the rows."""
        return Dense(self.values[rows], self.logged[rows])

    def column(self, rows: Ints) -> Column:
        """Return some of the rows as a column of a table."""
        logged = self.logged[rows]
        return Column(self.values[rows], None if logged.all() else logged)


class Cells(Struct):
    """The cells of one column, sparse."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def set(self, row: int, value: float) -> None:
        """Write one cell; a later value of the same row replaces it."""
        self.rows.append(row)
        self.values.append(value)


class OpenRow(Struct):
    """A row that following lines may still join."""

    row: int
    step: float | None = None
    epoch: float | None = None
    names: set[str] = field(default_factory=set)

    def is_of(self, step: float | None, epoch: float | None) -> bool:
        """Return whether a line of this step and epoch, each None if it names none, may belong to the row."""
        if step is not None and step != self.step and (self.step is not None or self.names):
            return False
        return epoch is None or self.epoch in (None, epoch)


class Block(Struct):
    """Rows of lines that share one layout, read together.

    Attributes:
        names: the columns that a row fills, with `step`, `epoch` and `rank` in the roles of those names.
        step_name: how the lines spell the step.
        trains: whether they hold the training loss.
        rows: the number of each row.
        texts: the numbers as written, not yet parsed.
        parts: what was parsed: float64 (n, len(names)).
        last: the row that was parsed last, as written.
        bad: (row, index in names) of texts that are no numbers.
    """

    names: tuple[str, ...]
    step_name: str
    trains: bool
    rows: array[int] = field(default_factory=lambda: array("q"))
    texts: list[Sequence[str]] = field(default_factory=list)
    parts: list[Floats] = field(default_factory=list)
    last: Sequence[str] = ()
    bad: list[tuple[int, int]] = field(default_factory=list)

    def wrote(self, row: int) -> bool:
        """Return whether a row is the last one of the block."""
        return bool(self.rows) and self.rows[-1] == row

    def flush(self) -> None:
        """Parse what is waiting, so that a long log need not be kept as text."""
        if self.texts:
            size = len(self.texts) * len(self.names)
            try:
                values = np.fromiter(map(float, chain.from_iterable(self.texts)), np.float64, size)
            except ValueError:
                values = np.fromiter(map(self._checked, chain.from_iterable(self.texts), range(size)), np.float64, size)
            self.parts.append(values.reshape(len(self.texts), len(self.names)))
            self.last = self.texts[-1]
            self.texts.clear()

    def _checked(self, text: str, index: int) -> float:
        try:
            return float(text)
        except ValueError:
            row, column = divmod(index, len(self.names))
            self.bad.append((self.rows[len(self.rows) - len(self.texts) + row], column))
            return 0.0
