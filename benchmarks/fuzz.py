"""Throw broken files at all of stabtree: cut, flipped, spliced and repeated copies of real ones.

    python benchmarks/fuzz.py SEEDS [SEEDS ...] --inputs 100000 --seed 0

SEEDS are files, or folders of them. Every input is read, diagnosed, inspected and written in every output; one in
COMMAND_EVERY goes through the command line as well, and one in COLOUR_EVERY is drawn in colour and on a narrow screen.
Warnings are errors. Counted, and kept in --keep, are crashes, inputs that take more than SECONDS of processor time,
JSON that is none, outputs that hold control characters; and what a process holds in memory more than once it was warm.

Input n is made from the number n and the seeds alone: --seed is the first number. A run that was stopped goes on where
its last line says, and `--seed 1234 --inputs 1` makes input 1,234 again.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import io
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.mutations import LARGEST_SEED, mutate
from stabtree.cli import main as command
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import Diagnosis
from stabtree.diagnosis.walk import diagnose
from stabtree.judging.outcome import Outcome
from stabtree.loaders import LOADERS, load_runs
from stabtree.report import json as machine
from stabtree.report.inspect import inspect_dict, inspect_text
from stabtree.report.options import RenderOptions
from stabtree.report.outputs import JSON, RUN, RUNS, names, output
from stabtree.tree.load import load_trees

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 5.0
HANG = 30.0  # seconds of processor time after which an input is given up
WIDTH = 100
COMMAND_EVERY, COLOUR_EVERY = 100, 20
# Most copies are of the beginning of a file, so that many can be tried; these are of the whole.
LONG, SHORT = 0.1, 20_000
TASK = 250  # inputs handed to a process at once
WARM = 2000  # inputs after which the memory of a process is measured for the first time
MAX_MB = 40.0  # that a process may hold more than when it was warm
# Control characters, and those that turn the direction of what follows; a colour is allowed where it was asked for.
_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class Hang(BaseException):
    """An input that takes far too long; no handler of errors may catch it."""


@dataclass
class Tally:
    """What came out of some inputs.

    Attributes:
        outcomes: how many of each kind.
        wrong: a line for each thing that must not be.
        slowest: processor seconds of the slowest input.
        process: who tried them.
        inputs: how many that process has tried so far.
        held: MB that it holds.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0
    process: int = 0
    inputs: int = 0
    held: float = 0.0


_tried = 0


def work(task: tuple[tuple[Path, ...], range, Path]) -> Tally:
    """Try the inputs of these numbers."""
    global _tried  # noqa: PLW0603 - of this process
    seeds, numbers, keep = task
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _give_up)
    tally = Tally(process=os.getpid())
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            _try(number, seeds, Path(folder), keep, tally)
    _tried += len(numbers)
    tally.inputs, tally.held = _tried, _held()
    return tally


def _give_up(*_: object) -> None:
    raise Hang


def _try(number: int, seeds: tuple[Path, ...], folder: Path, keep: Path, tally: Tally) -> None:
    dice = random.Random(number)  # noqa: S311 - mutations, no secrets
    seed = dice.choice(seeds)
    long = dice.random() < LONG
    data = mutate(_data(seed)[: None if long else SHORT], _data(dice.choice(seeds))[:SHORT], dice)
    forced = dice.choice(LOADERS).name if dice.random() < 0.1 else None
    file = folder / f"{number % 50}-{seed.name[-60:]}"
    file.write_bytes(data)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    start, wrong = time.process_time(), ""
    try:
        outcome = _all(file, forced, number)
    except Hang:
        outcome, wrong = "hung", f"more than {HANG:.0f} s"
    except _WrongError as error:
        outcome, wrong = error.kind, str(error)
    except Exception as error:
        outcome, wrong = "crashed", f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    tally.outcomes[outcome] += 1
    tally.slowest = max(tally.slowest, seconds)
    if seconds > SECONDS and not wrong:
        tally.outcomes["slow"] += 1
        wrong = f"{seconds:.1f} s for {len(data):,} bytes"
    if wrong:
        tally.wrong.append(f"input {number}, {seed.name} --format {forced}: {wrong}")
        (keep / f"{number}-{seed.name[-60:]}").write_bytes(data)
    file.unlink()


@cache
def _data(seed: Path) -> bytes:
    return seed.read_bytes()


class _WrongError(Exception):
    """An output that must not be."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


def _all(file: Path, forced: str | None, number: int) -> str:
    """Everything that can be done with a file; what became of it.

    Raises:
        _WrongError: where an output must not be.
    """
    outcomes = []
    for loaded in load_runs(str(file), format=forced):
        run = loaded.run
        if isinstance(run, StabtreeError):
            outcomes.append(Outcome(loaded.name, run))
            _json(json.dumps(machine.error(run)))
            continue
        outcomes.append(Outcome(loaded.name, diagnose(run, load_trees(run))))
        _plain(inspect_text(run, width=WIDTH, color=False), "inspect")
        _json(json.dumps(inspect_dict(run)))
    only = outcomes[0].found if len(outcomes) == 1 else None
    if isinstance(only, Diagnosis):
        _outputs(RUN, only, number)
    elif only is None:
        _outputs(RUNS, outcomes, number)
    if number % COMMAND_EVERY == 0:
        _command(str(file), forced)
    if any(isinstance(outcome.found, Diagnosis) for outcome in outcomes):
        return "judged" if len(outcomes) == 1 else "several runs"
    return "refused"


def _outputs(kind: str, found: Any, number: int) -> None:
    for name in names(kind):
        write = output(kind, name)
        told = write(found, RenderOptions(width=WIDTH))
        _plain(told, name)
        if name == JSON:
            _json(told)
        elif number % COLOUR_EVERY == 0:
            _plain(_COLOUR.sub("", write(found, RenderOptions(width=40, color=True))), name)


def _plain(text: str, name: str) -> None:
    if found := _UNSAFE.search(text):
        raise _WrongError("unsafe", f"{name} holds {found[0]!r}")


def _json(text: str) -> None:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise _WrongError("bad JSON", str(error)) from None


def _command(file: str, forced: str | None) -> None:
    """The command line itself: an exit code that it may have, and with it an output or an error."""
    words = ["diagnose", "--json", file, *(("--format", forced) if forced else ())]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command([*words, "--debug"])
    _plain(err.getvalue(), "standard error")
    _json(out.getvalue())
    if code not in range(4):
        raise _WrongError("wrong exit", f"exit code {code}")


def _held() -> float:
    """The MB that this process holds, without what it has freed; 0 where the system does not tell."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


def tallies(seeds: tuple[Path, ...], numbers: range, keep: Path, processes: int) -> Iterator[Tally]:
    """The tallies of all inputs, in order."""
    tasks = [(seeds, numbers[at : at + TASK], keep) for at in range(0, len(numbers), TASK)]
    if processes == 1:
        yield from map(work, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(work, tasks)


def main() -> int:
    """Try all inputs; exit with 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", type=Path, nargs="+")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first input")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "stabtree-fuzz")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    files = [path for seed in options.seeds for path in ([seed] if seed.is_file() else sorted(seed.rglob("*")))]
    seeds = tuple(path for path in files if path.is_file() and 0 < path.stat().st_size <= LARGEST_SEED)
    numbers = range(options.seed, options.seed + options.inputs)
    outcomes: Counter[str] = Counter()
    slowest, done, begin = 0.0, 0, time.monotonic()
    memory: dict[int, list[tuple[int, float]]] = {}
    for tally in tallies(seeds, numbers, options.keep, options.processes):
        outcomes += tally.outcomes
        slowest = max(slowest, tally.slowest)
        memory.setdefault(tally.process, []).append((tally.inputs, tally.held))
        done += min(TASK, options.inputs - done)
        for line in tally.wrong:
            print(line, file=sys.stderr, flush=True)
        if done % (20 * TASK) == 0:
            print(f"{dict(outcomes)}, go on with --seed {options.seed + done}", file=sys.stderr, flush=True)
    rate = done / (time.monotonic() - begin)
    grown = max(map(_grown, memory.values()))
    print(f"{len(seeds)} seeds, {done:,} inputs at {rate:.0f} a second: {dict(outcomes)}")
    print(f"slowest {slowest:.2f} s; memory of a process grew by at most {grown:.0f} MB once it was warm")
    return 1 if grown > MAX_MB or set(outcomes) - {"judged", "several runs", "refused"} else 0


def _grown(held: list[tuple[int, float]]) -> float:
    """The MB that a process holds at its end above what it held when it was warm."""
    warm: list[Any] = [mb for inputs, mb in held if inputs >= WARM]
    return warm[-1] - warm[0] if warm else 0.0


if __name__ == "__main__":
    sys.exit(main())
