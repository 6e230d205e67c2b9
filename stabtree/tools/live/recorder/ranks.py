"""Several ranks that log one run: they stop at the same step, which they agree on ahead."""

from __future__ import annotations

import logging
import pickle
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stabtree.tools.live.news import News

AHEAD_ROWS = 2
"""A rank can't be further ahead of another where each row waits for the gradients that all of them make together."""
AHEAD_KEPT_ROWS = 20
"""Where rows are kept, a rank may hand its GPU the work of some more steps before it waits for the others."""
WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.005

_log = logging.getLogger(__name__)
_made: Counter[str] = Counter()


def rank_here() -> int:
    """Return the rank that torch.distributed has given this process; 0 where it was not asked to."""
    if (distributed := _distributed()) is not None:
        return int(distributed.get_rank())
    return 0


def ranks_here(path: Path, *, kept: bool) -> Ranks | None:
    """Return the ranks that torch.distributed knows; None where there is only one.

    Args:
        path: the log of rank 0, which names the run.
        kept: whether rows are kept before they are written.
    """
    distributed = _distributed()
    if distributed is None or distributed.get_world_size() < 2:
        return None
    _made[str(path)] += 1
    try:
        store = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - there is no public way
    except Exception:  # another version of torch, or a backend without one: each stops by itself
        _log.warning("%s: the ranks can't agree on when to stop: each stops by itself", path)
        return None
    ahead = AHEAD_ROWS
    if kept:
        ahead = AHEAD_KEPT_ROWS
    key = f"stabtree/{path}/{_made[str(path)]}"
    return Ranks(store, distributed.get_rank(), distributed.get_world_size(), key=key, ahead=ahead)


class Ranks:
    """The ranks of a run, each with its Recorder, which learn from each other by the store of torch.distributed.

    A rank that learns that the run is to be stopped promises a step, up to which it goes on, and at which it waits for
    the promises of the others. All stop at the last of these steps: no rank has passed its own before it knows them.
    No rank waits for another while nothing is found.

    Args:
        store: where all ranks set and read values by key.
        rank: which of them this is; rank 0 judges.
        size: how many there are.
        key: what the keys begin with.
        ahead: rows that a rank may be ahead of another.
    """

    def __init__(self, store: Any, rank: int, size: int, *, key: str, ahead: int) -> None:
        self._store, self._rank, self._key, self._ahead = store, rank, key, ahead
        self._others = range(size)
        self._last_step: int | None = None
        self._stride = 1
        self._rows_asked = 0
        self._news: News | None = None
        self._promised: int | None = None
        self._agreed: int | None = None

    def stops(self, step: int, found: News | None) -> News | None:
        """Return what stops the run at a step that was just logged; None where it goes on.

        Args:
            step: the step.
            found: what was found that stops the run, on the rank that judges.
        """
        if self._last_step is None:
            self._store.set(f"{self._key}/logs/{self._rank}", "1")
        elif step > self._last_step:
            self._stride = step - self._last_step
        self._last_step = step
        if self._news is None:
            self._news = self._learn(found)
        if self._news is None:
            return None
        if self._agreed is None:
            self._agreed = self._agree(step)
        if self._agreed is None or step < self._agreed:
            return None
        return self._news

    def _learn(self, found: News | None) -> News | None:
        """Return what is to stop the run, as all ranks learn it."""
        asked = f"{self._key}/stop"
        if found is None:
            if self._rank and self._store.check([asked]):
                news: News = pickle.loads(self._store.get(asked))  # noqa: S301 - by rank 0 of this run
                return news
            return None
        self._rows_asked += 1
        if self._store.check(self._keys("logs")):
            self._store.set(asked, pickle.dumps(_without_rows(found)))
            return found
        if self._rows_asked > self._ahead:  # the others write no log: their trainer has its own way to stop them
            self._agreed = self._last_step
            return found
        return None

    def _agree(self, step: int) -> int | None:
        """Return the step at which all ranks stop; None while that is not known and need not be."""
        promises = self._keys("promise")
        if self._promised is None:
            self._promised = step + self._ahead * self._stride
            self._store.set(promises[self._rank], str(self._promised))
        until = time.monotonic() + WAIT_SECONDS
        while not self._store.check(promises):
            if step < self._promised:
                return None
            if time.monotonic() > until:
                _log.warning("rank %d stops alone: the others have not answered in %.0f s", self._rank, WAIT_SECONDS)
                return step
            time.sleep(PAUSE_SECONDS)
        return max(int(self._store.get(key)) for key in promises)

    def _keys(self, what: str) -> Sequence[str]:
        return [f"{self._key}/{what}/{rank}" for rank in self._others]


def _without_rows(news: News) -> News:
    """Return a finding without the series of its run, which the other ranks need not read."""
    return replace(news, diagnosis=replace(news.diagnosis, run=replace(news.diagnosis.run, series={})))


def _distributed() -> Any:
    """Return torch.distributed where it is initialised."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed
    return None
