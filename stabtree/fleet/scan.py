"""Scan folders: find runs, have them examined in parallel, keep what was found, tell it worst first."""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures import TimeoutError as NoResultYet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.fleet import find
from stabtree.fleet.engine import ENGINES, usable_cores
from stabtree.fleet.examine import TIMEOUT_SECONDS, Examined, Examiner, failed, fault
from stabtree.fleet.find import Unit
from stabtree.fleet.options import check_judging, check_paths, check_reading, check_work
from stabtree.fleet.store import Store
from stabtree.judging.judge import Judging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    import pandas as pd

    from stabtree.judging.record import Record
    from stabtree.judging.stretch import Ends

AHEAD = 3  # batches for each worker that are under way or waiting for it
BATCH = 8  # units, or logs, that go to a worker at once
GROUP = 3  # runs that stand for a group


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
class Fleet:
    """The runs that a scan found, in a file: they are read one by one, however many there are.

    Attributes:
        store: where they are.
        faults: how many of them failed by faults of stabtree's own.
        stopped: whether the scan was interrupted.
        notes: what is to be told of the scan itself.
    """

    store: Store
    faults: int = 0
    stopped: bool = False
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Record]:
        """The runs, worst first."""
        return self.records()

    def __len__(self) -> int:
        return sum(self.counts().values())

    def records(self, *, worst_first: bool = True) -> Iterator[Record]:
        """The runs, worst first, those of one leaf together; else by their paths."""
        return self.store.records(worst_first=worst_first)

    def counts(self) -> dict[str, int]:
        """How many runs there are of each badge, worst first."""
        return self.store.counts()

    def verdicts(self, *, accept_partial: bool = False) -> list[str]:
        """The verdicts that there are, for the exit code."""
        return ["ok" if accept_partial and partial else verdict for verdict, partial in self.store.verdicts()]

    def groups(self, by: str = "leaf", most: int = GROUP) -> Iterator[tuple[str, str, int, list[Record]]]:
        """Groups of runs as (badge, leaf or folder, how many, the first of them), the worst group first.

        Args:
            by: `leaf`, `folder` or `verdict`.
            most: how many runs of a group are given.
        """
        return self.store.groups(by, most)

    def to_frame(self) -> pd.DataFrame:
        """A row a run as a pandas DataFrame, worst first."""
        from stabtree.render.fleet.frame import frame

        return frame(self.records())

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scan(
    *paths: str | Path,
    judging: Judging | None = None,
    ends: Ends | None = None,
    jobs: int | None = None,
    engine: str = "processes",
    address: str = "",
    timeout: float | None = None,
    cache: str | Path | None = None,
    tell: Callable[[Progress], None] | None = None,
    **how: Any,
) -> Fleet:
    """Find and judge every run below folders.

    >>> fleet = stabtree.scan("runs")  # doctest: +SKIP
    >>> [(run.path, run.verdict, run.leaf) for run in fleet]  # doctest: +SKIP

    Args:
        paths: folders, files, patterns.
        judging: how runs are judged; as `diagnose` does where not given.
        ends: the first and the last step that are judged.
        jobs: processes; as many as there are cores where not given.
        engine: what does the work: `processes`, `serial`, or what `stabtree.fleet.engine.ENGINES` names besides.
        address: of what is running already, where the engine is of that kind.
        timeout: seconds that one log, or one folder of a run, may take; 120 where not given. Workers of a cluster
            can't be stopped so.
        cache: a file that keeps what was found, so that the next scan need not look again; none where not given.
        tell: is told how far it is, now and then.
        how: how logs are read: options of `load_run`.

    Returns:
        The runs. A log that can't be read, or takes too long, is one of them, with its reason.

    Raises:
        StabtreeError: where an argument is wrong.
    """
    check_paths(paths)
    check_work(engine=engine, address=address, jobs=jobs, timeout=timeout, cache=cache)
    check_reading(how)
    check_judging(judging, ends)
    judging = judging or Judging()
    units = find.units([str(path) for path in paths])
    roots = tuple(os.path.realpath(unit.folder) for unit in units if not unit.files)
    examiner = Examiner(judging, how, roots, ends, timeout or TIMEOUT_SECONDS)
    store = Store(Path(cache) if cache is not None else None)
    try:
        loop = Loop(examiner, store, rules_of(examiner), jobs or usable_cores(), tell)
        loop.waiting.extend(units)
        loop.run(engine, address)
    except BaseException:
        store.close()
        raise
    return Fleet(store, loop.faults, loop.stopped, tuple(store.notes))


@dataclass(slots=True)
class Loop:
    """Hands units out in batches and takes what comes back; the number under way is bounded.

    Attributes:
        examiner: what examines units.
        store: what keeps the results.
        rules: a hash of all that decides them besides the logs.
        jobs: workers.
        tell: is told how far it is.
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
                first = self._next_batch() if not self.suspects else []
                if not first and not self.suspects:
                    continue
                with ENGINES[engine](1 if self.suspects else self.jobs, address) as pool:
                    if self.suspects:
                        self._alone(pool)
                    else:
                        self._together(pool, first)
        except KeyboardInterrupt:
            self.stopped = True
        finally:
            self.store.commit()

    def _together(self, pool: Executor, first: Sequence[Unit]) -> None:
        """Feed workers until nothing is left, or one of them died."""
        under_way: dict[Future[list[Examined]], Sequence[Unit]] = {pool.submit(self.examiner, first): first}
        while under_way:
            while self.waiting and len(under_way) < AHEAD * getattr(pool, "workers", self.jobs) and not self.suspects:
                batch = self._next_batch()
                try:
                    under_way.update({pool.submit(self.examiner, batch): batch} if batch else {})
                except (RuntimeError, OSError):  # the pool broke
                    self.suspects.extend(batch)
            done, _ = wait(under_way, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                self._took(future, under_way.pop(future))
            self._told()

    def _took(self, future: Future[list[Examined]], batch: Sequence[Unit]) -> None:
        try:
            for found in future.result():
                self._keep(found)
        except (Exception, CancelledError):
            self.suspects.extend(batch)

    def _alone(self, pool: Executor) -> None:
        """Try the units of workers that died one by one, to see which of them it was."""
        while self.suspects:
            unit = self.suspects.popleft()
            try:
                (found,) = pool.submit(self.examiner, [unit]).result()
            except (Exception, CancelledError, NoResultYet) as error:
                self._guilty(unit, error)
                return
            self._keep(found)
            self._told()

    def _guilty(self, unit: Unit, error: BaseException) -> None:
        """Tell of a unit that a worker died of, unless it can be parted to see which log it was."""
        smaller = pieces(unit, self.examiner.roots)
        if smaller:
            self.suspects.extend(smaller)
            return
        problem = "the process that read it was killed"
        if isinstance(error, StabtreeError):
            problem = error.problem
        hint = "diagnose it alone; it may need more memory than there is"
        told = failed(unit, StabtreeError(problem, where=clean(unit.path), hint=hint))
        self._keep(Examined(unit, (told,)))

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
        for record in found.records:
            self.progress.found[record.badge] = self.progress.found.get(record.badge, 0) + 1

    def _next_batch(self) -> list[Unit]:
        """Units to hand out together; what an earlier scan found of one that did not change is taken over."""
        batch: list[Unit] = []
        weight = 0
        while self.waiting and weight < BATCH:
            unit = self.waiting.popleft()
            if self._is_again(unit):
                continue
            known = self.store.known(unit, self.rules)
            if known is not None:
                self._count(known)
                self.progress.known += 1
                self._told()
                continue
            batch.append(unit)
            weight += max(len(unit.files), 1)
        return batch

    def _is_again(self, unit: Unit) -> bool:
        """Whether a link led to a folder where another one had led before."""
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

    def _told(self) -> None:
        if self.tell is not None:
            self.progress.waiting = len(self.waiting) + len(self.suspects)
            self.tell(self.progress)


def pieces(unit: Unit, roots: Sequence[str]) -> list[Unit]:
    """The parts of a unit, where one of them was too much for a worker; none where it can't be parted."""
    if unit.files:
        return [replace(unit, files=(name,)) for name in unit.files] if len(unit.files) > 1 else []
    try:
        listing = find.listed(unit.folder, roots)
    except OSError:
        return []
    logs = [name for name in listing.files if find.is_log(name)]
    if len(logs) < 2 and not (logs and listing.folders):
        return []
    folders = [name for name in (*listing.folders, *listing.linked) if not find.is_copy(name)]
    inner = [Unit(find.place(unit.folder, name), linked=unit.linked or name in listing.linked) for name in folders]
    return [*(Unit(unit.folder, (name,), unit.above) for name in logs), *inner]


def rules_of(examiner: Examiner) -> str:
    """A hash of all that decides what is found in a log: options, settings, trees, version."""
    digest = hashlib.sha256(__version__.encode())
    judging = examiner.judging
    said = {
        "how": sorted((key, str(value)) for key, value in examiner.how.items() if value is not None and value != {}),
        "judging": repr(replace(judging, answers=dict(judging.answers))),
        "ends": examiner.ends,
    }
    digest.update(repr(said).encode("utf-8", "surrogateescape"))
    for file in _rule_files(judging):
        try:
            digest.update(file.read_bytes())
        except OSError as error:
            digest.update(fault(error).problem.encode())
    return digest.hexdigest()


def _rule_files(judging: Judging) -> list[Path]:
    from stabtree.tree.load import shipped

    files = list(shipped().values())
    for rule in filter(None, judging.rules):
        path = Path(rule)
        files += sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    return files
