"""What spreads over several lines of a text log: dicts, boxes of `| key | value |` and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.metrics.names import Names

# A longer dict is a dump of something else.
MAX_LINES = 120


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

    def feed(self, line: str, place: int) -> list[tuple[str, int]]:
        """The lines to read now that this one has come, each with its place."""
        ready = list(self._ready(line, place))
        self.waiting = bool(self._dict or self._box or self._header)
        return ready

    def _ready(self, line: str, place: int) -> Iterator[tuple[str, int]]:
        if self._dict:
            yield from self._in_dict(line, place)
        elif line.startswith(("{", "    {", "  {")) and "}" not in line:
            self._dict = [(line, place)]
        elif "|" in line or "│" in line or "┃" in line:
            yield from self._bars(line, place)
        elif self._box and (not line.strip() or set(line.strip()) <= set("-+=")):
            yield from self._close()
        else:
            yield from self._close()
            self._header = []
            yield line, place

    def end(self) -> Iterator[tuple[str, int]]:
        """What is still waiting when the file ends."""
        waiting, self._dict = self._dict, []
        yield from waiting
        yield from self._close()

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

    def _close(self) -> Iterator[tuple[str, int]]:
        if self._box:
            cells, self._box = self._box, []
            yield "{'" + "', '".join(cells).replace(": ", "': '") + "'}", self._box_place
