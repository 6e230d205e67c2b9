"""SQLite databases, opened so that nothing is written and nothing in them is run."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stabtree.loaders.source import Source

MAGIC = b"SQLite format 3\0"
# Steps of SQLite's machine for each byte of the file: several times what reading every table takes. Pages that
# point to each other, or a computed column, take more.
WORK = 20
MIN_WORK = 10_000_000
_TURN = 100_000
# No key and no value of a parameter is longer in any tracker's own schema.
MAX_TEXT = 1 << 20
# SQLite's own message about a damaged schema may not be valid text.
_DAMAGE = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)


def is_database(source: Source) -> bool:
    """Return whether a source is an SQLite database."""
    return source.data.startswith(MAGIC)


def has_tables(source: Source, tables: dict[str, str]) -> bool:
    """Return whether a source is a database with some columns in plain tables, given as table -> column.

    One that can't be opened is asked for the names of the columns in its first bytes.
    """
    if not is_database(source):
        return False
    try:
        with opened(source) as store:
            return all(column in columns(store, table) for table, column in tables.items())
    except StabtreeError:
        return all(column.encode() in source.data for column in tables.values())


@contextmanager
def opened(source: Source) -> Iterator[sqlite3.Connection]:
    """Open a database, read-only and without its journals.

    Raises:
        StabtreeError: if it is no plain file, or can't be read.
    """
    if source.file is None or source.packed:
        problem = "is an SQLite database, which is read from a plain file only"
        raise StabtreeError(problem, where=source.path, hint="name the file")
    try:
        with closing(sqlite3.connect(f"{source.file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as store:
            work = 0

            def stop() -> bool:
                nonlocal work
                work += _TURN
                return work > MIN_WORK + WORK * source.size

            store.set_progress_handler(stop, _TURN)
            store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
            store.text_factory = lambda text: text.decode("utf-8", "replace")
            store.execute("PRAGMA trusted_schema = off")
            yield store
    except _DAMAGE as error:
        problem = f"can't be read as an SQLite database: {clean(error, 120)}"
        check = "check it with: sqlite3 FILE 'pragma integrity_check'"
        raise StabtreeError(problem, where=source.path, hint=check) from None


def columns(store: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the columns of a plain table; none of a view or a virtual table, which could run anything."""
    rows = store.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    if not any(str(sql).upper().lstrip().startswith("CREATE TABLE") for (sql,) in rows):
        return frozenset()
    return frozenset(row[1] for row in store.execute(f"PRAGMA table_info({table})"))


def records(store: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a plain table; none where it is not there. Its columns differ by the tracker's version."""
    if columns(store, table):
        rows = store.execute(f"SELECT * FROM {table}")  # noqa: S608 - one of our own names
        names = [column[0] for column in rows.description]
        for row in rows:
            yield dict(zip(names, row, strict=True))


def journal(source: Source, owner: str) -> tuple[str, ...]:
    """Return a note on rows that a process which did not end has left beside the database."""
    beside = source.file and source.file.with_name(source.file.name + "-wal")
    if not beside or not beside.is_file() or not beside.stat().st_size:
        return ()
    return (f"Rows that are still in {clean(beside.name, 80)} were not read: run {owner} once to move them over.",)
