"""A SQLite file that keeps what scans found for the next one. Without it a scan takes longer; nothing else changes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from stabtree.tools.fleet.record import Row

T = TypeVar("T")

FORMAT = 3
MAGIC = b"SQLite format 3\0"
MARK = 0x53544142
"""Our `application_id`, at byte 68. A file without it is somebody else's: never opened, changed or deleted."""
_MARK_AT = 68
KEPT_SECONDS = 30 * 86_400.0
"""How long what no scan has asked for is kept."""
PATIENCE_SECONDS = 60.0
COMMIT_SECONDS = 0.5
COLUMNS = "badge, verdict, partial, leaf, folder, path, run, outline, data"
"""The columns of a record."""
_HEAD = "stamp, deep, outside, outside_stamp, further"
_SCHEMA = {
    "entry": "CREATE TABLE entry (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, stamp TEXT, deep INTEGER, "
    "outside BLOB, outside_stamp TEXT, further BLOB, used REAL NOT NULL, digest BLOB)",
    "record": "CREATE TABLE record (id INTEGER PRIMARY KEY, entry INTEGER NOT NULL, badge TEXT, verdict TEXT, "
    "partial INTEGER, leaf TEXT, folder TEXT, path TEXT, run TEXT, outline BLOB, data BLOB)",
    "record_entry": "CREATE INDEX record_entry ON record (entry)",
}


class DamagedCacheError(sqlite3.DatabaseError):
    """A cache of ours that can't be used: of another version, or with tables that are not ours."""


class Cache:
    """What earlier scans found, by key. Where the file can't be used, nothing is known and nothing kept.

    Args:
        file: the file; None for no cache at all.

    Attributes:
        note: why nothing is kept, or that a damaged cache was replaced; empty where all is well.

    Raises:
        StabtreeError: where another program has locked the file.
    """

    def __init__(self, file: Path | None) -> None:
        self.note = ""
        self._file = file
        self._db: sqlite3.Connection | None = None
        self._committed = time.monotonic()
        if file is not None:
            self._open(file)
            self._try(self._prune)

    def known(self, key: str) -> tuple[Row, list[Row]] | None:
        """Return the entry (stamp, deep, outside, outside_stamp, further) and its records; None where there is none.

        An entry whose content does not match its digest is none.
        """
        return self._try(lambda db: self._known(db, key))

    def touch(self, key: str) -> None:
        """Keep an entry for another `KEPT_SECONDS`."""
        self._try(lambda db: self._write(db, [("UPDATE entry SET used = ? WHERE key = ?", (time.time(), key))]))

    def add(self, key: str, head: Row, records: Sequence[Row]) -> None:
        """Keep an entry and its records instead of what was there under its key."""
        self._try(lambda db: self._add(db, key, head, records))

    def commit(self) -> None:
        """Write all so far to the file."""
        self._try(lambda db: db.commit())

    def close(self) -> None:
        """Write all, and close the file."""
        self.commit()
        if self._db is not None:
            self._db.close()
            self._db = None

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what `work` does with the database; None, and no error, where there is none or it can't be used."""
        if self._db is None:
            return None
        try:
            return work(self._db)
        except sqlite3.Error as error:
            self._lose(error)
            return None

    def _open(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if not _is_usable(file):
                shown = masked(clean(file))
                self.note = f"Nothing is kept for the next scan: {shown} is no cache of stabtree. Name another FILE."
                return
            self._db = _connected(file)
        except sqlite3.Error as error:
            if "locked" in str(error):
                hint = "wait for the other scan, or name another --cache FILE"
                raise StabtreeError("is held by another program", where=masked(clean(file)), hint=hint) from None
            self._lose(error)
        except OSError as error:
            self._without(error.strerror or type(error).__name__)

    def _lose(self, error: sqlite3.Error) -> None:
        """Go on after an error: with a new file where ours is damaged, else without one."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None
        file = self._file
        if file is None:
            return
        # A full disk, a file that may not be written: the cache itself may be sound.
        if isinstance(error, sqlite3.OperationalError) or not _is_ours(file):
            self._without(clean(error, 100))
            return
        self.note = f"The cache {masked(clean(file))} was damaged ({clean(error, 60)}): it was made anew."
        try:
            for name in (file.name, *(f"{file.name}-{more}" for more in ("wal", "shm", "journal"))):
                file.with_name(name).unlink(missing_ok=True)
            self._db = _connected(file)
        except (OSError, sqlite3.Error) as again:
            self._without(clean(again, 100))

    def _without(self, why: str) -> None:
        self.note = f"Nothing more is kept for the next scan: {masked(clean(self._file))} can't be used: {why}."

    def _known(self, db: sqlite3.Connection, key: str) -> tuple[Row, list[Row]] | None:
        found = db.execute(f"SELECT {_HEAD}, id, digest FROM entry WHERE key = ?", (key,)).fetchone()  # noqa: S608
        if found is None:
            return None
        *head, entry, digest = found
        query = f"SELECT {COLUMNS} FROM record WHERE entry = ? ORDER BY id"  # noqa: S608 - our own words alone
        records = db.execute(query, (entry,)).fetchall()
        if digest != _digest(key, tuple(head), records):
            return None
        return tuple(head), records

    def _add(self, db: sqlite3.Connection, key: str, head: Row, records: Sequence[Row]) -> None:
        db.execute("DELETE FROM record WHERE entry IN (SELECT id FROM entry WHERE key = ?)", (key,))
        db.execute("DELETE FROM entry WHERE key = ?", (key,))
        query = f"INSERT INTO entry (key, {_HEAD}, used, digest) VALUES (?{', ?' * 7})"  # noqa: S608
        entry = db.execute(query, (key, *head, time.time(), _digest(key, head, records))).lastrowid
        query = f"INSERT INTO record (entry, {COLUMNS}) VALUES (?{', ?' * 9})"  # noqa: S608
        self._write(db, [(query, (entry, *record)) for record in records])

    def _write(self, db: sqlite3.Connection, statements: Sequence[tuple[str, Row]]) -> None:
        for query, values in statements:
            db.execute(query, values)
        if time.monotonic() - self._committed > COMMIT_SECONDS:
            db.commit()
            self._committed = time.monotonic()

    def _prune(self, db: sqlite3.Connection) -> None:
        old = (time.time() - KEPT_SECONDS,)
        db.execute("DELETE FROM record WHERE entry IN (SELECT id FROM entry WHERE used < ?)", old)
        db.execute("DELETE FROM entry WHERE used < ?", old)
        db.commit()


def _digest(key: str, head: Row, records: Sequence[Row]) -> bytes:
    """Return a hash of all that an entry holds."""
    digest = hashlib.blake2b(digest_size=16)
    for row in ((key,), head, *records):
        for value in row:
            content = value if isinstance(value, bytes) else repr(value).encode("utf-8", "backslashreplace")
            digest.update(b"%d:" % len(content) + content)
        digest.update(b";")
    return digest.digest()


def _is_usable(file: Path) -> bool:
    """Return whether a file may be written as a cache: it is not there, is empty, or is a cache of ours."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(status.st_mode):
        return False
    return status.st_size == 0 or _is_ours(file)


def _is_ours(file: Path) -> bool:
    """Return whether the head of a file says that it is a cache of stabtree."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_MARK_AT + 4)
    except OSError:
        return False
    return head.startswith(MAGIC) and head[_MARK_AT:] == MARK.to_bytes(4, "big")


def _connected(file: Path) -> sqlite3.Connection:
    """Return a database with our tables, in a file that only its owner may read.

    Raises:
        sqlite3.DatabaseError: where it is damaged, of another version, locked, or can't be written.
        OSError: where the file can't be made.
    """
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    file.chmod(0o600)
    database = sqlite3.connect(file, timeout=PATIENCE_SECONDS, check_same_thread=False, isolation_level=None)
    try:
        # Damaged text must differ from what was written, and not be an error of the whole file.
        database.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
        database.execute("PRAGMA trusted_schema = off")
        database.execute("BEGIN IMMEDIATE")
        schema = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        version, mark = (database.execute(f"PRAGMA {key}").fetchone()[0] for key in ("user_version", "application_id"))
        if not schema and (mark, version) == (0, 0):
            database.execute(f"PRAGMA application_id = {MARK}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
            for statement in _SCHEMA.values():
                database.execute(statement)
        elif (schema, mark, version) != (_SCHEMA, MARK, FORMAT):
            raise DamagedCacheError("of another version" if version != FORMAT else "its tables are not ours")
        database.execute("COMMIT")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    database.isolation_level = "DEFERRED"  # from here on a transaction begins with the first change
    return database
