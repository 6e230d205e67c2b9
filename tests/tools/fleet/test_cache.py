"""The cache of scans: only a file that is one is ever replaced, and whatever is wrong with it costs time alone."""

from __future__ import annotations

import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import scan
from stabtree.tools.fleet import cache as caching
from stabtree.tools.fleet.read import read_unit
from tests.cli.command import run
from tests.loaders.paths import logs

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.paths.find import Unit
    from stabtree.tools.fleet.scan import Fleet

GARBAGE = bytes(range(256)) * 12
RUNS = 6


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Runs in folders of their own."""
    for seed in range(RUNS):
        logs.csv(tmp_path / "top" / f"run{seed}" / "metrics.csv", seed)
    return tmp_path / "top"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the units that are read, as they are read."""
    names: list[str] = []

    def counted(unit: Unit, *rest: Any) -> Any:
        names.append(unit.path.rpartition("/")[2])
        return read_unit(unit, *rest)

    monkeypatch.setattr("stabtree.tools.fleet.examine.read_unit", counted)
    return names


def serial(top: Path, cache: Path) -> Fleet:
    """A scan in this process."""
    return scan(top, engine="serial", cache=cache)


def found(top: Path, cache: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """What a scan finds, by path, and its notes."""
    with serial(top, cache) as fleet:
        return {record.path: record.data for record in fleet}, fleet.notes


def test_the_cache_is_for_its_owner_alone(top: Path, tmp_path: Path) -> None:
    """Nobody else may read or write it, nor what SQLite puts beside it; one of before is closed to others."""
    cache = tmp_path / "cache.sqlite"
    for _ in range(2):
        with serial(top, cache):
            if sys.platform != "win32":
                beside = [*tmp_path.glob("cache.sqlite*")]
                assert beside
                assert {file.stat().st_mode & 0o777 for file in beside} == {0o600}
        cache.chmod(0o644)


@pytest.mark.parametrize("folder", ["stabtree", "elsewhere"])
@pytest.mark.parametrize("content", [b"step,loss\n1,2\n", b"SQLite format 3\0 cut", b"notes of somebody", GARBAGE])
def test_a_file_that_is_no_cache_is_left_alone(top: Path, tmp_path: Path, folder: str, content: bytes) -> None:
    """Neither its name nor its folder makes a file ours; the scan goes on without, with one note."""
    cache = tmp_path / folder / "run.csv"
    cache.parent.mkdir()
    cache.write_bytes(content)
    records, notes = found(top, cache)
    assert len(records) == RUNS
    assert len(notes) == 1
    assert "is no cache of stabtree" in notes[0]
    assert cache.read_bytes() == content
    assert [file.name for file in cache.parent.iterdir()] == ["run.csv"]


def test_a_database_of_another_program_is_left_alone(top: Path, tmp_path: Path) -> None:
    """It is not even opened."""
    cache = tmp_path / "theirs.sqlite"
    with sqlite3.connect(cache) as theirs:
        theirs.execute("CREATE TABLE precious (x)")
    theirs.close()
    before = cache.read_bytes()
    records, (note,) = found(top, cache)
    assert len(records) == RUNS
    assert "is no cache of stabtree" in note
    assert cache.read_bytes() == before


def test_the_command_goes_on_without_a_cache(top: Path) -> None:
    """A log that is named as cache by mistake is still there, and the exit code is that of the runs."""
    log = top / "run0" / "metrics.csv"
    before = log.read_bytes()
    done = run("scan", str(top), "--cache", str(log), "--engine", "serial")
    assert done.returncode == 0
    assert done.stderr.count("note: ") == 1
    assert log.read_bytes() == before


def test_an_empty_file_becomes_a_cache(top: Path, tmp_path: Path, read: list[str]) -> None:
    """As `mktemp` makes one."""
    cache = tmp_path / "cache"
    cache.touch()
    assert found(top, cache)[1] == ()
    read.clear()
    found(top, cache)
    assert not read


@pytest.mark.parametrize("share", [0.01, 0.2, 0.4, 0.6, 0.8])
def test_garbage_in_the_middle_costs_time_alone(top: Path, tmp_path: Path, share: float, read: list[str]) -> None:
    """The same is found, and the scan after it has a sound cache again."""
    cache = tmp_path / "cache.sqlite"
    first, _ = found(top, cache)
    size = cache.stat().st_size
    with cache.open("r+b") as stream:
        stream.seek(max(int(size * share), 200))
        stream.write(GARBAGE)
    again, _ = found(top, cache)
    assert again == first
    assert found(top, cache)[0] == first
    read.clear()
    last, notes = found(top, cache)
    assert last == first
    assert not read
    assert not notes


def test_a_cache_that_was_cut_is_made_anew(top: Path, tmp_path: Path) -> None:
    """It is known by its head."""
    cache = tmp_path / "cache.sqlite"
    first, _ = found(top, cache)
    cache.write_bytes(cache.read_bytes()[:3000])
    again, (note,) = found(top, cache)
    assert again == first
    assert "made anew" in note
    assert found(top, cache) == (first, ())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE record SET data = X'00' WHERE id = 3",
        "UPDATE record SET verdict = 'critical' WHERE id = 3",
        "UPDATE record SET outline = CAST(X'FF' AS TEXT) WHERE id = 3",
        "UPDATE entry SET further = X'5B5D' WHERE id = 1",
        "UPDATE entry SET digest = NULL WHERE id = 3",
        "UPDATE entry SET stamp = CAST(X'FFFE' AS TEXT) WHERE id = 3",
        "DELETE FROM record WHERE id = 3",
    ],
)
def test_an_entry_that_was_changed_is_judged_anew(top: Path, tmp_path: Path, change: str, read: list[str]) -> None:
    """One bad entry costs the time of one unit, without a note, and is mended by it."""
    cache = tmp_path / "cache.sqlite"
    first, _ = found(top, cache)
    with sqlite3.connect(cache) as database:
        database.execute(change)
    database.close()
    read.clear()
    assert found(top, cache) == (first, ())
    assert len(read) == 1
    read.clear()
    assert found(top, cache) == (first, ())
    assert not read


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE record",
        "CREATE TRIGGER spy AFTER INSERT ON entry BEGIN DELETE FROM record; END",
        "PRAGMA user_version = 1",
    ],
)
def test_a_cache_of_other_tables_is_made_anew(top: Path, tmp_path: Path, change: str) -> None:
    """One of another version, or with tables or triggers that are not ours."""
    cache = tmp_path / "cache.sqlite"
    first, _ = found(top, cache)
    with sqlite3.connect(cache) as database:
        database.execute(change)
    database.close()
    again, (note,) = found(top, cache)
    assert again == first
    assert "made anew" in note
    assert found(top, cache) == (first, ())


def test_a_full_disk_costs_the_cache_alone(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs are told, with one note."""
    real = caching._connected

    def small(file: Path) -> sqlite3.Connection:
        database = real(file)
        database.execute("PRAGMA max_page_count = 9")
        return database

    monkeypatch.setattr(caching, "_connected", small)
    done = run("scan", str(top), "--cache", str(tmp_path / "cache.sqlite"), "--engine", "serial")
    assert done.returncode == 0
    assert f"{RUNS} runs" in done.stdout
    assert done.stderr.count("note: ") == 1
    assert "database or disk is full" in done.stderr


@pytest.mark.parametrize("error", [sqlite3.OperationalError, sqlite3.DatabaseError, sqlite3.IntegrityError])
@pytest.mark.parametrize("method", ["_add", "_known", "_prune", "_write"])
def test_whatever_sqlite_raises_is_one_note(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, error: type[sqlite3.Error]
) -> None:
    """At any time, of any kind, on every call."""

    def fail(*_: object) -> None:
        raise error("database or disk is full")

    monkeypatch.setattr(caching.Cache, method, fail)
    records, notes = found(top, tmp_path / "cache.sqlite")
    assert len(records) == RUNS
    assert len(notes) == 1


def test_a_folder_that_can_not_be_written_is_one_note(top: Path, tmp_path: Path) -> None:
    """A cache below a file, or that is a folder."""
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file" / "cache.sqlite", tmp_path):
        records, notes = found(top, cache)
        assert len(records) == RUNS
        assert len(notes) == 1


@pytest.mark.faulty
def test_a_run_with_a_question_that_failed_is_not_kept(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    """The next scan asks it again: what failed for want of memory may be well then."""

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    cache = tmp_path / "cache.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr("stabtree.predicates.registry.Predicate.ask", fail)
        found(top, cache)
    read.clear()
    found(top, cache)
    assert len(read) == RUNS
