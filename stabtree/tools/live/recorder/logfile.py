"""A file of lines that only grows: each line is one write, whatever kills the process, the disk or the file."""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_log = logging.getLogger(__name__)

# Not handed to processes that are started; and on Windows the bytes that were written, without line ends of its own.
_AS_WRITTEN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_STEP = re.compile(rb'\0*\{"step": ?(-?\d{1,18})[,}]')  # as a Recorder writes it
LOOK_SECONDS = 1.0
"""How often it is looked whether the file still lies under its name."""
HEAD_BYTES = 1 << 16


def _steps(lines: Iterable[bytes]) -> Iterator[int]:
    """The steps of rows; lines that are none have none."""
    for line in lines:
        found = _STEP.match(line)
        if found:
            yield int(found[1])


class LogFile:
    r"""Appends whole lines to a file, so that what several processes write never mixes within a line.

    A last line that was cut, by a killed process or a full disk, is ended before the next one is written. A file that
    was moved away or deleted is begun anew under its name.

    Args:
        path: the file; its folder is made where there is none.

    Attributes:
        header: lines that each file begins with that is begun anew.
        size: its length in bytes, as far as this process knows.

    Raises:
        StabtreeError: where it can't be opened, or holds something else than JSON lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = b""
        self.size = 0
        self._cut = self._displaced = False
        self._looked = time.monotonic()
        self._file = (0, 0)
        try:
            self._descriptor: int | None = self._open()
        except (OSError, ValueError) as error:
            hint = "name a file in a folder that may be written to"
            reason = getattr(error, "strerror", None) or error
            raise StabtreeError(f"can't be written: {reason}", where=str(path), hint=hint) from None

    def append(self, line: bytes) -> None:
        r"""Write a line, which ends with "\n".

        Raises:
            OSError: where it can't be written whole; what of it was written is ended by the next one.
        """
        self._follow()
        if self._descriptor is None:
            raise OSError(0, "it was closed")
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

    def tail(self, size: int) -> bytes:
        """The last bytes of the file, none where it can't be read."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(self.size - size, 0))
                return file.read(size)
        except OSError:
            return b""

    def span(self, begin: int = 0) -> tuple[int, int] | None:
        """The first and the last step from a byte on; None where it holds no row there."""
        try:
            with self.path.open("rb") as file:
                file.seek(begin)
                head = file.read(HEAD_BYTES)
        except OSError:
            return None
        first = next(_steps(head.splitlines()), None)
        last = next(_steps(reversed(self.tail(HEAD_BYTES).splitlines())), first)
        if first is None or last is None:
            return None
        return first, last

    def close(self) -> None:
        """Close the file; for good."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_fifo():  # which would be waited for, until somebody reads it
            raise OSError(errno.ESPIPE, "it is a pipe")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _AS_WRITTEN, 0o644)
        found = os.fstat(descriptor)
        self._file, self.size = (found.st_dev, found.st_ino), found.st_size
        self._cut = False
        if stat.S_ISREG(found.st_mode) and found.st_size:
            self._cut = not self.tail(1).endswith(b"\n")
            with self.path.open("rb") as file:
                begin = file.read(1 << 12).lstrip(b"\0 \t\r\n")
            if begin and not begin.startswith(b"{"):
                os.close(descriptor)
                problem, hint = "holds something else than JSON lines", "name a new file, or an older log of this run"
                raise StabtreeError(problem, where=str(self.path), hint=hint)
        return descriptor

    def _follow(self) -> None:
        """Begin the file anew where it does not lie under its name any more, as after a log was rotated."""
        now = time.monotonic()
        if self._descriptor is None or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        before = self._file, self.size, self._cut
        try:
            with suppress(FileNotFoundError):
                found = self.path.stat()
                if (found.st_dev, found.st_ino) == self._file:
                    return
            new = self._open()
        except (OSError, StabtreeError) as error:
            self._file, self.size, self._cut = before
            if not self._displaced:
                _log.warning("%s: it is not there any more, rows go on to where it lies now: %s", self.path, error)
            self._displaced = True
            return
        self._displaced = False
        os.close(self._descriptor)
        self._descriptor = new
        if self.header and not self.size:
            self.append(self.header)
