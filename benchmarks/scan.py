"""How fast a folder of runs is scanned, and in how much memory.

Copies with noise of one run of 2,000 steps in three formats: runs per second on the cores at hand, a second scan with
the cache, a loop of single commands beside them; then the peak memory of the scan and of its workers at rising numbers
of smaller runs.

    python -m benchmarks.scan
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS, SMALL_STEPS = 2000, 200
SAMPLE = 20  # single commands

MEASURED = """
import json, os, pathlib, stabtree, sys, time

def peak(pid):
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        inner = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    own = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return own + [one for n in inner for one in peak(n)]

peaks, looked = [0], [0.0]

def tell(_progress):
    if time.monotonic() - looked[0] > 1:
        looked[0] = time.monotonic()
        peaks[0] = max([peaks[0], *peak(os.getpid())[1:]])

begin = time.perf_counter()
with stabtree.scan(sys.argv[1], cache=sys.argv[2], tell=tell) as fleet:
    count = sum(1 for _ in fleet)
print(json.dumps([time.perf_counter() - begin, count, peak(os.getpid())[0] // 1024, peaks[0] // 1024]))
"""


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


def scanned(folder: Path, cache: Path) -> tuple[float, int, int, int]:
    """Seconds, runs, and the peak memory in MB of a scan and of the largest of its workers."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, str(folder), str(cache)],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    seconds, count, own, workers = json.loads(told.stdout)
    return seconds, count, own, workers


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--memory", type=int, nargs="*", default=[100, 1000, 10_000])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
        speed(folder, asked.runs)
        for count in asked.memory:
            memory(folder, count)


def speed(top: Path, count: int) -> None:
    """Runs per second, first and second scan, beside single commands."""
    folder = top / "speed"
    folder.mkdir()
    files = [write(folder, place, STEPS) for place in range(count)]
    cache = top / "speed.sqlite"
    seconds, found, own, workers = scanned(folder, cache)
    print(f"{found:,} runs of {STEPS:,} steps: {seconds:.1f} s, {found / seconds:.0f} runs/s; {own} and {workers} MB")
    seconds, found, _, _ = scanned(folder, cache)
    print(f"again, nothing changed: {seconds:.2f} s")
    begin = time.perf_counter()
    for file in files[:SAMPLE]:
        subprocess.run(
            [sys.executable, "-m", "stabtree", "diagnose", str(file), "--json", "--fail-on", "never"],
            check=True,
            capture_output=True,
        )
    print(f"a loop of single commands: {SAMPLE / (time.perf_counter() - begin):.1f} runs/s")


def memory(top: Path, count: int) -> None:
    """Peak memory at a number of small runs."""
    folder = top / f"memory{count}"
    folder.mkdir()
    for place in range(count):
        write(folder, place, SMALL_STEPS)
    seconds, found, own, workers = scanned(folder, top / f"memory{count}.sqlite")
    print(f"{found:,} runs of {SMALL_STEPS} steps: {seconds:.1f} s; {own} MB, a worker {workers} MB")


if __name__ == "__main__":
    main()
