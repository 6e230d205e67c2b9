"""Blocks over several lines of a text log: dicts, boxes of `| key | value |`, tables, names below each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import role
from stabtree.metrics.names import part_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.metrics.names import Names

# A longer dict is a dump of something else.
MAX_LINES = 120
# Fewer words are no names of columns.
MIN_COLUMNS = 3
# Two rows of a table may have so many other lines between them: those of an evaluation.
MAX_BETWEEN = 6
_BARS = re.compile("[|│┃]")

# A line and its number in the file.
Numbered = tuple[str, int]


class Blocks:
    """Joins the lines of a block to one line, which reads like any other.

    Attributes:
        waiting: whether a block is open.
    """

    def __init__(self, names: Names) -> None:
        self.waiting = False
        self._names = names
        self._dict: list[Numbered] = []
        self._box: list[str] = []
        self._box_start = 0
        self._group = ""
        self._last: list[str] = []
        self._header: list[str] = []
        self._names_below: list[str] | None = None
        self._ruled: list[Numbered] = []
        self._columns: list[str] = []
        self._measured: list[str] = []
        self._row: Numbered = "", 0
        self._others = 0

    def feed(self, line: str, number: int) -> list[Numbered]:
        """Return the lines to read now that this one has come."""
        ready = list(self._ready(line, number))
        self.waiting = bool(self._dict or self._box or self._header or self._columns) or self._names_below is not None
        return ready

    def _ready(self, line: str, number: int) -> Iterator[Numbered]:
        if self._dict:
            yield from self._in_dict(line, number)
        elif self._in_columns(line) or self._is_results(line):
            yield from self._redrawn(line, number)
        elif self._is_below(line):
            self._ruled.append((line, number))
        elif grammar.RULER.match(line):
            yield from self._close()
            self._names_below = []
            yield line, number
        elif line.startswith(("{", "    {", "  {")) and "}" not in line:
            self._dict = [(line, number)]
        elif line.lstrip().startswith("Class "):
            words = (word.rstrip(":") for word in line.partition("%|")[0].split()[1:])
            self._measured = [word for word in words if not word.isdigit()]
        elif self._measured and line.lstrip().startswith("all "):
            yield from self._last_row()
            yield self._of_all(line), number
        elif _BARS.search(line):
            yield from self._bars(line, number)
        elif self._box and set(line.strip()) <= set("-+="):
            yield from self._close()
        else:
            yield from self._close()
            self._header = []
            self._columns = self._columns_of(line) or self._columns
            yield line, number

    def end(self) -> Iterator[Numbered]:
        """Return what is still waiting when the file ends."""
        waiting, self._dict = self._dict, []
        yield from waiting
        yield from self._close()
        yield from self._last_row()

    def _in_dict(self, line: str, number: int) -> Iterator[Numbered]:
        self._dict.append((line, number))
        if "}" in line or len(self._dict) > MAX_LINES:
            lines, self._dict = self._dict, []
            if "}" in line and not any("{" in text for text, _ in lines[1:]):
                yield " ".join(text.strip() for text, _ in lines), lines[0][1]
            else:
                yield from lines

    def _bars(self, line: str, number: int) -> Iterator[Numbered]:
        """Read a row of a box or of a table."""
        if self._in_box(line, number):
            return
        yield from self._close()
        row = line.strip()
        cells = []
        if row[:1] == row[-1:] == "|":
            cells = [cell.strip() for cell in row[1:-1].split("|")]
        if len(cells) > 1 and len(cells) == len(self._header):
            yield _joined(self._header, cells), number
        elif len(cells) > 1 and "---" in row and grammar.TABLE_RULE.fullmatch(row):
            self._header = self._last
        else:
            self._header, self._last = [], []
            if any(role(cell, self._names).role == "loss" for cell in cells):
                self._last = cells
            yield line, number

    def _in_box(self, line: str, number: int) -> bool:
        """Add a line `| name | value |` to the open box; return whether it is one."""
        box = grammar.BOX_ROW.match(line)
        if not box:
            return False
        name, value = box[1].strip(), box[2].strip()
        if set(name) <= set("-: "):
            return False
        if not self._box:
            self._box_start, self._group = number, ""
        if not value:
            self._group = name.rstrip("/") + "/"
            return True
        # SB3 indents the names of a group below its title.
        if box[1].startswith("    "):
            name = self._group + name
        self._box.append(f"{name}: {value}")
        return True

    def _is_below(self, line: str) -> bool:
        """Return whether a line below a ruler is a name and its value, which then belongs to the block."""
        if self._names_below is None or len(self._ruled) >= MAX_LINES:
            return False
        found = grammar.NAMED_LINE.fullmatch(line, grammar.past_prefix(line))
        if not found:
            return False
        start = f"{found['name']}: "
        if any(before.startswith(start) for before in self._names_below):
            return False
        self._names_below.append(start + found["value"])
        return True

    def _columns_of(self, line: str) -> list[str]:
        """Return the names of a header line: the first is a step or an epoch, and one a loss or part of one."""
        if not grammar.COLUMNS.fullmatch(line):
            return []
        words = line.split()
        if len(words) < MIN_COLUMNS or role(words[0], self._names).role not in ("step", "epoch"):
            return []
        words = [_full_name(word) for word in words]
        if "total" in words and any(part_of(word) for word in words):
            words[words.index("total")] = "total_loss"
        if any(part_of(word) or role(word, self._names).role == "loss" for word in words):
            return words
        return []

    def _of_all(self, line: str) -> str:
        """Return what a detector prints below `Class Images P R mAP@0.5` of all classes, with its names."""
        cells = line.split()[1:]
        if len(cells) != len(self._measured) or not all(grammar.CELL.fullmatch(cell) for cell in cells):
            return line
        return _joined([f"valid/{name}" for name in self._measured], cells)

    def _in_columns(self, line: str) -> bool:
        """Return whether a line is a row below the names of columns; end the table after too many other lines."""
        if not self._columns:
            return False
        cells = self._cells(line)
        if len(cells) == len(self._columns) and all(grammar.CELL.fullmatch(cell) for cell in cells):
            self._others = 0
            return True
        self._others += 1
        if self._others > MAX_BETWEEN:
            self._columns = []
        return False

    def _cells(self, line: str) -> list[str]:
        count = len(self._columns)
        return line.split(None, count)[:count]

    def _is_results(self, line: str) -> bool:
        """Return whether a line without a header above it is a row of a file whose columns are known all the same."""
        if self._columns or not grammar.RESULTS.fullmatch(line):
            return False
        more = len(line.split()) - len(grammar.RESULTS_BEFORE) - len(grammar.RESULTS_AFTER)
        self._columns = [*grammar.RESULTS_BEFORE, *(f"part{i}" for i in range(more)), *grammar.RESULTS_AFTER]
        return True

    def _redrawn(self, line: str, number: int) -> Iterator[Numbered]:
        """Return the row before, unless this one replaces it: of an epoch drawn several times the last row counts."""
        row = _joined(self._columns, [cell.rstrip(":") for cell in self._cells(line)])
        if self._row[0].partition(",")[0] != row.partition(",")[0]:
            yield from self._last_row()
        self._row = row, number

    def _last_row(self) -> Iterator[Numbered]:
        row, self._row = self._row, ("", 0)
        if row[0]:
            yield row

    def _close(self) -> Iterator[Numbered]:
        if self._ruled:
            lines, pairs = self._ruled, self._names_below or []
            self._ruled = []
            if any(role(pair.partition(": ")[0], self._names).role in ("step", "epoch") for pair in pairs):
                yield _as_dict(pairs), lines[0][1]
            else:
                yield from lines
        self._names_below = None
        if self._box:
            cells, self._box = self._box, []
            yield _as_dict(cells), self._box_start


def _full_name(column: str) -> str:
    """Return the full name of a column that is a part of the loss: `train/box_loss` for `box`."""
    for full in (f"train/{column}", f"train/{column}_loss"):
        if part_of(full):
            return full
    return column


def _joined(names: list[str], cells: list[str]) -> str:
    return ", ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))


def _as_dict(pairs: list[str]) -> str:
    return "{'" + "', '".join(pairs).replace(": ", "': '") + "'}"
