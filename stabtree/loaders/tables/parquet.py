"""Parquet and Feather files, as pandas, polars and Hugging Face datasets write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Column, Table, affordable, check_width, unless_all
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
    return Sure.SURELY.when(not source.packed and source.data.startswith(tuple(MAGIC)))


def read(source: Source, names: Names) -> Table:
    """Read the columns that hold numbers, and those that are known.

    Raises:
        StabtreeError: if pyarrow is not installed, or the file is damaged.
    """
    kind = next((kind for magic, kind in MAGIC.items() if source.data.startswith(magic)), "parquet")
    try:
        import pyarrow as pa
        from pyarrow import feather
        from pyarrow import parquet as pq
    except ImportError:
        problem, hint = f"is a {kind.title()} file, which needs an extra package", "pip install 'stabtree[parquet]'"
        raise StabtreeError(problem, where=source.path, hint=hint) from None
    file = str(source.file) if source.file else pa.BufferReader(source.stored)
    try:
        if kind == "parquet":
            with pq.ParquetFile(file) as stored:
                schema, rows = stored.schema_arrow, stored.metadata.num_rows
                frame = stored.read(columns=_wanted(source, schema, rows, names))
        else:
            whole = feather.read_table(file, memory_map=False)
            schema, rows = whole.schema, whole.num_rows
            frame = whole.select(_wanted(source, schema, rows, names))
        # Arrow trusts the offsets in a file; wrong ones would make it read beyond its memory.
        frame.validate(full=True)
        columns = {name: _column(frame.column(name), builder_of(name, names)) for name in frame.column_names}
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        problem = f"can't be read as {kind.title()}: {clean(error, 120)}"
        raise StabtreeError(problem, where=source.path, hint="check the file") from None
    return Table(source.path, source.describe(kind), rows, {str(name): columns.get(str(name)) for name in schema.names})


def _wanted(source: Source, schema: Any, rows: int, names: Names) -> list[str]:
    """Return the columns to read: the known ones, and of the others those of numbers that there is room for.

    Raises:
        StabtreeError, ValueError: if a name occurs twice or the file is too large.
    """
    import pyarrow as pa

    check_width(len(schema.names), source.path)
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("two columns have one name")
    if rows > MAX_ROWS:
        raise ValueError(f"it holds {rows:,} rows")
    known = [name for name in map(str, schema.names) if names.wanted(name)]
    numbers = [str(part.name) for part in schema if pa.types.is_floating(part.type) or pa.types.is_integer(part.type)]
    return [*known, *affordable([name for name in numbers if not names.wanted(name)], len(known), rows)]


def _column(chunked: Any, builder: ColumnBuilder) -> Column:
    """Convert an Arrow column: a null is not logged, a NaN is a value."""
    import pyarrow as pa

    truths = pa.types.is_boolean(chunked.type) and builder.flags
    if (pa.types.is_floating(chunked.type) or pa.types.is_integer(chunked.type) or truths) and not builder.labels:
        missing = np.asarray(chunked.is_null().to_numpy(), dtype=np.bool_)
        filled = chunked.fill_null(False if truths else 0)
        values = np.array(filled.to_numpy(), dtype=np.float64)
        return Column(values, unless_all(~missing))
    cells = list(map(as_cell, chunked.to_pylist()))
    builder.add(cells, range(1, len(cells) + 1))
    return builder.column()
