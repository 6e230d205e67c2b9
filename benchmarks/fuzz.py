"""Throw broken files at the loaders: cut, flipped, spliced and repeated copies of real ones.

    python benchmarks/fuzz.py SEEDS [SEEDS ...] --inputs 100000

SEEDS are files, or folders of them. Every input must end as a run or as a `StabtreeError`, within 2 s per megabyte
(at least 2 s) and without memory beyond a small multiple of the file. What does not is counted, and kept in --keep.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

from stabtree.errors import StabtreeError
from stabtree.loaders import LOADERS, load_run

LARGEST_SEED = 300_000
SECONDS_PER_MB = 2.0
# A process that only ever read files below this size may not grow by more than this.
MOST_MB = 400
HOSTILE = (
    b"\x00" * 64,
    b"\xff\xfe",
    b"nan",
    b"1e999",
    b"-" * 50,
    b'"' * 33,
    b"{" * 500,
    b"[" * 500,
    b"\x1b[31m",
    b"\r",
    b"\n\n\n",
    b",,,,,,,",
    b"9" * 400,
    b"loss: nan",
    b"step",
    b"<script>",
    b"\xe2\x80\xae",
)


def mutate(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """One to four changes of a file: cut, flip, splice, repeat, insert, swap."""
    for _ in range(dice.randint(1, 4)):
        if not data:
            return data
        at, to = sorted((dice.randrange(len(data) + 1), dice.randrange(len(data) + 1)))
        kind = dice.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[at:]
        elif kind == 2:
            data = data[:at] + data[to:]
        elif kind == 3:
            flipped = bytearray(data)
            for _ in range(dice.randint(1, 20)):
                flipped[dice.randrange(len(flipped))] = dice.randrange(256)
            data = bytes(flipped)
        elif kind == 4:
            data = data[:at] + dice.choice(HOSTILE) + data[at:]
        elif kind == 5:
            start = dice.randrange(len(other) + 1)
            data = data[:at] + other[start : start + dice.randrange(2000)] + data[at:]
        elif kind == 6:
            data = data[:to] + data[at : at + 5000] * dice.randint(1, 5) + data[to:]
        else:
            data = data.replace(dice.choice((b",", b":", b"\n", b" ", b"=")), dice.choice((b"", b";", b"\t", b"\n")), 3)
    return data[: 4 * LARGEST_SEED]


def work(task: tuple[list[Path], int, int, Path]) -> tuple[Counter[str], list[str], float, int]:
    """Try `count` inputs; what came out, what was wrong, the slowest seconds per MB, and the growth in MB."""
    seeds, number, count, keep = task
    warnings.simplefilter("error")
    dice = random.Random(number)  # noqa: S311 - mutations, no secrets
    names = [None, *(loader.name for loader in LOADERS)]
    data = {seed: seed.read_bytes() for seed in seeds}
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        for place in range(count):
            seed = dice.choice(seeds)
            broken = mutate(data[seed], data[dice.choice(seeds)], dice)
            file = Path(folder) / f"{place % 50}-{seed.name[-60:]}"
            file.write_bytes(broken)
            forced = dice.choice(names) if dice.random() < 0.2 else None
            start = time.perf_counter()
            try:
                load_run(file, format=forced)
                outcomes["read"] += 1
            except StabtreeError:
                outcomes["refused"] += 1
            except Exception as error:
                outcomes["crashed"] += 1
                wrong.append(f"{seed.name} --format {forced}: {type(error).__name__}: {str(error)[:120]}")
                (keep / f"crash-{number}-{place}").write_bytes(broken)
            seconds = time.perf_counter() - start
            per_mb = seconds / max(1.0, len(broken) / 1e6)
            slowest = max(slowest, per_mb)
            if per_mb > SECONDS_PER_MB:
                outcomes["slow"] += 1
                wrong.append(f"{seed.name} --format {forced}: {seconds:.1f} s for {len(broken):,} bytes")
                (keep / f"slow-{number}-{place}").write_bytes(broken)
            file.unlink()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    return outcomes, wrong, slowest, grown


def main() -> int:
    """Run all inputs on two processes; exit with 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=Path, nargs="+")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "stabtree-fuzz")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    files = [path for seed in options.seeds for path in ([seed] if seed.is_file() else sorted(seed.rglob("*")))]
    seeds = [path for path in files if path.is_file() and 0 < path.stat().st_size <= LARGEST_SEED]
    parts = max(1, options.inputs // 1000)
    tasks = [(seeds, number, options.inputs // parts, options.keep) for number in range(parts)]
    outcomes: Counter[str] = Counter()
    slowest, grown = 0.0, 0
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=5) as pool:
        for found, wrong, slow, growth in pool.imap_unordered(work, tasks):
            outcomes += found
            slowest, grown = max(slowest, slow), max(grown, growth)
            for line in wrong:
                print(line, file=sys.stderr, flush=True)
    bad = outcomes["crashed"] + outcomes["slow"] + (grown > MOST_MB)
    print(f"{len(seeds)} seeds, {sum(outcomes[k] for k in ('read', 'refused', 'crashed')):,} inputs: {dict(outcomes)}")
    print(f"slowest {slowest:.2f} s per MB (or per smaller file), memory of a process grew by at most {grown} MB")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
