"""Ranks that stop together, by a store in memory: whichever of them is ahead, and whatever rank 0 logs beside."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.tools.live.events import Announcer
from stabtree.tools.live.judge import Ranks
from tests.tools.live.growing import broken, lines

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.tools.live.events import News

SIZE, FOUND = 3, 20


class Store:
    """What torch.distributed keeps for all ranks."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        self._values[key] = value.encode() if isinstance(value, str) else value

    def get(self, key: str) -> bytes:
        """Return a value."""
        return self._values[key]

    def check(self, keys: list[str]) -> bool:
        """Return whether all of them are there."""
        return all(key in self._values for key in keys)


@pytest.fixture
def news(tmp_path: Path) -> News:
    """A finding that stops a run."""
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines("jsonl", broken(100, 50))), encoding="utf-8")
    (loaded,) = load_runs(path)
    return Announcer().judged([Judging().outcome(loaded)], final=True)[0]


def stopped(news: News, *, every: int, beside: bool, seed: int) -> list[tuple[int, str]]:
    """Train with three ranks that wait for each other at each step, as for a gradient: where each of them stopped."""
    store, barrier = Store(), threading.Barrier(SIZE)

    def train(rank: int) -> tuple[int, str]:
        chance = random.Random(seed * SIZE + rank)  # noqa: S311
        ranks = Ranks(store, rank, "run")
        for step in range(0, 100 * every, every):
            barrier.wait(20)
            time.sleep(chance.random() / 1000)
            found = news if not rank and step >= FOUND * every else None
            stop = ranks.stops(step, found)
            if beside and not rank and stop is None:
                stop = ranks.stops(step, found)  # as for a row that rank 0 alone logs
            if stop is not None:
                return step, stop.finding.leaf.id
        raise AssertionError("it was not stopped")

    with ThreadPoolExecutor(SIZE) as pool:
        return [*pool.map(train, range(SIZE))]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("every", "beside"), [(1, False), (10, False), (10, True)])
def test_all_stop_at_the_same_step(news: News, every: int, beside: bool, seed: int) -> None:
    """A few rows after it was found, with the finding of rank 0."""
    (first, leaf), *others = stopped(news, every=every, beside=beside, seed=seed)
    assert others == [(first, leaf)] * (SIZE - 1)
    assert FOUND < first / every <= FOUND + 4
    assert leaf == news.finding.leaf.id


def test_the_others_are_asked_for_nothing_while_nothing_is_found() -> None:
    """A rank goes on without the others, and no value is set."""
    ranks = Ranks(store := Store(), 1, "run")
    assert [ranks.stops(step, None) for step in range(50)] == [None] * 50
    assert not store._values


def test_rank_0_stops_alone_where_the_others_log_nothing(news: News) -> None:
    """Once they had the time to."""
    ranks = Ranks(Store(), 0, "run")
    assert [ranks.stops(step, news) is None for step in range(4)] == [True, True, False, False]
