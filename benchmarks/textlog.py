"""Times the text loader on a long Megatron-like log against the least that any reader has to do.

The reference is `grep -c "lm loss"` plus one compiled pattern per line in Python, in the same run, medians of five.

    python benchmarks/textlog.py [MEGABYTES]
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.loaders import load_run

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
LINE = (
    " iteration {step:8d}/ 2000000 | consumed samples: {samples:12d} | elapsed time per iteration (ms): {ms:.1f} |"
    " learning rate: {lr:.3E} | global batch size:   512 | lm loss: {loss:.6E} | loss scale: 65536.0 |"
    " grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
PATTERN = re.compile(
    r"iteration\s+(\d+)/.*learning rate: (\S+) .*lm loss: (\S+) .*loss scale: (\S+) .*grad norm: (\S+) "
)


def write(path: Path, megabytes: int) -> int:
    """A log of about that size; the number of its lines of metrics."""
    steps, size = 0, 0
    with path.open("w", encoding="utf-8") as log:
        while size < megabytes << 20:
            steps += 1
            size += log.write(
                LINE.format(
                    step=steps,
                    samples=512 * steps,
                    ms=900 + steps % 7,
                    lr=3e-4 / (1 + steps * 1e-6),
                    loss=2 + 9 / (1 + steps * 1e-3),
                    norm=0.3 + steps % 11 / 50,
                )
            )
            if steps % 50 == 0:
                size += log.write("time (ms) | forward: 310.2 | backward: 512.9 | optimizer: 40.1\n")
    return steps


def reference(path: Path) -> None:
    """Counts the lines, then matches one pattern on each."""
    subprocess.run(["/usr/bin/env", "grep", "-c", "lm loss", str(path)], check=True, capture_output=True)
    with path.open(encoding="utf-8") as log:
        for line in log:
            PATTERN.search(line)


def median(task: Callable[[], object]) -> float:
    """Seconds that a task takes."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Print both medians and their ratio."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        steps = write(path, megabytes)
        least, ours = median(lambda: reference(path)), median(lambda: load_run(path))
        read = len(load_run(path).series["loss"])
        size = path.stat().st_size / 1e6
    print(f"{size:.0f} MB, {steps:,} steps, {read:,} read")
    print(f"reference {least:.2f} s, stabtree {ours:.2f} s ({size / ours:.0f} MB/s), ratio {ours / least:.2f}")


if __name__ == "__main__":
    main()
