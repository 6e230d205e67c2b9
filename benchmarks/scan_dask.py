"""What a Dask cluster costs beside processes of one machine.

The runs of `benchmarks.scan`, examined by one and by two processes and by Dask with one and with two workers, in turns.

    python -m benchmarks.scan_dask
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from distributed import Client, LocalCluster

from benchmarks.scan import STEPS, write
from stabtree.loaders.paths.find import Unit
from stabtree.tools.fleet.examine import Examiner
from stabtree.tools.fleet.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable


def with_processes(folder: Path, workers: int) -> float:
    """Seconds of a scan by processes of this machine."""
    return _seconds(lambda: _scanned(folder, "processes", workers))


def with_dask(folder: Path, workers: int) -> float:
    """Seconds of a scan by workers that are running already, and have imported what they need."""
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
    ) as cluster:
        with Client(cluster.scheduler_address, set_as_default=False) as client:
            client.run(_warm)
            before = sum(client.run(time.process_time).values())
            seconds = _seconds(lambda: _scanned(folder, "dask", workers, cluster.scheduler_address))
            worked = sum(client.run(time.process_time).values()) - before
            print(f"processor time of {workers} workers of Dask: {worked:.1f} s")
        return seconds


def _warm() -> None:
    with tempfile.TemporaryDirectory() as name:
        file = write(Path(name), 0, 200)
        Examiner()([Unit(name, (file.name,))])


def _scanned(folder: Path, engine: str, jobs: int, address: str = "") -> None:
    with scan(folder, engine=engine, jobs=jobs, address=address) as fleet:
        assert sum(fleet.counts().values()), folder  # noqa: S101 - nothing found is no measurement


def _seconds(do: Callable[[], None]) -> float:
    begin, own = time.perf_counter(), time.process_time()
    do()
    seconds = time.perf_counter() - begin
    own = time.process_time() - own
    print(f"{seconds:.1f} s, of which this process worked {own:.1f} s; load {os.getloadavg()[0]:.1f}")
    return seconds


def engines(folder: Path, count: int, rounds: int) -> None:
    """The engines in turns, the best of each."""
    best: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for workers in (1, 2):
            for name, measured in (("processes", with_processes), ("dask", with_dask)):
                seconds = measured(folder, workers)
                best[name, workers] = min(best.get((name, workers), seconds), seconds)
    for (name, workers), seconds in sorted(best.items()):
        print(f"{name}, {workers}: {seconds:.1f} s, {count / seconds:.0f} runs/s")
    for name in ("processes", "dask"):
        print(f"{name}: two do {best[name, 1] / best[name, 2]:.2f} times the work of one, {efficiency(best, name):.0%}")
    for workers in (1, 2):
        print(f"dask over processes, {workers}: {best['dask', workers] / best['processes', workers] - 1:+.0%}")


def efficiency(best: dict[tuple[str, int], float], name: str) -> float:
    """The share of the time of a second worker that is of use."""
    return best[name, 1] / best[name, 2] / 2


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    count = asked.runs
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
        folder = top / "runs"
        folder.mkdir()
        for place in range(count):
            write(folder, place, STEPS)
        engines(folder, count, asked.rounds)


if __name__ == "__main__":
    main()
