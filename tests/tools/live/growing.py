"""Logs that grow by turns, and a clock that goes as fast as a test."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.tools.live.events import Announcer, Watching
from stabtree.tools.live.watch import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from stabtree.common.lazy import Floats
    from stabtree.judging.verdict import Outcome


class TestClock:
    """Seconds that pass when somebody sleeps."""

    __test__ = False

    def __init__(self, wakes: Iterable[Callable[[], object]] = ()) -> None:
        self.now = 0.0
        self._wakes = iter(wakes)

    def __call__(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass, and let what is next happen."""
        self.now += seconds
        next(self._wakes, lambda: None)()


def falling(rows: int, seed: int = 0) -> Floats:
    """The loss of a run that goes well."""
    noise = np.random.default_rng(seed).standard_normal(rows)
    return np.asarray(1.5 + 2 * np.exp(-np.arange(rows) / 60) + 0.02 * noise)


def broken(rows: int, at: int, seed: int = 0) -> Floats:
    """The loss of a run that turns NaN and stays so."""
    loss = falling(rows, seed)
    loss[at:] = math.nan
    return loss


def lines(kind: str, loss: Sequence[float] | Floats, first: int = 0) -> list[str]:
    """The lines that a trainer writes of these losses: `csv` with its header, `jsonl` or `text`."""
    rows = [(first + place, float(value)) for place, value in enumerate(loss)]
    if kind == "csv":
        return ["step,loss,lr\n", *(f"{step},{value},0.001\n" for step, value in rows)]
    if kind == "jsonl":
        return [json.dumps({"step": step, "loss": value, "lr": 0.001}) + "\n" for step, value in rows]
    return ["Starting the run\n", *(f"step {step} | loss {value:.6f} | lr 1e-03\n" for step, value in rows)]


def judged(path: Path, follower: Follower | None = None) -> Callable[[], list[Outcome]]:
    """What judges a log as it is, with what was read before."""
    judging = Judging()

    def judge() -> list[Outcome]:
        contents = follower.contents() if follower else {}
        return [judging.outcome(item) for item in load_runs(str(path), contents=contents)]

    return judge


def watching(path: Path, clock: Callable[[], float], follower: Follower | None = None) -> Watching:
    """What judges a growing log."""
    return Watching(judged(path, follower), Announcer(), clock=clock)


def following(path: Path) -> Follower:
    """What looks at a growing log."""
    return Follower([str(path)])
