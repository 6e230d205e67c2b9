"""Scan folders: find runs, have them judged in parallel, return them worst first."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError, too_little_memory
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders import check_options
from stabtree.loaders.paths.find import Unit, real_path
from stabtree.loaders.paths.joined import cut
from stabtree.loaders.paths.load import Contents, contents, find_runs
from stabtree.loaders.paths.read import LoadOptions
from stabtree.loaders.source import ADDRESS
from stabtree.run import Run, Series
from stabtree.tools.fleet.record import Record, record_of, worst_first
from stabtree.tools.fleet.remote import read_remote, with_hashes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.loaders import Loaded
    from stabtree.loaders.paths.joined import Ends

ALONE = 1  # run that is read by this process, to see whether there are more
AHEAD = 4  # units for each worker that are under way or waiting for it


class Fleet(Struct, frozen=True):
    """The runs that a scan found."""

    records: Sequence[Record]  # the runs, worst first
    stopped: bool = False  # whether the scan was interrupted
    outside: Sequence[str] = ()  # links that lead out of the folders and were not followed

    def __iter__(self) -> Iterator[Record]:
        """Return the runs, worst first."""
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def to_frame(self) -> pd.DataFrame:
        """Return a row a run as a pandas DataFrame, worst first."""
        from stabtree.tools.fleet.outputs import frame

        return frame(self.records)

    def __repr__(self) -> str:
        counts = Counter(run.badge for run in self.records)
        return f"Fleet({len(self):,} runs: {', '.join(f'{count:,} {badge}' for badge, count in counts.items())})"

    def _repr_html_(self) -> str:
        """Return a card with the worst runs, as a notebook shows it."""
        from stabtree.report.card import card
        from stabtree.tools.fleet.table import Summary

        told, more = Summary(self.records), "All runs: `fleet.to_frame()`, or `stabtree FOLDER -o runs.html`"
        badge = told.records[0].badge if told.records else UNKNOWN
        rows = [f"{told.name(run)}: {run.title}" for run in told.records[:5]]
        return card(badge, ("", told.headline, told.where), None, rows, more)


def scan(
    *paths: str | Path,
    judging: Judging | None = None,
    ends: Ends | None = None,
    jobs: int | None = None,
    documents: bool = True,
    found: Contents | None = None,
    services: Callable[[Outcome], Any] | None = None,
    tell: Callable[[Sequence[Record], Counter[str], int], None] | None = None,
    **how: Any,
) -> Fleet:
    """Find and judge every run below folders.

    >>> fleet = stabtree.scan("runs")  # doctest: +SKIP
    >>> [(run.path, run.verdict, run.leaf) for run in fleet]  # doctest: +SKIP

    Args:
        paths: folders, files, patterns, addresses.
        judging: how runs are judged; as `diagnose` does where not given.
        ends: the first and the last step that are judged.
        jobs: processes; 1 for this one alone, as many as there are cores where not given.
        documents: whether each run has its JSON as `data`, which costs as much time as judging it.
        found: what `find_runs` read of the paths, and what is still to be read.
        services: returns what services are told of a run; None where they are told nothing.
        tell: called with the runs of each unit when they are judged, all so far by badge, and how many units wait.
        how: how logs are read: options of `load_run`.

    Returns:
        The runs. A log that can't be read, or takes too long, is one of them, with its reason.

    Raises:
        StabtreeError: where an argument is wrong.
    """
    for path in paths or ("",):
        if not isinstance(path, str | os.PathLike) or not str(path):
            hint = "name the folder that holds the runs"
            raise StabtreeError(f"{clean(repr(path), 60)} names no folder", where="scan", hint=hint)
    if jobs is not None and jobs < 1:
        raise StabtreeError(f"{jobs} is too few", where="--jobs", hint="give a number from 1 on")
    check_options(**how)
    judging = judging or Judging()
    nothing = Series("loss", np.zeros(0, dtype=np.int64), np.zeros(0), "loss")
    judging.diagnosed(Run("nothing", {"loss": nothing}))  # refuses rules that no run can be judged by
    found = found or find_runs(*paths, most=ALONE, **how)
    judge = UnitJudge(judging, how, found.roots, ends, documents, services)
    records, outside = list[Record](), [*found.outside]
    counts: Counter[str] = Counter()
    waiting = deque(found.further)
    stopped = False
    try:
        first = (Judged((judge.record(item),)) for item in found.loaded)
        with closing(results(judge, waiting, jobs, found.seen)) as stream:
            for judged in chain(first, stream):
                records += judged.records
                outside += judged.outside
                counts.update(record.badge for record in judged.records)
                if tell is not None:
                    tell(judged.records, counts, len(waiting))
    except KeyboardInterrupt:
        stopped = True
    records.sort(key=lambda record: (record.leaf, record.path, record.run))
    return Fleet(tuple(worst_first(records)), stopped, outside)


class Judged(NamedTuple):
    """What became of a unit: its runs, the units that were found below it, and links that lead outside."""

    records: tuple[Record, ...]
    further: tuple[Unit, ...] = ()
    outside: tuple[str, ...] = ()


class UnitJudge(Struct, frozen=True):
    """How units are read and judged: plain values, so that another process or machine can be handed it."""

    judging: Judging = field(default_factory=Judging)  # how runs are judged
    how: Mapping[str, Any] = field(default_factory=dict)  # how logs are read: options of `load_run`
    roots: tuple[str, ...] = ()  # the folders that are scanned, resolved
    ends: Ends | None = None  # the steps that are judged
    documents: bool = True  # whether the JSON of each run is wanted
    services: Callable[[Outcome], Any] | None = None  # returns what services are told of a run

    def judged(self, unit: Unit) -> Judged:
        """Return what became of a unit; a fault of our own is a record, and costs no other unit anything."""
        begin = time.perf_counter()
        try:
            options = LoadOptions(**{key: value for key, value in self.how.items() if key != "ranks"})
            far = ADDRESS.match(unit.folder)
            found = read_remote(unit, options) if far else contents(unit, options, self.roots)
        except Exception as error:
            return Judged((self.failed(unit, error),))
        each = (time.perf_counter() - begin) / max(len(found.loaded), 1)
        return Judged(tuple(self.record(item, each) for item in found.loaded), found.further, found.outside)

    def record(self, item: Loaded, seconds: float = 0.0) -> Record:
        """Return what became of a run that was read, which took so many seconds."""
        begin = time.perf_counter()
        found: Diagnosis | Exception
        try:
            found = self.judging.outcome(cut(with_hashes(item) if self.documents else item, self.ends)).found
        except Exception as error:
            found = error
        return self._told(item.name, found, item.path, seconds + time.perf_counter() - begin)

    def failed(self, unit: Unit, error: Exception) -> Record:
        """Return the record of a unit that could not be read."""
        path = clean(unit.path, 4096)
        if isinstance(error, MemoryError):
            error = too_little_memory(path)
        return self._told(path, error, path)

    def _told(self, name: str, found: Diagnosis | Exception, path: str, seconds: float = 0.0) -> Record:
        """Return the record of what was found, or of an error; a bug of ours is told as one, too."""
        fault = False
        if isinstance(found, Exception) and not isinstance(found, StabtreeError):
            problem = f"stabtree itself failed: {type(found).__name__}: {clean(found, 200)}"
            hint = "diagnose it alone with --debug, and report what that prints"
            found, fault = StabtreeError(problem, hint=hint), True
        outcome = Outcome(name, found)
        record = replace(record_of(outcome, path, documents=self.documents), fault=fault, seconds=seconds)
        return replace(record, told=self.services(outcome)) if self.services else record


def results(
    judge: UnitJudge, waiting: deque[Unit], jobs: int | None, seen: frozenset[str] = frozenset()
) -> Generator[Judged]:
    """Yield what became of each unit as soon as it is there; where a worker dies, go on with new ones.

    Args:
        judge: judges units, in a worker.
        waiting: the units, to which those that are found below them are added.
        jobs: processes; 1 for this one, None for as many as there are cores.
        seen: folders that were read, links resolved.
    """
    suspects: deque[Unit] = deque()  # of a worker that died
    known = set(seen)  # links may lead to one folder again and again

    def add(units: Sequence[Unit]) -> None:
        real = {real_path(unit.paths[0]): unit for unit in reversed(units)}
        waiting.extendleft(unit for target, unit in real.items() if target not in known)
        known.update(real)

    given = [*waiting]
    waiting.clear()
    add(given)
    while waiting or suspects:
        alone, broken = bool(suspects), list[tuple[Unit, Exception]]()
        with _workers(1 if alone else jobs, here=jobs == 1) as (pool, ahead):
            for judged in _fed(pool, ahead, judge, suspects if alone else waiting, broken):
                add(judged.further)
                yield judged
        for unit, error in broken:
            parts = [replace(unit, files=(name,)) for name in unit.files]
            if not alone:  # with it others were under way
                suspects.append(unit)
            elif len(parts) > 1:
                suspects.extend(parts)
            else:
                problem = error.problem if isinstance(error, StabtreeError) else "the process that read it was killed"
                hint = "diagnose it alone; it may need more memory than there is"
                yield Judged((judge.failed(unit, StabtreeError(problem, where=clean(unit.path), hint=hint)),))


def _fed(
    pool: Executor | None, ahead: int, judge: UnitJudge, units: deque[Unit], broken: list[tuple[Unit, Exception]]
) -> Iterator[Judged]:
    """Yield what became of units until none is left, or a worker died; few are under way, however many wait."""
    while pool is None and units:
        yield judge.judged(units.popleft())
    running: dict[Future[Judged], Unit] = {}
    while pool and (running or (units and not broken)):
        while units and not broken and len(running) < ahead:
            unit = units.popleft()
            try:
                with _undisturbed():  # it is here that processes are started
                    running[pool.submit(judge.judged, unit)] = unit
            except (RuntimeError, OSError) as error:  # the pool broke
                broken.append((unit, error))
        for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
            unit = running.pop(future)
            try:
                found = future.result()
            except Exception as error:
                broken.append((unit, error))
            else:
                yield found


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hide the script from new processes, which would run it again, and let signals wait until these are whole."""
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()  # only it may say what is done about signals
    numbers = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)} if is_main else set[int]()
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    script, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _workers(jobs: int | None, *, here: bool) -> Iterator[tuple[Executor | None, int]]:
    """Yield processes, none where this one does the work, and how many units may be under way."""
    if here:
        yield None, 1
        return
    if jobs is None:
        jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    method = "spawn"
    if sys.platform != "win32" and "forkserver" in multiprocessing.get_all_start_methods():
        method = "forkserver"  # this process may have threads, and is not forked
        from multiprocessing import forkserver

        multiprocessing.set_forkserver_preload([__name__])
        # A terminal that closes signals all processes: this one ends the others, what counts their semaphores the last.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        forkserver.ensure_running()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context(method), initializer=_begin)
    try:
        yield pool, 1 if jobs == 1 else AHEAD * jobs
    except BaseException:
        for process in [*(pool._processes or {}).values()]:  # noqa: SLF001 - public only from Python 3.14 on
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """Begin a worker, which ends when the process that started it is gone, however that ended."""

    def end() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    # The one who typed Ctrl-C is asked by the process that was started; it ends these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end, daemon=True).start()
