"""A unit as rows: read, judged and described in plain values, in whatever process; what goes wrong is a row as well."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.judge import Judging
from stabtree.judging.outcome import Outcome
from stabtree.loaders.paths.stretch import cut
from stabtree.run import Run
from stabtree.tools.fleet.read import read_unit, with_file_ids
from stabtree.tools.fleet.record import row_of
from stabtree.tools.fleet.stamps import stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.loaders import Loaded
    from stabtree.loaders.paths.find import Unit
    from stabtree.loaders.paths.stretch import Ends
    from stabtree.tools.fleet.record import Record, Row

LONGEST_PATH = 4096
TIMEOUT_SECONDS = 120.0
LONGEST_SECONDS = 1e8  # three years; a clock takes no more, and no limit is meant


@dataclass(frozen=True, slots=True)
class Examined:
    """What became of a unit.

    Attributes:
        unit: the unit.
        rows: its runs.
        further: what is below it.
        stamp: what its files and folders looked like before they were read; empty where that can't be said.
        deep: whether all that is below the folder was looked at.
        outside: files of its runs that are elsewhere.
        seconds: how long it took.
        slow: whether it was given up because it took too long.
        faults: how many of its rows are faults of stabtree's own.
    """

    unit: Unit
    rows: tuple[Row, ...] = ()
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
        """Return what became of units, in their order."""
        return [self.examined(unit) for unit in units]

    def examined(self, unit: Unit) -> Examined:
        """Return what became of a unit; a fault of our own is a row, as is one that takes too long."""
        since = time.perf_counter()
        try:
            with _at_most(self.timeout):
                return self._examined(unit, since)
        except _TooLongError:
            hint = "diagnose it alone, or give it more time with --timeout SECONDS"
            error = StabtreeError(f"took longer than {self.timeout:g} seconds", where=clean(unit.path), hint=hint)
            return Examined(unit, (failed(unit, error),), seconds=time.perf_counter() - since, slow=True)

    def _examined(self, unit: Unit, since: float) -> Examined:
        deep = stamp(unit, deep=True)
        shallow = deep if unit.files else stamp(unit, deep=False)
        try:
            found = read_unit(unit, self.how, self.roots)
        except Exception as error:
            return Examined(unit, (failed(unit, fault(error)),), stamp=deep, deep=True, faults=_faults(error))
        rows, faults, lasting = [], 0, True
        for item in found.loaded:
            begin = time.perf_counter()
            record, ours, sound = self._record(item)
            faults += ours
            lasting &= sound
            rows.append(row_of(replace(record, seconds=time.perf_counter() - begin)))
        outside = tuple(dict.fromkeys(_sources_outside(unit, found.loaded)))
        whole = bool(found.loaded or unit.files)
        later = deep if whole else shallow
        return Examined(
            unit,
            tuple(rows),
            found.further,
            stamp=later if lasting else "",
            deep=whole,
            outside=outside,
            seconds=time.perf_counter() - since,
            faults=faults,
        )

    def _record(self, item: Loaded) -> tuple[Record, int, bool]:
        """Return a run as a row, whether that is a fault of ours, and whether no question of it failed."""
        from stabtree.tools.fleet.outputs.records import record

        ours = 0
        try:
            item = cut(item, self.ends)
            outcome = self.judging.outcome(with_file_ids(item))
        except Exception as error:
            outcome, ours = Outcome(item.name, fault(error)), _faults(error)
        row = record(outcome, clean(item.path))
        sound = not getattr(outcome.found, "faults", ())
        return replace(row, path=clean(item.path, LONGEST_PATH)), ours, sound


def _sources_outside(unit: Unit, loaded: Sequence[Loaded]) -> Iterator[str]:
    """Yield the files that runs of a unit were read from and that are not in its folder."""
    folder = clean(unit.folder)
    for item in loaded:
        if isinstance(item.run, Run):
            for source in item.run.sources:
                if not source.path.startswith(folder):
                    yield source.path


def fault(error: Exception) -> StabtreeError:
    """Return the error to show to the user; a bug of ours is one, too."""
    if isinstance(error, StabtreeError):
        return error
    problem = f"stabtree itself failed: {type(error).__name__}: {clean(error, 200)}"
    return StabtreeError(problem, hint="diagnose it alone with --debug, and report what that prints")


def _faults(error: Exception) -> int:
    return int(not isinstance(error, StabtreeError))


def failed(unit: Unit, error: StabtreeError) -> Row:
    """Return the row of a unit that could not be examined."""
    from stabtree.tools.fleet.outputs.records import record

    row = record(Outcome(clean(unit.path), error), clean(unit.path))
    return row_of(replace(row, path=clean(unit.path, LONGEST_PATH)))


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
