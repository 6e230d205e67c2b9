"""Blocks over several lines of a text log: dicts, boxes of `| key | value |`, tables, names below each other.

A block becomes one line, as a shape with its numbers, which reads like any other.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import MASK, role
from stabtree.loaders.text.shape import joined
from stabtree.metrics.names import part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.metrics.names import Names

# A longer dict is a dump of something else.
MAX_LINES = 120
# Fewer words are no names of columns.
MIN_COLUMNS = 3
# Fewer names with their numbers, one a line, are no block unless a ruler stands above them.
MIN_NAMED = 4
MAX_BOXES = 10_000
# Two rows of a table may have so many other lines between them: those of an evaluation.
MAX_BETWEEN = 6
_BARS = re.compile("[|│┃]")
_GAP = re.compile(r"\s{2,}|\t")


class Masked(NamedTuple):
    """A line as its shape and its numbers, and its number in the file."""

    shape: str
    numbers: Sequence[str]
    line: int


class Blocks:
    """Joins the lines of a block to one line."""

    def __init__(self, names: Names) -> None:
        self.waiting = False  # whether a block is open
        self._names = names
        self._dict: list[Masked] = []  # the lines of an open dict, or of a printed array
        self._closing = "}"
        self._box: list[Masked] = []
        self._boxes: dict[str, tuple[str, str, bool]] = {}
        self._group = ""
        self._ruled = False
        self._below: dict[str, Masked] = {}
        self._columns: list[str] = []
        self._measured: list[str] = []
        self._row = Masked("", (), 0)
        self._others = 0

    def may_begin(self, shape: str) -> bool:
        """Return whether a line may begin a block, or be all of it."""
        text = shape.strip()
        return bool(
            _BARS.search(text)
            or grammar.RULER.match(shape)
            or (text.startswith("{") and "}" not in text)
            or grammar.OPEN_CALL.search(shape)
            or text.startswith(("Class ", "all "))
            or (MASK not in shape and (len(_GAP.split(text)) >= MIN_COLUMNS or set(text) <= set("-= ")))
            or grammar.PAIR_LINE.fullmatch(shape)
            or grammar.COLUMNS.fullmatch(shape)
        )

    def feed(self, masked: Masked) -> list[Masked]:
        """Return the lines to read now that this one has come."""
        box = self._boxes.get(masked.shape)
        if box and self._box and not (self._dict or self._columns or self._below):
            self._add_to_box(box, masked)
            return []
        ready = list(self._ready(masked))
        self.waiting = any((self._dict, self._box, self._columns, self._below, self._ruled))
        return ready

    def _ready(self, masked: Masked) -> Iterator[Masked]:
        shape = masked.shape
        if self._dict:
            yield from self._in_dict(masked)
        elif self._is_row(shape):
            yield from self._redrawn(masked)
        elif self._is_below(masked):
            pass
        elif grammar.RULER.match(shape):
            yield from self._close()
            self._ruled = True
            yield masked
        elif shape.startswith(("{", "    {", "  {")) and "}" not in shape:
            self._dict, self._closing = [masked], "}"
        elif grammar.OPEN_CALL.search(shape):
            self._dict, self._closing = [masked], ")"
        elif shape.lstrip().startswith("Class "):
            words = (word.rstrip(":") for word in shape.partition("%|")[0].split()[1:])
            self._measured = [word for word in words if MASK not in word]
        elif self._measured and shape.lstrip().startswith("all "):
            yield from self._last_row()
            yield self._of_all(masked)
        elif _BARS.search(shape) and self._in_box(masked):
            pass
        elif self._box and set(shape.strip()) <= set("-+="):
            yield from self._close()
        elif self._columns and not shape.strip():
            pass
        else:  # part of no block; it may hold the names of columns
            yield from self._close()
            self._columns = self._columns_of(joined(shape, masked.numbers)) or self._columns
            yield masked

    def end(self) -> Iterator[Masked]:
        """Return what is still waiting when the file ends."""
        waiting, self._dict = self._dict, []
        yield from waiting
        yield from self._close()
        yield from self._last_row()

    def _in_dict(self, masked: Masked) -> Iterator[Masked]:
        self._dict.append(masked)
        if self._closing in masked.shape or len(self._dict) > MAX_LINES:
            lines, self._dict = self._dict, []
            if self._closing in masked.shape and not any("{" in part.shape for part in lines[1:]):
                yield _together([part.shape.strip() for part in lines], lines)
            else:
                yield from lines

    def _in_box(self, masked: Masked) -> bool:
        """Add a line `| name | value |` to the open box; return whether it is one."""
        box = grammar.BOX_ROW.match(masked.shape)
        if not box:
            return False
        name, value = box[1].strip(), box[2].strip()
        if set(name) <= set("-: ") or MASK in name:
            return False
        if not self._box:
            self._group = ""
        # SB3 indents the names of a group below its title.
        cells = name, value, box[1].startswith("    ")
        if len(self._boxes) < MAX_BOXES:
            self._boxes[masked.shape] = cells
        self._add_to_box(cells, masked)
        return True

    def _add_to_box(self, cells: tuple[str, str, bool], masked: Masked) -> None:
        """Add a name, its value, and whether it is indented to the open box."""
        name, value, indented = cells
        if value:
            self._box.append(Masked(f"{self._group if indented else ''}{name}: {value}", masked.numbers, masked.line))
        else:
            self._group = name.rstrip("/") + "/"

    def _is_below(self, masked: Masked) -> bool:
        """Return whether a line is a name and its value alone, which then belongs to the block."""
        if len(self._below) >= MAX_LINES:
            return False
        found = grammar.NAMED_LINE.fullmatch(masked.shape, grammar.past_masked_prefix(masked.shape))
        if not found or MASK in found["name"] or found["name"] in self._below:
            return False
        if not self._ruled and not grammar.PAIR_LINE.fullmatch(masked.shape):
            return False
        prefix = masked.shape[: found.start("name")].count(MASK)
        count = found["value"].count(MASK)
        self._below[found["name"]] = Masked(found["value"], masked.numbers[prefix : prefix + count], masked.line)
        return True

    def _columns_of(self, text: str) -> list[str]:
        """Return the names of a header line: the first is a step or an epoch, and one a loss or part of one."""
        if not grammar.COLUMNS.fullmatch(text):
            return []
        words = text.split()
        if len(words) < MIN_COLUMNS or role(words[0], self._names).role not in ("step", "epoch"):
            return []
        words = [_full_name(word) for word in words]
        if "total" in words and any(part_of(word) for word in words):
            words[words.index("total")] = "total_loss"
        if any(part_of(word) or "loss" in word.lower() or role(word, self._names).role == "loss" for word in words):
            return words
        return []

    def _of_all(self, masked: Masked) -> Masked:
        """Return what a detector prints below `Class Images P R mAP@0.5` of all classes, with its names."""
        cells = masked.shape.split()[1:]
        if len(cells) != len(self._measured) or not all(grammar.CELL.fullmatch(cell) for cell in cells):
            return masked
        names = [f"valid/{name.replace('(', '_')}" for name in self._measured]
        return Masked(_named(names, cells), masked.numbers, masked.line)

    def _is_row(self, shape: str) -> bool:
        """Return whether a line is a row below the names of columns; end the table after too many other lines."""
        if not self._columns:
            return False
        cells = shape.split(None, len(self._columns))[: len(self._columns)]
        if len(cells) == len(self._columns) and all(grammar.CELL.fullmatch(cell) for cell in cells):
            self._others = 0
            return True
        self._others += bool(shape.strip()) and "%" not in shape  # a bar is drawn any number of times
        if self._others > MAX_BETWEEN:
            self._columns = []
        return False

    def _redrawn(self, masked: Masked) -> Iterator[Masked]:
        """Return the row before, unless this one replaces it: of an epoch drawn several times the last row counts."""
        count = len(self._columns)
        cells = [cell.rstrip(":") for cell in masked.shape.split(None, count)[:count]]
        held = sum(cell.count(MASK) for cell in cells)
        first = tuple(masked.numbers[: cells[0].count(MASK)])
        if first != tuple(self._row.numbers[: len(first)]) or not self._row.shape:
            yield from self._last_row()
        self._row = Masked(_named(self._columns, cells), masked.numbers[:held], masked.line)

    def _last_row(self) -> Iterator[Masked]:
        row, self._row = self._row, Masked("", (), 0)
        if row.shape:
            yield row

    def _close(self) -> Iterator[Masked]:
        below, self._below = self._below, {}
        if below:
            located = any(role(name, self._names).role in ("step", "epoch") for name in below)
            parts = [Masked(f"{name}: {part.shape}", part.numbers, part.line) for name, part in below.items()]
            if located or (not self._ruled and len(below) >= MIN_NAMED):
                yield _together(_quoted(parts), parts)
            else:
                yield from parts
        self._ruled = False
        if self._box:
            parts, self._box = self._box, []
            yield _together(_quoted(parts), parts)


def _full_name(column: str) -> str:
    """Return the full name of a column that is a part of the loss: `train/box_loss` for `box`."""
    for full in (f"train/{column}", f"train/{column}_loss"):
        if part_of(full):
            return full
    return column


def _named(names: list[str], cells: list[str]) -> str:
    return ", ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))


def _quoted(parts: Sequence[Masked]) -> list[str]:
    """Return the parts of a block as those of a dict."""
    texts = [part.shape.replace(": ", "': '") for part in parts]
    return ["{'" + "', '".join(texts) + "'}"]


def _together(shapes: list[str], parts: Sequence[Masked]) -> Masked:
    """Return one line with the numbers of all parts."""
    numbers = [*chain.from_iterable(part.numbers for part in parts)]
    return Masked(" ".join(shapes), numbers, parts[0].line)
