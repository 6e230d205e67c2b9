"""A log that grows: what is told of it, and at which row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.tools.live.news import Announcer
from stabtree.tools.live.watch.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stabtree.judging.outcome import Outcome


def told_at(file: Path, loss: Sequence[float]) -> list[tuple[str, int]]:
    """Each leaf that is told while a log is written row by row, with the number of rows at that time."""
    judging = Judging()

    def judge() -> list[Outcome]:
        return [judging.outcome(item) for item in load_runs(file)]

    watching = Watching(judge, announcer=Announcer(), clock=lambda: 0.0)
    found = []
    with file.open("w", encoding="utf-8") as log:
        log.write("step,loss\n")
        for step, value in enumerate(loss):
            log.write(f"{step},{value}\n")
            log.flush()
            found += [(told.finding.leaf.id, told.rows) for told in watching.grown([{"loss": value}], step + 1)]
    return found


def test_nan_is_told_once_and_at_once(tmp_path: Path) -> None:
    """A loss that turns NaN for good is told in its first row, and never again."""
    loss = [
        *(2 + np.exp(-np.arange(90) / 20) + 0.02 * np.random.default_rng(0).standard_normal(90)),
        *[math.nan] * 15,
    ]
    found = told_at(tmp_path / "a.csv", loss)
    assert [rows for _, rows in found][:1] == [91]
    assert len({leaf for leaf, _ in found}) == len(found)


def test_a_log_that_stays_broken_calls_once_beside_healthy_ones() -> None:
    """Rows of several logs by turns call for no more judgements than the broken log alone does."""

    def judgements(files: Sequence[str]) -> int:
        calls = []
        watching = Watching(lambda: calls.append(1) or [], clock=lambda: 0.0)  # type: ignore[func-returns-value]
        for look in range(200):
            rows = [{"loss": math.nan if file == "broken" else 1.0} for file in files]
            watching.grown(rows, 10_000 + look, files)
        return len(calls)

    assert judgements(["healthy", "broken", "healthy too"]) == judgements(["broken"])
