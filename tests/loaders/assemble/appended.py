"""Logs of known truth: runs appended to one file, counted by steps, batches, epochs, rounds or episodes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Counter = Callable[["Shape", int], dict[str, float]]


@dataclass(slots=True)
class Log:
    """A log, and how many rows each run holds after what a resume replaced is gone.

    Its `kind` says what counts its rows, and what happened to it.
    """

    kind: str
    rows: list[dict[str, float]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)

    def csv(self) -> str:
        """The rows as a table."""
        names = list(self.rows[0])
        return "".join(
            f"{','.join(line)}\n" for line in (names, *([_text(row[n]) for n in names] for row in self.rows))
        )

    def jsonl(self) -> str:
        """The rows as lines of JSON."""
        return "".join(json.dumps(row) + "\n" for row in self.rows)

    def printed(self) -> str:
        """The rows as a program prints them."""
        return "".join(", ".join(f"{name}: {_text(value)}" for name, value in row.items()) + "\n" for row in self.rows)

    def append(self, random: Generator, shape: Shape, count: str, first: int, end: int) -> None:
        """Train a run, and log some rows of it."""
        at = np.arange(shape.rows)
        loss = 1 + 3 * np.exp(-at / (0.25 * shape.rows + 1)) + random.normal(0, 3 * shape.noise, shape.rows)
        warm = max(1, shape.rows // 20)
        for row in range(first, end):
            lr = {"lr": 1e-3 * min((row + 1) / warm, (shape.rows - row) / shape.rows)} if shape.rate else {}
            self.rows.append({**COUNTERS[count](shape, row), "loss": float(loss[row]), **lr})


def _text(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Shape:
    """How a run is trained: rows, epochs, steps from row to row, noise, and whether its rate is logged."""

    def __init__(self, random: Generator, *, passes: bool) -> None:
        epochs = int(random.integers(3, 7))
        self.batches = int(random.integers(4, 9) if passes else random.integers(10, 30))
        self.rows = epochs * self.batches
        self.every = int(random.choice([1, 10, 50, 1000]))
        self.noise = float(random.choice([0.0, 0.01, 0.05]))
        self.rate = bool(random.integers(2))


COUNTERS: dict[str, Counter] = {
    "a global step": lambda shape, row: {"step": (row + 1) * shape.every},
    "batches of epochs without a number": lambda shape, row: {"iter": row % shape.batches * shape.every},
    "batches of epochs": lambda shape, row: {
        "epoch": row // shape.batches,
        "iter": row % shape.batches * shape.every,
    },
    "a row an epoch": lambda _, row: {"epoch": row + 1},
    "a row a round": lambda _, row: {"round": row},
    "a rounded share of an epoch": lambda shape, row: {"epoch": round((row + 1) / shape.batches, 2)},
    "a global step beside the epoch": lambda shape, row: {"epoch": row // shape.batches + 1, "step": row * shape.every},
    "many rows an epoch": lambda shape, row: {"epoch": row // shape.batches},
}
PASSES = ("a row an epoch", "a row a round")
RESUMED = ("a global step", "a row an epoch", "a global step beside the epoch")


def appended(random: Generator, count: str) -> Log:
    """One to four runs one after the other, of one length or not; the last may be cut after a row or more."""
    log = Log(f"{count}, appended")
    shape = Shape(random, passes=count in PASSES)
    total = int(random.integers(1, 5))
    for index in range(total):
        rows = shape.rows
        if index and index == total - 1 and random.integers(2):
            rows = int(random.integers(1, shape.rows))
            log.kind += ", cut"
        log.append(random, shape, count, 0, rows)
        log.runs.append(rows)
    return log


def given_up(random: Generator, count: str) -> Log:
    """A first attempt of a few rows, begun anew."""
    log = Log(f"{count}, given up")
    shape = Shape(random, passes=count in PASSES)
    log.append(random, shape, count, 0, int(random.integers(1, min(6, shape.rows // 4))))
    log.append(random, shape, count, 0, shape.rows)
    log.runs = [shape.rows]
    return log


def resumed(random: Generator, count: str) -> Log:
    """One or two runs; the last of them goes back to a checkpoint once."""
    log = Log(f"{count}, resumed")
    shape = Shape(random, passes=count in PASSES)
    for _ in range(int(random.integers(0, 2))):
        log.append(random, shape, count, 0, shape.rows)
        log.runs.append(shape.rows)
    until = int(random.integers(shape.rows // 2, shape.rows))
    again = int(random.integers(shape.rows // 4, until - 2))
    log.append(random, shape, count, 0, until)
    log.append(random, shape, count, again, shape.rows)
    log.runs.append(shape.rows)
    return log


def episodes(random: Generator) -> Log:
    """The steps of episodes, each with its reward; or one row an episode with its length in a column `steps`."""
    rows_of_steps = bool(random.integers(2))
    log = Log("steps of episodes" if rows_of_steps else "lengths of episodes")
    for _ in range(int(random.integers(1, 3))):
        count = int(random.integers(12, 40))
        for episode in range(count):
            length = int(random.integers(5, 60))
            if rows_of_steps:
                log.rows += [{"episode": episode, "step": step, "reward": 1.0 + episode} for step in range(length)]
            else:
                log.rows.append({"episode": episode, "steps": length, "reward": 10.0 * episode + length})
        log.runs.append(count)
    return log


def logs(seed: int, count: int) -> list[Log]:
    """So many logs of every kind."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        found += [appended(random, counter) for counter in COUNTERS]
        found += [given_up(random, counter) for counter in COUNTERS if counter != "many rows an epoch"]
        found += [resumed(random, counter) for counter in RESUMED]
        found.append(episodes(random))
    return found
