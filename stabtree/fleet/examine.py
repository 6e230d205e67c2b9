"""A unit as rows: read, judged and told in plain values, in whatever process; what goes wrong is a row as well."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.fleet.read import held
from stabtree.fleet.stamps import stamp
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import Outcome
from stabtree.judging.stretch import cut
from stabtree.loaders.paths.inputs import with_inputs
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.fleet.find import Unit
    from stabtree.judging.record import Record
    from stabtree.judging.stretch import Ends
    from stabtree.loaders import Loaded

LONGEST_PATH = 4096
TIMEOUT_SECONDS = 120.0
LONGEST_SECONDS = 1e8  # three years; a clock takes no more, and no limit is meant


@dataclass(frozen=True, slots=True)
class Examined:
    """What became of a unit.

    Attributes:
        unit: the unit.
        records: its runs.
        further: what lies below it.
        stamp: what its files and folders looked like before they were read; empty where that can't be said.
        deep: whether all that lies below the folder was looked at.
        outside: files of its runs that lie elsewhere.
        seconds: how long it took.
        slow: whether it was given up because it took too long.
        faults: how many of its rows are faults of stabtree's own.
    """

    unit: Unit
    records: tuple[Record, ...] = ()
    further: tuple[Unit, ...] = ()
    stamp: str = ""
    deep: bool = False
    outside: tuple[str, ...] = ()
    seconds: float = 0.0
    slow: bool = False
    faults: int = 0


class _TooLongError(BaseException):
    """A unit took too long; no handler of what it runs in may take this for its own."""


@dataclass(frozen=True, slots=True)
class Examiner:
    """How units are read and judged: plain values, so that another process or machine can be handed it.

    Attributes:
        judging: how runs are judged.
        how: how logs are read: options of `load_run`.
        roots: the folders that are scanned, resolved.
        ends: the steps that are judged.
        timeout: seconds that a unit may take.
    """

    judging: Judging = field(default_factory=Judging)
    how: Mapping[str, Any] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    ends: Ends | None = None
    timeout: float = TIMEOUT_SECONDS

    def __call__(self, units: Sequence[Unit]) -> list[Examined]:
        """What became of units, in their order."""
        return [self.examined(unit) for unit in units]

    def examined(self, unit: Unit) -> Examined:
        """What became of a unit; a fault of our own is a row, as is one that takes too long."""
        since = time.perf_counter()
        try:
            with _at_most(self.timeout):
                return self._examined(unit, since)
        except _TooLongError:
            hint = "diagnose it alone, or give it more time with --timeout SECONDS"
            error = StabtreeError(f"took longer than {self.timeout:g} seconds", where=clean(unit.path), hint=hint)
            return Examined(unit, (failed(unit, error),), seconds=time.perf_counter() - since, slow=True)

    def _examined(self, unit: Unit, since: float) -> Examined:
        shallow, deep = stamp(unit, deep=False), stamp(unit, deep=True)
        try:
            found = held(unit, self.how, self.roots)
        except Exception as error:
            return Examined(unit, (failed(unit, fault(error)),), stamp=deep, deep=True, faults=_faults(error))
        records, faults = [], 0
        for item in found.loaded:
            begin = time.perf_counter()
            record, ours = self._record(item)
            faults += ours
            records.append(replace(record, seconds=time.perf_counter() - begin))
        sources = [source.path for item in found.loaded if isinstance(item.run, Run) for source in item.run.sources]
        outside = tuple(dict.fromkeys(path for path in sources if not path.startswith(clean(unit.folder))))
        seconds = time.perf_counter() - since
        whole = bool(found.loaded) or bool(unit.files)
        told = deep if whole else shallow
        return Examined(unit, tuple(records), found.further, told, whole, outside, seconds, faults=faults)

    def _record(self, item: Loaded) -> tuple[Record, int]:
        """A run as a row, and whether that is a fault of ours."""
        from stabtree.render.data.record import record

        ours = 0
        try:
            item = cut(item, self.ends)
            loaded = replace(item, run=with_inputs(item.run)) if isinstance(item.run, Run) else item
            outcome = self.judging.outcome(loaded)
        except Exception as error:
            outcome, ours = Outcome(item.name, fault(error)), _faults(error)
        told = record(outcome, clean(item.path))
        return replace(told, path=clean(item.path, LONGEST_PATH)), ours


def fault(error: Exception) -> StabtreeError:
    """What the user is told of an error, a bug of ours among them."""
    if isinstance(error, StabtreeError):
        return error
    problem = f"stabtree itself failed: {type(error).__name__}: {clean(error, 200)}"
    return StabtreeError(problem, hint="diagnose it alone with --debug, and report what that prints")


def _faults(error: Exception) -> int:
    return int(not isinstance(error, StabtreeError))


def failed(unit: Unit, error: StabtreeError) -> Record:
    """The row of a unit that could not be examined."""
    from stabtree.render.data.record import record

    told = record(Outcome(clean(unit.path), error), clean(unit.path))
    return replace(told, path=clean(unit.path, LONGEST_PATH))


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise what nothing catches where it takes longer; only the main thread of a process can be stopped so."""
    main = threading.current_thread() is threading.main_thread()
    if sys.platform == "win32" or not main or not 0 < seconds <= LONGEST_SECONDS:
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
