"""What stands below the header of a delimited file, taken over a block of whole lines at a time.

A block in which every line has as many delimiters as the header, and no quote or comment, is taken apart at once:
as one list of JSON numbers, which is how the fastest parser at hand wants it, where it holds nothing else; otherwise
column by column. Any other block is read line by line, and the next one at once again. All give the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.table import Skips
from stabtree.loaders.tables.cells import LACKING, ColumnBuilder, builder_of
from stabtree.loaders.tables.linewise import BLANKS, anchors, bare, records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.tables.layout import Layout
    from stabtree.metrics.names import Names

_END = "\n"
MAX_HEADERS = 1000
# Three digits behind a comma may be thousands, but not where a column of one of these has no point.
FRACTIONS = ("loss", "eval_loss", "grad_norm", "lr")
# What is kept of the text above, to tell a line that is cut from one that only lacks its end.
KEPT = 1 << 14


@dataclass(slots=True)
class Body:
    """Collects the rows of a delimited file.

    Attributes:
        layout: how the file is laid out, by the header that was met last.
        names: which columns are wanted.
        columns: every column of any header, None for one that is not wanted.
        skips: the lines that could not be read.
        rows: how many were read.
        short: those of them that have fewer cells than the header.
        lines: how many lines were taken over, the header and those above it included.
    """

    layout: Layout
    names: Names
    columns: dict[str, ColumnBuilder | None] = field(default_factory=dict)
    skips: Skips = field(default_factory=Skips)
    rows: int = 0
    short: list[int] = field(default_factory=list)
    lines: int = 0
    _above: str = ""
    _builders: dict[int, ColumnBuilder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._below(self.layout)

    def add(self, text: str, *, last: bool = False) -> str:
        """Take over whole lines; what can be understood only with the lines after it comes back."""
        block = self._below_header(text)
        count = self._rows_of(block)
        above, self._above = self._above, (self._above + block)[-KEPT:]
        if count and self._add_rows(block, count):
            self.rows += count
            self.lines += count
            return ""
        cells = () if block.endswith(_END) else _last_cells(above, self.layout.delimiter)
        parts, rest = records(block, self.lines + 1, self.layout, self.skips, last=last, above=cells)
        for part in parts:
            if part.layout is not self.layout:
                self._below(part.layout)
            places = [place for place, _ in part.rows]
            self.short += [self.rows + row for row, (_, cells) in enumerate(part.rows) if cells[-1] is LACKING]
            for index, builder in self._builders.items():
                builder.add([cells[index] for _, cells in part.rows], places)
            self.rows += len(part.rows)
        self.lines += block.count(_END) - rest.count(_END)
        return rest

    def _below(self, layout: Layout) -> None:
        """Go on below a header, the first one or another."""
        if len(self.skips.headers) > MAX_HEADERS:
            raise StabtreeError(
                f"has more than {MAX_HEADERS} headers of other columns",
                where=f"line {self.skips.headers[-1]}",
                hint="write the rows of each header to a file of their own",
            )
        self.layout = layout
        self._builders = {}
        for place, name in enumerate(layout.names):
            if name not in self.columns:
                wanted = self.names.wanted(name)
                self.columns[name] = self._builder(name) if wanted else None
            if builder := self.columns[name]:
                builder.pad(self.rows)
                self._builders[place] = builder

    def _builder(self, name: str) -> ColumnBuilder:
        layout = self.layout
        decimal = name in layout.commas and self.names.role(name) in FRACTIONS
        return builder_of(name, self.names, "decimal" if decimal else layout.comma)

    def _below_header(self, text: str) -> str:
        while self.lines < self.layout.header_line and text:
            line, _, text = text.partition(_END)
            self.lines += 1
            if self.lines < self.layout.header_line and line.strip(" \0") and not line.startswith("#"):
                self.skips.add(self.lines, f"comes before the header: {clean(line, 40)!r}")
        return text

    def _rows_of(self, block: str) -> int:
        """The number of rows of a block whose lines have the header's number of fields each; 0 for any other."""
        mark, width = self.layout.delimiter, len(self.layout.names)
        # Several blanks may stand between two fields, and a lone field may be a blank line.
        if mark == " " or width < 2 or '"' in block or not block.endswith(_END):
            return 0
        others = bytes(set(range(256)).difference((mark + _END).encode()))
        marks = block.encode().translate(None, others)
        count = len(marks) // width
        return count if marks == (mark * (width - 1) + _END).encode() * count else 0

    def _add_rows(self, block: str, count: int) -> bool:
        """Take over a regular block; False where a line of it may be a comment, or the header once more."""
        names, mark = self.layout.names, self.layout.delimiter
        text = block[:-1].replace(_END, mark)
        if self._add_numbers(text, count, len(names), self._builders):
            return True
        if "\0" in block or block.startswith("#") or "\n#" in block:
            return False
        cells = text.split(mark)
        around = any(blank in block for blank in BLANKS if blank != mark)
        for place in anchors(names):
            column = cells[place :: len(names)]
            if not frozenset(names).isdisjoint(map(bare, column) if around else column):
                return False
        places = range(self.lines + 1, self.lines + 1 + count)
        for index, builder in self._builders.items():
            column = cells[index :: len(names)]
            if not self._add_numbers(mark.join(column), count, 1, {0: builder}):
                builder.add(column, places)
        return True

    def _add_numbers(self, text: str, count: int, width: int, builders: Mapping[int, ColumnBuilder]) -> bool:
        """Take over cells that are plain numbers, and either `nan` or empty here and there; False if they are not."""
        # JSON knows true and false, which are a 1 and a 0 in few columns only; one letter is found far faster.
        truths = ("u" in text and "true" in text) or ("s" in text and "false" in text)
        if truths or any(builder.labels for builder in builders.values()):
            return False
        if self.layout.delimiter != ",":
            if "," in text and self.layout.comma != "decimal":
                return False
            text = text.replace(",", ".").replace(self.layout.delimiter, ",")
        cells, blank = _numbers(text)
        if len(cells) != count * width:
            return False
        try:
            columns = [np.fromiter(cells[index::width], np.float64, count) for index in builders]
        except (ValueError, TypeError):
            return False
        for builder, values in zip(builders.values(), columns, strict=True):
            builder.add_numbers(values, ~np.isnan(values) if blank else None)
        return True


def _last_cells(block: str, mark: str) -> list[str]:
    """The last cell of each whole line."""
    return [line.rpartition(mark)[2].strip(BLANKS) for line in block.split(_END)[1:-1]]


def _numbers(text: str) -> tuple[list[Any], bool]:
    """The cells of a text with commas between as JSON reads them, and whether a None is a cell without a value.

    It is a logged NaN otherwise. None where JSON can't read them, and where they hold both.
    """
    if "u" in text and "null" in text:
        return _loads(text), True
    if cells := _loads(text):
        return cells, False
    # Of three commas in a row only two are found at once.
    filled = f",{text},".replace(",,", ",null,").replace(",,", ",null,")[1:-1]
    if len(filled) > len(text):
        return _loads(filled), True
    spelled = "NaN" if "NaN" in text else "nan"
    return _loads(text.replace(spelled, "null")), False


def _loads(text: str) -> list[Any]:
    import orjson

    try:
        cells: list[Any] = orjson.loads(f"[{text}]")
    except ValueError:
        return []
    return cells
