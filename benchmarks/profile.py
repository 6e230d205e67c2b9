"""What the profiles of all series cost beside reading the log, and how that grows with the log.

    python -m benchmarks.profile [--repeat 5]

Reading is `load_run` in this process, the profiles are those of every column; both as the time that the processor
works, the best of some turns. The wide log is one row a step of 300 columns, as monitors of layers write it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from stabtree import load_run
from stabtree.profile import profiles

# What all profiles may cost, as a share of reading.
TARGET = 0.25
SHAPES = ((1_000_000, 5, "csv"), (2_000, 300, "jsonl"), (2_000, 300, "csv"))
GROWTH = (250_000, 500_000, 1_000_000, 2_000_000)


def write(path: Path, rows: int, columns: int) -> None:
    """A log of a falling loss beside columns of noise that change their level once."""
    rng = np.random.default_rng(0)
    step = np.arange(rows)
    held = {"step": step, "loss": 1 + 3 * np.exp(-5 * step / rows) + rng.normal(0, 0.05, rows)}
    for number in range(columns - 1):
        held[f"layer{number}/own"] = rng.normal(0, 1, rows) + 5.0 * (step > rows * (number + 1) / (columns + 1))
    table = np.round(np.stack([*held.values()], axis=1), 6).tolist()
    with path.open("w", encoding="utf-8") as file:
        if path.suffix == ".csv":
            file.write(",".join(held) + "\n")
            file.writelines(f"{int(row[0])},{','.join(map(str, row[1:]))}\n" for row in table)
        else:
            file.writelines(
                json.dumps({"step": int(row[0]), **dict(zip(held, row, strict=True))}) + "\n" for row in table
            )


def cost(path: Path, repeat: int) -> tuple[float, float, int]:
    """Seconds of the processor for reading and for all profiles, and how many of these there are."""
    reading, describing, count = [], [], 0
    for _ in range(repeat):
        start = time.process_time()
        run = load_run(path)
        read = time.process_time()
        count = len(profiles(run))
        describing.append(time.process_time() - read)
        reading.append(read - start)
    return min(reading), min(describing), count


def main() -> None:
    """Print the cost of both shapes, and of growing logs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'rows':>10} {'columns':>8} {'format':>7} {'reading':>9} {'profiles':>9}  ratio (target {TARGET})")
        for rows, columns, kind in SHAPES:
            path = Path(folder, f"{rows}.{kind}")
            write(path, rows, columns)
            reading, describing, count = cost(path, repeat)
            print(f"{rows:>10,} {count:>8} {kind:>7} {reading:>8.3f}s {describing:>8.4f}s  {describing / reading:.2f}")
        print("\ngrowth, 5 columns of CSV")
        for rows in GROWTH:
            path = Path(folder, "growing.csv")
            write(path, rows, 5)
            _, describing, _ = cost(path, repeat)
            print(f"{rows:>10,} rows {describing:>8.4f}s  {1e9 * describing / rows / 5:.1f} ns a value")


if __name__ == "__main__":
    main()
