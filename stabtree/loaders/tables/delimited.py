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
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import NoRowsError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.source import HEAD_BYTES, Sure, in_large_blocks, lines_of
from stabtree.loaders.table import MAX_COLUMNS, Skips, Table, check_width
from stabtree.loaders.tables.cells import (
    MISSING_CELL,
    Comma,
    builder_of,
    has_decimal_commas,
    has_numbers,
    is_measured,
    numeric,
    parse_numbers,
)
from stabtree.loaders.tables.collected import long_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Column
    from stabtree.loaders.tables.cells import ColumnBuilder
    from stabtree.loaders.tables.collected import LongTable
    from stabtree.metrics.names import Names

FRACTIONS = ("loss", "eval_loss", "grad_norm", "lr")
BLANKS_APART = "  "  # two blanks or more, between names that hold one
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank", BLANKS_APART: "blanks"}
# Banners and configuration that trainers print before the header; beyond that a text log is likelier.
HEADER_WITHIN = 150
LOOK_AT = HEADER_WITHIN + 50
COMMENTS = 5  # lines above the rows that begin with #, of which one may name the columns
QUOTED_LINES = 50  # lines that a quoted field, such as a logged sample text, may run over
# If the head holds no more lines, more are read, of up to so many characters each.
FEW_LINES, MAX_HEAD = 10, 4 << 20
LISTED = 5
BLANKS = " \t'\"\0"  # what may surround the text of a cell
WIDE_ROWS = 20  # each block costs a little for each column, so that one of a wide file holds many rows
MAX_BLOCK = 8 << 20
KEPT = 1 << 14  # characters kept of the text above, to tell a line that is cut from one that only lacks its end
MIN_ROWS_ABOVE = 10
CUT = "is cut: the file ends inside this line"
_BEGUN = re.compile(r"\s*[+-]?\d*[.,]?\d*([eE][+-]?\d*)?")  # a number, or as much of it as was written
_BEGUN_WORD = re.compile(r"[+-]?(?:na?|in?|infi\w{0,4})", re.IGNORECASE)  # of `nan`, `inf` or `infinity`
_GROUP = re.compile(r"[(\[][^()\[\]]{0,200}[)\]]")  # commas in it separate no cells: tensor(0.1, device='cuda:0')
_UNIT = re.compile(r"(?<!\s)\s+[\[(][^\[\]()\s]{1,12}[\])]")  # behind a name: `energy [eV]`
_SETTING = re.compile(r"\s*([A-Za-z][\w.-]{0,60})\s*[:=]\s*['\"]?([^\s'\"]{1,80})['\"]?,?\s*")
_APART = re.compile(r"\s{2,}|\t")
Line = tuple[int, str]  # its number and its text


class Layout(NamedTuple):
    """Where the header is and what separates its fields."""

    delimiter: str  # one character; a blank means any number of blanks
    names: tuple[str, ...]  # the header's fields, unquoted, made distinct
    header_line: int  # its line number, from 1; 0 where there is none
    comma: Comma = "thousands"  # what a comma inside a number means
    rows: int = 0  # rows of data below it in the first lines
    agree: float = 0.0  # the share of those that have as many fields as the header


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


@lru_cache(maxsize=4)  # sniffing asks, then reading asks again
def find_layout(head: str) -> Layout | None:
    """Return the layout of the file that begins with `head`: the best by any delimiter; None if there is none.

    A file without a header comes back with `header_line` 0.
    """
    layouts = [_layout_by(lines, delimiter) for lines in _readings(head) for delimiter in NAMES if lines]
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


def _readings(head: str) -> Iterator[list[Line]]:
    """Yield what may be the header and rows: the lines; below each of the last comments; with quoted lines joined."""
    lines = head.split("\n", LOOK_AT)
    if len(lines) > 2:
        del lines[-1]  # the head may end inside a line
    numbered = [(place, line) for place, line in enumerate(lines[:LOOK_AT], 1) if line.strip(" \0")]
    plain = [(place, line) for place, line in numbered if not line.startswith("#")]
    yield plain
    # One of the last comments may be the header, as `numpy.savetxt` writes it.
    above = [line for line in numbered if line[1].startswith("#") and plain and line[0] < plain[0][0]]
    for place, line in above[-COMMENTS:]:
        yield [(place, line.lstrip("# \t")), *plain]
    if '"' in head:
        # Where each row holds a text of several lines, no single line has the right number of fields.
        whole = head[: head.rfind("\n")].split("\n", LOOK_AT * QUOTED_LINES)[: LOOK_AT * QUOTED_LINES]
        yield _joined_quotes(whole)[:LOOK_AT]


def _joined_quotes(lines: list[str]) -> list[Line]:
    """Return the lines that may be rows, those of a field in quotes joined."""
    rows: list[Line] = []
    open_since = 0
    for place, line in enumerate(lines, 1):
        odd = line.count('"') % 2
        if open_since:
            rows[-1] = rows[-1][0], f"{rows[-1][1]}\n{line}"
            if odd or place - open_since >= QUOTED_LINES:
                open_since = 0
        elif line.strip(" \0") and not line.startswith("#"):
            rows.append((place, line))
            open_since = place * odd
    return rows[:-1] if open_since else rows


def _layout_by(numbered: list[Line], delimiter: str) -> Layout | None:
    """Return the layout of lines that are split at a delimiter; None if they make no table."""
    if delimiter not in {",", " "} and not any(delimiter in line for _, line in numbered):
        return None  # one column is the same by any delimiter
    rows = [[cell.strip() for cell in split(line, delimiter)] for _, line in numbered]
    counts = Counter(map(len, rows))
    if delimiter == "\t":
        del counts[1]  # a printed configuration above the rows holds no tabs
    width = max(counts, key=lambda width: (counts[width] + (width > 1), width))
    if delimiter.isspace() and width < 2:
        return None
    for index, header in enumerate(rows[:HEADER_WITHIN]):
        place, line = numbered[index]
        fields = header
        if delimiter == " " and len(header) != width:
            # Names may have units behind them (`energy [eV]`), or commas between, and not between the cells.
            apart = [name.strip() for name in line.lstrip("# \t").split(",")]
            others = (_UNIT.sub("", line).split(), _spread(apart, width))
            fields = next((names for names in others if len(names) == width), header)
        below = rows[index + 1 :]
        # Some writers end every row with a delimiter, but not the header.
        dangling = len(fields) == width - 1 > 0 and all(_fits(cells, len(fields)) for cells in below)
        if (len(fields) == width or dangling) and _is_header(fields):
            return _checked(Layout(delimiter, distinct(fields), place), below)
    first = next((fields for fields in rows[:HEADER_WITHIN] if len(fields) == width), [])
    if width >= 2 and first and all(map(numeric, filter(None, first))):
        return _checked(Layout(delimiter, distinct([""] * width), 0), rows)
    return None


def _spread(names: list[str], width: int) -> list[str]:
    """Return the names of so many columns, where a header names a counter, then losses of several terms each."""
    terms, rest = divmod(width - 1, 2)
    if len(names) > width > 1:
        return names[:width]
    if len(names) == width or not terms or not len(names) >= 3 or rest > len(names) - 3:
        return names
    return [names[0], *[names[1]] * terms, *[names[2]] * terms, *names[3 : 3 + rest]]


def _checked(layout: Layout, below: list[list[str]]) -> Layout | None:
    """Return the layout with what the rows below its header show; None if they don't look like rows of numbers."""
    delimiter, width, blank = layout.delimiter, len(layout.names), layout.delimiter in {" ", BLANKS_APART}
    if not below:
        return None if blank or width < 2 else layout
    fit = [cells for cells in below if _fits(cells, width)]
    agree = len(fit) / len(below)
    if blank:  # words separated by blanks are prose unless the rows are nothing but numbers
        plausible = sum(not any(cells) or has_numbers(cells, 0.75) for cells in fit) >= 0.5 * len(below)
    else:  # a printed configuration has numbers in its rows, but no column of them
        columns = (cells for name, *cells in zip(layout.names, *fit, strict=False) if not numeric(name))
        plausible = 2 * len(fit) >= len(below) and any(map(is_measured, columns))
    if not plausible or ((blank or width == 1) and agree < (0.8 if layout.header_line else 0.6)):
        return None
    comma: Comma = "decimal" if delimiter != "," and has_decimal_commas([*chain(*fit)], delimiter) else "thousands"
    return layout._replace(comma=comma, rows=len(fit), agree=agree)


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
    for line in islice(source.lines(), FEW_LINES + 1):
        if len(line) > MAX_HEAD:
            break
        lines.append(line)
    return "\n".join([*lines, ""]) if len(lines) > 1 else source.head


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a delimited file."""
    if source.binary or source.head.lstrip().startswith(("{", "[")):
        return Sure.NO
    layout = find_layout(head_of(source))
    if not layout:
        return Sure.NO
    if not layout.header_line or not layout.rows:
        return Sure.HARDLY
    if layout.agree == 1.0:
        return Sure.SURELY
    return Sure.LIKELY if 3 * layout.agree >= 1.0 else Sure.MAYBE


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read the columns that hold numbers, or the series of a table whose rows hold a name and a value.

    Raises:
        StabtreeError: if nothing names its columns, or nothing stands below, or it has too many columns.
    """
    head = head_of(source)
    layout = find_layout(head)
    if not layout:
        raise StabtreeError("is not a delimited file", where=source.path, hint="check --format")
    if not layout.header_line:
        hint = "add a first line such as step,loss,grad_norm,lr"
        raise StabtreeError("has no header line that names its columns", where=source.path, hint=hint)
    shown = head.split("\n", LOOK_AT)[layout.header_line : -1]
    long = long_table(layout.names, names, (split(line, layout.delimiter) for line in shown))
    body, lines = _Body(source.path, layout, names, long), source.lines()
    body.read(in_large_blocks(lines.blocks(), min(MAX_BLOCK, WIDE_ROWS * sum(map(len, layout.names)))))
    if not body.rows:
        kind = NoRowsError if any(map(names.metric, layout.names)) else StabtreeError
        problem = "is cut, and holds a header but no rows before that" if source.cut else "has a header but no rows"
        hint = "check that the run logged anything before it stopped"
        raise kind(problem, where=source.path, hint=hint)
    printed = filter(None, (_SETTING.fullmatch(line[:KEPT]) for line in body.preface))
    config, wrong = read_config({match[1]: match[2] for match in printed})
    kind_of = "csv" + f", {NAMES[layout.delimiter]} separated" * (layout.delimiter != ",")
    described = source.describe(kind_of + ", decimal commas" * (layout.comma == "decimal"))
    notes = (*lines.notes, *_notes(body), *wrong)
    first, *others = [Table(source.path, described, body.rows, body.built(), config)]
    if long:
        first, *others = long.tables(source.path, source.describe("csv"))
    skips = body.skips
    return (
        replace(first, skipped=tuple(skips.first), skipped_count=skips.count, notes=(*notes, *first.notes)),
        *others,
    )


def _notes(body: _Body) -> list[str]:
    """Describe what was read although something is wrong with it."""
    skips = body.skips
    built = {name: builder for name, builder in body.columns.items() if body.names.wanted(name)}
    twice = [name for name in built if f"{name} (2)" in body.columns]
    grouped = [builder.grouped for builder in built.values() if builder.grouped]
    again = ", ".join(clean(name, 40) for name in twice[:LISTED])
    headers = ", ".join(map(str, skips.headers[:LISTED]))
    notes = {
        f"Lines above the header: {len(body.preface)}, the first is {clean(''.join(body.preface[:1]), 40)!r}.": (
            body.preface
        ),
        f"Columns that have the same name as one before them are not read: {again}.": twice,
        f"Headers with other columns, or in another order: {len(skips.headers)} (line {headers}), "
        "the rows below were read by them.": skips.headers,
        f"Comment lines, which begin with #: {skips.comments:,}, skipped; the first is line {skips.first_comment}.": (
            skips.comments
        ),
        f"Lines with a quote that is never closed: {skips.quotes}, each read as a row by itself.": skips.quotes,
        f"Rows with fewer fields than the header: {skips.short}, their missing cells are not logged.": skips.short,
        f"Commas inside numbers are read as thousands separators ({''.join(grouped[:1])}).": grouped,
    }
    return [note for note, needed in notes.items() if needed]


class _Body(Struct):
    """Collects the rows of a delimited file."""

    path: str  # the file as the user named it
    layout: Layout  # how the rows below the latest header are laid out
    names: Names  # what the columns mean
    long: LongTable | None = None  # where its rows go if each holds a name and a value
    columns: dict[str, ColumnBuilder] = field(default_factory=dict)  # every column of any header
    skips: Skips = field(default_factory=Skips)  # the lines that could not be read
    rows: int = 0  # the number of rows read
    lines: int = 0  # the number of lines read, with the header and those above it
    preface: list[str] = field(default_factory=list)  # lines above the header that are no comments, as of settings
    _tail: str = ""  # the end of the text that was read
    _builders: dict[int, ColumnBuilder] = field(default_factory=dict)
    _pending: list[tuple[int, list[str]]] = field(default_factory=list)

    def built(self) -> dict[str, Column | None]:
        """Return the columns, None for those that hold text."""
        for builder in self.columns.values():
            builder.pad(self.rows)
        return {name: None if builder.given_up else builder.column() for name, builder in self.columns.items()}

    def _start_header(self, layout: Layout) -> None:
        """Read the rows to come by a header, the first one or another."""
        check_width(len({*self.columns, *layout.names}), self.path)
        self.layout, self._builders = layout, {}
        for index, name in enumerate(layout.names):
            # A loss of three digits behind a comma is no thousand, whatever another column looks like.
            fraction = layout.delimiter != "," and self.names.role(name) in FRACTIONS
            comma: Comma = "decimal" if fraction else layout.comma
            builder = self.columns.setdefault(name, builder_of(name, self.names, comma))
            if not builder.given_up:
                builder.pad(self.rows)
                self._builders[index] = builder

    def read(self, blocks: Iterator[str]) -> None:
        """Read pieces of whole lines, of which only the last line may lack its end."""
        self._start_header(self.layout)
        for block in blocks:
            text = block
            while self.lines < self.layout.header_line and text:
                line, _, text = text.partition("\n")
                self.lines += 1
                if self.lines < self.layout.header_line and line.strip(" \0") and not line.startswith("#"):
                    self.preface.append(line)
            self._tail = (self._tail + text)[-KEPT:]
            count = self._regular_rows(text)
            self.rows += count
            self.lines += count
            if not count:
                self._add_lines(text, blocks)
            self._builders = {index: builder for index, builder in self._builders.items() if not builder.given_up}

    def _regular_rows(self, block: str) -> int:
        """Add the rows of a block in which each has as many fields as the header; return how many, 0 if it is none."""
        delimiter, width = self.layout.delimiter, len(self.layout.names)
        # Several blanks may separate two fields, and a lone field may be a blank line.
        if delimiter[0] == " " or width < 2 or not block.endswith("\n"):
            return 0
        text = block[:-1].replace("\n", delimiter)
        if '"' not in block:
            others = bytes(set(range(256)).difference((delimiter + "\n").encode()))
            marks = block.encode().translate(None, others)
            if marks != (delimiter * (width - 1) + "\n").encode() * (len(marks) // width):
                return 0
            if numbers := self._all_numbers(text):
                values = np.array(numbers, dtype=np.float64).reshape(-1, width).T.copy()
                for index, builder in self._builders.items():
                    builder.add_values(values[index], ~np.isnan(values[index]))
                return values.shape[1]
        return self._regular_cells(block, text)

    def _regular_cells(self, block: str, text: str) -> int:
        """Add the rows of a regular block that holds more than numbers; `text` has delimiters for its line ends."""
        # A repeated header has a known name in one of the first columns that have names.
        anchors = islice((name for place, name in enumerate(self.layout.names, 1) if name != f"column {place}"), 3)
        if "\0" in block or block.startswith("#") or "\n#" in block or any(name in block for name in anchors):
            return 0
        if '"' in block:
            columns = self._unquoted(block[:-1].split("\n"))
        else:
            cells, width = text.split(self.layout.delimiter), len(self.layout.names)
            columns = [cells[index::width] for index in range(width)]
        if columns:
            self._add_columns(columns, range(self.lines + 1, self.lines + 1 + len(columns[0])))
        return len(columns and columns[0])

    def _unquoted(self, lines: list[str]) -> Sequence[Sequence[str]]:
        """Return the columns of lines with quotes in them; none if a field may run over lines, or a row is odd."""
        if any(line.count('"') % 2 for line in lines):
            return ()
        try:
            rows = [*csv.reader(lines, delimiter=self.layout.delimiter, skipinitialspace=True)]
        except csv.Error:  # a cell is longer than the reader takes
            return ()
        return [*zip(*rows, strict=True)] if set(map(len, rows)) == {len(self.layout.names)} else ()

    def _add_columns(self, columns: Sequence[Sequence[str]], lines: Sequence[int]) -> None:
        if self.long:
            for row in zip(*columns, strict=True):
                if MISSING_CELL not in row:
                    self.long.add(row)
            return
        for index, builder in self._builders.items():
            builder.add(columns[index], lines)

    def _all_numbers(self, text: str) -> list[float | None]:
        """Return the numbers of a text that holds nothing else; none if a comma may separate thousands."""
        if self.long or any(builder.labels for builder in self._builders.values()):
            return []
        if self.layout.delimiter != ",":
            if "," in text and self.layout.comma != "decimal":
                return []
            text = text.replace(",", ".").replace(self.layout.delimiter, ",")
        # Of several empty cells in a row, the first replacement finds every other one.
        return parse_numbers(f",{text},".replace(",,", ",null,").replace(",,", ",null,")[1:-1])

    def _add_lines(self, text: str, blocks: Iterator[str]) -> None:
        """Read lines one by one; of a quote that is open near the end, also those of the next block."""
        # A line of tabs may be a row of empty cells.
        lines, index = text.split("\n") if "\t" in text else lines_of(text), 0
        while index < len(lines):
            line, used = lines[index], 1
            if '"' in line and line.count('"') % 2 and not line.startswith("#"):
                while index + QUOTED_LINES >= len(lines) and (block := next(blocks, "")):
                    self._tail = (self._tail + block)[-KEPT:]
                    lines, index = [*lines[index:-1], *(lines[-1] + block).split("\n")], 0
                line, used = self._joined(lines[index : index + 1 + QUOTED_LINES])
                self.skips.quotes += used == 1
            index += used
            if index < len(lines) or line:  # what follows the last line end is a line only where it holds something
                self._add_line(line, self.lines + 1, last=index == len(lines))
                self.lines += 1 + line.count("\n")
        self._flush()

    def _flush(self) -> None:
        """Pass the rows that were read line by line on to the columns."""
        self.rows += len(self._pending)
        if self._pending:
            columns = [*zip(*(fields for _, fields in self._pending), strict=True)]
            self._add_columns(columns, [place for place, _ in self._pending])
            self._pending = []

    def _add_line(self, line: str, place: int, *, last: bool) -> None:
        """Add the row of a line, or count it as something else."""
        if line.startswith("#"):
            self.skips.comments += 1
            self.skips.first_comment = self.skips.first_comment or place
        elif "\0" in line:
            self.skips.add(place, "holds NUL bytes")
        elif line.strip() or self.layout.delimiter in line.replace(" ", ""):  # a line of empty cells is a row
            self._add_row(line, place, last=last and not line.endswith('"'))

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

    def _add_row(self, line: str, place: int, *, last: bool) -> None:
        """Add the row of a line, or count it; the last line of a file that lacks its end may be cut."""
        delimiter, width = self.layout.delimiter, len(self.layout.names)
        fields = split(line, delimiter)
        if not any(map(str.strip, fields[width:])):
            fields = fields[:width]
        if self._is_other_header(fields):
            names = distinct(fields)
            if names == self.layout.names:
                self.skips.add(place, "repeats the header")
                return
            self._flush()
            self.skips.headers.append(place)
            self._start_header(self.layout._replace(names=names))
            return
        if len(fields) > width:
            self.skips.add(place, f"has {len(fields)} fields where the header has {width}")
            return
        short = [MISSING_CELL] * (width - len(fields))
        if last and not short and _BEGUN_WORD.fullmatch(fields[-1].strip()) and fields[-1] not in self._last_cells():
            fields[-1] += "…"  # it may be the beginning of a NaN
        if last and (short or self._is_cut(fields[-1])):
            self.skips.add(place, CUT)
            if short:
                return
            fields[-1] = MISSING_CELL  # the others of the last line may show what broke the run
        self.skips.short += bool(short)
        self._pending.append((place, fields + short))

    def _is_other_header(self, fields: list[str]) -> bool:
        """Return whether the fields name columns: no number among them, and many names of the header."""
        if len(fields) > MAX_COLUMNS or not any(fields) or any(numeric(cell.strip(BLANKS)) for cell in fields):
            return False
        words = [cell.strip(BLANKS) for cell in fields]
        width, titles = len(self.layout.names), set(self.layout.names)
        known = sum(word in titles for word in words)
        return known >= max(len(words) / 2, min(width, 2))

    def _last_cells(self) -> list[str]:
        """Return the last cells of the lines above the last one."""
        return [line.rpartition(self.layout.delimiter)[2].strip(BLANKS) for line in self._tail.split("\n")[1:-1]]

    def _is_cut(self, cell: str) -> bool:
        """Return whether the last number of a file breaks off: it is shorter than all above, or lost its exponent."""
        above = self._last_cells()
        if len(above) < MIN_ROWS_ABOVE or not _BEGUN.fullmatch(cell):
            return False  # what begins no number, such as `nan`, is taken as it is
        return cell[-1:] in ("e", "E", "-", "+") or all(len(cell) < len(other) for other in above)
