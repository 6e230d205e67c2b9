"""Speed and memory of the command line, as ratios to named references measured in the same run.

    python -m benchmarks.speed [--repeat 5] [--peers PYTHON]

Every figure is the median of whole processes, taken in turns so that a slow spell of the machine hits both sides
alike. Start-up is compared by the time that the processor works, large files by the time on the clock, since both
sides use several cores there; the other time is printed beside. Memory is the peak that the system reports of the
process. The modules are compiled first, as an installer does it.

`--peers` times the other tools that are installed for a Python, on the same files.
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

from benchmarks.peers import TOOLS

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


def cost(command: list[str], *, failing: bool = False) -> Cost:
    """Run a process, which may exit with an error where `failing`; its output is thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not failing:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024 / 1e6)


def median(costs: list[Cost]) -> Cost:
    """The median of each."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def verdict(name: str, value: float, limit: float) -> bool:
    """Print a figure beside its limit; whether it is within."""
    print(f"{name:72s} {value:7.2f}   limit {limit:6.2f}   {'ok' if value <= limit else 'OVER'}", flush=True)
    return value <= limit


def compare(
    name: str, ours: list[str], reference: list[str], limit: float, repeat: int, by: str = "cpu"
) -> tuple[bool, Cost]:
    """Take two commands in turns; print their ratio, and return what ours took.

    Args:
        name: what is printed.
        ours: a command of ours.
        reference: what it is compared with.
        limit: the highest ratio that is fine.
        repeat: how often each runs.
        by: whether `cpu` or `wall` decides.
    """
    cost(ours), cost(reference)
    pairs = [(cost(ours), cost(reference)) for _ in range(repeat)]
    mine, theirs = (median(list(side)) for side in zip(*pairs, strict=True))
    fine = verdict(f"{name} ({by})", getattr(mine, by) / getattr(theirs, by), limit)
    print(
        f"    processor {mine.cpu:.3f} s : {theirs.cpu:.3f} s = {mine.cpu / theirs.cpu:.2f}, "
        f"clock {mine.wall:.3f} s : {theirs.wall:.3f} s = {mine.wall / theirs.wall:.2f}, "
        f"peak {mine.peak:.0f} MB : {theirs.peak:.0f} MB",
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


def time_peers(interpreter: str, files: dict[int, Path], repeat: int) -> None:
    """Print what other tools take, without a verdict."""
    for name, tool in TOOLS.items():
        there = subprocess.run([interpreter, "-c", f"import {name}"], check=False, capture_output=True)
        if tool.jsonl_only or there.returncode:
            continue
        for rows in (SMALL, MILLION):
            words = [word.format(file=files[rows]) for word in tool.arguments]
            taken = median([cost([interpreter, "-m", *words], failing=True) for _ in range(repeat)])
            print(
                f"{name}, {rows:,} rows: processor {taken.cpu:.3f} s, clock {taken.wall:.3f} s, "
                f"peak {taken.peak:.0f} MB",
                flush=True,
            )


def start_up(small: Path, repeat: int) -> list[bool]:
    """Compare what each command takes before it does anything with what it has to import."""
    imports = python("import typer, rich, yaml")
    numpy = python("import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import numpy")
    return [
        compare("--help : import typer, rich, yaml", [STABTREE, "--help"], imports, 0.75, repeat)[0],
        compare("explain Q2.3 : import typer, rich, yaml", [STABTREE, "explain", "Q2.3"], imports, 1.5, repeat)[0],
        compare("2,000 rows : import numpy", diagnose(small), numpy, 1.87, repeat)[0],
    ]


def long_runs(files: dict[int, Path], repeat: int) -> list[bool]:
    """Compare long runs with what pandas takes to read them, and with the size of their arrays."""
    base = cost(diagnose(files[SMALL]))
    fine, million = compare(
        "1,000,000 rows : pandas.read_csv", diagnose(files[MILLION]), read_csv(files[MILLION]), 1.1, repeat, "wall"
    )
    results = [fine, verdict("1,000,000 rows, MB of memory at the peak", million.peak, 150)]
    large = files[TEN_MILLION]
    fine, ten = compare("10,000,000 rows : pandas.read_csv", diagnose(large), read_csv(large), 1.3, repeat, "wall")
    arrays = 8 * len(COLUMNS) * TEN_MILLION / 1e6
    over = (ten.peak - base.peak) / arrays
    return [*results, fine, verdict(f"10,000,000 rows, peak above 2,000 rows : {arrays:.0f} MB of arrays", over, 2.2)]


def main() -> int:
    """Run all comparisons; exit with 1 when one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peers", help="a Python in which they are installed")
    options = parser.parse_args()
    compileall.compile_dir(Path(__file__).resolve().parent.parent / "stabtree", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        files = {rows: Path(folder, f"{rows}.csv") for rows in (SMALL, MILLION, TEN_MILLION)}
        for rows, path in files.items():
            # In a process of its own: a process begins with the peak of the one that started it.
            writer = multiprocessing.get_context("spawn").Process(target=write_csv, args=(path, rows))
            writer.start()
            writer.join()
        results = start_up(files[SMALL], options.repeat) + long_runs(files, options.repeat)
        if options.peers:
            time_peers(options.peers, files, options.repeat)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
