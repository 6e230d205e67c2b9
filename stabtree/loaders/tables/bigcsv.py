"""The fast way through a large, plain CSV file: pandas' C parser, its arrays taken over without a copy.

It must give what the slow way gives. So it takes only what both read alike, and leaves everything else to
the slow way: quotes, text in a column of numbers, rows of the wrong length, a header that comes again.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from stabtree._lazy import np
from stabtree.loaders.table import Column, Table
from stabtree.loaders.tables.cells import ColumnBuilder
from stabtree.run import Skipped

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.layout import Layout
    from stabtree.metrics.names import Names

# Below this the 0.3 s that importing pandas takes are more than it saves.
MIN_BYTES = 4 << 20


def read_big(source: Source, layout: Layout, names: Names) -> Table | None:
    """The table, or None where the slow way has to read it."""
    file = source.file
    chosen = [name for name in layout.names if names.wanted(name)]
    if not file or not chosen or not _regular(source, layout) or _odd(file):
        return None
    try:
        frame = _parse(file, layout, chosen, names)
    except (ValueError, OSError):
        # ParserError, UnicodeDecodeError and numbers that pandas can't hold are all ValueErrors.
        return None
    tail = _cut_tail(file, len(layout.names))
    # Where pandas reads some columns only, it does not mind rows that are too long.
    if len(chosen) < len(layout.names) and _commas(file) != _expected_commas(len(frame), len(layout.names), tail):
        return None
    columns: dict[str, Column | None] = dict.fromkeys(layout.names)
    rows = len(frame) - (tail is not None)
    for name in chosen:
        column = _column(frame[name].iloc[:rows], names.is_label(name))
        if column.bad:
            return None
        columns[name] = column
    cut = () if tail is None else (Skipped(rows + 2, "is cut: the file ends inside this line"),)
    return Table(source.path, source.describe("csv"), rows, columns, skipped=cut, skipped_count=len(cut))


def _parse(file: Path, layout: Layout, chosen: list[str], names: Names) -> Any:
    """The frame of the chosen columns, where only an empty cell is missing.

    Raises:
        ValueError: where pandas finds rows that are too long, or bytes that are no text.
    """
    import pandas as pd

    every = len(chosen) == len(layout.names)
    with warnings.catch_warnings():
        # A column that is text in one part of the file only is converted cell by cell.
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        frame = pd.read_csv(
            file,
            usecols=None if every else [layout.names.index(name) for name in chosen],
            dtype={name: "str" for name in chosen if names.is_label(name)},
            keep_default_na=False,
            na_values=[""],
            quoting=3,
        )
    frame.columns = pd.Index(chosen)
    return frame


def _regular(source: Source, layout: Layout) -> bool:
    """Whether the head looks like a file that both ways read alike."""
    return (
        source.size >= MIN_BYTES
        and layout.delimiter == ","
        and layout.header_line == 1
        and layout.agree == 1.0
        and source.head.split("\n", 2)[1].count(",") == len(layout.names) - 1
        and source.encoding == "utf-8"
        and not source.packed
        and not source.bom
        and not any(mark in source.head for mark in '"#\0')
    )


def _column(series: Any, labels: bool) -> Column:
    """A pandas column as ours: numbers as they are, anything else by the cell rules."""
    if not labels and series.dtype.kind in "fiu":
        values = series.to_numpy(dtype=np.float64)
        missing = np.isnan(values)
        # Only an empty cell comes back as NaN here: a column with a written `nan` comes back as text.
        return Column(values, ~missing if missing.any() else None)
    builder = ColumnBuilder(labels=labels)
    cells = [None if cell is np.nan or cell != cell else cell for cell in series.to_numpy(dtype=object)]  # noqa: PLR0124
    builder.add(cells, range(2, len(cells) + 2))
    return builder.column()


def _cut_tail(file: Path, width: int) -> int | None:
    """The delimiters in the last line, if the file ends inside that line; None if it does not."""
    with file.open("rb") as stream:
        stream.seek(-min(file.stat().st_size, 1 << 20), 2)
        last = stream.read().rpartition(b"\n")[2]
    commas = last.count(b",")
    return commas if last.strip() and commas + 1 < width else None


def _odd(file: Path) -> bool:
    """Whether a quote, a NUL, an escape code or an endless line stands anywhere in a file."""
    part = bytearray(1 << 18)  # one buffer, filled again and again: mapping the file would count as memory
    with file.open("rb", buffering=0) as stream:
        while size := stream.readinto(part):
            if any(part.find(mark, 0, size) >= 0 for mark in (b'"', b"\0", b"\x1b")):
                return True
            if size == len(part) and part.find(b"\n") < 0 and part.find(b"\r") < 0:
                return True
    return False


def _commas(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(chunk.count(b",") for chunk in iter(lambda: stream.read(1 << 20), b""))


def _expected_commas(rows: int, width: int, tail: int | None) -> int:
    """The delimiters of a header and `rows` rows that are all complete, the last one up to its cut."""
    whole = rows + 1 - (tail is not None)
    return whole * (width - 1) + (tail or 0)
