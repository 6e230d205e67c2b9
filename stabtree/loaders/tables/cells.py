"""What a cell means: a number, a logged NaN or infinity, nothing, or text that is no number."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.text import clean, plain
from stabtree.loaders.table import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stabtree.common.lazy import Bools, Floats
    from stabtree.metrics.names import Names

Comma = Literal["decimal", "thousands"]
Cell = str | float | bool | None

# Room for so many times as many cells when there is no more: what is not written to takes no memory, a copy takes time.
GROWTH = 4
# By so many cells of a column that nobody knows it is decided whether it holds text.
FIRST_CELLS = 32
# The cell of a row that has too few: nobody wrote it, not even empty.
MISSING_CELL = "\0\0"
_AROUND = " \t\r\n'\"\0"
_NOT_LOGGED = frozenset({"", "null", "none", "n/a", "na", "<na>", "-", "--"})
_TRUTHS = ("true", "false")
_WORDS = {"true": 1.0, "false": 0.0, "infinity": float("inf"), "∞": float("inf"), "-∞": float("-inf")}
# `NaN (skipped)`, and what C runtimes print: 1.#IND, -1.#INF00, 1.#QNAN.
_NAN = re.compile(r"(tensor\()?[+-]?([qs]?nan[qs]?\b.{0,40}|\d\.#(ind|q?nan|snan)\d*)|#(num|div/0|value)!?|diverged")
_INF = re.compile(r"(tensor\()?[+-]?(inf(inity|inite)?\b.{0,40}|\d\.#inf\d*)")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_DECIMAL = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*),\d*(e[+-]?\d+)?")
# A label that is one: 1e500000 is a hash, not an infinity, and 17 digits don't fit a float64.
_PLAIN = re.compile(r"[+-]?\d{1,15}(\.0*)?")


def number(cell: Cell, comma: Comma = "thousands") -> float | None:
    """Return the value of a cell; None where nothing was logged.

    Raises:
        ValueError: if it holds text that is not a number.
        OverflowError: if it is an integer too large for a float64.

    >>> number("-1.#IND"), number("n/a"), number("1,234.5"), number("0,5", "decimal")
    (nan, None, 1234.5, 0.5)
    """
    if cell is None:
        return None
    try:
        if not isinstance(cell, str) or plain(cell.strip()):
            return float(cell)
        return _word(cell, comma)
    except ValueError:
        return _word(str(cell), comma)


def _word(cell: str, comma: Comma) -> float | None:
    text = cell.strip(_AROUND).lower()
    if text in _NOT_LOGGED:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if _NAN.fullmatch(text):
        return float("nan")
    if _INF.fullmatch(text):
        if text.startswith("-"):
            return float("-inf")
        return float("inf")
    if comma == "decimal" and _DECIMAL.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    elif _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if not plain(text):
        raise ValueError("not a number")
    return float(text)


def label_code(text: str) -> float:
    """Return the code of a label: the same in every file, and different for every other label."""
    import hashlib  # takes a while, and few columns hold labels

    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=7).digest()
    return float(int.from_bytes(digest) >> 4)  # 52 bits: exact in a float64


@dataclass(slots=True)
class ColumnBuilder:
    """Collects the cells of one column, some thousands at a time, so that their text need not be kept.

    Attributes:
        labels: whether text is a label, not a mistake.
        flags: whether true and false are values, not mistakes.
        comma: what a comma means in a number.
        nulls: whether a None was written, as the null of JSON is.
        optional: whether to give up the column, to save time and memory, if its first cells are text.
        given_up: whether it was.
        grouped: the first number whose commas were taken for thousands separators.
    """

    labels: bool = False
    flags: bool = False
    comma: Comma = "thousands"
    nulls: bool = False
    optional: bool = False
    given_up: bool = False
    grouped: str = ""
    _values: Floats = field(default_factory=lambda: np.zeros(0))
    _logged: Bools | None = None
    _count: int = 0
    _cells: list[Cell] = field(default_factory=list)
    _bad: list[int] = field(default_factory=list)
    _bad_example: str = ""
    _grouped: list[int] = field(default_factory=list)
    _missing: list[int] = field(default_factory=list)
    _blank: list[int] = field(default_factory=list)
    _decimal: bool = False

    def add(self, cells: Sequence[Cell], lines: Sequence[int]) -> None:
        """Append cells; `lines[i]` is the line of the i-th in the file."""
        if self.labels:
            self._cells += map(as_cell, cells)
            return
        if self.optional and (self.given_up or _are_text(cells[:FIRST_CELLS])):
            self.given_up = True
            return
        if may_be_misread(cells):
            self._add_each(cells, lines)
            return
        try:
            # Most chunks hold nothing but numbers; any other cell raises.
            values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError):
            self._add_each(cells, lines)
        else:
            self.add_numbers(values)

    def pad(self, count: int) -> None:
        """Append empty cells until there are `count`, for rows whose header lacks the column."""
        if self.labels:
            self._cells += [None] * (count - len(self._cells))
        elif count > self._count:
            missing = count - self._count
            self.add_numbers(np.zeros(missing), np.zeros(missing, dtype=np.bool_))

    def reserve(self, count: int) -> None:
        """Make room for `count` cells at once, where most of them are known to come."""
        if count > len(self._values):
            self._values = _grown(self._values[: self._count], count)

    def add_numbers(self, values: Floats, logged: Bools | None = None) -> None:
        """Append numbers, float64 (n,); `logged`, bool (n,), is true where a cell held one, None for all."""
        end = self._count + len(values)
        if end > len(self._values):
            room = max(end, GROWTH * len(self._values))
            self._values = _grown(self._values[: self._count], room)
            if self._logged is not None:
                self._logged = _grown(self._logged[: self._count], room)
        self._values[self._count : end] = values
        if logged is not None and self._logged is None and not logged.all():
            self._logged = _grown(np.ones(self._count, dtype=np.bool_), len(self._values))
        if self._logged is not None:
            self._logged[self._count : end] = True if logged is None else logged
        self._count = end

    def _add_each(self, cells: Sequence[Cell], lines: Sequence[int]) -> None:
        values = np.zeros(len(cells))
        logged = np.zeros(len(cells), dtype=np.bool_)
        for index, cell in enumerate(cells):
            row = self._count + index
            if cell is None or cell == "":
                if cell is None and self.nulls:
                    self._blank.append(row)
                continue
            if cell is MISSING_CELL:
                self._missing.append(row)
                continue
            try:
                value = self._value(cell)
            except (ValueError, TypeError, OverflowError):
                self._bad.append(row)
                self._decimal |= isinstance(cell, str) and _DECIMAL.fullmatch(cell.strip(_AROUND)) is not None
                self._bad_example = self._bad_example or example(lines[index], cell)
                continue
            if value is None:
                if str(cell).strip(_AROUND):
                    self._blank.append(row)
                continue
            values[index], logged[index] = value, True
            if isinstance(cell, str) and "," in cell and self.comma == "thousands":
                self._grouped.append(row)
                self.grouped = self.grouped or example(lines[index], cell)
        self.add_numbers(values, logged)

    def _value(self, cell: Cell) -> float | None:
        value = number(cell, self.comma)
        if not self.flags and value in (0.0, 1.0) and str(cell).strip(_AROUND).lower() in _TRUTHS:
            raise ValueError("not a number")
        return value

    def column(self) -> Column:
        """Return the column of all cells that were added."""
        if self.labels:
            return _label_column(self._cells)
        logged = None if self._logged is None else self._logged[: self._count]
        blank = self._rows(self._blank) if self._blank else None
        column = Column(self._values[: self._count], logged, len(self._bad), self._bad_example, blank=blank)
        wrong = self._bad
        if self._decimal:  # beside `1,25` nobody knows whether `1,250` has thousands
            wrong = [*self._bad, *self._grouped]
        if not wrong and not self._missing:
            return column
        return replace(column.without(self._rows([*wrong, *self._missing])), bad=len(wrong))

    def _rows(self, indices: list[int]) -> Bools:
        """Return which rows are among these, bool (n,)."""
        rows = np.zeros(self._count, dtype=np.bool_)
        rows[indices] = True
        return rows


def builder_of(name: str, names: Names, comma: Comma = "thousands") -> ColumnBuilder:
    """Return an empty builder for a column of this name."""
    return ColumnBuilder(
        labels=names.is_label(name), flags=names.is_flag(name), comma=comma, optional=not names.wanted(name)
    )


def is_text(cell: object) -> bool:
    """Return whether a cell holds something that is neither a number nor a mark of a missing one."""
    if isinstance(cell, str):
        try:
            number(cell)
        except (ValueError, OverflowError):
            return True
        return cell.strip(_AROUND).lower() in _TRUTHS
    return isinstance(cell, bool) or not isinstance(cell, int | float | None)


def _are_text(cells: Sequence[Cell]) -> bool:
    """Return whether most of the cells that hold something hold text."""
    held = [is_text(cell) for cell in cells if cell not in (None, "", MISSING_CELL)]
    return 2 * sum(held) > len(held)


def as_cell(value: Any) -> Cell:
    """Return a value of a cell's type as it is, any other as text."""
    if isinstance(value, str | float | int | None):
        return value
    return str(value)


def example(line: int, cell: object) -> str:
    """Describe a cell by its line and its text: `line 7: 'abc'`."""
    return f"line {line}: {clean(cell, 40)!r}"


def may_be_misread(cells: Sequence[Cell]) -> bool:
    """Return whether Python may wrongly read a cell as a number: `1_234`, digits of other scripts, true."""
    try:
        text = "".join(cells)  # type: ignore[arg-type]
    except TypeError:
        if bool in set(map(type, cells)):
            return True
        text = "".join([cell for cell in cells if isinstance(cell, str)])
    return not plain(text)


def _grown(held: NDArray[Any], room: int) -> NDArray[Any]:
    """Return an array that begins with `held` and has room for more; what is never written to takes no memory."""
    grown = np.empty(room, dtype=held.dtype)
    grown[: len(held)] = held
    return grown


def _label(cell: Cell) -> str | None:
    text = str(cell).strip(" \t\0'\"")
    if cell is None or text.lower() in _NOT_LOGGED:
        return None
    return text


def _label_column(cells: Sequence[Cell]) -> Column:
    """Return a column of numbers if every label is a plain one, else of a code for each label."""
    found = {cell: _label(cell) for cell in dict.fromkeys(cells)}
    labels = {cell: label for cell, label in found.items() if label is not None}
    coded = not all(map(_PLAIN.fullmatch, labels.values()))
    code = label_code if coded else float
    codes = dict.fromkeys(cells, np.nan) | {cell: code(label) for cell, label in labels.items()}
    values = np.fromiter(map(codes.__getitem__, cells), dtype=np.float64, count=len(cells))
    # A code is never NaN, so a NaN is an empty cell.
    missing = np.isnan(values)
    texts = {codes[cell]: label for cell, label in labels.items()} if coded else {}
    return Column(values, ~missing if missing.any() else None, coded=coded, labels=texts)
