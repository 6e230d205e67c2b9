"""How fast a folder of runs is scanned: the processor time of a run by format, and runs a second.

Copies with noise of one run in three formats, one in four with a spike; of the rounds the best counts.

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

import numpy as np

from stabtree.loaders.paths.find import Unit, parts
from stabtree.tools.fleet.scan import UnitJudge

STEPS, SMALL_STEPS, LONG_STEPS = 2000, 200, 20_000
FORMATS = ("CSV", "JSON lines", "trainer_state.json")  # in the order of `write`
RUNS = 64  # by which the cost of one is measured


def write(folder: Path, place: int, steps: int) -> Path:
    """Write one run, in one of three formats."""
    rng = np.random.default_rng(place)
    step = np.arange(steps)
    loss = 3 * np.exp(-step / (steps / 5)) + 1 + rng.normal(0, 0.02, steps)
    norm = 1 + rng.gamma(4, 0.1, steps)
    rate = 5e-4 * np.minimum(1, (step + 1) / 100) * (1 + np.cos(np.pi * step / steps))
    if place % 4 == 1:
        at = steps * 3 // 4
        loss[at : at + 3] += 3
        norm[at - 1 : at + 1] *= 20
    rows = [
        {"step": int(a), "loss": round(float(b), 5), "grad_norm": round(float(c), 5), "lr": round(float(d), 8)}
        for a, b, c, d in zip(step, loss, norm, rate, strict=True)
    ]
    if place % 3 == 0:
        file = folder / f"run{place:06d}.csv"
        text = "\n".join(["step,loss,grad_norm,lr", *(",".join(map(str, row.values())) for row in rows)])
    elif place % 3 == 1:
        file = folder / f"run{place:06d}.jsonl"
        text = "\n".join(map(json.dumps, rows))
    else:
        file = folder / f"run{place:06d}" / "trainer_state.json"
        file.parent.mkdir()
        history = [{"learning_rate": row.pop("lr"), **row} for row in rows]
        text = json.dumps({"global_step": steps, "log_history": history})
    file.write_text(f"{text}\n", encoding="utf-8")
    return file


def costs(top: Path) -> None:
    """Print the processor time of a run and of a row, and the bytes that come back, by format."""
    judge = UnitJudge(documents=False)
    for kind, name in enumerate(FORMATS):
        took: dict[int, float] = {}
        back = 0.0
        for steps in (SMALL_STEPS, STEPS, LONG_STEPS):
            folder = top / f"{steps}-{kind}"
            folder.mkdir()
            files = [write(folder, 3 * place + kind, steps) for place in range(RUNS // (1 + 3 * (steps > STEPS)))]
            units = [Unit(str(file.parent)) for file in files if file.parent != folder]
            units += parts(str(folder), [file.name for file in files if file.parent == folder])
            judge.judged(units[0])
            begin = time.process_time()
            found = [judge.judged(unit) for unit in units]
            took[steps] = (time.process_time() - begin) / len(files)
            back = len(pickle.dumps(found)) / len(files)
        row = (took[LONG_STEPS] - took[SMALL_STEPS]) / (LONG_STEPS - SMALL_STEPS)
        print(
            f"{name}: {(took[SMALL_STEPS] - row * SMALL_STEPS) * 1e3:.1f} ms a run and {row * 1e6:.2f} microseconds a "
            f"row ({STEPS:,} rows: {took[STEPS] * 1e3:.1f} ms); {back:,.0f} bytes come back"
        )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        costs(Path(name))
        folder = Path(name, "runs")
        folder.mkdir()
        for place in range(given.runs):
            write(folder, place, STEPS)
        best = float("inf")
        for _ in range(given.rounds):
            words = [sys.executable, "-m", "stabtree", str(folder), "-q", "--fail-on", "never", "--jobs", str(cores)]
            begin = time.perf_counter()
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            best = min(best, time.perf_counter() - begin)
        print(f"{given.runs:,} runs of {STEPS:,} steps in {best:.1f} s, {given.runs / best:.0f} a second")


if __name__ == "__main__":
    main()
