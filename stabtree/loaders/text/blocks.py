"""What spreads over several lines of a text log: dicts, boxes of `| key | value |`, tables, names below each other."""

from __future__ import annotations

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
# So many other lines may stand between two rows of a table: those of an evaluation.
MAX_BETWEEN = 6


class Blocks:
    """Joins the lines of a block to one line, which reads like any other.

    Attributes:
        waiting: whether a block is open.
    """

    def __init__(self, names: Names) -> None:
        self.waiting = False
        self._names = names
        self._dict: list[tuple[str, int]] = []
        self._box: list[str] = []
        self._box_place = 0
        self._group = ""
        self._last: list[str] = []
        self._header: list[str] = []
        self._names_below: list[str] | None = None
        self._ruled: list[tuple[str, int]] = []
        self._columns: list[str] = []
        self._row: tuple[str, int] = "", 0
        self._others = 0

    def feed(self, line: str, place: int) -> list[tuple[str, int]]:
        """The lines to read now that this one has come, each with its place."""
        ready = list(self._ready(line, place))
        self.waiting = bool(self._dict or self._box or self._header or self._columns) or self._names_below is not None
        return ready

    def _ready(self, line: str, place: int) -> Iterator[tuple[str, int]]:
        if self._dict:
            yield from self._in_dict(line, place)
        elif (self._columns and self._in_columns(line)) or self._is_results(line):
            yield from self._redrawn(line, place)
        elif self._names_below is not None and self._is_below(line):
            self._ruled.append((line, place))
        elif grammar.RULER.match(line):
            yield from self._close()
            self._names_below = []
            yield line, place
        elif line.startswith(("{", "    {", "  {")) and "}" not in line:
            self._dict = [(line, place)]
        elif "|" in line or "│" in line or "┃" in line:
            yield from self._bars(line, place)
        elif self._box and (not line.strip() or set(line.strip()) <= set("-+=")):
            yield from self._close()
        else:
            yield from self._close()
            self._header = []
            self._columns = self._columns_of(line) or self._columns
            yield line, place

    def end(self) -> Iterator[tuple[str, int]]:
        """What is still waiting when the file ends."""
        waiting, self._dict = self._dict, []
        yield from waiting
        yield from self._close()
        yield from self._last_row()

    def _in_dict(self, line: str, place: int) -> Iterator[tuple[str, int]]:
        self._dict.append((line, place))
        if "}" in line or len(self._dict) > MAX_LINES:
            lines, self._dict = self._dict, []
            if "}" in line and not any("{" in text for text, _ in lines[1:]):
                yield " ".join(text.strip() for text, _ in lines), lines[0][1]
            else:
                yield from lines

    def _bars(self, line: str, place: int) -> Iterator[tuple[str, int]]:
        box = grammar.BOX_ROW.match(line)
        name, value = (box[1].strip(), box[2].strip()) if box else ("", "")
        if box and (name or value) and not set(name) <= set("-: "):
            if not self._box:
                self._box_place, self._group = place, ""
            if not value:
                self._group = name.rstrip("/") + "/"
            else:
                # SB3 indents the names of a group below its title.
                inside = self._group and box[1].startswith("    ")
                self._box.append(f"{self._group if inside else ''}{name}: {value}")
            return
        yield from self._close()
        row = line.strip()
        cells = [cell.strip() for cell in row[1:-1].split("|")] if row[:1] == row[-1:] == "|" else []
        if len(cells) > 1 and self._header and len(cells) == len(self._header):
            named = [f"{key}: {cell}" for key, cell in zip(self._header, cells, strict=True)]
            yield ", ".join(named), place
        elif len(cells) > 1 and "---" in row and grammar.TABLE_RULE.fullmatch(row):
            self._header = self._last
        else:
            self._last = cells if any(role(cell, self._names).role == "loss" for cell in cells) else []
            self._header = []
            yield line, place

    def _is_below(self, line: str) -> bool:
        """Whether a line below a ruler is a name and its value, which then belongs to the block."""
        found = grammar.NAMED_LINE.fullmatch(line, grammar.past_prefix(line)) if len(self._ruled) < MAX_LINES else None
        if not found or self._names_below is None:
            return False
        pair = f"{found['name']}: {found['value']}"
        if any(before.startswith(f"{found['name']}: ") for before in self._names_below):
            return False
        self._names_below.append(pair)
        return True

    def _columns_of(self, line: str) -> list[str]:
        """The names of a line that heads columns: the first one counts, and one of them is a loss or part of one."""
        words = line.split() if grammar.COLUMNS.fullmatch(line) else []
        if len(words) < MIN_COLUMNS or role(words[0], self._names).role not in ("step", "epoch"):
            return []
        words = [_part(word) for word in words]
        trains = any(part_of(word) or role(word, self._names).role == "loss" for word in words)
        return words if trains else []

    def _in_columns(self, line: str) -> bool:
        """Whether a line is a row below the names of columns; ends the table where too many in turn are none."""
        cells = line.split(None, len(self._columns))[: len(self._columns)]
        if len(cells) == len(self._columns) and all(grammar.CELL.fullmatch(cell) for cell in cells):
            self._others = 0
            return True
        self._others += 1
        if self._others > MAX_BETWEEN:
            self._columns = []
        return False

    def _is_results(self, line: str) -> bool:
        """Whether a line without a header above it is a row of a file whose columns have names all the same."""
        if self._columns or not grammar.RESULTS.fullmatch(line):
            return False
        more = len(line.split()) - len(grammar.RESULTS_BEFORE) - len(grammar.RESULTS_AFTER)
        self._columns = [*grammar.RESULTS_BEFORE, *(f"part{i}" for i in range(more)), *grammar.RESULTS_AFTER]
        return True

    def _redrawn(self, line: str, place: int) -> Iterator[tuple[str, int]]:
        """The row before, unless this one draws it anew: the last one of a step or an epoch stands."""
        cells = line.split(None, len(self._columns))[: len(self._columns)]
        before = self._row[0].partition(",")[0]
        row = ", ".join(f"{name}: {cell.rstrip(':')}" for name, cell in zip(self._columns, cells, strict=True))
        if before != row.partition(",")[0]:
            yield from self._last_row()
        self._row = row, place

    def _last_row(self) -> Iterator[tuple[str, int]]:
        row, self._row = self._row, ("", 0)
        if row[0]:
            yield row

    def _close(self) -> Iterator[tuple[str, int]]:
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
            yield _as_dict(cells), self._box_place


def _part(name: str) -> str:
    """The name of a column, in full where it is a part of the loss: `box` is `train/box_loss`."""
    return next((full for end in ("", "_loss") if part_of(full := f"train/{name}{end}")), name)


def _as_dict(pairs: list[str]) -> str:
    return "{'" + "', '".join(pairs).replace(": ", "': '") + "'}"
