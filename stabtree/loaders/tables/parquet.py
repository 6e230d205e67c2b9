"""Parquet and Feather files, as pandas, polars and Hugging Face datasets write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Column, Table, affordable, check_width
from stabtree.loaders.tables.cells import as_cell, builder_of

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.cells import ColumnBuilder
    from stabtree.metrics.names import Names

MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather"}
# What its metadata may claim; a file of this many cells in one column is no metrics file.
MAX_ROWS = 20_000_000


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is Parquet or Feather."""
    if not source.packed and source.data.startswith(tuple(MAGIC)):
        return Sure.SURELY
    return Sure.NO


def read(source: Source, names: Names) -> Table:
    """Read the columns that hold numbers, and those that are known.

    Raises:
        StabtreeError: if pyarrow is not installed, or the file is damaged.
    """
    kind = next((kind for magic, kind in MAGIC.items() if source.data.startswith(magic)), "parquet")
    try:
        import pyarrow as pa
    except ImportError:
        raise StabtreeError(
            f"is a {kind.title()} file, which needs an extra package",
            where=source.path,
            hint="pip install 'stabtree[parquet]'",
        ) from None
    try:
        columns, frame = _open(source, kind, names)
        # Arrow trusts the offsets in a file; wrong ones would make it read beyond its memory.
        frame.validate(full=True)
        found = {name: _column(frame.column(name), builder_of(name, names)) for name in frame.column_names}
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        raise StabtreeError(
            f"can't be read as {kind.title()}: {clean(error, 120)}", where=source.path, hint="check the file"
        ) from None
    return Table(source.path, source.describe(kind), frame.num_rows, {name: found.get(name) for name in columns})


def _open(source: Source, kind: str, names: Names) -> tuple[list[str], Any]:
    """Return the names of all columns, and the table of those to be read.

    Raises:
        StabtreeError, ValueError: if a name occurs twice or the file is too large.
    """
    import pyarrow as pa

    file = str(source.file) if source.file else pa.BufferReader(source.stored)
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(file) as stored:
            columns = [str(name) for name in stored.schema_arrow.names]
            rows = stored.metadata.num_rows
            _check(source, columns, rows)
            return columns, stored.read(columns=_read_of(stored.schema_arrow, rows, names))
    from pyarrow import feather

    table = feather.read_table(file, memory_map=False)
    columns = [str(name) for name in table.column_names]
    _check(source, columns, table.num_rows)
    return columns, table.select(_read_of(table.schema, table.num_rows, names))


def _read_of(schema: Any, rows: int, names: Names) -> list[str]:
    """Return the columns to read: the known ones, and of the others those of numbers that there is room for."""
    import pyarrow as pa

    known = [name for name in map(str, schema.names) if names.wanted(name)]
    types = {str(part.name): part.type for part in schema}
    numbers = [name for name, type_ in types.items() if pa.types.is_floating(type_) or pa.types.is_integer(type_)]
    others = [name for name in numbers if not names.wanted(name)]
    return [*known, *affordable(others, len(known), rows)]


def _check(source: Source, columns: list[str], rows: int) -> None:
    check_width(len(columns), source.path)
    if len(set(columns)) < len(columns):
        raise ValueError("two columns have one name")
    if rows > MAX_ROWS:
        raise ValueError(f"it holds {rows:,} rows")


def _column(chunked: Any, builder: ColumnBuilder) -> Column:
    """Convert an Arrow column: a null is not logged, a NaN is a value."""
    import pyarrow as pa

    truths = pa.types.is_boolean(chunked.type) and builder.flags
    if (pa.types.is_floating(chunked.type) or pa.types.is_integer(chunked.type) or truths) and not builder.labels:
        missing = np.asarray(chunked.is_null().to_numpy(), dtype=np.bool_)
        filled = chunked.fill_null(False if truths else 0)
        values = np.array(filled.to_numpy(), dtype=np.float64)
        return Column(values, ~missing if missing.any() else None)
    cells = list(map(as_cell, chunked.to_pylist()))
    builder.add(cells, range(1, len(cells) + 1))
    return builder.column()
