"""What it costs to watch a log: for each appended row, all judgements together, as the log grows long.

    python -m benchmarks.watch_cost [--rows 10000,1000000]

A healthy CSV log is written row by row and watched with no time between two rows, so that growth and signs alone make
the judging points: more than any real log calls for. Costs are those of the processor, in microseconds a row, and as
a ratio to reading the finished file once with pandas in the same process. What a row costs must not grow with the log:
at the last length at most twice what it is at the first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from benchmarks.speed import COLUMNS, write_csv
from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.tools.live.watch.watching import Watching

if TYPE_CHECKING:
    from stabtree.judging.outcome import Outcome

MOST = 2.0


def watched(log: Path, grown: Path) -> tuple[float, int]:
    """Seconds of the processor that watching takes while a finished log is written anew, and how often it is judged."""
    judging, judged = Judging(), 0
    with grown.open("wb") as stream:

        def judge() -> list[Outcome]:
            nonlocal judged
            judged += 1
            stream.flush()
            return [judging.outcome(item) for item in load_runs(grown)]

        watching, spent = Watching(judge, clock=lambda: 0.0), 0.0
        with log.open("rb") as lines:
            stream.write(next(lines))
            for size, line in enumerate(lines, 1):
                stream.write(line)
                row = dict(zip(COLUMNS, map(float, line.split(b",")), strict=True))
                began = time.process_time()
                watching.grown([row], size)
                spent += time.process_time() - began
    return spent, judged


def pandas_seconds(log: Path) -> float:
    """Seconds of the processor for reading a log once."""
    costs = []
    for _ in range(5):
        began = time.process_time()
        pd.read_csv(log)
        costs.append(time.process_time() - began)
    return statistics.median(costs)


def main() -> int:
    """Print the costs; 1 where they grow too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="10000,1000000")
    options = parser.parse_args()
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.csv")
        for rows in map(int, options.rows.split(",")):
            write_csv(log, rows)
            once = pandas_seconds(log)
            seconds, judged = watched(log, Path(folder, "grown.csv"))
            costs.append(seconds / rows * 1e6)
            print(
                f"{rows:>10,} rows: {costs[-1]:8.1f} µs a row, {judged:,} judgements, "
                f"{seconds / once:,.0f}× reading it once with pandas ({once / rows * 1e6:.2f} µs a row)",
                flush=True,
            )
    growth = costs[-1] / costs[0]
    print(f"a row of the longest costs {growth:.2f}× one of the shortest; limit {MOST:g}×")
    return growth > MOST


if __name__ == "__main__":
    sys.exit(main())
