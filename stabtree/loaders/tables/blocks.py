"""The rows below the header of a delimited file, read in blocks of whole lines.

A block in which every line has as many delimiters as the header, and no quote or comment, is split at once: as one
list of JSON numbers, which orjson parses fastest, if it holds nothing else; otherwise column by column. Any other
block is read line by line, and the next one is tried at once again. Large blocks are given to pyarrow first, and are
cut into smaller ones if it can't read them. The result is always the same.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.table import Skips
from stabtree.loaders.tables import arrow
from stabtree.loaders.tables.cells import MISSING_CELL, ColumnBuilder, builder_of
from stabtree.loaders.tables.linewise import BLANKS, Below, anchors, bare, records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.loaders.tables.layout import Layout
    from stabtree.metrics.names import Names

_END = "\n"
MAX_HEADERS = 1000
# Three digits behind a comma may be thousands, but not where a column of one of these has no point.
FRACTIONS = ("loss", "eval_loss", "grad_norm", "lr")
# Characters kept of the text above, to distinguish a line that is cut from one that only lacks its end.
KEPT = 1 << 14
# Characters read at once: what is parsed of them still lies in the processor's cache.
PIECE = 1 << 17


@dataclass(slots=True)
class Body:
    """Collects the rows of a delimited file.

    Attributes:
        layout: how the rows below the latest header are laid out.
        names: what the columns mean.
        size: bytes of the file as stored.
        columns: every column of any header.
        skips: the lines that could not be read.
        rows: the number of rows read.
        short: the indices of rows with fewer cells than the header.
        lines: the number of lines read, with the header and those above it.
        large: whether pyarrow may read it.
    """

    layout: Layout
    names: Names
    size: int = 0
    columns: dict[str, ColumnBuilder] = field(default_factory=dict)
    skips: Skips = field(default_factory=Skips)
    rows: int = 0
    short: list[int] = field(default_factory=list)
    lines: int = 0
    large: bool = False
    _above: str = ""
    _builders: dict[int, ColumnBuilder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.large = arrow.helps(self.size, self.layout)
        self._start_header(self.layout)

    def add(self, text: str, *, last: bool = False) -> str:
        """Read whole lines; return the text that can be understood only with the lines after it."""
        block = self._skip_to_rows(text)
        if not self.large or len(block) < arrow.BLOCK:
            return self._add_block(block, last=last)
        if block.endswith(_END) and self._add_by_arrow(block):
            return ""
        start, rest = 0, ""
        while start < len(block):
            end = block.find(_END, start + PIECE) + 1 or len(block)
            rest = self._add_block(rest + block[start:end], last=last and end == len(block))
            start = end
        return rest

    def _add_block(self, block: str, *, last: bool) -> str:
        count = self._count_regular_rows(block)
        above, self._above = self._above, (self._above + block)[-KEPT:]
        if count and self._add_regular(block, count):
            self.rows += count
            self.lines += count
            return ""
        last_cells = () if block.endswith(_END) else _last_cells(above, self.layout.delimiter)
        parts, rest = records(block, self.lines + 1, self.layout, self.skips, last=last, above=last_cells)
        for part in parts:
            self._add_part(part)
        self.lines += block.count(_END) - rest.count(_END)
        return rest

    def _add_by_arrow(self, block: str) -> bool:
        builders = self._builders
        if not builders or any(builder.labels for builder in builders.values()):
            return False
        columns = arrow.columns(block, self.layout, builders)
        if columns is None:
            return False
        count = len(columns[0])
        for builder, column in zip(builders.values(), columns, strict=True):
            builder.reserve(count * self.size // len(block))
            for values, logged in arrow.parts(column):
                builder.add_numbers(values, logged)
        self.rows += count
        self.lines += count
        self._above = block[-KEPT:]
        return True

    def _add_part(self, part: Below) -> None:
        if part.layout is not self.layout:
            self._start_header(part.layout)
        lines = [line for line, _ in part.rows]
        self.short += [row for row, (_, cells) in enumerate(part.rows, self.rows) if cells[-1] is MISSING_CELL]
        for index, builder in self._builders.items():
            builder.add([cells[index] for _, cells in part.rows], lines)
        self._drop_given_up()
        self.rows += len(part.rows)

    def _start_header(self, layout: Layout) -> None:
        """Read the rows to come by a header, the first one or another."""
        if len(self.skips.headers) > MAX_HEADERS:
            raise StabtreeError(
                f"has more than {MAX_HEADERS} headers of other columns",
                where=f"line {self.skips.headers[-1]}",
                hint="write the rows of each header to a file of their own",
            )
        self.layout = layout
        self._builders = {}
        for index, name in enumerate(layout.names):
            if name not in self.columns:
                self.columns[name] = self._builder(name)
            builder = self.columns[name]
            if not builder.given_up:
                builder.pad(self.rows)
                self._builders[index] = builder

    def _builder(self, name: str) -> ColumnBuilder:
        layout = self.layout
        decimal = name in layout.commas and self.names.role(name) in FRACTIONS
        return builder_of(name, self.names, "decimal" if decimal else layout.comma)

    def _skip_to_rows(self, text: str) -> str:
        while self.lines < self.layout.header_line and text:
            line, _, text = text.partition(_END)
            self.lines += 1
            if self.lines < self.layout.header_line and line.strip(" \0") and not line.startswith("#"):
                self.skips.add(self.lines, f"comes before the header: {clean(line, 40)!r}")
        return text

    def _count_regular_rows(self, block: str) -> int:
        """Return the number of rows of a block if each has as many fields as the header, else 0."""
        delimiter, width = self.layout.delimiter, len(self.layout.names)
        # Several blanks may separate two fields, and a lone field may be a blank line.
        if delimiter == " " or width < 2 or '"' in block or not block.endswith(_END):
            return 0
        others = bytes(set(range(256)).difference((delimiter + _END).encode()))
        marks = block.encode().translate(None, others)
        count = len(marks) // width
        if marks == (delimiter * (width - 1) + _END).encode() * count:
            return count
        return 0

    def _add_regular(self, block: str, count: int) -> bool:
        """Append the rows of a regular block; return False if a line may be a comment, or the header once more."""
        names, delimiter = self.layout.names, self.layout.delimiter
        text = block[:-1].replace(_END, delimiter)
        if self._add_numbers(text, count, self._builders, len(names)):
            return True
        if "\0" in block or block.startswith("#") or "\n#" in block:
            return False
        cells = text.split(delimiter)
        if self._may_repeat_header(block, cells):
            return False
        lines = range(self.lines + 1, self.lines + 1 + count)
        for index, builder in self._builders.items():
            column = cells[index :: len(names)]
            if not self._add_numbers(delimiter.join(column), count, {0: builder}):
                builder.add(column, lines)
        self._drop_given_up()
        return True

    def _drop_given_up(self) -> None:
        self._builders = {index: builder for index, builder in self._builders.items() if not builder.given_up}

    def _may_repeat_header(self, block: str, cells: list[str]) -> bool:
        names = self.layout.names
        padded = any(blank in block for blank in BLANKS if blank != self.layout.delimiter)
        for index in anchors(names):
            column: Iterable[str] = cells[index :: len(names)]
            if padded:
                column = map(bare, column)
            if not frozenset(names).isdisjoint(column):
                return True
        return False

    def _add_numbers(self, text: str, count: int, builders: Mapping[int, ColumnBuilder], width: int = 1) -> bool:
        """Append cells that are numbers, with `nan` or nothing here and there; return False if they are not."""
        if _may_hold_truths(text) or any(builder.labels for builder in builders.values()):
            return False
        if self.layout.delimiter != ",":
            if "," in text and self.layout.comma != "decimal":
                return False
            text = text.replace(",", ".").replace(self.layout.delimiter, ",")
        cells, with_empty = _parse_numbers(text)
        if len(cells) != count * width:
            return False
        try:
            columns = [np.fromiter(cells[index::width], np.float64, count) for index in builders]
        except (ValueError, TypeError):
            return False
        for builder, values in zip(builders.values(), columns, strict=True):
            builder.add_numbers(values, ~np.isnan(values) if with_empty else None)
        return True


def _last_cells(block: str, delimiter: str) -> list[str]:
    """Return the last cell of each whole line."""
    return [line.rpartition(delimiter)[2].strip(BLANKS) for line in block.split(_END)[1:-1]]


def _may_hold_truths(text: str) -> bool:
    """Return whether a text may hold true or false, which JSON reads but few columns take for 1 and 0."""
    # One letter is found far faster than a word.
    return ("u" in text and "true" in text) or ("s" in text and "false" in text)


def _parse_numbers(text: str) -> tuple[list[Any], bool]:
    """Parse cells with commas between as JSON.

    Returns:
        The cells, none if JSON can't read them or some are empty and others NaN; and whether a None among them is an
        empty cell. Otherwise it is a logged NaN.
    """
    if "u" in text and "null" in text:
        return _parse_json(text), True
    if cells := _parse_json(text):
        return cells, False
    # Of three commas in a row only two are found at once.
    filled = f",{text},".replace(",,", ",null,").replace(",,", ",null,")[1:-1]
    if len(filled) > len(text):
        return _parse_json(filled), True
    nan = "NaN" if "NaN" in text else "nan"
    return _parse_json(text.replace(nan, "null")), False


def _parse_json(text: str) -> list[Any]:
    import orjson

    try:
        cells: list[Any] = orjson.loads(f"[{text}]")
    except ValueError:
        return []
    return cells
