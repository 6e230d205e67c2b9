"""CSV and its kin: rows of cells with comma, semicolon, tab, bar or blanks between, below a line that names them.

A block in which every line has as many delimiters as the header, and no quote or comment, is split at once: as one
list of JSON numbers if it holds nothing else, otherwise column by column. Any other block is read line by line. The
result is the same.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import lru_cache
from itertools import chain, count, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import NoRowsError, StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.source import HEAD_BYTES, Sure
from stabtree.loaders.table import Skips, Table, check_width
from stabtree.loaders.tables.cells import (
    MISSING_CELL,
    QUOTED_LINES,
    Comma,
    Line,
    builder_of,
    has_numbers,
    joined_quotes,
    numeric,
    parse_numbers,
)
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.cells import ColumnBuilder
    from stabtree.loaders.tables.long import LongTable
    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

# Metrics of which three digits behind a comma are decimals, even where another column has points.
FRACTIONS = ("loss", "eval_loss", "grad_norm", "lr")
BLANKS_APART = "  "  # two blanks or more, between names that hold one
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank", BLANKS_APART: "blanks"}
# Banners and configuration that trainers print before the header; beyond that a text log is likelier.
HEADER_WITHIN = 150
LOOK_AT = HEADER_WITHIN + 50
COMMENTS = 5  # lines above the rows that begin with #, of which one may name the columns
# If the head holds no more lines, more are read, of up to so many characters each.
FEW_LINES = 10
MAX_HEAD = 4 << 20
LISTED = 5
# What may surround the text of a cell.
BLANKS = " \t'\"\0"
# Each block costs a little for each column, so that one of a wide file holds many rows.
WIDE_ROWS = 20
MAX_BLOCK = 8 << 20
# Characters kept of the text above, to tell a line that is cut from one that only lacks its end.
KEPT = 1 << 14
MIN_ROWS_ABOVE = 10
CUT = "is cut: the file ends inside this line"
# Three digits after the comma may be thousands, unless a zero precedes it.
_SURE_DECIMAL = re.compile(r"[+-]?(0?,\d+|\d*,(\d{1,2}|\d{4,}))(e[+-]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?(?!0\d)\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)  # 03.12 is a day
_BEGUN = re.compile(r"\s*[+-]?\d*[.,]?\d*([eE][+-]?\d*)?")  # a number, or as much of it as was written
_GROUP = re.compile(r"[(\[][^()\[\]]{0,200}[)\]]")  # commas in it separate no cells: tensor(0.1, device='cuda:0')
_UNIT = re.compile(r"\s+[\[(][^\[\]()\s]{1,12}[\])]")  # behind a name: `energy [eV]`
_SETTING = re.compile(r"\s*([A-Za-z][\w.-]{0,60})\s*[:=]\s*['\"]?([^\s'\"]{1,80})['\"]?,?\s*")
_APART = re.compile(r"\s{2,}|\t")
_NAMELESS = {2: ("step",), 3: ("epoch", "step")}  # what counts the rows of a file without a header, by its columns
_SPLITS = frozenset(("train", "training", "val", "valid", "validation", "eval", "test", "dev"))
VALUE = "loss"  # what a file of two bare columns holds if its name does not say


class Layout(NamedTuple):
    """Where the header is and what separates its fields."""

    delimiter: str  # one character; a blank means any number of blanks
    names: tuple[str, ...]  # the header's fields, unquoted, made distinct
    header_line: int  # its line number, from 1; 0 where there is none
    comma: Comma = "thousands"  # what a comma inside a number means
    rows: int = 0  # rows of data below it in the first lines
    agree: float = 0.0  # the share of those that have as many fields as the header
    with_commas: frozenset[str] = frozenset()  # the columns that have numbers with commas there, and no point


def split(line: str, delimiter: str) -> list[str]:
    """Split a line into its fields. Quotes are honoured; one that is never closed ends with the line."""
    if delimiter == BLANKS_APART:
        return _APART.split(line.strip())
    mark = None if delimiter == " " else delimiter
    if '"' in line:
        row = line if mark else " ".join(line.split())
        try:
            return next(csv.reader([row], delimiter=delimiter, skipinitialspace=True))
        except csv.Error:  # longer than the reader takes
            return line.split(mark)
    if ("(" in line or "[" in line) and delimiter in ", ":
        hidden = _GROUP.sub(lambda group: group[0].replace(delimiter, "\0"), line)
        return [cell.replace("\0", delimiter) for cell in hidden.split(mark)]
    return line.split(mark)


# Sniffing asks, then reading asks again.
@lru_cache(maxsize=4)
def find_layout(head: str) -> Layout | None:
    """Return the layout of the file that begins with `head`: the best by any delimiter; None if there is none.

    A file without a header comes back with `header_line` 0.
    """
    lines = head.split("\n", LOOK_AT)
    if len(lines) > 2:
        del lines[-1]  # the head may end inside a line
    numbered = [(place, line) for place, line in enumerate(lines[:LOOK_AT], 1) if line.strip(" \0")]
    plain = [(place, line) for place, line in numbered if not line.startswith("#")]
    readings = [plain]
    above = [line for line in numbered if line[1].startswith("#") and plain and line[0] < plain[0][0]]
    # One of the last comments may be the header, as `numpy.savetxt` writes it.
    for place, line in above[-COMMENTS:]:
        readings.append([(place, line.lstrip("# \t")), *plain])
    if '"' in head:
        # Where each row holds a text of several lines, no single line has the right number of fields.
        whole = head[: head.rfind("\n")].split("\n", LOOK_AT * QUOTED_LINES)[: LOOK_AT * QUOTED_LINES]
        readings.append(joined_quotes(whole)[:LOOK_AT])
    layouts = [_layout_by(reading, delimiter) for reading in readings for delimiter in NAMES if reading]
    return max(
        filter(None, layouts),
        key=lambda layout: (
            layout.rows > 0,
            layout.agree * min(layout.rows, 20),
            layout.header_line > 0,
            not any(name[:1].isdigit() for name in layout.names),  # `0;3,010;0,001` is no header of three names
            len(layout.names),
        ),
        default=None,
    )


def _layout_by(numbered: list[Line], delimiter: str) -> Layout | None:
    """Return the layout of lines that are split at a delimiter; None if they make no table."""
    if delimiter not in {",", " "} and not any(delimiter in line for _, line in numbered):
        return None  # one column is the same by any delimiter
    rows = [[cell.strip() for cell in split(line, delimiter)] for _, line in numbered]
    # A printed configuration above the rows holds no tabs.
    counts = Counter(map(len, rows))
    if delimiter == "\t":
        del counts[1]
    width = max(counts, key=lambda width: (counts[width] + (width > 1), width))
    if delimiter.isspace() and width < 2:
        return None
    for index, fields in enumerate(rows[:HEADER_WITHIN]):
        below = rows[index + 1 :]
        header = fields
        if delimiter == " " and len(fields) != width:
            header = _wider_header(numbered[index][1], width) or fields
        # Some writers end every row with a delimiter, but not the header.
        dangling = len(header) == width - 1 > 0 and all(_fits(cells, len(header)) for cells in below)
        if (len(header) == width or dangling) and _is_header(header):
            return _checked(delimiter, distinct(header), numbered[index][0], below)
    first = next((fields for fields in rows[:HEADER_WITHIN] if len(fields) == width), [])
    if width >= 2 and first and all(map(numeric, filter(None, first))):
        return _checked(delimiter, distinct([""] * width), 0, rows)
    return None


def _wider_header(line: str, width: int) -> list[str]:
    """Return the names of so many columns in a line that blanks alone don't split so; none if nothing does.

    Names may have units behind them (`energy [eV]`), or commas between, and not between the cells.
    """
    others = (_UNIT.sub("", line).split(), _spread(re.split(r"\s*,\s*", line.lstrip("# \t")), width))
    return next((names for names in others if len(names) == width), [])


def _spread(names: list[str], width: int) -> list[str]:
    """Return the names of so many columns, where a header names a counter, then losses of several terms each."""
    terms, rest = divmod(width - 1, 2)
    if len(names) > width > 1:
        return names[:width]
    if len(names) == width or not terms or not len(names) >= 3 or rest > len(names) - 3:
        return names
    return [names[0], *[names[1]] * terms, *[names[2]] * terms, *names[3 : 3 + rest]]


def _checked(delimiter: str, names: tuple[str, ...], header_line: int, below: list[list[str]]) -> Layout | None:
    """Return a layout, unless the rows below the header don't look like rows of numbers."""
    blank = delimiter.isspace() and delimiter != "\t"
    if not below:
        return Layout(delimiter, names, header_line) if not blank and len(names) > 1 else None
    fit = [cells for cells in below if _fits(cells, len(names))]
    agree = len(fit) / len(below)
    # Words separated by blanks are prose unless the rows are nothing but numbers.
    plausible = sum(not any(cells) or has_numbers(cells, 0.75 if blank else 0.01) for cells in fit)
    if plausible < 0.5 * len(below) or ((blank or len(names) == 1) and agree < (0.8 if header_line else 0.6)):
        return None
    cells = list(chain.from_iterable(fit)) if delimiter != "," else []
    # A date such as 03.12.2024 has points, too, but no number has two of them and no comma.
    decimal = any(map(_SURE_DECIMAL.fullmatch, cells)) or (delimiter == ";" and not any(map(_POINT.fullmatch, cells)))
    with_commas = frozenset(
        name
        for name, column in zip(names, zip(*(row[: len(names)] for row in fit), strict=True), strict=False)
        if delimiter != "," and any("," in cell and numeric(cell) for cell in column) and "." not in "".join(column)
    )
    return Layout(delimiter, names, header_line, "decimal" if decimal else "thousands", len(fit), agree, with_commas)


def _fits(cells: list[str], width: int) -> bool:
    """Return whether a row has so many fields, not counting empty ones at its end."""
    return len(cells) >= width and not any(cells[width:])


def _is_header(fields: list[str]) -> bool:
    """Return whether the fields are names: mostly words, and not all the same, though each may occur twice."""
    if len(fields) > 1 and not fields[0]:
        fields = fields[1:]  # the index of a data frame has no name
    words = [name for name in fields if any(map(str.isalpha, name)) and not numeric(name)]
    return len(words) > 0.5 * len(fields) and len(set(words)) >= max(0.5 * len(words), min(2, len(words)))


def distinct(fields: list[str]) -> tuple[str, ...]:
    """Return the names, an empty one as `column N`, a repeated one with its count: `loss`, `loss (2)`."""
    seen: Counter[str] = Counter()
    names = []
    for position, text in enumerate(fields, 1):
        name = text.strip(BLANKS) or f"column {position}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def head_of(source: Source) -> str:
    """Return the first lines: some more than the head if it holds few, as with ten thousand columns."""
    if len(source.data) < HEAD_BYTES or source.head.count("\n") > FEW_LINES:
        return source.head
    lines: list[str] = []
    for line in source.lines():
        if len(line) > MAX_HEAD or len(lines) > FEW_LINES:
            break
        lines.append(line)
    return "\n".join([*lines, ""]) if len(lines) > 1 else source.head


def _by_file_name(source: Source, layout: Layout) -> tuple[Layout, bool]:
    """Name bare columns: one or two that count the rows, then what the file's own name says; and whether it does."""
    counters = _NAMELESS.get(len(layout.names))
    if counters is None:
        return layout, False
    rows = [split(line, layout.delimiter) for line in source.head.split("\n", LOOK_AT)[:-1]]
    rows = [row for row in rows if len(row) == len(layout.names) and all(map(numeric, row))]
    axes = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)][: len(counters)]
    if not axes or not all(cell.isdecimal() and len(cell) < 16 for axis in axes for cell in axis):
        return layout, False
    if any(int(late) <= int(early) for early, late in pairwise(axes[-1])):
        return layout, False
    name = source.name.partition(".")[0]
    reading = describe_name(name)
    said = bool(reading.loss or reading.named or reading.metric)
    if said and source.file and source.file.absolute().parent.name.lower() in _SPLITS:
        name = f"{source.file.absolute().parent.name}/{name}"
    if not said and len(counters) > 1:
        return layout, False
    return layout._replace(names=(*counters, name if said else VALUE)), said


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a delimited file."""
    if source.binary or source.head.lstrip().startswith(("{", "[")):
        return Sure.NO
    layout = find_layout(head_of(source))
    if not layout:
        return Sure.NO
    if not layout.header_line or not layout.rows:
        return Sure.LIKELY if _by_file_name(source, layout)[1] else Sure.HARDLY
    if layout.agree == 1.0:
        return Sure.SURELY
    return Sure.LIKELY if 3 * layout.agree >= 1.0 else Sure.MAYBE


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """Read the columns that hold numbers.

    Raises:
        StabtreeError: if nothing names its columns, or nothing stands below, or it has too many columns.
    """
    layout = find_layout(head_of(source))
    own_names = layout.names if layout else ()
    if layout and not layout.header_line:
        layout, _ = _by_file_name(source, layout)
    if not layout or (not layout.header_line and layout.names == own_names):
        hint = "add a first line such as step,loss,grad_norm,lr" if layout else "check --format"
        problem = "has no header line that names its columns" if layout else "is not a delimited file"
        raise StabtreeError(problem, where=source.path, hint=hint)
    if any(name.strip().lower().endswith(("value", "val")) for name in layout.names):
        from stabtree.loaders.tables.long import LongTable, long_layout  # which no other table needs

        shown = head_of(source).split("\n", LOOK_AT)[layout.header_line : -1]
        long = long_layout(layout.names, names, (split(line, layout.delimiter) for line in shown))
        if long:
            return _read_long(source, layout, LongTable(long, names))
    body = _Body(source.path, layout, names)
    lines = source.lines()
    min_size = min(MAX_BLOCK, WIDE_ROWS * sum(map(len, layout.names)))
    rest, parts, size = "", list[str](), 0
    for block in lines.blocks():
        parts.append(block)
        size += len(block)
        if size >= min_size:
            rest = body.add(rest + "".join(parts), last=False)
            parts, size = [], 0
    body.add(rest + "".join(parts), last=True)
    if not body.rows:
        kind = NoRowsError if any(map(names.metric, layout.names)) else StabtreeError
        raise kind(
            "is cut, and holds a header but no rows before that" if source.cut else "has a header but no rows",
            where=source.path,
            hint="check that the run logged anything before it stopped",
        )
    for builder in body.columns.values():
        builder.pad(body.rows)
    columns = {name: None if builder.given_up else builder.column() for name, builder in body.columns.items()}
    config, wrong = _settings_above(body.preface) if body.preface else ({}, [])
    kind_of = "csv" if layout.delimiter == "," else f"csv, {NAMES[layout.delimiter]} separated"
    return Table(
        path=source.path,
        format=source.describe(f"{kind_of}, decimal commas" if layout.comma == "decimal" else kind_of),
        rows=body.rows,
        columns=columns,
        config=config,
        skipped=tuple(body.skips.first),
        skipped_count=body.skips.count,
        notes=(*lines.notes, *_notes(body), *wrong),
    )


def _read_long(source: Source, layout: Layout, table: LongTable) -> tuple[Table, ...]:
    """Read a table whose rows hold a name and a value."""
    lines, skips = source.lines(), Skips()
    kept = islice(lines, layout.header_line, None)
    if layout.delimiter in (" ", "  "):
        rows: Iterator[list[str]] = (split(line, layout.delimiter) for line in kept)
    else:  # texts of settings may run over several lines
        rows = csv.reader((f"{line}\n" for line in kept), delimiter=layout.delimiter)
    for place in count(layout.header_line + 1):
        try:
            cells = next(rows)
        except StopIteration:
            break
        except csv.Error:
            cells = []
        if len(cells) == len(layout.names):
            table.add([cell.replace(",", ".") for cell in cells] if layout.comma == "decimal" else cells)
        elif cells:
            skips.add(place, f"has {len(cells)} fields where the header has {len(layout.names)}")
    first, *others = table.tables(source.path, source.describe("csv"), lines.notes)
    return (replace(first, skipped=tuple(skips.first), skipped_count=skips.count), *others)


def _settings_above(lines: Sequence[str]) -> tuple[dict[str, ConfigScalar], list[str]]:
    """Return the configuration that a trainer printed above its table, and notes on it."""
    printed = filter(None, (_SETTING.fullmatch(line[:KEPT]) for line in lines))
    return read_config({match[1]: match[2] for match in printed})


def _notes(body: _Body) -> Iterator[str]:
    """Describe what was read although something is wrong with it."""
    skips = body.skips
    built = {name: builder for name, builder in body.columns.items() if body.names.wanted(name)}
    if not body.layout.header_line:
        yield f"No line names its columns: they were taken for {', '.join(body.layout.names)}."
    if body.preface:
        yield f"Lines above the header: {len(body.preface)}, the first is {clean(body.preface[0], 40)!r}."
    if twice := [name for name in built if f"{name} (2)" in body.columns]:
        yield f"Columns that have the same name as one before them are not read: {_listed(twice)}."
    if skips.headers:
        yield (
            f"Headers with other columns, or in another order: {len(skips.headers)} (line {_listed(skips.headers)}), "
            "the rows below were read by them."
        )
    if skips.comments:
        first = f"the first is line {skips.first_comment}"
        yield f"Comment lines, which begin with #: {skips.comments:,}, skipped; {first}."
    if skips.quotes:
        yield f"Lines with a quote that is never closed: {skips.quotes}, each read as a row by itself."
    if skips.short:
        yield f"Rows with fewer fields than the header: {skips.short}, their missing cells are not logged."
    if grouped := next((builder.grouped for builder in built.values() if builder.grouped), ""):
        yield f"Commas inside numbers are read as thousands separators ({grouped})."


def _listed(items: Sequence[object]) -> str:
    return ", ".join(clean(item, 40) for item in items[:LISTED])


class _Body(Struct):
    """Collects the rows of a delimited file."""

    path: str  # the file as the user named it
    layout: Layout  # how the rows below the latest header are laid out
    names: Names  # what the columns mean
    columns: dict[str, ColumnBuilder] = field(default_factory=dict)  # every column of any header
    skips: Skips = field(default_factory=Skips)  # the lines that could not be read
    rows: int = 0  # the number of rows read
    lines: int = 0  # the number of lines read, with the header and those above it
    # The lines above the header that are no comments, such as a printed configuration.
    preface: list[str] = field(default_factory=list)
    _above: str = ""
    _builders: dict[int, ColumnBuilder] = field(default_factory=dict)
    _anchors: tuple[str, ...] = ()
    _known: frozenset[str] = frozenset()
    _pending: list[tuple[int, list[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start_header(self.layout)

    def _start_header(self, layout: Layout) -> None:
        """Read the rows to come by a header, the first one or another."""
        check_width(len({*self.columns, *layout.names}), self.path)
        self.layout, self._builders, self._known = layout, {}, frozenset(layout.names)
        # A repeated header has a known name in one of the first columns that have names.
        named = (name for place, name in enumerate(layout.names, 1) if name != f"column {place}")
        self._anchors = tuple(name for _, name in zip(range(3), named, strict=False))
        for index, name in enumerate(layout.names):
            fraction = name in layout.with_commas and self.names.role(name) in FRACTIONS
            comma: Comma = "decimal" if fraction else layout.comma
            builder = self.columns.setdefault(name, builder_of(name, self.names, comma))
            if not builder.given_up:
                builder.pad(self.rows)
                self._builders[index] = builder

    def add(self, text: str, *, last: bool) -> str:
        """Read whole lines; return those that can be understood only with the lines after them."""
        while self.lines < self.layout.header_line and text:
            line, _, text = text.partition("\n")
            self.lines += 1
            if self.lines < self.layout.header_line and line.strip(" \0") and not line.startswith("#"):
                self.preface.append(line)
        above, self._above = self._above, (self._above + text)[-KEPT:]
        if count := self._regular_rows(text):
            self.rows += count
            self.lines += count
            return ""
        return self._add_lines(text, above, last=last)

    def _regular_rows(self, block: str) -> int:
        """Add the rows of a block in which each has as many fields as the header; return how many, 0 if it is none."""
        delimiter, width = self.layout.delimiter, len(self.layout.names)
        # Several blanks may separate two fields, and a lone field may be a blank line.
        if delimiter[0] == " " or width < 2 or '"' in block or not block.endswith("\n"):
            return 0
        others = bytes(set(range(256)).difference((delimiter + "\n").encode()))
        marks = block.encode().translate(None, others)
        count = len(marks) // width
        if marks != (delimiter * (width - 1) + "\n").encode() * count:
            return 0
        text = block[:-1].replace("\n", delimiter)
        plain = text
        if delimiter != ",":  # commas may be thousands separators
            thousands = "," in text and self.layout.comma != "decimal"
            plain = "" if thousands else text.replace(",", ".").replace(delimiter, ",")
        labels = any(builder.labels for builder in self._builders.values())
        if not labels and (numbers := parse_numbers(plain)):
            for index, builder in self._builders.items():
                builder.add_parsed(numbers[index::width])
            return count
        if "\0" in block or block.startswith("#") or "\n#" in block or any(name in block for name in self._anchors):
            return 0
        cells = text.split(delimiter)
        lines = range(self.lines + 1, self.lines + 1 + count)
        for index, builder in self._builders.items():
            builder.add(cells[index::width], lines)
        self._drop_given_up()
        return count

    def _drop_given_up(self) -> None:
        self._builders = {index: builder for index, builder in self._builders.items() if not builder.given_up}

    def _add_lines(self, text: str, above: str, *, last: bool) -> str:
        """Read lines one by one; return the rest, from a quote that is open so near the end that it may close later."""
        lines = text.split("\n")
        ended = not lines[-1]
        if ended:
            lines.pop()
        index = 0
        while index < len(lines):
            line, place, used = lines[index], self.lines + 1, 1
            if line.startswith("#"):  # a comment, or a row of numbers, with which something is lost
                fields = split(line.lstrip("# \t"), self.layout.delimiter)
                if len(fields) == len(self.layout.names) and 2 * sum(map(numeric, fields)) >= len(fields):
                    self.skips.add(place, "begins with #, as a comment does")
                else:
                    self.skips.comments += 1
                    self.skips.first_comment = self.skips.first_comment or place
            elif "\0" in line:
                self.skips.add(place, "holds NUL bytes")
            elif line.strip() or self.layout.delimiter in line.replace(" ", ""):  # a line of empty cells is a row
                if line.count('"') % 2:
                    if not last and index + QUOTED_LINES >= len(lines):
                        break
                    line, used = self._joined(lines[index : index + 1 + QUOTED_LINES])
                    self.skips.quotes += used == 1
                cut = not ended and index + used == len(lines) and not line.endswith('"')
                self._add_row(line, place, above if cut else None)
            index += used
            self.lines += used
        self._flush()
        return "".join(f"{line}\n" for line in lines[index:]) if index < len(lines) else ""

    def _flush(self) -> None:
        """Pass the pending rows on to the columns."""
        if self._pending:
            places = [place for place, _ in self._pending]
            for index, builder in self._builders.items():
                builder.add([cells[index] for _, cells in self._pending], places)
            self._drop_given_up()
            self.rows += len(self._pending)
            self._pending = []

    def _joined(self, lines: list[str]) -> tuple[str, int]:
        """Return the first line joined with those that its open quote reaches over, and how many they are.

        The reader of the standard library lets one stray quote swallow the rest of a broken file.
        """
        mark, width = self.layout.delimiter, len(self.layout.names)

        def is_row(line: str) -> bool:
            cells = line.split(mark)
            return len(cells) == width > 1 and any(cell.strip(BLANKS) for cell in cells) and has_numbers(cells, 0.5)

        for used, line in enumerate(lines[1:], 2):
            if line.count('"') % 2:
                text = "\n".join(lines[:used])
                closing = re.match(rf'(?:[^"]|"")*+(?="[ \t]*(?:{re.escape(mark)}|$))', line)
                opens = closing and closing[0].rstrip(" ").endswith(mark) and is_row(line)
                if closing and not opens and len(split(text, mark)) == width:
                    return text, used
                break
            if is_row(line):
                break
        return lines[0], 1

    def _add_row(self, line: str, place: int, above: str | None) -> None:
        """Add the row of a line, or count it; `above` is the text above the last line of a file that lacks its end."""
        delimiter, width = self.layout.delimiter, len(self.layout.names)
        fields = split(line, delimiter)
        if len(fields) != width and line.count('"') % 2 and line.count(delimiter) == width - 1:
            fields = line.split(delimiter)  # what follows an open quote may be cells all the same
        elif not any(map(str.strip, fields[width:])):
            fields = fields[:width]
        if self._is_other_header(fields):
            names = distinct(fields)
            if names == self.layout.names:
                self.skips.add(place, "repeats the header")
                return
            self._flush()
            self.skips.headers.append(place)
            self._start_header(self.layout._replace(names=names))
        elif len(fields) > width:
            self.skips.add(place, f"has {len(fields)} fields where the header has {width}")
        elif above is not None and fields and (len(fields) < width or _is_cut(fields[-1], above, delimiter)):
            self.skips.add(place, CUT)
            if len(fields) == width:  # the last line may hold what broke the run
                self._pending.append((place, [*fields[:-1], MISSING_CELL]))
        elif fields:
            self.skips.short += len(fields) < width
            self._pending.append((place, fields + [MISSING_CELL] * (width - len(fields))))

    def _is_other_header(self, fields: list[str]) -> bool:
        """Return whether the fields name columns: no number among them, and many names of the header, or a counter."""
        width = len(self.layout.names)
        if not fields or (len(fields) == width and numeric(fields[0])):
            return False
        words = [cell.strip(BLANKS) for cell in fields]
        known = sum(word in self._known for word in words)
        if known < max(len(words) / 2, min(width, 2)):  # a second table, by epoch below one by step
            counters = [word for word in words if self.names.counts(word)]
            if not counters or len(words) < 2 or not any(map(self.names.metric, words)):
                return False
        return not any(numeric(word) for word in words if word)


def _is_cut(cell: str, above: str, delimiter: str) -> bool:
    """Return whether a number breaks off: it is shorter than all above, or lost its exponent."""
    cells = [line.rpartition(delimiter)[2].strip(BLANKS) for line in above.split("\n")[1:-1]]
    if len(cells) < MIN_ROWS_ABOVE or not _BEGUN.fullmatch(cell):
        return False  # what begins no number, such as `nan`, is taken as it is
    return cell[-1:] in ("e", "E", "-", "+") or all(len(cell) < len(other) for other in cells)
