"""The work of a scan: units go out to workers in batches, and what comes back is kept."""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures import TimeoutError as NoResultYet
from dataclasses import field, replace
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.paths.find import Unit, is_copy, is_log, listed, place
from stabtree.tools.fleet.engine import ENGINES
from stabtree.tools.fleet.examine import Examined, Examiner, failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from stabtree.tools.fleet.store import Store

AHEAD = 3  # batches for each worker that are under way or waiting for it
BATCH = 8  # units, or logs, that go to a worker at once


@dataclass(slots=True)
class Progress:
    """How far a scan is.

    Attributes:
        done: units that were examined, or known.
        known: how many of them nothing changed of since an earlier scan.
        waiting: units that are found and not yet examined.
        found: runs by badge.
        since: when the scan began.
    """

    done: int = 0
    known: int = 0
    waiting: int = 0
    found: dict[str, int] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)

    @property
    def runs(self) -> int:
        """How many runs there are so far."""
        return sum(self.found.values())


@dataclass(slots=True)
class Loop:
    """Hands units out in batches and takes what comes back; the number under way is bounded.

    Attributes:
        examiner: what examines units.
        store: what keeps the results.
        rules: a hash of all that decides them besides the logs.
        jobs: workers.
        tell: called with the progress.
    """

    examiner: Examiner
    store: Store
    rules: str
    jobs: int
    tell: Callable[[Progress], None] | None = None
    progress: Progress = field(default_factory=Progress)
    waiting: deque[Unit] = field(default_factory=deque)
    suspects: deque[Unit] = field(default_factory=deque)
    seen: set[tuple[int, int]] = field(default_factory=set)
    faults: int = 0
    stopped: bool = False

    def run(self, engine: str, address: str = "") -> None:
        """Examine all that waits, and what is found meanwhile; where a worker dies, go on with new ones."""
        try:
            while self.waiting or self.suspects:
                if self.suspects:
                    with ENGINES[engine](1, address) as pool:
                        self._one_by_one(pool)
                elif first := self._next_batch():
                    with ENGINES[engine](self.jobs, address) as pool:
                        self._in_parallel(pool, first)
        except KeyboardInterrupt:
            self.stopped = True
        finally:
            self.store.commit()

    def _in_parallel(self, pool: Executor, first: Sequence[Unit]) -> None:
        """Feed workers until nothing is left, or one of them died."""
        under_way: dict[Future[list[Examined]], Sequence[Unit]] = {pool.submit(self.examiner, first): first}
        while under_way or (self.waiting and not self.suspects):
            while self.waiting and len(under_way) < AHEAD * getattr(pool, "workers", self.jobs) and not self.suspects:
                batch = self._next_batch()
                if not batch:
                    continue
                try:
                    under_way[pool.submit(self.examiner, batch)] = batch
                except (RuntimeError, OSError):  # the pool broke
                    self.suspects.extend(batch)
            if not under_way:
                continue
            done, _ = wait(under_way, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                self._collect(future, under_way.pop(future))
            self._report()

    def _collect(self, future: Future[list[Examined]], batch: Sequence[Unit]) -> None:
        try:
            for found in future.result():
                self._keep(found)
        except (Exception, CancelledError):
            self.suspects.extend(batch)

    def _one_by_one(self, pool: Executor) -> None:
        """Try the units of workers that died one by one, to see which of them it was."""
        while self.suspects:
            unit = self.suspects.popleft()
            try:
                (found,) = pool.submit(self.examiner, [unit]).result()
            except (Exception, CancelledError, NoResultYet) as error:
                self._blame(unit, error)
                return
            self._keep(found)
            self._report()

    def _blame(self, unit: Unit, error: BaseException) -> None:
        """Tell of a unit that a worker died of, unless it can be parted to see which log it was."""
        smaller = pieces(unit, self.examiner.roots)
        if smaller:
            self.suspects.extend(smaller)
            return
        problem = "the process that read it was killed"
        if isinstance(error, StabtreeError):
            problem = error.problem
        hint = "diagnose it alone; it may need more memory than there is"
        row = failed(unit, StabtreeError(problem, where=clean(unit.path), hint=hint))
        self._keep(Examined(unit, (row,)))

    def _keep(self, found: Examined) -> None:
        if found.slow and (smaller := pieces(found.unit, self.examiner.roots)):
            self.waiting.extend(smaller)
            return
        self.store.add(found, self.rules)
        self.faults += found.faults
        self._count(found)

    def _count(self, found: Examined) -> None:
        self.waiting.extendleft(reversed(found.further))
        self.progress.done += 1
        for badge, *_ in found.rows:
            self.progress.found[badge] = self.progress.found.get(badge, 0) + 1

    def _next_batch(self) -> list[Unit]:
        """Return units to hand out together; what an earlier scan found of one that did not change is taken over."""
        batch: list[Unit] = []
        weight = 0
        while self.waiting and weight < BATCH:
            unit = self.waiting.popleft()
            if self._was_seen(unit):
                continue
            known = self.store.known(unit, self.rules)
            if known is not None:
                self._count(known)
                self.progress.known += 1
                self._report()
                continue
            batch.append(unit)
            weight += max(len(unit.files), 1)
        return batch

    def _was_seen(self, unit: Unit) -> bool:
        """Return whether a link led to a folder where another one had led before."""
        if not unit.linked or unit.files:
            return False
        try:
            status = os.stat(unit.folder)  # noqa: PTH116 - a path that may be none
        except OSError:
            return False
        key = status.st_dev, status.st_ino
        again = key in self.seen
        self.seen.add(key)
        return again

    def _report(self) -> None:
        if self.tell is not None:
            self.progress.waiting = len(self.waiting) + len(self.suspects)
            self.tell(self.progress)


def pieces(unit: Unit, roots: Sequence[str]) -> list[Unit]:
    """Return the parts of a unit, where one of them was too much for a worker; none where it can't be parted."""
    if unit.files:
        if len(unit.files) > 1:
            return [replace(unit, files=(name,)) for name in unit.files]
        return []
    try:
        listing = listed(unit.folder, roots)
    except OSError:
        return []
    logs = [name for name in listing.files if is_log(name)]
    if len(logs) < 2 and not (logs and listing.folders):
        return []
    folders = [name for name in (*listing.folders, *listing.linked) if not is_copy(name)]
    inner = [Unit(place(unit.folder, name), linked=unit.linked or name in listing.linked) for name in folders]
    return [*(Unit(unit.folder, (name,)) for name in logs), *inner]
