"""What a cell means: a number, a logged NaN or infinity, nothing, or text that is no number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.common.text import clean, plain
from stabtree.loaders.table import Column, unless_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.lazy import Bools, Floats
    from stabtree.metrics.names import Names

Comma = Literal["decimal", "thousands"]
Cell = str | float | bool | None

# By so many cells of an unknown column it is decided whether it holds text.
FIRST_CELLS = 32
# The cell of a row that has too few: nobody wrote it, not even empty.
MISSING_CELL = "\0\0"
AROUND = " \t\r\n'\"\0"
_NOT_LOGGED = frozenset({"", "null", "none", "n/a", "na", "<na>", "-", "--"})
_TRUTHS = ("true", "false")
_WORDS = {
    **dict.fromkeys(_NOT_LOGGED),
    "true": 1.0,
    "false": 0.0,
    "infinity": float("inf"),
    "∞": float("inf"),
    "-∞": float("-inf"),
}
# `NaN (skipped)`, and what C runtimes print: 1.#IND, -1.#INF00, 1.#QNAN; rounded to a few digits 1.#J, 1.#R.
_NAN = re.compile(r"[+-]?([qs]?nan[qs]?\b.{0,40}|\d\.#(?!inf)[a-z]+\d*)|#(num|div/0|value)!?|diverged")
_INF = re.compile(r"[+-]?(inf(inity|inite)?\b.{0,40}|\d\.#inf\d*)")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_DECIMAL = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*),\d*(e[+-]?\d+)?")
# What array libraries print: a name, and in its brackets one number, as it is or as `value=`, between named arguments.
CALL = r"(?:<[\w.]{1,40}:\s|[A-Za-z_][\w.]{0,40}\()"
_NAMED = r"\w{1,40}=\s?(?:[^\s,()\[\]<>]|\([^()]{0,80}\)|\[[^\[\]]{0,80}\]|<[^<>]{0,80}>){0,80}"

BEFORE = rf"\s*(?P<before>(?:{_NAMED},\s*){{0,12}})(?:(?:value|numpy)=\s?)?[\s\[(]*"
AFTER = rf"[\s\])]*(?P<after>(?:,\s*{_NAMED}){{0,12}})\s*[)>]?"
_WRAPPED = re.compile(rf"(?:{CALL}|(?=\[)){BEFORE}(?P<number>[^\s,()\[\]<>=]{{1,40}}){AFTER}")
# A mean with its deviation, or a number with its unit.
_QUALIFIED = re.compile(
    r"(?P<number>[+-]?[\d.]+(?:e[+-]?\d+)?)\s?(?:\s?(?:\||±|\+/-|\+-)\s?[+-]?[\d.]+(?:e[+-]?\d+)?|%|[mµn]?s|[kmg]i?b|g|it/s)"
)
_NUMBERS = msgspec.json.Decoder(list[float | None])
# A label that is a number: 1e500000 is a hash, not an infinity, and 17 digits don't fit a float64.
_PLAIN = re.compile(r"[+-]?\d{1,15}(\.0*)?")


def number(cell: Cell, comma: Comma = "thousands") -> float | None:
    """Return the value of a cell; None where nothing was logged.

    Raises:
        ValueError: if it holds text that is not a number.
        OverflowError: if it is an integer too large for a float64.

    >>> number("-1.#IND"), number("n/a"), number("1,234.5"), number("tensor(0.5, device='cuda:0')")
    (nan, None, 1234.5, 0.5)
    """
    if not isinstance(cell, str):
        return None if cell is None else float(cell)
    try:
        if plain(cell.strip()):
            return float(cell)
    except ValueError:
        pass
    return _spelled(cell.strip(AROUND).lower(), comma)


def _spelled(text: str, comma: Comma) -> float | None:
    """Return the value of a cell in words, with a unit, in a call, or with commas."""
    if text in _WORDS:
        return _WORDS[text]
    if _NAN.fullmatch(text):
        return float("nan")
    if _INF.fullmatch(text):
        return float("-inf") if text.startswith("-") else float("inf")
    if inner := _WRAPPED.fullmatch(text) or _QUALIFIED.fullmatch(text):
        return _spelled(inner["number"], comma)
    if comma == "decimal" and _DECIMAL.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    elif _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if not plain(text):
        raise ValueError("not a number")
    return float(text)


def numeric(cell: str) -> bool:
    """Return whether a cell holds a number."""
    try:
        return number(cell, "decimal") is not None
    except ValueError:
        return False


def is_text(cell: object) -> bool:
    """Return whether a cell holds something that is neither a number nor a mark of a missing one."""
    if not isinstance(cell, str):
        return isinstance(cell, bool) or not isinstance(cell, int | float | None)
    try:
        number(cell)
    except (ValueError, OverflowError):
        return True
    return cell.strip(AROUND).lower() in _TRUTHS


def as_cell(value: Any) -> Cell:
    """Return a value of a cell's type as it is, any other as text."""
    return value if isinstance(value, str | float | int | None) else str(value)


def example(line: int, cell: object) -> str:
    """Describe a cell by its line and its text: `line 7: 'abc'`."""
    return f"line {line}: {clean(cell, 40)!r}"


def parse_numbers(text: str) -> list[float | None]:
    """Return the numbers in a text with commas between, as JSON writes them; none if it holds anything else."""
    try:
        return _NUMBERS.decode(f"[{text}]")
    except (msgspec.MsgspecError, UnicodeError):
        return []


class ColumnBuilder(Struct):
    """Collects the cells of one column, some thousands at a time, so that their text need not be kept."""

    labels: bool = False  # whether text is a label, not a mistake
    flags: bool = False  # whether true and false are values, not mistakes
    comma: Comma = "thousands"  # what a comma means in a number
    optional: bool = False  # whether to give up the column, to save time and memory, if its first cells are text
    given_up: bool = False  # whether it was
    grouped: str = ""  # the first number whose commas were taken for thousands separators
    _count: int = 0
    _parts: list[Floats] = field(default_factory=list)
    _logged: list[Bools] = field(default_factory=list)
    _cells: list[Cell] = field(default_factory=list)
    _garbled: list[int] = field(default_factory=list)
    _bad: int = 0
    _bad_example: str = ""

    def add(self, cells: Sequence[Cell], lines: Sequence[int]) -> None:
        """Append cells; `lines[i]` is the line of the i-th in the file."""
        if self.labels:
            self._cells += map(as_cell, cells)
            return
        if self.optional and not self.given_up:
            filled = [is_text(cell) for cell in cells[:FIRST_CELLS] if cell not in (None, "", MISSING_CELL)]
            self.given_up = 2 * sum(filled) > len(filled)
        if not self.given_up and not self._add_numbers(cells):
            self._add_each(cells, lines)

    def _add_numbers(self, cells: Sequence[Cell]) -> bool:
        """Append cells at once; return whether all of them are plain numbers, or empty text."""
        types = set(map(type, cells))
        if types == {str}:
            numbers = parse_numbers(",".join([cell or "null" for cell in cells]))  # type: ignore[misc]
            if len(numbers) == len(cells):
                values = np.array(numbers, dtype=np.float64)
                self.add_values(values, ~np.isnan(values))
                return True
            if not plain("".join(cells)):  # type: ignore[arg-type] # Python reads `1_234` and digits of other scripts
                return False
        elif not types <= {float, int}:
            return False
        try:
            self.add_values(np.array(cells, dtype=np.float64))
        except (ValueError, OverflowError):
            return False
        return True

    def pad(self, count: int) -> None:
        """Append empty cells until there are `count`, for rows whose header lacks the column."""
        if self.labels:
            self._cells += [None] * (count - len(self._cells))
        elif missing := max(0, count - self._count):
            self.add_values(np.zeros(missing), np.zeros(missing, dtype=np.bool_))

    def add_values(self, values: Floats, logged: Bools | None = None) -> None:
        """Append numbers, float64 (n,); `logged`, bool (n,), is true where a cell held one, None for all."""
        self._parts.append(values)
        self._logged.append(Column(values, logged).mask)
        self._count += len(values)

    def _add_each(self, cells: Sequence[Cell], lines: Sequence[int]) -> None:
        values = np.zeros(len(cells))
        logged = np.zeros(len(cells), dtype=np.bool_)
        for index, cell in enumerate(cells):
            if cell is MISSING_CELL:
                self._garbled.append(self._count + index)
                continue
            try:
                value = self._value(cell, lines[index])
            except (ValueError, TypeError, OverflowError):
                self._garbled.append(self._count + index)
                self._bad += 1
                self._bad_example = self._bad_example or example(lines[index], cell)
                continue
            if value is not None:
                values[index], logged[index] = value, True
        self.add_values(values, logged)

    def _value(self, cell: Cell, line: int) -> float | None:
        value = number(cell, self.comma)
        text = str(cell).strip(AROUND)
        if not self.flags and text.lower() in _TRUTHS:
            raise ValueError("a word is no number")
        grouped = _THOUSANDS.fullmatch(text) and (self.comma == "thousands" or "." in text)
        if grouped and not self.grouped:
            self.grouped = example(line, cell)
        return value

    def column(self) -> Column:
        """Return the column of all cells that were added."""
        if self.labels:
            return _label_column(self._cells)
        if not self._parts:
            return Column(np.zeros(0))
        values, logged = np.concatenate(self._parts), np.concatenate(self._logged)
        self._parts, self._logged = [values], [logged]
        column = Column(values, unless_all(logged), self._bad, self._bad_example)
        if not self._garbled:
            return column
        rows = np.zeros(self._count, dtype=np.bool_)
        rows[self._garbled] = True
        return column.without(rows)


def builder_of(name: str, names: Names, comma: Comma = "thousands") -> ColumnBuilder:
    """Return an empty builder for a column of this name."""
    return ColumnBuilder(names.is_label(name), names.is_flag(name), comma, optional=not names.wanted(name))


def _label_column(cells: Sequence[Cell]) -> Column:
    """Return a column of numbers if every label is a plain one, else of a code for each label.

    The code is the same in every file, and different for every other label.
    """
    import hashlib  # takes a while, and few columns hold labels

    texts = {cell: str(cell).strip(" \t\0'\"") for cell in dict.fromkeys(cells) if cell is not None}
    labels = {cell: text for cell, text in texts.items() if text.lower() not in _NOT_LOGGED}
    codes: dict[Cell, float] = {}
    named: dict[float, str] = {}
    if all(map(_PLAIN.fullmatch, labels.values())):
        codes.update((cell, float(text)) for cell, text in labels.items())
    else:
        for cell, text in labels.items():
            digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=7).digest()
            codes[cell] = float(int.from_bytes(digest) >> 4)  # 52 bits: exact in a float64
            named[codes[cell]] = text
    values = np.array([codes.get(cell, np.nan) for cell in cells], dtype=np.float64)
    missing = np.isnan(values)  # no code is NaN
    return Column(values, unless_all(~missing), coded=bool(named), labels=named)


# Three digits after the comma may be thousands, unless a zero precedes it.
_SURE_DECIMAL = re.compile(r"[+-]?(0?,\d+|\d*,(\d{1,2}|\d{4,}))(e[+-]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?(?!0\d)\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)  # 03.12 is a day


def has_decimal_commas(cells: list[str], delimiter: str) -> bool:
    """Return whether commas are decimal points: one is for sure, or a file made for that has no point."""
    # A date such as 03.12.2024 has points, too, but no number has two of them and no comma.
    return any(map(_SURE_DECIMAL.fullmatch, cells)) or (delimiter == ";" and not any(map(_POINT.fullmatch, cells)))


def is_measured(cells: Iterable[str]) -> bool:
    """Return whether the filled cells of a column are numbers, but for a few, as a header that comes again."""
    numbers = [*map(numeric, filter(None, cells))]
    return any(numbers) and numbers.count(False) <= max(2, len(numbers) / 5)


def has_numbers(cells: Iterable[str], min_share: float) -> bool:
    """Return whether such a share of the filled cells, of which there are some, hold numbers."""
    filled = [cell for cell in cells if cell]
    count = 0
    for cell in filled:
        count += numeric(cell)
        if count >= min_share * len(filled):
            return True
    return False
