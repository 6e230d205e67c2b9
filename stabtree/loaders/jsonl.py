"""JSON lines: one object a line, train, eval and config rows mixed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stabtree._lazy import np
from stabtree.errors import StabtreeError
from stabtree.loaders.cells import Cell, ColumnBuilder
from stabtree.loaders.config import config_row
from stabtree.loaders.skips import Skips
from stabtree.loaders.table import Column, Select, Table
from stabtree.metrics import is_label
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.loaders.source import Source
    from stabtree.run import ConfigScalar

# Deeper than any logger nests its keys.
MAX_DEPTH = 8
# printf writes `nan` and `-inf`, which JSON does not know even in Python's dialect.
_BARE = re.compile(r"(?<=[:\[,\s])([+-]?)(nan|inf|infinity)(?=\s*[,}\]])", re.IGNORECASE)


@dataclass(slots=True)
class Rows:
    """Rows of a JSON file, collected column by column.

    Attributes:
        select: which columns to keep.
        count: rows so far.
        names: every key that was met, in the order of first appearance.
        config: configuration found among the rows.
    """

    select: Select
    count: int = 0
    names: dict[str, bool] = field(default_factory=dict)
    config: dict[str, ConfigScalar] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _cells: dict[str, tuple[list[int], list[Cell], list[int]]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], line: int) -> None:
        """Append one object, which stands in `line`; a row of configuration goes to `config`."""
        config = config_row(row)
        if config is not None:
            found, notes = config
            self.config |= found
            self.notes += notes
            return
        for name, cell in flatten(row):
            wanted = self.names.get(name)
            if wanted is None:
                wanted = self.names[name] = self.select(name)
            if wanted:
                rows, cells, lines = self._cells.setdefault(name, ([], [], []))
                rows.append(self.count)
                cells.append(cell)
                lines.append(line)
        self.count += 1

    def columns(self) -> dict[str, Column | None]:
        """One column for each key, a missing key not logged."""
        return {name: self._column(name) if name in self._cells else None for name in self.names}

    def _column(self, name: str) -> Column:
        rows, cells, lines = self._cells[name]
        builder = ColumnBuilder(labels=is_label(name))
        builder.add(cells, lines)
        sparse = builder.column()
        if len(rows) == self.count and rows[-1] == self.count - 1:
            return sparse
        values = np.zeros(self.count)
        logged = np.zeros(self.count, dtype=np.bool_)
        # A key that stands twice in a row's nested forms: the later cell is kept.
        values[rows] = sparse.values
        logged[rows] = True if sparse.logged is None else sparse.logged
        return Column(values, logged, sparse.bad, sparse.bad_example, sparse.coded)


def flatten(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Cell]]:
    """The cells of an object, nested keys joined with `/`; lists and anything too deep are left out."""
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if depth < MAX_DEPTH:
                yield from flatten(value, f"{name}/", depth + 1)
        elif not isinstance(value, list):
            yield name, value


def parse(line: str) -> Any:
    """The JSON value of a line, `nan` and `inf` in any spelling included.

    Raises:
        ValueError: where it is no JSON, with a reason fit to print.
    """
    try:
        try:
            return json.loads(line)
        except ValueError:
            spelled = _BARE.sub(lambda m: m[1].strip("+") + ("NaN" if m[2][0] in "nN" else "Infinity"), line)
            return json.loads(spelled.replace("-NaN", "NaN"))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not valid JSON ({error.msg} at column {error.colno})") from None


def sniff(source: Source) -> int:
    """How surely this is JSON lines, 0 to 100."""
    if source.binary:
        return 0
    lines = [line for line in source.head.split("\n", 50)[:50] if line.strip(" \r\0")]
    objects = sum(_is_object(line) for line in lines)
    # One broken line in the middle of a log is common; a lone cut line may be all there is.
    if objects and objects >= 0.5 * (len(lines) - 1):
        return 80
    return 25 if lines and len(source.data) < 1 << 20 and lines[0].lstrip().startswith('{"') else 0


def _is_object(line: str) -> bool:
    try:
        return isinstance(parse(line), dict)
    except ValueError:
        return False


def read(source: Source, select: Select) -> Table:
    """The columns that `select` wants.

    Raises:
        StabtreeError: where no line is a JSON object.
    """
    lines = source.lines()
    rows, skips = Rows(select), Skips()
    for place, line in enumerate(lines, 1):
        if line.strip(" \t\0"):
            reason = _take(line, place, rows)
            if reason:
                skips.add(place, reason)
    if not rows.names and not rows.config:
        raise StabtreeError(
            "no line of it is a JSON object",
            where=source.path,
            hint="check the file, or name its format with --format",
        )
    return Table(
        path=source.path,
        format=source.describe("jsonl"),
        rows=rows.count,
        columns=rows.columns(),
        config=rows.config,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=(*lines.notes, *rows.notes),
    )


def _take(line: str, place: int, rows: Rows) -> str:
    """Add a line to the rows; the reason if it can't be."""
    try:
        row = parse(line)
    except ValueError as error:
        return clean(error, 120)
    if not isinstance(row, dict):
        return f"is no JSON object: {clean(line, 40)!r}"
    rows.add(row, place)
    return ""
