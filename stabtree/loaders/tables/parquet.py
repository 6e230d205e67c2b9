"""Parquet and Feather files, as pandas, polars and Hugging Face datasets write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.source import Sure
from stabtree.loaders.table import Column, Table, check_width
from stabtree.loaders.tables.cells import builder_of

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.tables.cells import ColumnBuilder
    from stabtree.metrics.names import Names

MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather"}
# What its metadata may claim; a file of this many cells in one column is no metrics file.
MAX_ROWS = 20_000_000


def sniff(source: Source, _names: Names) -> Sure:
    """How surely this is Parquet or Feather."""
    return Sure.SURELY if not source.packed and source.data.startswith(tuple(MAGIC)) else Sure.NO


def read(source: Source, names: Names) -> Table:
    """The columns that are wanted.

    Raises:
        StabtreeError: where pyarrow is not installed, or the file is damaged.
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
        # Arrow trusts the offsets that a file states; a lying one would have it read beyond its memory.
        frame.validate(full=True)
        read_ = {name: _column(frame.column(name), builder_of(name, names)) for name in frame.column_names}
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        raise StabtreeError(
            f"can't be read as {kind.title()}: {clean(error, 120)}", where=source.path, hint="check the file"
        ) from None
    return Table(source.path, source.describe(kind), frame.num_rows, {name: read_.get(name) for name in columns})


def _open(source: Source, kind: str, names: Names) -> tuple[list[str], Any]:
    """All names of columns, and the table of the wanted ones.

    Raises:
        StabtreeError, ValueError: where a name stands twice or the file is too large.
    """
    import pyarrow as pa

    place = pa.BufferReader(source.stored) if source.file is None else str(source.file)
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(place) as file:
            columns = [str(name) for name in file.schema_arrow.names]
            _check(source, columns, file.metadata.num_rows)
            return columns, file.read(columns=[name for name in columns if names.wanted(name)])
    from pyarrow import feather

    table = feather.read_table(place, memory_map=False)
    columns = [str(name) for name in table.column_names]
    _check(source, columns, table.num_rows)
    return columns, table.select([name for name in columns if names.wanted(name)])


def _check(source: Source, columns: list[str], rows: int) -> None:
    check_width(len(columns), source.path)
    if len(set(columns)) < len(columns):
        raise ValueError("two columns have one name")
    if rows > MAX_ROWS:
        raise ValueError(f"it holds {rows:,} rows")


def _column(chunked: Any, builder: ColumnBuilder) -> Column:
    """An Arrow column as ours: a null is not logged, a NaN is a value."""
    import pyarrow as pa

    truths = pa.types.is_boolean(chunked.type) and builder.flags
    if (pa.types.is_floating(chunked.type) or pa.types.is_integer(chunked.type) or truths) and not builder.labels:
        missing = np.asarray(chunked.is_null().to_numpy(), dtype=np.bool_)
        filled = chunked.fill_null(False if truths else 0)
        values = np.array(filled.to_numpy(), dtype=np.float64)
        return Column(values, ~missing if missing.any() else None)
    cells = [cell if isinstance(cell, str | int | float | None) else str(cell) for cell in chunked.to_pylist()]
    builder.add(cells, range(1, len(cells) + 1))
    return builder.column()
