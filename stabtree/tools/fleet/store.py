"""The runs of a scan, in order: what was found now, and what the cache of earlier scans holds of the rest."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import ORDER
from stabtree.loaders.paths.find import Unit
from stabtree.tools.fleet.cache import COLUMNS, Cache
from stabtree.tools.fleet.examine import Examined
from stabtree.tools.fleet.record import dumps, loads, record_of
from stabtree.tools.fleet.remote.addresses import is_address
from stabtree.tools.fleet.stamps import of_files, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.tools.fleet.record import Record, Row

_TABLES = """
CREATE TABLE mine (
  id INTEGER PRIMARY KEY, rank INTEGER, badge TEXT, verdict TEXT, partial INTEGER, leaf TEXT, folder TEXT, path TEXT,
  run TEXT, outline BLOB, data BLOB);
CREATE INDEX mine_order ON mine (rank, leaf);
"""
_RANKS = {str(verdict): rank for rank, verdict in enumerate(ORDER)}


class Store:
    """The runs of one scan in a database of its own, which is gone when it is closed.

    Args:
        file: the cache of earlier scans, to which what is found is added; None for none.
    """

    def __init__(self, file: Path | None) -> None:
        self._cache = Cache(file)
        self._db = sqlite3.connect("", check_same_thread=False)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_TABLES)

    @property
    def notes(self) -> list[str]:
        """What is to be said of the cache."""
        if self._cache.note:
            return [self._cache.note]
        return []

    def close(self) -> None:
        """Write the cache, and let go of the rest."""
        self._cache.close()
        self._db.close()

    def known(self, unit: Unit, rules: str) -> Examined | None:
        """What an earlier scan found in a unit by the same rules; None where something changed since, or none did."""
        key = _key(unit, rules)
        kept = self._cache.known(key)
        if kept is None:
            return None
        (then, deep, outside, outside_stamp, further), records = kept
        paths = loads(outside)
        if stamp(unit, deep=bool(deep)) != then or of_files(paths) != outside_stamp:
            return None
        self._cache.touch(key)
        self._take(records)
        return Examined(unit, (), tuple(_unit(item) for item in loads(further)), then, bool(deep), tuple(paths))

    def add(self, found: Examined, rules: str) -> None:
        """Take in what was found in a unit, and keep it for the next scan where that may hold then."""
        self._take(found.rows)
        if found.stamp and not found.slow and not found.faults:
            further = dumps([asdict(unit) for unit in found.further])
            head = (found.stamp, int(found.deep), dumps(found.outside), of_files(found.outside), further)
            self._cache.add(_key(found.unit, rules), head, found.rows)

    def _take(self, records: Sequence[Row]) -> None:
        """Count runs among those of this scan."""
        query = f"INSERT INTO mine (rank, {COLUMNS}) VALUES (?{', ?' * 9})"  # noqa: S608 - our own words alone
        try:
            self._db.executemany(query, [(_RANKS.get(record[0], -1), *record) for record in records])
        except sqlite3.OperationalError as error:
            hint = "free some space where temporary files are, or name another folder with SQLITE_TMPDIR"
            raise StabtreeError(f"what was found can't be kept: {error}", where="scan", hint=hint) from None

    def commit(self) -> None:
        """Keep all so far for the next scan."""
        self._cache.commit()

    def records(self, *, worst_first: bool = True) -> Iterator[Record]:
        """The runs of this scan; worst first, those of one leaf together, the leaf of most runs first."""
        order = "path, run"
        if worst_first:
            order = "rank, -many, leaf, path, run"
        many = "SELECT rank AS r, leaf AS l, count(*) AS many FROM mine GROUP BY rank, leaf"
        yield from self._records(f"SELECT id FROM mine JOIN ({many}) ON rank = r AND leaf = l ORDER BY {order}")  # noqa: S608

    def _records(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[Record]:
        for (id_,) in self._db.execute(query, values):
            outline, data = self._db.execute("SELECT outline, data FROM mine WHERE id = ?", (id_,)).fetchone()
            yield record_of(outline, data)

    def counts(self) -> dict[str, int]:
        """How many runs there are of each badge, worst first."""
        found = self._db.execute("SELECT badge, count(*) FROM mine GROUP BY badge ORDER BY min(rank)")
        return dict(found.fetchall())

    def verdicts(self) -> dict[tuple[str, bool], int]:
        """How many runs there are of each verdict, by whether they are partial."""
        found = self._db.execute("SELECT verdict, partial, count(*) FROM mine GROUP BY verdict, partial")
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


def _key(unit: Unit, rules: str) -> str:
    if is_address(unit.folder):
        folder = unit.folder
    else:
        folder = str(Path(unit.folder).absolute())
    key = "\0".join((rules, folder, str(unit.named), *unit.files))
    return key.encode("utf-8", "backslashreplace").decode()  # a name need not be text


def _unit(held: dict[str, Any]) -> Unit:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in held.items()}
    return Unit(**plain)
