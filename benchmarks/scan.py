"""How fast a folder of runs is scanned, and in how much memory.

Copies with noise of one run in three formats: the processor time of a run and of a row; for runs of 2,000 steps runs
per second on the cores at hand, a second scan with the cache, and a loop of single commands beside them; then rate and
peak memory at rising numbers of smaller runs.

    python -m benchmarks.scan
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stabtree.loaders.paths.find import Unit, parts
from stabtree.tools.fleet.examine import Examiner

STEPS, SMALL_STEPS, LONG_STEPS = 2000, 200, 20_000
FORMATS = ("CSV", "JSON lines", "trainer_state.json")  # in the order of `write`
SAMPLE = 20  # single commands
RUNS = 64  # by which the cost of one is measured

MEASURED = """
import json, os, pathlib, stabtree, sys, time

def below(pid):
    try:
        clock = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        inner = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return {}
    peak = [int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")]
    ticks = int(clock[11]) + int(clock[12])
    found = {pid: (ticks / os.sysconf("SC_CLK_TCK"), *peak)}
    for n in inner:
        found.update(below(int(n)))
    return found

seen, looked = {}, [0.0]

def tell(_progress):
    if time.monotonic() - looked[0] > 0.2:
        looked[0] = time.monotonic()
        seen.update(below(os.getpid()))

begin = time.perf_counter()
with stabtree.scan(sys.argv[1], cache=sys.argv[2], tell=tell) as fleet:
    count = sum(1 for _ in fleet)
seconds = time.perf_counter() - begin
(own_worked, own_peak), *workers = {**seen, **below(os.getpid())}.values()
worked, peak = sum(one for one, _ in workers), max((one for _, one in workers), default=0)
print(json.dumps([seconds, count, own_worked, worked, own_peak, peak]))
"""


class Scanned(NamedTuple):
    """What a scan took.

    Attributes:
        seconds: of a clock on the wall.
        runs: how many there are.
        own: seconds of processor time of the process that was started, start included.
        workers: the same of all its workers.
        own_mb: its peak memory.
        worker_mb: that of the largest of its workers.
    """

    seconds: float
    runs: int
    own: float
    workers: float
    own_mb: int
    worker_mb: int

    @property
    def each(self) -> float:
        """Seconds of processor time for each run, everything included."""
        return (self.own + self.workers) / self.runs


def write(folder: Path, place: int, steps: int) -> Path:
    """One run, in one of three formats."""
    rng = np.random.default_rng(place)
    step = np.arange(steps)
    loss = 3 * np.exp(-step / (steps / 5)) + 1 + rng.normal(0, 0.02, steps)
    norm = 1 + rng.gamma(4, 0.1, steps)
    rate = 5e-4 * np.minimum(1, (step + 1) / 100) * (1 + np.cos(np.pi * step / steps))
    if place % 4 == 1:  # one in four spikes
        at = steps * 3 // 4
        loss[at : at + 3] += 3
        norm[at - 1 : at + 1] *= 20
    rows = [
        {"step": int(a), "loss": round(float(b), 5), "grad_norm": round(float(c), 5), "lr": round(float(d), 8)}
        for a, b, c, d in zip(step, loss, norm, rate, strict=True)
    ]
    kind = place % 3
    if kind == 0:
        file = folder / f"run{place:06d}.csv"
        lines = ["step,loss,grad_norm,lr", *(",".join(map(str, row.values())) for row in rows)]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == 1:
        file = folder / f"run{place:06d}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    else:
        file = folder / f"run{place:06d}" / "trainer_state.json"
        file.parent.mkdir()
        history = [{"learning_rate": row.pop("lr"), **row} for row in rows]
        file.write_text(json.dumps({"global_step": steps, "log_history": history}), encoding="utf-8")
    return file


def scanned(folder: Path, cache: Path) -> Scanned:
    """Scan a folder in a process of its own."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, str(folder), str(cache)],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return Scanned(*json.loads(told.stdout))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--small", type=int, nargs="*", default=[100, 1000, 10_000])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
        costs(folder)
        speed(folder, asked.runs)
        for count in asked.small:
            small(folder, count)


def costs(top: Path) -> None:
    """Processor time of a run and of a row, and the bytes that come back, by format; units as a scan makes them."""
    for kind, called in enumerate(FORMATS):
        took = {steps: _cost(top, kind, steps) for steps in (SMALL_STEPS, STEPS, LONG_STEPS)}
        row = (took[LONG_STEPS][0] - took[SMALL_STEPS][0]) / (LONG_STEPS - SMALL_STEPS)
        print(
            f"{called}: {(took[SMALL_STEPS][0] - row * SMALL_STEPS) * 1e3:.1f} ms a run and {row * 1e6:.2f} "
            f"microseconds a row ({STEPS:,} rows: {took[STEPS][0] * 1e3:.1f} ms); {took[STEPS][1]:,.0f} bytes come back"
        )


def _cost(top: Path, kind: int, steps: int) -> tuple[float, float]:
    """Return the processor time of a run, and the bytes that come back."""
    folder = top / f"{steps}-{kind}"
    folder.mkdir()
    # One run in four spikes, in whatever format.
    files = [write(folder, 3 * place + kind, steps) for place in range(RUNS if steps < LONG_STEPS else RUNS // 4)]
    units = [Unit(str(file.parent)) for file in files if file.parent != folder]
    units += parts(str(folder), [file.name for file in files if file.parent == folder])
    examiner = Examiner()
    examiner(units[:1])
    begin = time.process_time()
    found = examiner(units)
    return (time.process_time() - begin) / len(files), len(pickle.dumps(found)) / len(files)


def speed(top: Path, count: int) -> None:
    """Runs per second, first and second scan, beside single commands."""
    folder = top / "speed"
    folder.mkdir()
    files = [write(folder, place, STEPS) for place in range(count)]
    cache = top / "speed.sqlite"
    first = scanned(folder, cache)
    print(
        f"{first.runs:,} runs of {STEPS:,} steps: {first.seconds:.1f} s, {first.runs / first.seconds:.0f} runs/s; "
        f"{first.each * 1e3:.1f} ms of processor time a run, {first.own / first.runs * 1e3:.1f} of it not in workers; "
        f"{first.own_mb} and {first.worker_mb} MB; cache {cache.stat().st_size / first.runs:,.0f} bytes a run"
    )
    again = scanned(folder, cache)
    print(f"again, nothing changed: {again.seconds:.2f} s")
    begin = time.perf_counter()
    for file in files[:SAMPLE]:
        subprocess.run(
            [sys.executable, "-m", "stabtree", "diagnose", str(file), "--json", "--fail-on", "never"],
            check=True,
            capture_output=True,
        )
    print(f"a loop of single commands: {SAMPLE / (time.perf_counter() - begin):.1f} runs/s")


def small(top: Path, count: int) -> None:
    """Rate and peak memory at a number of small runs in one folder."""
    folder = top / f"small{count}"
    folder.mkdir()
    for place in range(count):
        write(folder, place, SMALL_STEPS)
    found = scanned(folder, top / f"small{count}.sqlite")
    print(
        f"{found.runs:,} runs of {SMALL_STEPS} steps: {found.seconds:.1f} s, {found.runs / found.seconds:.0f} runs/s;"
        f" {found.each * 1e3:.1f} ms of processor time a run; {found.own_mb} MB, a worker {found.worker_mb} MB"
    )


if __name__ == "__main__":
    main()
