"""A scan examines each unit once, in whatever process, and tells of all that went wrong."""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import StabtreeError, scan
from stabtree.loaders.paths.find import Unit
from stabtree.tools.fleet import loop as looping
from stabtree.tools.fleet import read
from stabtree.tools.fleet.engine import ENGINES
from stabtree.tools.fleet.examine import Examiner
from stabtree.tools.fleet.loop import Loop, Progress
from stabtree.tools.fleet.read import read_unit
from stabtree.tools.fleet.store import Store
from tests.cli.command import run
from tests.conftest import FIXTURES
from tests.loaders.paths import logs
from tests.report.test_html import Parts
from tests.tools.fleet.deadly import Mortal

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.tools.fleet.scan import Fleet

SAME = ("healthy", "nan-forward", "spike-persistent", "fp16-overflow", "scale-collapse", "loss-stops")


def told(fleet: Fleet) -> dict[str, str]:
    """The verdicts by the last names of the paths."""
    with fleet:
        return {record.path.rpartition("/")[2]: record.verdict for record in fleet}


def serial(*paths: Path, **options: Any) -> Fleet:
    """A scan in this process."""
    return scan(*paths, engine="serial", **options)


def three(folder: Path) -> Path:
    """Three runs in folders of their own."""
    for seed, name in enumerate("abc"):
        logs.csv(folder / name / "metrics.csv", seed)
    return folder


def test_records_are_what_diagnose_says() -> None:
    """Each run's data is where it is from and the object of `diagnose --json`, all trees and hashes with it."""
    paths = [FIXTURES / "phase19" / name for name in SAME]
    with serial(*paths) as fleet:
        records = {record.path: record for record in fleet}
    assert len(records) == len(SAME)
    for path in paths:
        alone = json.loads(run("diagnose", str(path), "--json").stdout)
        assert json.loads(records[str(path)].data) == {"source": str(path), **alone}
        assert alone["run"]["inputs"][0]["sha256"]


def test_processes_say_the_same(tmp_path: Path) -> None:
    """Other processes find what this one finds, and the script that asks is not run again in them."""
    three(tmp_path)
    with serial(tmp_path) as here, scan(tmp_path, jobs=2) as there:
        assert [record.data for record in here] == [record.data for record in there]
        assert len(there) == 3


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(tmp_path: Path) -> None:
    """The page of `--output html`, escaped, so that no name of a folder ends the attribute."""
    folder = three(tmp_path / 'a"><script>alert(1)<')
    with serial(folder) as fleet:
        ((tag, attributes),) = Parts(fleet._repr_html_()).elements
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts")
    assert "3 runs" in Parts(attributes["srcdoc"] or "").text


def loop_of(tmp_path: Path, examiner: Examiner, **options: Any) -> Loop:
    """A loop over the runs below a folder."""
    loop = Loop(examiner, Store(None), "rules", 2, **options)
    loop.waiting.extend(read.units([str(tmp_path)]))
    return loop


def test_a_worker_that_is_killed_ends_no_scan(tmp_path: Path) -> None:
    """The log that its reader was killed of is a row that says so; all others are read."""
    three(tmp_path)
    logs.csv(tmp_path / "deadly" / "metrics.csv", 9)
    loop = loop_of(tmp_path, Mortal())
    loop.run("processes")
    rows = {record.path.rpartition("/")[2]: record for record in loop.store.records()}
    assert rows.keys() == {"a", "b", "c", "deadly"}
    assert rows["deadly"].title == "the process that read it was killed"
    assert {rows[name].verdict for name in "abc"} == {"ok"}


def test_of_logs_read_together_the_guilty_one_alone_is_blamed(tmp_path: Path) -> None:
    """Logs that were read with one that is too much are read without it."""
    for seed in range(3):
        logs.csv(tmp_path / f"r{seed}.csv", seed)
    logs.csv(tmp_path / "deadly.csv", 9)
    unit = Unit(str(tmp_path), ("r0.csv", "r1.csv", "deadly.csv", "r2.csv"))
    loop = Loop(Mortal(), Store(None), "rules", 1)
    loop.waiting.append(unit)
    loop.run("processes")
    assert {record.path.rpartition("/")[2]: record.verdict for record in loop.store.records()} == {
        **{f"r{seed}.csv": "ok" for seed in range(3)},
        "deadly.csv": "unread",
    }


def test_what_takes_too_long_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that takes longer than it may is told, and the others are read."""
    three(tmp_path)
    real = read_unit

    def slow(unit: Unit, *rest: Any) -> Any:
        while unit.path.endswith("/b"):
            pass
        return real(unit, *rest)

    monkeypatch.setattr("stabtree.tools.fleet.examine.read_unit", slow)
    with serial(tmp_path, timeout=1.0) as fleet:
        rows = {record.path.rpartition("/")[2]: record for record in fleet}
    assert rows["b"].title == "took longer than 1 seconds"
    assert rows["a"].verdict == rows["c"].verdict == "ok"


def test_a_fault_of_ours_is_a_row_and_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that one log brings out costs the others nothing, and is never green."""
    three(tmp_path)
    real = read_unit

    def broken(unit: Unit, *rest: Any) -> Any:
        if unit.path.endswith("/b"):
            raise ZeroDivisionError("of ours")
        return real(unit, *rest)

    monkeypatch.setattr("stabtree.tools.fleet.examine.read_unit", broken)
    monkeypatch.setitem(ENGINES, "processes", ENGINES["serial"])
    done = run("scan", str(tmp_path), "--no-cache", "--output", "jsonl")
    assert done.returncode == 4
    assert "stabtree itself failed: ZeroDivisionError: of ours" in done.stdout
    assert len(done.stdout.splitlines()) == 3


def test_what_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second scan reads what changed, what is new, and what is judged by other rules, and nothing else."""
    top, cache = three(tmp_path / "top"), tmp_path / "cache.sqlite"
    with serial(top, cache=cache) as fleet:
        first = [record.data for record in fleet]
    read: list[str] = []
    real = read_unit

    def counted(unit: Unit, *rest: Any) -> Any:
        read.append(unit.path.rpartition("/")[2])
        return real(unit, *rest)

    monkeypatch.setattr("stabtree.tools.fleet.examine.read_unit", counted)
    with serial(top, cache=cache) as fleet:
        assert [record.data for record in fleet] == first
    assert read == []
    logs.csv(top / "b" / "metrics.csv", 7, 50)
    (top / "c" / "config.yaml").write_text("dtype: fp16\n", encoding="utf-8")
    logs.csv(top / "d" / "metrics.csv", 8)
    with serial(top, cache=cache) as fleet:
        assert len(fleet) == 4
    assert sorted(read) == ["b", "c", "d", "top"]
    read.clear()
    with serial(top, cache=cache, dtype="fp16") as fleet:
        assert len(fleet) == 4
    assert len(read) == 5


def test_a_log_that_went_away_is_gone(tmp_path: Path) -> None:
    """What an earlier scan found is shown only as long as it is there."""
    top, cache = three(tmp_path / "top"), tmp_path / "cache.sqlite"
    serial(top, cache=cache).close()
    (top / "a" / "metrics.csv").unlink()
    assert told(serial(top, cache=cache)).keys() == {"b", "c"}


def test_an_option_that_is_wrong_is_an_error(tmp_path: Path) -> None:
    """What is wrong whatever the log is told once, not as a row of each."""
    with pytest.raises(StabtreeError, match="not a format"):
        serial(three(tmp_path), format="nonsense")


def test_two_scans_at_once(tmp_path: Path) -> None:
    """Two scans that share a cache each tell their own runs, while the other one writes."""
    one, other, cache = three(tmp_path / "one"), tmp_path / "other", tmp_path / "cache.sqlite"
    logs.csv(other / "z" / "metrics.csv", 5)
    with serial(one, cache=cache) as first:
        records = first.records()
        next(records)
        with serial(one, other, cache=cache) as second:
            assert len(second) == 4
            assert len([*records]) == 2
        assert len(first) == 3


def test_an_interrupted_scan_keeps_what_it_found(tmp_path: Path) -> None:
    """Ctrl-C ends a scan with its runs so far, and the next one goes on from there."""
    top, cache = three(tmp_path / "top"), tmp_path / "cache.sqlite"
    done: list[int] = []

    def stop(progress: Progress) -> None:
        done.append(progress.runs)
        if progress.runs:
            raise KeyboardInterrupt

    with serial(top, cache=cache, tell=stop) as fleet:
        assert fleet.stopped
        assert len(fleet) == done[-1] > 0
    with serial(top, cache=cache) as fleet:
        assert len(fleet) == 3


def test_the_number_under_way_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many logs wait, a few batches for each worker are handed out at once."""
    under_way: list[int] = []

    class Counting:
        def __init__(self) -> None:
            self.futures: list[Future[Any]] = []

        def submit(self, *_: Any) -> Future[Any]:
            future: Future[Any] = Future()
            self.futures.append(future)
            under_way.append(sum(not one.done() for one in self.futures))
            if under_way[-1] >= looping.AHEAD * 2:
                for one in self.futures:
                    if not one.done():
                        one.set_result([])
            return future

    pool = Counting()
    loop = Loop(Examiner(), Store(None), "", 2)
    loop.waiting.extend(Unit(str(tmp_path / f"{n}")) for n in range(8 * looping.BATCH * looping.AHEAD * 2))
    monkeypatch.setattr(looping, "wait", lambda futures, **_: ([one for one in futures if one.done()], []))
    loop._in_parallel(pool, loop._next_batch())  # type: ignore[arg-type]
    assert max(under_way) <= looping.AHEAD * 2
