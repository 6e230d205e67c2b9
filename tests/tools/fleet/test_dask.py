"""The engine that hands runs to the workers of a Dask cluster: here two processes on loopback."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.loaders.paths.find import Unit
from stabtree.tools.fleet import dask as engine
from stabtree.tools.fleet.examine import Examiner
from stabtree.tools.fleet.loop import Loop
from stabtree.tools.fleet.store import Store
from tests.tools.fleet.killed import Killed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.tools.fleet.record import Record

distributed = pytest.importorskip("distributed", reason="needs the extra test-fleet")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster of two workers, which gives a batch up when two of them died of it."""
    import dask

    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.admin.log-length": 0}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as cluster,
    ):
        yield cluster.scheduler_address


def runs(folder: Path, count: int = 24) -> list[Unit]:
    """Healthy runs, a file each; one of them is called fatal."""
    units = []
    for place in range(count):
        name = "fatal.csv" if place == 5 else f"{place}.csv"
        rows = "".join(f"{step},{3 / (1 + step / 9) + place / 50 + step % 7 / 99}\n" for step in range(60))
        (folder / name).write_text(f"step,loss\n{rows}", encoding="utf-8")
        units.append(Unit(str(folder), (name,)))
    return units


def scanned(examiner: Examiner, units: list[Unit], name: str, address: str = "") -> list[Record]:
    """What an engine finds, by path."""
    store = Store(None)
    loop = Loop(examiner, store, "rules", 2)
    loop.waiting.extend(units)
    loop.run(name, address)
    found = list(store.records(worst_first=False))
    store.close()
    return found


def test_each_run_is_answered_once_though_a_worker_was_killed(tmp_path: Path, scheduler: str) -> None:
    """A worker that is killed midway costs no run and repeats none: the rows are those of one process."""
    units = runs(tmp_path)
    there = scanned(Killed(once=str(tmp_path / "done")), units, "dask", scheduler)
    here = scanned(Examiner(), units, "serial")
    assert (tmp_path / "done").exists()
    assert [(run.path, run.verdict, run.data) for run in there] == [(run.path, run.verdict, run.data) for run in here]
    assert len(there) == len(units)


def test_a_run_that_kills_every_worker_is_a_row(tmp_path: Path, scheduler: str) -> None:
    """What no worker survives is told as unread, and all others as they are."""
    units = runs(tmp_path, 12)
    found = scanned(Killed(), units, "dask", scheduler)
    assert len({run.path for run in found}) == len(found) == len(units)
    assert [run.path for run in found if run.verdict == "unread"] == [str(tmp_path / "fatal.csv")]


def test_a_worker_of_another_version_is_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that would judge otherwise is named with both versions, before anything is sent."""
    monkeypatch.setattr(engine, "__version__", "99.0")
    with pytest.raises(StabtreeError, match=r"has stabtree .*, this machine has 99\.0"), engine.dask(1, scheduler):
        pass


def test_a_worker_that_came_late_is_refused_too() -> None:
    """Each call tells its version, and one of another version is not answered."""
    with pytest.raises(StabtreeError, match=r"this machine has 0\.0\.1"):
        engine._called("0.0.1", len, "abc")
    assert engine._called(__version__, len, "abc") == 3


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense", "tls://127.0.0.1:1", "foo://127.0.0.1:1"])
def test_no_scheduler_is_said_in_seconds(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address at which no scheduler listens is an error that names it, soon."""
    monkeypatch.setattr(engine, "REACHED_SECONDS", 0.3)
    since = time.monotonic()
    with pytest.raises(StabtreeError, match="no Dask scheduler answers") as caught, engine.dask(1, address):
        pass
    assert time.monotonic() - since < 3
    assert address in caught.value.where
    assert caught.value.hint


def test_a_cluster_without_workers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler to which no worker comes is an error, not an endless wait."""
    monkeypatch.setattr(engine, "WORKER_SECONDS", 0.2)
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as cluster,
        pytest.raises(StabtreeError, match="has no workers"),
        engine.dask(1, cluster.scheduler_address),
    ):
        pass


def test_a_scheduler_must_be_named_and_dask_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address, or without the package, the error says what to type."""
    with pytest.raises(StabtreeError, match="needs the address") as caught, engine.dask(1):
        pass
    assert "--scheduler" in caught.value.hint
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StabtreeError, match="needs the package") as caught, engine.dask(1, "tcp://127.0.0.1:1"):
        pass
    assert "stabtree[dask]" in caught.value.hint


def test_neither_is_imported_unless_it_is_used(tmp_path: Path) -> None:
    """A scan of this machine's files imports neither Dask nor fsspec."""
    runs(tmp_path, 2)
    code = (
        "import sys\nfrom stabtree.cli import main\n"
        f"main(['scan', {str(tmp_path)!r}, '--engine', 'serial', '--no-cache', '--exit-zero'])\n"
        "print([name for name in ('dask', 'distributed', 'fsspec', 's3fs') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.splitlines()[-1] == "[]"
