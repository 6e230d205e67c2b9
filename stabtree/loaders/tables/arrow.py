"""Rows of a large file, parsed by pyarrow on all cores where it is installed: several times as fast as we can."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stabtree.common.lazy import Bools, Floats
    from stabtree.loaders.tables.layout import Layout

    Parts = Iterator[tuple[Floats, Bools | None]]

LARGE = 64 << 20  # bytes; importing pyarrow takes as long as we take for half of them
COLUMNS = 100  # each costs a little in every block: of more of them pyarrow takes as long as we do, or longer
BLOCK = 1 << 20  # characters, which all cores share
PIECE = 1 << 18  # bytes that one core parses at a time
DELIMITERS = (",", ";", "\t", "|")
ODD = ('"', "#", "\0")  # what cells and lines with these mean is decided elsewhere


def helps(size: int, layout: Layout) -> bool:
    """Return whether pyarrow may read a file of `size` bytes that is laid out so."""
    if (
        size < LARGE
        or layout.delimiter not in DELIMITERS
        or not 2 <= len(layout.names) <= COLUMNS
        or layout.comma == "decimal"
    ):
        return False
    return find_spec("pyarrow") is not None


def columns(block: str, layout: Layout, wanted: Collection[int]) -> list[Any] | None:
    """Return columns of numbers; None if a line is no row, or a cell is neither empty nor a number in plain digits.

    Args:
        block: whole lines.
        layout: how the file is laid out.
        wanted: the indices of the columns.
    """
    if any(mark in block for mark in ODD):
        return None
    from pyarrow import ArrowInvalid, BufferReader, csv, float64

    names = [str(index) for index in range(len(layout.names))]
    chosen = [names[index] for index in wanted]
    try:
        table = csv.read_csv(
            BufferReader(block.encode()),
            csv.ReadOptions(column_names=names, block_size=PIECE),
            csv.ParseOptions(delimiter=layout.delimiter, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(chosen, float64()), include_columns=chosen, null_values=[""]),
        )
    except (ArrowInvalid, UnicodeError):
        return None
    found = list(table.columns)
    if all(column.null_count for column in found) and f"\n{block}".count("\n\n"):
        return None  # pyarrow takes an empty line for a row
    return found


def parts(column: Any) -> Parts:
    """Yield the numbers of a column, float64 (n,), and which cells hold one, bool (n,), None for all."""
    for chunk in column.chunks:
        values = chunk.to_numpy(zero_copy_only=False)
        yield values, np.asarray(chunk.is_valid()) if chunk.null_count else None
