"""Speed of loading JSON lines, as ratios to msgspec line by line and to pandas, measured in the same run.

    python benchmarks/jsonl.py [--rows 1000000] [--repeat 5]

The three take turns, so that a slow spell of the machine hits all alike. `msgspec` is the least that a loader
can do: it parses every line and keeps the objects, but makes no columns of them.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 2.0


def write_jsonl(path: Path, rows: int) -> None:
    """A run of `rows` rows with the digits that loggers really write."""
    draw = random.Random(0)  # noqa: S311 - values, not secrets
    with path.open("w", encoding="utf-8") as file:
        for step in range(rows):
            loss, norm, lr = 1 + draw.random(), draw.expovariate(1), 1e-3 * draw.random()
            file.write(f'{{"step": {step}, "loss": {loss!r}, "grad_norm": {norm!r}, "lr": {lr!r}}}\n')


def with_stabtree(path: Path) -> int:
    """Points of loss in the loaded run."""
    from stabtree.loaders import load_run

    return len(load_run(path).series["loss"])


def with_msgspec(path: Path) -> int:
    """Objects in a list."""
    import msgspec

    with path.open("rb") as file:
        return len([msgspec.json.decode(line) for line in file])


def with_pandas(path: Path) -> int:
    """Rows of the frame."""
    import pandas as pd

    return len(pd.read_json(path, lines=True))


def seconds(load: Callable[[Path], int], path: Path) -> float:
    """What one load takes of the processor: neighbours on the machine lengthen only the time on the clock."""
    gc.collect()
    start = time.process_time()
    load(path)
    return time.process_time() - start


def main() -> None:
    """Print the medians and our ratio to the faster of the others; exit 1 where it is over the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    loads = (with_stabtree, with_msgspec, with_pandas)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.jsonl"
        write_jsonl(path, options.rows)
        turns = [[seconds(load, path) for load in loads] for _ in range(options.repeat + 1)][1:]
    medians = [statistics.median(column) for column in zip(*turns, strict=True)]
    for load, median in zip(loads, medians, strict=True):
        print(f"{load.__name__:14s} {median:7.3f} s")
    ratio = medians[0] / min(medians[1:])
    print(f"ratio {ratio:.2f}   limit {LIMIT:.1f}   {'ok' if ratio <= LIMIT else 'OVER'}")
    raise SystemExit(ratio > LIMIT)


if __name__ == "__main__":
    main()
