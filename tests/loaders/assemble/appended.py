"""Logs of known truth: runs appended to one file, counted by steps, batches, epochs, rounds or episodes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

Row = dict[str, float]


@dataclass(slots=True)
class Log:
    """A log, and what is true of it.

    Attributes:
        kind: what counts its rows, and what happened to it.
        rows: its rows, in the order in which they were written.
        runs: how many rows with a loss, or a reward, each run holds after what a resume replaced is gone.
    """

    kind: str
    rows: list[Row] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)

    def csv(self) -> str:
        """The rows as a table."""
        names = list(self.rows[0])
        lines = [",".join(names), *(",".join(_text(row[name]) for name in names) for row in self.rows)]
        return "\n".join(lines) + "\n"

    def jsonl(self) -> str:
        """The rows as lines of JSON."""
        return "".join(json.dumps(row) + "\n" for row in self.rows)

    def printed(self) -> str:
        """The rows as a program prints them."""
        return "".join(", ".join(f"{name}: {_text(value)}" for name, value in row.items()) + "\n" for row in self.rows)


def _text(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a run is trained.

    Attributes:
        epochs: how many.
        batches: rows in each.
        every: steps from row to row.
        noise: of the loss, as a share of its fall.
        rate: whether the learning rate is logged, with a warm-up and a decay.
    """

    epochs: int
    batches: int
    every: int
    noise: float
    rate: bool

    @property
    def rows(self) -> int:
        """How many rows the run has."""
        return self.epochs * self.batches


def loss(random: Generator, shape: Shape) -> list[float]:
    """The loss of a run: it falls from 4 to about 1, fast at first."""
    at = np.arange(shape.rows)
    fall = 3 * np.exp(-at / (0.25 * shape.rows + 1))
    return [float(value) for value in 1 + fall + random.normal(0, 3 * shape.noise, shape.rows)]


def _rate(shape: Shape, row: int) -> Row:
    if not shape.rate:
        return {}
    warm = max(1, shape.rows // 20)
    return {"lr": 1e-3 * min((row + 1) / warm, (shape.rows - row) / shape.rows)}


def by_step(shape: Shape, row: int) -> Row:
    """A global step."""
    return {"step": (row + 1) * shape.every}


def by_batch(shape: Shape, row: int) -> Row:
    """Batches within an epoch that no column numbers."""
    return {"iter": row % shape.batches * shape.every}


def by_batch_of_epoch(shape: Shape, row: int) -> Row:
    """Batches within an epoch."""
    return {"epoch": row // shape.batches, "iter": row % shape.batches * shape.every}


def by_epoch(shape: Shape, row: int) -> Row:
    """One row an epoch."""
    del shape
    return {"epoch": row + 1}


def by_round(shape: Shape, row: int) -> Row:
    """One row a round."""
    del shape
    return {"round": row}


def by_share(shape: Shape, row: int) -> Row:
    """A share of an epoch, rounded."""
    return {"epoch": round((row + 1) / shape.batches, 2)}


def by_step_and_epoch(shape: Shape, row: int) -> Row:
    """A global step beside the epoch."""
    return {"epoch": row // shape.batches + 1, "step": row * shape.every}


def by_rows_of_epoch(shape: Shape, row: int) -> Row:
    """Many rows an epoch, and no step."""
    return {"epoch": row // shape.batches}


COUNTERS = (by_step, by_batch, by_batch_of_epoch, by_epoch, by_round, by_share, by_step_and_epoch, by_rows_of_epoch)
RESUMED = (by_step, by_epoch, by_step_and_epoch)


def _shape(random: Generator, *, passes: bool) -> Shape:
    return Shape(
        epochs=int(random.integers(3, 7)),
        batches=int(random.integers(10, 30)) if not passes else int(random.integers(4, 9)),
        every=int(random.choice([1, 10, 50, 1000])),
        noise=float(random.choice([0.0, 0.01, 0.05])),
        rate=bool(random.integers(2)),
    )


def _append(log: Log, random: Generator, shape: Shape, count: Callable[[Shape, int], Row], rows: int) -> None:
    values = loss(random, shape)[:rows]
    log.rows += [{**count(shape, row), "loss": value, **_rate(shape, row)} for row, value in enumerate(values)]


def appended(random: Generator, count: Callable[[Shape, int], Row]) -> Log:
    """One to four runs one after the other, of one length or not; the last may be cut after a row or more."""
    log = Log(f"{count.__name__} appended")
    shape = _shape(random, passes=count in (by_epoch, by_round))
    total = int(random.integers(1, 5))
    for index in range(total):
        rows = shape.rows
        if index and index == total - 1 and random.integers(2):
            rows = int(random.integers(1, shape.rows))
            log.kind += ", cut"
        _append(log, random, shape, count, rows)
        log.runs.append(rows)
    return log


def given_up(random: Generator, count: Callable[[Shape, int], Row]) -> Log:
    """A first attempt of a few rows, begun anew."""
    log = Log(f"{count.__name__} given up")
    shape = _shape(random, passes=count in (by_epoch, by_round))
    _append(log, random, shape, count, int(random.integers(1, min(6, shape.rows // 4))))
    _append(log, random, shape, count, shape.rows)
    log.runs = [shape.rows]
    return log


def resumed(random: Generator, count: Callable[[Shape, int], Row]) -> Log:
    """One or two runs; the last of them goes back to a checkpoint once."""
    log = Log(f"{count.__name__} resumed")
    shape = _shape(random, passes=count is by_epoch)
    for _ in range(int(random.integers(0, 2))):
        _append(log, random, shape, count, shape.rows)
        log.runs.append(shape.rows)
    until = int(random.integers(shape.rows // 2, shape.rows))
    again = int(random.integers(shape.rows // 4, until - 2))
    _append(log, random, shape, count, until)
    values = loss(random, shape)
    log.rows += [{**count(shape, row), "loss": values[row], **_rate(shape, row)} for row in range(again, shape.rows)]
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
        found += [given_up(random, counter) for counter in COUNTERS if counter is not by_rows_of_epoch]
        found += [resumed(random, counter) for counter in RESUMED]
        found.append(episodes(random))
    return found
