"""Speed and memory of the command line, as ratios to named references measured in the same run.

    python benchmarks/speed.py [--repeat 5]

Every figure is the median of whole processes, taken in turns so that a slow spell of the machine hits both sides
alike. What counts is the time that the processor works, on all its cores: pandas parses a large file on several
threads, and neighbours on the machine lengthen only the time on the clock, which is printed beside. Memory is the
peak that the system reports of the process. The package is compiled first, as an installer does it.
"""

from __future__ import annotations

import argparse
import compileall
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("step", "loss", "grad_norm", "lr", "loss_scale")
SMALL, MILLION, TEN_MILLION = 2_000, 1_000_000, 10_000_000
STABTREE = str(Path(sys.executable).with_name("stabtree"))


class Cost(NamedTuple):
    """What one process took: seconds of the processor, seconds on the clock, and MB (10^6 bytes) of memory."""

    cpu: float
    wall: float
    peak: float


def write_csv(path: Path, rows: int) -> None:
    """A healthy-looking run of `rows` rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for start in range(0, rows, MILLION):
            step = np.arange(start, min(rows, start + MILLION))
            loss = 1 + 3 * np.exp(-5 * step / rows) + rng.normal(0, 0.05, len(step))
            grad_norm = np.exp(rng.normal(0, 0.2, len(step)))
            lr = 1e-3 * np.cos(step / rows * 1.5)
            for row in zip(step, loss, grad_norm, lr, strict=True):
                file.write(f"{row[0]},{row[1]:.6g},{row[2]:.6g},{row[3]:.6g},65536\n")


def cost(command: list[str]) -> Cost:
    """Run a process; its output is thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024 / 1e6)


def median(costs: list[Cost]) -> Cost:
    """The median of each."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def verdict(name: str, value: float, limit: float) -> bool:
    """Print a figure beside its limit; whether it is within."""
    print(f"{name:72s} {value:7.2f}   limit {limit:6.2f}   {'ok' if value <= limit else 'OVER'}", flush=True)
    return value <= limit


def compare(name: str, ours: list[str], reference: list[str], limit: float, repeat: int) -> tuple[bool, Cost]:
    """Take two commands in turns; print their ratio, and return what ours took."""
    cost(ours), cost(reference)
    pairs = [(cost(ours), cost(reference)) for _ in range(repeat)]
    mine, theirs = (median(list(side)) for side in zip(*pairs, strict=True))
    fine = verdict(name, mine.cpu / theirs.cpu, limit)
    print(
        f"    processor {mine.cpu:.2f} s : {theirs.cpu:.2f} s, clock {mine.wall:.2f} s : {theirs.wall:.2f} s = "
        f"{mine.wall / theirs.wall:.2f}, peak {mine.peak:.0f} MB : {theirs.peak:.0f} MB",
        flush=True,
    )
    return fine, mine


def diagnose(path: Path) -> list[str]:
    """The command that is timed."""
    return [STABTREE, "diagnose", str(path)]


def python(code: str) -> list[str]:
    """A reference."""
    return [sys.executable, "-c", code]


def read_csv(path: Path) -> list[str]:
    """The reference for a file."""
    return python(f"import pandas; pandas.read_csv({str(path)!r})")


def main() -> int:
    """Run all comparisons; exit with 1 when one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    compileall.compile_dir(Path(__file__).resolve().parent.parent / "stabtree", quiet=1)
    imports = python("import typer, rich, yaml")
    with tempfile.TemporaryDirectory() as folder:
        files = {rows: Path(folder, f"{rows}.csv") for rows in (SMALL, MILLION, TEN_MILLION)}
        for rows, path in files.items():
            # In a process of its own: a process begins with the peak of the one that started it.
            writer = multiprocessing.get_context("spawn").Process(target=write_csv, args=(path, rows))
            writer.start()
            writer.join()
        results = [
            compare("--help : import typer, rich, yaml", [STABTREE, "--help"], imports, 2.1, repeat)[0],
            compare("explain Q2.3 : import typer, rich, yaml", [STABTREE, "explain", "Q2.3"], imports, 2.1, repeat)[0],
        ]
        fine, small = compare(
            "2,000 rows : import pandas", diagnose(files[SMALL]), python("import pandas"), 0.5, repeat
        )
        results.append(fine)
        million = "1,000,000 rows"
        fine, own = compare(
            f"{million} : pandas.read_csv", diagnose(files[MILLION]), read_csv(files[MILLION]), 1.3, repeat
        )
        results += [fine, verdict(f"{million}, MB of memory at the peak", own.peak, 150)]
        ten = "10,000,000 rows"
        large = files[TEN_MILLION]
        fine, own = compare(f"{ten} : pandas.read_csv", diagnose(large), read_csv(large), 1.6, max(1, repeat // 2))
        arrays = 8 * len(COLUMNS) * TEN_MILLION / 1e6
        over = (own.peak - small.peak) / arrays
        results += [fine, verdict(f"{ten}, peak above that at 2,000 rows : {arrays:.0f} MB of arrays", over, 2.2)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
