"""One SQLite file that keeps what was found, for the next scan, and puts the runs of this one in order."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from contextlib import closing, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.fleet.examine import Examined
from stabtree.fleet.find import Unit
from stabtree.fleet.remote import is_address
from stabtree.fleet.stamps import of_files, stamp
from stabtree.judging.outcome import ORDER
from stabtree.judging.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
MARK = 0x53544142
"""What the header of the file says of whose it is, at its byte 68: one that says nothing of the kind is left alone."""
_MARK_AT = 68
FOLDER = "stabtree"  # in which all files are ours
KEPT_SECONDS = 30 * 86_400.0
"""How long what no scan has asked for is kept."""
REPLACED_SECONDS = 86_400.0
"""How long what a newer examination replaced is kept: another scan may be showing it."""
PATIENCE_SECONDS = 60.0
COMMIT_SECONDS = 0.5
_TABLES = """
CREATE TABLE IF NOT EXISTS entry (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, stamp TEXT NOT NULL, deep INTEGER, outside BLOB, outside_stamp TEXT,
  further BLOB, used REAL NOT NULL);
CREATE INDEX IF NOT EXISTS entry_key ON entry (key);
CREATE TABLE IF NOT EXISTS record (
  id INTEGER PRIMARY KEY, entry INTEGER NOT NULL, place INTEGER, badge TEXT, verdict TEXT, partial INTEGER, leaf TEXT,
  folder TEXT, path TEXT, run TEXT, told BLOB, data BLOB);
CREATE INDEX IF NOT EXISTS record_entry ON record (entry);
"""
_MINE = """
CREATE TEMP TABLE mine (id INTEGER PRIMARY KEY, badge TEXT, rank INTEGER, leaf TEXT, folder TEXT, path TEXT, run TEXT);
CREATE INDEX temp.mine_order ON mine (rank, leaf);
"""
_RANKS = {str(verdict): rank for rank, verdict in enumerate(ORDER)}


class Store:
    """The runs of one scan, and what was found by those before it.

    Args:
        file: where to keep it; None for a file that is gone when the store is closed.
    """

    def __init__(self, file: Path | None) -> None:
        self.notes: list[str] = []
        self.file = file
        self._db = self._opened(file)
        self._committed = time.monotonic()
        with closing(self._db.cursor()) as cursor:
            cursor.executescript(_MINE)
        self._prune()

    def close(self) -> None:
        """Keep what is there and let go of the file."""
        with suppress(sqlite3.Error):
            self._db.commit()
        self._db.close()

    def known(self, unit: Unit, rules: str) -> Examined | None:
        """What an earlier scan found in a unit by the same rules; None where something changed since, or none did."""
        row = self._db.execute(
            "SELECT id, stamp, deep, outside, outside_stamp, further FROM entry WHERE key = ? ORDER BY id DESC LIMIT 1",
            (_key(unit, rules),),
        ).fetchone()
        if row is None:
            return None
        entry, then, deep, outside, outside_stamp, further = row
        paths = _loads(outside)
        if stamp(unit, deep=bool(deep)) != then or of_files(paths) != outside_stamp:
            return None
        self._db.execute("UPDATE entry SET used = ? WHERE id = ?", (time.time(), entry))
        self._take(entry)
        return Examined(unit, (), tuple(_unit(item) for item in _loads(further)), then, bool(deep), tuple(paths))

    def add(self, found: Examined, rules: str) -> None:
        """Keep what was found in a unit."""
        kept = found.stamp and not found.slow and not found.faults
        entry = self._db.execute(
            "INSERT INTO entry (key, stamp, deep, outside, outside_stamp, further, used) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                _key(found.unit, rules) if kept else "",
                found.stamp,
                found.deep,
                _dumps(found.outside),
                of_files(found.outside),
                _dumps([asdict(unit) for unit in found.further if kept]),
                time.time(),
            ),
        ).lastrowid
        rows = [(entry, place, *_row(record)) for place, record in enumerate(found.records)]
        self._db.executemany(f"INSERT INTO record VALUES (NULL{', ?' * 11})", rows)  # noqa: S608 - our own words alone
        self._take(entry)

    def _take(self, entry: int | None) -> None:
        """Count the runs of an entry among those of this scan."""
        ranks = " ".join(f"WHEN '{verdict}' THEN {rank}" for verdict, rank in _RANKS.items())
        self._db.execute(
            f"INSERT OR IGNORE INTO mine SELECT id, badge, CASE badge {ranks} ELSE -1 END, leaf, folder, path, run "  # noqa: S608
            "FROM record WHERE entry = ?",
            (entry,),
        )
        if time.monotonic() - self._committed > COMMIT_SECONDS:
            self._db.commit()
            self._committed = time.monotonic()

    def commit(self) -> None:
        """Keep all so far."""
        self._db.commit()

    def records(self, *, worst_first: bool = True) -> Iterator[Record]:
        """The runs of this scan; worst first, those of one leaf together, the leaf of most runs first."""
        self._db.commit()
        order = "rank, -many, leaf, path, run" if worst_first else "path, run"
        many = "SELECT rank AS r, leaf AS l, count(*) AS many FROM mine GROUP BY rank, leaf"
        yield from self._records(f"SELECT id FROM mine JOIN ({many}) ON rank = r AND leaf = l ORDER BY {order}")  # noqa: S608

    def _records(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[Record]:
        for (id_,) in self._db.execute(query, values):
            told, data = self._db.execute("SELECT told, data FROM record WHERE id = ?", (id_,)).fetchone()
            yield _record(told, data)

    def counts(self) -> dict[str, int]:
        """How many runs there are of each badge, worst first."""
        found = self._db.execute("SELECT badge, count(*) FROM mine GROUP BY badge ORDER BY min(rank)")
        return dict(found.fetchall())

    def verdicts(self) -> dict[tuple[str, bool], int]:
        """How many runs there are of each verdict, by whether they are partial."""
        found = self._db.execute(
            "SELECT verdict, partial, count(*) FROM record JOIN mine USING (id) GROUP BY verdict, partial"
        )
        return {(verdict, bool(partial)): count for verdict, partial, count in found}

    def groups(self, by: str, most: int) -> Iterator[tuple[str, str, int, list[Record]]]:
        """Groups of runs as (badge, what they share, how many, the first of them), the worst group first."""
        column = {"leaf": "leaf", "folder": "folder", "verdict": "badge"}[by]
        one = "rank, " if by == "leaf" else ""
        query = (
            f"SELECT min(rank), {column}, count(*) AS many FROM mine GROUP BY {one}{column} "  # noqa: S608
            f"ORDER BY min(rank), many DESC, {column}"
        )
        badges = {rank: badge for badge, rank in _RANKS.items()}
        for rank, shared, many in self._db.execute(query).fetchall():
            where = f"{column} = ?{' AND rank = ?' if one else ''}"
            values = (shared, *((rank,) if one else ()), most)
            query = f"SELECT id FROM mine WHERE {where} ORDER BY rank, path, run LIMIT ?"  # noqa: S608
            yield badges.get(rank, UNKNOWN), shared, many, list(self._records(query, values))

    def _opened(self, file: Path | None) -> sqlite3.Connection:
        """The database; a file that is none, or of another version, is made anew."""
        if file is None:
            return _connected("")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            return _connected(str(file))
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                hint = "wait for the other scan, or name another --cache FILE"
                raise StabtreeError("is held by another program", where=clean(file), hint=hint) from None
            self.notes.append(f"Nothing is kept for the next scan: {clean(file)} can't be used: {clean(error, 100)}.")
        except sqlite3.DatabaseError as error:
            if not _is_ours(file):
                hint = "name another --cache FILE: this one is left as it is"
                raise StabtreeError("is no cache of stabtree", where=clean(file), hint=hint) from None
            self.notes.append(f"The cache {clean(file)} was damaged ({clean(error, 60)}): it was made anew.")
            return self._anew(file)
        except OSError as error:
            self.notes.append(f"Nothing is kept for the next scan: {clean(file)}: {error.strerror}.")
        return _connected("")

    def _anew(self, file: Path) -> sqlite3.Connection:
        """A new file instead of one that is damaged."""
        try:
            for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
                file.with_name(name).unlink(missing_ok=True)
            return _connected(str(file))
        except (OSError, sqlite3.Error):
            return _connected("")

    def _prune(self) -> None:
        now = time.time()
        old = (
            "SELECT id FROM entry AS one WHERE used < ? OR (used < ? AND (key = '' OR EXISTS "
            "(SELECT 1 FROM entry AS two WHERE two.key = one.key AND two.id > one.id)))"
        )
        values = (now - KEPT_SECONDS, now - REPLACED_SECONDS)
        self._db.execute(f"DELETE FROM record WHERE entry IN ({old})", values)  # noqa: S608
        self._db.execute(f"DELETE FROM entry WHERE id IN ({old})", values)  # noqa: S608
        self._db.commit()


def _is_ours(file: Path) -> bool:
    """Whether a file that can't be used was a cache once."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_MARK_AT + 4)
    except OSError:
        return False
    return file.parent.name == FOLDER or head[_MARK_AT:] == MARK.to_bytes(4, "big")


def _connected(name: str) -> sqlite3.Connection:
    """A database with our tables.

    Raises:
        sqlite3.DatabaseError: where it is none, or not ours.
    """
    database = sqlite3.connect(name, timeout=PATIENCE_SECONDS, check_same_thread=False)
    try:
        version, mark = (database.execute(f"PRAGMA {key}").fetchone()[0] for key in ("user_version", "application_id"))
        foreign = mark == 0 and database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if foreign or (mark, version) not in ((0, 0), (MARK, FORMAT)):
            raise sqlite3.DatabaseError("of another version" if mark == MARK else "not ours")
        if not mark:
            database.execute(f"PRAGMA application_id = {MARK}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
        if name:
            database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {'NORMAL' if name else 'OFF'}")
        database.executescript(_TABLES)
        database.commit()
    except BaseException:
        database.close()
        raise
    return database


def _key(unit: Unit, rules: str) -> str:
    folder = unit.folder if is_address(unit.folder) else str(Path(unit.folder).absolute())
    key = "\0".join((rules, folder, *unit.files, "", *unit.above, "", *unit.read))
    return key.encode("utf-8", "backslashreplace").decode()  # a name need not be text


def _folder(path: str) -> str:
    return path.rpartition("/")[0] if is_address(path) else str(Path(path).parent)


def _row(record: Record) -> tuple[Any, ...]:
    told = {item.name: getattr(record, item.name) for item in fields(record) if item.name != "data"}
    return (
        *(record.badge, record.verdict, record.partial, record.leaf, _folder(record.path), record.path),
        *(record.run, _dumps(told), zlib.compress(record.data, 1)),
    )


def _record(told: bytes, data: bytes) -> Record:
    held = _loads(told)
    held |= {"notes": tuple(held["notes"]), "spark": tuple(held["spark"])}
    return Record(**held, data=zlib.decompress(data))


def _unit(held: dict[str, Any]) -> Unit:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in held.items()}
    return Unit(**plain)


def _dumps(value: Any) -> bytes:
    import orjson

    try:
        return orjson.dumps(value)
    except TypeError:  # names of files that are no text
        return json.dumps(value).encode()


def _loads(text: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)
