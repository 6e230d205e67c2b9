"""What a Recorder writes: a line for each row, with what came to be known of its step before."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, SupportsFloat

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.tools.live.recorder.header import last_header, record
from stabtree.tools.live.recorder.row import PLAIN, fetched, line_of, plain, plain_settings, shown, spelled, whole
from stabtree.tools.live.recorder.terminate import OnTerminate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stabtree.tools.live.recorder.logfile import LogFile

Value = SupportsFloat | str | None

BACK_ROWS = 3  # a resume that goes back has so many rows; fewer are out of order
TAIL_BYTES = 1 << 16
_SKIPPED = re.compile(rb'"skipped_steps": (\d{1,15})[,}]')

_log = logging.getLogger(__name__)


class Problems:
    """Reports once what is wrong with a log, which ends no training unless it is asked to.

    Args:
        path: the log.
        raises: whether it ends the training.
    """

    def __init__(self, path: Path, *, raises: bool) -> None:
        self._path = path
        self._raises = raises
        self._reported: set[str] = set()

    def report(self, kind: str, problem: str) -> None:
        """Report a problem, unless one of its kind was.

        Raises:
            StabtreeError: where it is to end the training.
        """
        if self._raises:
            raise StabtreeError(problem, where=str(self._path), hint="leave on_error out to go on all the same")
        if kind not in self._reported:
            self._reported.add(kind)
            _log.warning("%s: %s (reported once; the training goes on)", self._path, problem)


class RowWriter:
    """Writes rows to a log, and keeps some of them for a while.

    Args:
        file: the log.
        problems: reports what is wrong.
        rank: which of several processes writes it.
        resume: whether the last run that the file holds goes on; None to decide by the first step.
        keeps: whether rows are kept, which SIGTERM must not lose.

    Attributes:
        lock: held while rows are written.
        waits_rows: how many rows more make clear which run a log that goes back holds.
        written_at: when rows were last written, by the monotonic clock.
    """

    def __init__(self, file: LogFile, problems: Problems, *, rank: int, resume: bool | None, keeps: bool) -> None:
        self._file = file
        self._problems = problems
        self._rank = rank
        self._resume = resume
        begin, self._run_id = last_header(file.path)
        # The first and the last step of the last run that the file holds already.
        self._before = file.span(begin) or file.span()
        self._header: dict[str, Any] = {}
        self._begun = False
        self._settled = False
        self._config: dict[str, Any] = {}
        self._last_step: int | None = None
        self._pending: dict[int, dict[str, Any]] = {}
        self._kept: deque[tuple[int, dict[str, Value]]] = deque()
        self._written: deque[tuple[int, dict[str, Any]]] = deque()
        self.lock = threading.RLock()
        self.waits_rows = 0
        self.written_at = -math.inf
        self._signals: OnTerminate | None = None
        if keeps:
            self._signals = OnTerminate(self.put_all)

    @property
    def begins_anew(self) -> bool:
        """Whether the file holds another run, and no row of this one yet."""
        return self._before is not None and not self._resume

    def step(self, step: Any) -> int | None:
        """Return a step as a plain number, and decide by the first one which run this is; None where it is none."""
        try:
            at = whole(step)
        except Exception as error:  # whatever it is, the training goes on
            self._problems.report("step", f"{shown(step)} is no step, its row is left out: {described(error)}")
            return None
        if self._before is not None and not self._settled:
            self._settle(at, *self._before)
        return at

    def config(self, settings: Mapping[str, Any]) -> None:
        """Write settings, and keep them for a file that is begun anew."""
        try:
            given = plain_settings(settings)
            line_of(given)
        except Exception as error:  # as in `step`
            self._problems.report("config", f"the configuration could not be written: {described(error)}")
            return
        with self.lock:
            self.put_kept()
            self._config |= given
            if self._begun:
                self._write({"config": given})
                self._file.header = line_of({**self._header, "config": {**self._header["config"], **self._config}})
            elif self._before is None:
                self._begin()  # else it is not known yet which run this is

    def add(self, step: int, row: dict[str, Value]) -> None:
        """Keep a row, which `put_kept` writes."""
        if self._kept and step < self._kept[-1][0]:
            self.put_kept()  # a restart: what was kept for later steps is theirs
        self._kept.append((step, row))

    def goes_back(self, step: int) -> bool:
        """Return whether a step comes before the last one that was written."""
        return self._last_step is not None and step < self._last_step

    def keep(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep values for the row of a step."""
        if values:
            with self.lock:
                if self._kept and step != self._kept[-1][0]:
                    self.put_kept()
                self._flush(step)
                self._pending.setdefault(step, {}).update(values)

    def keep_late(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep what came to be known after its row was due; a step before the last row's would be read as a restart."""
        last = self._last_step
        if self._kept:
            last = self._kept[-1][0]
        if last is None or step >= last:
            self.keep(step, values)

    def pending(self, step: int, name: str) -> Any:
        """Return what was kept for the row of a step under a name."""
        return self._pending.get(step, {}).get(name)

    def put_kept(self) -> None:
        """Write the rows that were kept."""
        with self.lock:
            if len(self._kept) > 1:
                with suppress(Exception):  # then each is fetched by itself
                    fetched([row for _, row in self._kept])
            while self._kept:
                step, given = entry = self._kept[0]
                self._flush(step)
                row = dict(self._pending.get(step, ()))
                for name, value in given.items():
                    self._take(row, name, value)
                try:
                    self._put(step, row)
                finally:  # only now: a signal before it is written has it written
                    self._pending.pop(step, None)
                    if self._kept and self._kept[0] is entry:
                        self._kept.popleft()
            self.written_at = time.monotonic()

    def put_all(self) -> None:
        """Write the rows that were kept, and what was kept for rows that did not come."""
        with self.lock:
            self.put_kept()
            for step in sorted(self._pending):
                self._put(step, self._pending.pop(step))

    def written(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each row that was written since: its step, and its values by name."""
        while self._written:
            yield self._written.popleft()

    def skipped_before(self) -> int:
        """Return how many steps the run that goes on has skipped."""
        if self.begins_anew:
            return 0
        return int(next(reversed(_SKIPPED.findall(self._file.tail(TAIL_BYTES))), 0))

    def forget(self) -> None:
        """Forget what was kept, and who holds the lock: in a fork all that is of the other process."""
        self.lock = threading.RLock()
        self._pending.clear()
        self._kept.clear()

    def close(self) -> None:
        """Write all that there is, and close the file."""
        if self._signals is not None:
            self._signals.close()
        with suppress(OSError, ValueError, StabtreeError):
            self.put_all()
        try:
            self._file.close()
        except OSError as error:  # a network disk reports so that it lost what it had accepted
            _log.warning("%s: it could not be closed, and its end may be lost: %s", self._file.path, error.strerror)

    def _settle(self, step: int, first: int, last: int) -> None:
        """Decide, by its first step, whether this run is the one that the file holds from a first to a last step."""
        self._settled = True
        if self._resume is None:
            other_count = (first, step) == (0, 1) and last > step  # one run counts from 0, the other from 1
            self._resume = step > first and not other_count
        if self._resume and step <= last:
            self.waits_rows = BACK_ROWS

    def _begin(self) -> None:
        """Write the header, which begins another run of the file or goes on with the last one."""
        goes_on = self._before is not None and not self.begins_anew
        self._header = record(self._config, self._run_id if goes_on else None, self._rank)
        self._begun = self._write(self._header)
        self._before = None
        self._file.header = line_of(self._header)

    def _take(self, row: dict[str, Any], name: object, value: Value) -> None:
        """Put a value into a row, as a plain number or a text; nothing where it is neither."""
        if value is None:
            return
        try:
            row[str(name)] = value if type(value) in PLAIN else plain(value)
        except Exception as error:  # as in `step`
            called = name if isinstance(name, str) else shown(name)
            self._problems.report(f"metric {called}", f"{called} is no number and is left out: {described(error)}")

    def _flush(self, at: int) -> None:
        """Write what was kept for steps that have no row yet and come before a step, or before going back to it."""
        back = self.goes_back(at)
        for step in sorted(self._pending):
            if step < at or (back and step != at):
                self._put(step, self._pending.pop(step))

    def _put(self, step: int, row: dict[str, Any]) -> None:
        """Write a row."""
        row.pop("step", None)
        self._last_step = step
        if not self._begun:
            self._begin()
        if self._write({"step": step, **{name: spelled(value) for name, value in row.items()}}):
            self._written.append((step, row))

    def _write(self, row: Mapping[str, Any]) -> bool:
        """Write a line; whether it could be."""
        try:
            self._file.append(line_of(row))
        except (OSError, TypeError, ValueError, RecursionError) as error:
            problem = getattr(error, "strerror", None) or described(error)
            self._problems.report("write", f"a line could not be written: {problem}")
            return False
        return True


def described(error: Exception) -> str:
    """Return an error in a line."""
    return f"{type(error).__name__}: {clean(error, 200)}"
