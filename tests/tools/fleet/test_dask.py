"""The engine that hands runs to the workers of a Dask cluster: here processes on loopback."""

from __future__ import annotations

import logging
import sys
from collections import deque
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders.paths.find import Unit
from stabtree.tools.fleet import scan as engine
from stabtree.tools.fleet.scan import UnitJudge, results
from tests.loaders.paths import logs
from tests.tools.fleet.killer import Killer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.tools.fleet.record import Record

distributed = pytest.importorskip("distributed", reason="needs the extra test-fleet")
LOCAL = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster which gives a batch up when a worker died of it, with workers to spare for that."""
    import dask

    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.admin.log-length": 0}
    with dask.config.set(settings), distributed.LocalCluster(n_workers=4, threads_per_worker=1, **LOCAL) as cluster:
        yield cluster.scheduler_address


def found(judge: UnitJudge, folder: Path, name: str, address: str = "") -> list[Record]:
    """What an engine finds of twelve runs, a file each, one of them called fatal, by path."""
    names = ["fatal.csv" if place == 5 else f"{place}.csv" for place in range(12)]
    units = [Unit(str(folder), (logs.csv(folder / name, place).name,)) for place, name in enumerate(names)]
    judged = results(judge, deque(units), name, 2, address)
    return sorted((run for item in judged for run in item.records), key=lambda run: run.path)


def test_a_run_that_kills_every_worker_is_a_record_and_costs_no_other(tmp_path: Path, scheduler: str) -> None:
    """What no worker survives is told as unread; each other run is answered once, as one process answers it."""
    there, here = found(Killer(), tmp_path, "dask", scheduler), found(UnitJudge(), tmp_path, "serial")
    (fatal,) = (run for run in there if run.verdict == "unread")
    assert fatal.path == str(tmp_path / "fatal.csv")
    others = [[(run.path, run.verdict, run.data) for run in runs if run.path != fatal.path] for runs in (there, here)]
    assert others[0] == others[1]
    assert len(others[0]) == 11


def test_a_worker_of_another_version_is_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that would judge otherwise is named with both versions, before anything is sent."""
    monkeypatch.setattr(engine, "__version__", "99.0")
    with pytest.raises(StabtreeError, match=r"has stabtree .*, this machine has 99\.0"), engine.dask(1, scheduler):
        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense"])
def test_no_scheduler_is_an_error(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address at which no scheduler listens is an error that names it, soon."""
    monkeypatch.setattr(engine, "REACHED_SECONDS", 0.3)
    with pytest.raises(StabtreeError, match="no Dask scheduler answers") as caught, engine.dask(1, address):
        pass
    assert address in caught.value.where
    assert caught.value.hint


def test_a_cluster_without_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler to which no worker comes is no endless wait."""
    monkeypatch.setattr(engine, "WORKER_SECONDS", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, **LOCAL) as cluster,
        pytest.raises(StabtreeError, match="has no workers"),
        engine.dask(1, cluster.scheduler_address),
    ):
        pass


def test_a_scheduler_must_be_named_and_dask_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address, or without the package, the error says what to type."""
    with pytest.raises(StabtreeError, match="needs the address") as caught, engine.dask(1, ""):
        pass
    assert "--scheduler" in caught.value.hint
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StabtreeError, match="needs the package") as caught, engine.dask(1, "tcp://127.0.0.1:1"):
        pass
    assert "stabtree[dask]" in caught.value.hint
