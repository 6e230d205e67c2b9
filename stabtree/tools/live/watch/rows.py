"""The rows in lines that come to a log: its first lines and the new ones are read as one small log."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.loaders.assemble.columns import to_rows
from stabtree.loaders.formats import NOBODY, surest
from stabtree.loaders.source import in_memory
from stabtree.run import ROW_NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.loaders.formats import Loader
    from stabtree.metrics.names import Names

    Row = dict[str, float]

BY_LINE = ("csv", "jsonl", "text")
OPEN = (*BY_LINE, "manifest")  # what a first line may seem to be until the second one comes
HEAD_CHARS = 1 << 13  # enough to recognise a log and its columns; read again with each piece
HEAD_LINES = 20


class LineRows:
    """Reads what comes to one log as the loader of its format does, at a cost that only what comes decides.

    Args:
        path: what to call the log.
        names: what its columns mean.
        forced: the loader that the user named.
    """

    def __init__(self, path: Path, names: Names, forced: Loader | None = None) -> None:
        self.path = path
        self._names = names
        self._forced = forced
        self.begin()

    def begin(self, head: str = "") -> None:
        """Forget what was read: the log is a new one, of which these are the first lines if they are not read."""
        self.by_line = True
        self._loader = self._forced
        self._head = ""
        self._known: list[Row] = []
        self._earlier = 0
        self._full = False
        self.found = False
        """Whether any row was read."""
        if head:
            self.take(head)
            self._full = True

    def take(self, text: str) -> list[Row]:
        """Return the rows of new whole lines: metric -> value, with `step` where the log holds steps."""
        whole = self._head + text
        if not text or not whole.strip():
            return []
        rows, earlier = self._read(whole)
        known = len(self._known)
        if earlier > self._earlier:  # another run begins in the text: its rows are all there are
            known = 0
        new = rows[known:]
        if known and known <= len(rows):
            # What was logged of the last step may go on in the next line.
            late = {name: value for name, value in rows[known - 1].items() if name not in self._known[-1]}
            if late:
                new = [late, *new]
        self.found |= bool(rows)
        if not self._full:
            self._head, self._known, self._earlier = whole, rows, earlier
            self._full = len(whole) >= HEAD_CHARS and whole.count("\n") >= HEAD_LINES
            if self._full:
                self._head = _first_lines(whole, HEAD_CHARS if self.found else 0)
                self._known, self._earlier = self._read(self._head)
        return new

    def _read(self, text: str) -> tuple[list[Row], int]:
        """Return the rows of a text, and how many of earlier runs it holds besides.

        There are none where it holds none, or is of a format that is not read by lines.
        """
        try:
            source = in_memory(self.path, text)
            rank, loader = 0, self._loader
            if loader is None:
                rank, loader = surest(source, self._names)
            self.by_line = rank == NOBODY or loader.name in OPEN
            if rank == NOBODY or loader.name not in BY_LINE:
                return [], 0
            self._loader = self._forced
            if self._full:
                self._loader = loader
            tables = loader.read(source, self._names)
            rows = chain.from_iterable(_rows(to_rows(table, self._names)) for table in tables)
            return list(rows), sum(table.earlier_rows for table in tables)
        except StabtreeError:
            return [], 0  # it is reported when the log is judged


def _first_lines(text: str, chars: int) -> str:
    """Return the first whole lines, and more of them up to so many characters."""
    end = 0
    for _ in range(HEAD_LINES):
        end = text.index("\n", end) + 1
    return text[: max(end, text.find("\n", chars) + 1)]


def _rows(found: MetricRows) -> Iterator[Row]:
    counted = found.source.steps_from != ROW_NUMBER
    columns = [(name, column.values.tolist(), column.mask.tolist()) for name, column in found.metrics.items()]
    for index, step in enumerate(found.steps.tolist()):
        row = {name: values[index] for name, values, logged in columns if logged[index]}
        if counted:
            row = {"step": float(step), **row}
        yield row
