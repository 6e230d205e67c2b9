"""A flame graph as text: where the processor's time of a command goes, sampled a few hundred times a second.

    python -m benchmarks.flame diagnose -q run.csv [--repeat 10] [--least 2]

Each line is a call, below what called it, with its share of all samples; a module that is imported is a call too. A
chain of calls is drawn as its two ends. Small shares are left out, and so are the frames of the import system.
"""

from __future__ import annotations

import collections
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

SECONDS = 0.001  # asked for; the system rounds it up
ALL = 0.97  # of a call, where a chain of calls is drawn as its two ends
Stack = tuple[str, ...]

SAMPLED = """
import sys
from benchmarks.flame import sample
sample(sys.argv[1:])
"""


def sample(words: list[str]) -> None:
    """Run a command in this process, and print its stacks and how often each was seen."""
    stacks: collections.Counter[Stack] = collections.Counter()

    def note(_signal: int, frame: FrameType | None) -> None:
        stacks[stack_of(frame)] += 1

    signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
    from stabtree.cli import main as run

    run(words)
    signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.flush()
    print("\n" + json.dumps([time.process_time(), [[count, *stack] for stack, count in stacks.items()]]))


def stack_of(frame: FrameType | None) -> Stack:
    """Return the calls of a frame, outermost first."""
    found: list[str] = []
    while frame is not None:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "")
        if "importlib" not in code.co_filename and module not in ("__main__", "benchmarks.flame"):
            name = "import" if code.co_name == "<module>" else code.co_name
            found.append(f"{module.removeprefix('stabtree.')} {name}")
        frame = frame.f_back
    return tuple(reversed(found))


def draw(stacks: dict[Stack, int], least: float) -> list[str]:
    """Return the lines of the tree of calls whose share is at least `least` percent."""
    total = sum(stacks.values())
    inner: collections.Counter[Stack] = collections.Counter()
    for stack, count in stacks.items():
        for depth in range(1, len(stack) + 1):
            inner[stack[:depth]] += count
    below: dict[Stack, list[Stack]] = {}
    for stack in sorted(inner, key=inner.__getitem__, reverse=True):
        below.setdefault(stack[:-1], []).append(stack)
    lines: list[str] = []

    def add(above: Stack, indent: int) -> None:
        for stack in below.get(above, ()):
            share = 100 * inner[stack] / total
            if share < least:
                continue
            inmost = stack
            while (one := below.get(inmost, ())) and inner[one[0]] >= ALL * inner[stack]:
                inmost = one[0]
            names = [stack[-1]] if inmost == stack else [stack[-1], inmost[-1]]
            lines.append(f"{share:5.1f}%  {'  ' * indent}{' ... '.join(names)}")
            add(inmost, indent + 1)

    add((), 0)
    return lines


def option(words: list[str], name: str, usual: float) -> float:
    """Take an option of ours out of a command."""
    if name not in words:
        return usual
    at = words.index(name)
    value = float(words[at + 1])
    del words[at : at + 2]
    return value


def main() -> None:
    """Sample a command in several processes, and print the tree of all their stacks."""
    words = sys.argv[1:]
    repeat, least = int(option(words, "--repeat", 10)), option(words, "--least", 2)
    stacks: collections.Counter[Stack] = collections.Counter()
    taken = 0.0
    for _ in range(repeat):
        done = subprocess.run(
            [sys.executable, "-c", SAMPLED, *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).resolve().parents[1],
        )
        seconds, found = json.loads(done.stdout.splitlines()[-1])
        taken += seconds
        for count, *stack in found:
            stacks[tuple(stack)] += count
    print(f"{taken / repeat:.3f} s of the processor, mean of {repeat} runs")
    print("\n".join(draw(stacks, least)))


if __name__ == "__main__":
    main()
