"""What a Recorder writes: a file of JSON lines that only grows, one write a line, with a header for each run."""

from __future__ import annotations

import errno
import json
import logging
import math
import mmap
import os
import re
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, SupportsFloat
from uuid import uuid4

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.run import RUN_HEADER
from stabtree.tools.live.monitor import as_float

if TYPE_CHECKING:
    from pathlib import Path

Value = SupportsFloat | str | None

BACK_ROWS = 3
"""A resume that goes back has so many rows before it is clear; fewer are out of order."""
MAX_STEP = 2**53
"""The largest whole number that every reader of JSON keeps."""
LOOK_SECONDS = 1.0
"""How often it is looked whether the file still lies under its name."""
HEAD_BYTES, LOOK_BACK_BYTES = 1 << 16, 1 << 28
UNSEEDED = 67280421310721
"""What torch begins with where nobody gave it a seed."""
# Not handed to processes that are started; on Windows without line ends of its own.
_AS_WRITTEN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_STEP = re.compile(rb'\0*\{"step": ?(-?\d{1,18})[,}]')
_SKIPPED = re.compile(rb'"skipped_steps": (\d{1,15})[,}]')
_MARK = f'{{"{RUN_HEADER}": '.encode()

_log = logging.getLogger(__name__)
_encode = json.JSONEncoder(default=str).encode


class Problems:
    """Reports once what is wrong with a log, which ends no training."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reported: set[str] = set()

    def report(self, kind: str, problem: str) -> None:
        """Report a problem, unless one of its kind was."""
        if kind not in self._reported:
            self._reported.add(kind)
            _log.warning("%s: %s (reported once; the training goes on)", self._path, problem)


class LogFile:
    """Appends whole lines to a file, so that the lines of several processes never mix.

    A last line that was cut, by a killed process or a full disk, is ended before the next one is written. A file that
    was moved away or deleted is begun anew under its name.

    Args:
        path: the file; its folder is made where there is none.
        problems: reports what is wrong.

    Attributes:
        header: the line that a file begins with that is begun anew.
        size: its length in bytes, as far as this process knows.

    Raises:
        StabtreeError: where it can't be opened, or holds something else than JSON lines.
    """

    def __init__(self, path: Path, problems: Problems) -> None:
        self.path, self._problems = path, problems
        self.header = b""
        self._looked = time.monotonic()
        try:
            self._descriptor, self._file, self.size, self._cut = self._open()
        except (OSError, ValueError) as error:
            hint = "name a file in a folder that may be written to"
            reason = getattr(error, "strerror", None) or error
            raise StabtreeError(f"can't be written: {reason}", where=str(path), hint=hint) from None

    def append(self, line: bytes) -> None:
        """Write a line with its line end.

        Raises:
            OSError: where it can't be written whole; what was written of it is ended by the next one.
        """
        if self._descriptor < 0:
            raise OSError(0, "it was closed")
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            self._follow()
        data = memoryview(b"\n" + line if self._cut else line)
        rest = data
        try:
            while rest:
                done = os.write(self._descriptor, rest)
                self.size += done
                rest = rest[done:]
        except OSError:
            self._cut |= len(rest) < len(data)
            raise
        self._cut = False

    def last_run(self) -> tuple[str, tuple[int, int] | None, int]:
        """Return the id of the last run that the file holds, its first and last step, and how many it has skipped.

        A run that logged nothing goes on with the one before.
        """
        run_id, heads, tail = "", [b""], b""
        with (
            suppress(OSError, ValueError, KeyError, TypeError, RecursionError),
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            heads, tail = [data[:HEAD_BYTES]], data[-HEAD_BYTES:]
            at = data.rfind(_MARK, max(0, len(data) - LOOK_BACK_BYTES))
            end = data.find(b"\n", at)
            run_id = str(json.loads(data[at : end if end > 0 else len(data)])[RUN_HEADER]["id"])
            heads.insert(0, data[at : at + HEAD_BYTES])
        first = next((step for head in heads for step in _steps(head.splitlines())), None)
        skipped = int(next(reversed(_SKIPPED.findall(tail)), 0))
        if first is None:
            return run_id, None, skipped
        return run_id, (first, next(_steps(reversed(tail.splitlines())), first)), skipped

    def close(self) -> None:
        """Close the file for good."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _open(self) -> tuple[int, tuple[int, int], int, bool]:
        """Return a descriptor, which file it is of, how long that is, and whether its last line was cut."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_fifo():  # which would be waited for, until somebody reads it
            raise OSError(errno.ESPIPE, "it is a pipe")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _AS_WRITTEN, 0o644)
        status, cut = os.fstat(descriptor), False
        if stat.S_ISREG(status.st_mode) and status.st_size:
            with self.path.open("rb") as file:
                begin = file.read(1 << 12).lstrip(b"\0 \t\r\n")
                file.seek(status.st_size - 1)
                cut = file.read(1) != b"\n"
            if begin and not begin.startswith(b"{"):
                os.close(descriptor)
                problem, hint = "holds something else than JSON lines", "name a new file, or an older log of this run"
                raise StabtreeError(problem, where=str(self.path), hint=hint)
        return descriptor, (status.st_dev, status.st_ino), status.st_size, cut

    def _follow(self) -> None:
        """Begin the file anew where it no longer lies under its name, as after a log was rotated."""
        try:
            with suppress(FileNotFoundError):
                status = self.path.stat()
                if (status.st_dev, status.st_ino) == self._file:
                    return
            opened = self._open()
        except (OSError, StabtreeError) as error:
            problem = f"it is not there any more, rows go on to where it lies now: {error}"
            self._problems.report("displaced", problem)
            return
        os.close(self._descriptor)
        self._descriptor, self._file, self.size, self._cut = opened
        if self.header and not self.size:
            self.append(self.header)


class RowWriter:
    """Writes rows to a log, each with what was kept for its step.

    Args:
        file: the log.
        problems: reports what is wrong.
        rank: which of several processes writes it.
        resume: whether the last run that the file holds goes on; None to decide by the first step.

    Attributes:
        lock: held while rows are written.
        waits_rows: how many more rows make clear which run a log that goes back holds.
        written: the values by name of each row that was written and not yet taken in.
    """

    def __init__(self, file: LogFile, problems: Problems, *, rank: int, resume: bool | None) -> None:
        self._file, self._problems, self._rank, self._resume = file, problems, rank, resume
        self._run_id, self._before, self._skipped = file.last_run()
        self._header: dict[str, Any] = {}
        self._config: dict[str, Any] = {}
        self._begun = self._settled = False
        self._last_step: int | None = None
        self._pending: dict[int, dict[str, Any]] = {}
        self.written: deque[dict[str, Any]] = deque()
        self.lock = threading.RLock()
        self.waits_rows = 0

    @property
    def skipped(self) -> int:
        """How many steps the run that goes on has skipped; 0 where another one begins."""
        return self._skipped * (self._before is None or bool(self._resume))

    @property
    def size(self) -> int:
        """The length of the log in bytes."""
        return self._file.size

    def step(self, step: Any) -> int | None:
        """Return a step as a plain number, and decide by the first one which run this is; None where it is none."""
        try:
            number = int(step)
            if abs(number) > MAX_STEP:
                raise ValueError("has too many digits")
        except Exception as error:  # whatever it is, the training goes on
            self._problems.report("step", f"{shown(step)} is no step, its row is left out: {described(error)}")
            return None
        if self._before is not None and not self._settled:
            self._settled = True
            first, last = self._before
            if self._resume is None:
                other_count = (first, number) == (0, 1) and last > number  # one run counts from 0, the other from 1
                self._resume = number > first and not other_count
            if self._resume and number <= last:
                self.waits_rows = BACK_ROWS
        return number

    def config(self, settings: Mapping[str, Any]) -> None:
        """Write settings, and keep them for a file that is begun anew."""
        try:
            given = _plain_setting(settings)
            _encode(given)
        except Exception as error:  # as in `step`
            self._problems.report("config", f"the configuration could not be written: {described(error)}")
            return
        with self.lock:
            self._config |= given
            if self._begun:
                self._write({"config": given})
                self._file.header = _line({**self._header, "config": {**self._header["config"], **self._config}})
            elif self._before is None:
                self._begin()  # else it is not known yet which run this is

    def put(self, step: int, given: Mapping[str, Value]) -> None:
        """Write the row of a step, with what was kept for it."""
        with self.lock:
            self._flush(step)
            row = dict(self._pending.get(step, ()))
            for name, value in given.items():
                if value is None:
                    continue
                try:
                    row[str(name)] = value if type(value) in (float, str) else _plain(value)
                except Exception as error:  # as in `step`
                    called = name if isinstance(name, str) else shown(name)
                    problem = f"{called} is no number and is left out: {described(error)}"
                    self._problems.report(f"metric {called}", problem)
            try:
                self._put(step, row)
            finally:
                self._pending.pop(step, None)

    def keep(self, step: int, values: Mapping[str, Any], *, late: bool = False) -> None:
        """Keep values for the row of a step; late ones not where later rows make them look like a restart."""
        if values and not (late and self._last_step is not None and step < self._last_step):
            with self.lock:
                self._flush(step)
                self._pending.setdefault(step, {}).update(values)

    def pending(self, step: int, name: str) -> Any:
        """Return what was kept for the row of a step under a name."""
        return self._pending.get(step, {}).get(name)

    def put_all(self) -> None:
        """Write what was kept for rows that did not come."""
        with self.lock:
            for step in sorted(self._pending):
                self._put(step, self._pending.pop(step))

    def forget(self) -> None:
        """Forget what was kept, and who holds the lock: in a fork all that is of the other process."""
        self.lock = threading.RLock()
        self._pending.clear()

    def close(self) -> None:
        """Write all that there is, and close the file."""
        with suppress(OSError, ValueError, StabtreeError):
            self.put_all()
        try:
            self._file.close()
        except OSError as error:  # a network disk reports so that it lost what it had accepted
            _log.warning("%s: it could not be closed, and its end may be lost: %s", self._file.path, error.strerror)

    def _begin(self) -> None:
        """Write the header, which begins another run of the file or goes on with the last one."""
        resumes = self._before is not None and bool(self._resume)
        run_id = (self._run_id if resumes else "") or uuid4().hex[:12]
        about: dict[str, Any] = {"id": run_id, "started": datetime.now(UTC).isoformat("T", "seconds")}
        from_torch: dict[str, int] = {}
        if resumes:
            about["resumes"] = True
        elif not self._rank:  # the seed may differ between ranks
            from_torch = _from_torch()
        self._header = {RUN_HEADER: about, "config": {**from_torch, **self._config}}
        self._begun = self._write(self._header)
        self._before = None
        self._file.header = _line(self._header)

    def _flush(self, step: int) -> None:
        """Write what was kept for steps that have no row yet and come before a step, or before going back to it."""
        back = self._last_step is not None and step < self._last_step
        for other in sorted(self._pending):
            if other < step or (back and other != step):
                self._put(other, self._pending.pop(other))

    def _put(self, step: int, row: dict[str, Any]) -> None:
        row.pop("step", None)
        self._last_step = step
        if not self._begun:
            self._begin()
        if self._write({"step": step, **{name: _spelled(value) for name, value in row.items()}}):
            self.written.append(row)

    def _write(self, row: Mapping[str, Any]) -> bool:
        """Write a line; return whether it could be."""
        try:
            self._file.append(_line(row))
        except (OSError, TypeError, ValueError, RecursionError) as error:
            problem = getattr(error, "strerror", None) or described(error)
            self._problems.report("write", f"a line could not be written: {problem}")
            return False
        return True


def _plain(value: Any) -> float | int | str:
    """Return a number of an array library, or a boolean, as a plain one."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        float(value)  # what has too many digits is refused
        return int(value)
    return as_float(value)


def _plain_setting(value: Any) -> Any:
    """Return a setting as JSON has it: what JSON does not have is spelled out."""
    if isinstance(value, Mapping):
        return {str(key): _plain_setting(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_setting(item) for item in value]
    if value is None or isinstance(value, int | float):
        return _spelled(value)
    return str(value)


def shown(value: object) -> str:
    """Return what to call a value in a message, whatever it is."""
    try:
        return clean(repr(value), 60)
    except Exception:  # whatever its class does
        return f"something of type {type(value).__name__}"


def described(error: Exception) -> str:
    """Return an error in a line."""
    return f"{type(error).__name__}: {clean(error, 200)}"


def _line(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line, in ASCII."""
    return _encode(row).encode() + b"\n"


def _spelled(value: Any) -> Any:
    """Return a value as JSON has it, which knows no NaN and no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(float(value))]
    return value


def _steps(lines: Iterable[bytes]) -> Iterator[int]:
    """Yield the steps of those lines that are rows."""
    yield from (int(match[1]) for match in map(_STEP.match, lines) if match)


def distributed() -> Any:
    """Return torch.distributed where it was imported and initialised; None elsewhere."""
    found = getattr(sys.modules.get("torch"), "distributed", None)
    if found is not None and found.is_available() and found.is_initialized():
        return found
    return None


def _from_torch() -> dict[str, int]:
    """Return the seed and the number of ranks that torch knows, where it was imported and given them."""
    found = dict[str, int]()
    with suppress(Exception):  # a torch that is not imported to its end, or a stand-in
        if "torch" in sys.modules and (seed := sys.modules["torch"].initial_seed()) != UNSEEDED:
            found["seed"] = seed
        if (ranks := distributed()) is not None:
            found["world_size"] = ranks.get_world_size()
    return found
