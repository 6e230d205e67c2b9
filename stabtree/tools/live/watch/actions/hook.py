"""`--exec CMD`: a command of the user's, run for each change, which it gets as JSON on standard input.

No shell is between, and nothing of a log is in the command's words or in its environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_SECONDS = 60.0
PAUSE_SECONDS = 0.02
MAX_AT_ONCE = 16
"""So many run beside each other: a folder of failed runs has a finding each at the first look."""


class Hook:
    """Starts the command and goes on; whatever becomes of it is a note.

    Args:
        command: as it was typed; without any, nothing is run.
        limit_seconds: after which it is ended.
        clock: seconds that do not go back.

    Raises:
        StabtreeError: where there is no such command.
    """

    def __init__(
        self,
        command: str | None,
        *,
        limit_seconds: float = LIMIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._words: list[str] = []
        if command is not None:
            self._words = _words(command)
        self._limit = limit_seconds
        self._clock = clock
        self._running: list[tuple[subprocess.Popen[bytes], float]] = []
        self._waiting: deque[str] = deque()

    def start(self, event: str) -> Iterator[str]:
        """Run the command with a text on its standard input, now or when others have ended; the note where it fails."""
        if self._words:
            self._waiting.append(event)
            yield from self.ended()

    def _run(self, event: str) -> Iterator[str]:
        try:
            with _file() as given:  # a pipe would have to be written to for as long as nobody reads it
                given.write(event.encode())
                given.seek(0)
                # What it prints must not come between results: it goes where notes go.
                made = subprocess.Popen(self._words, stdin=given, stdout=2, start_new_session=True)  # noqa: S603
        except OSError as error:
            yield f"--exec could not be run: {error.strerror or error}"
            return
        self._running.append((made, self._clock()))

    def ended(self) -> Iterator[str]:
        """Yield the notes on what failed since, or took too long; what waited for it is run."""
        for item in list(self._running):
            made, began = item
            code = made.poll()
            if code is None and self._clock() - began < self._limit:
                continue
            self._running.remove(item)
            if code is None:
                _kill(made)
                yield f"--exec took longer than {self._limit:g} seconds, and was ended"
            elif code:
                yield f"--exec failed with exit code {code}"
        while self._waiting and len(self._running) < MAX_AT_ONCE:
            yield from self._run(self._waiting.popleft())

    def wait(self) -> Iterator[str]:
        """Wait for what still runs, and end what takes too long."""
        while self._running or self._waiting:
            yield from self.ended()
            if self._running:
                time.sleep(PAUSE_SECONDS)

    def kill(self) -> None:
        """End all that still runs, and run nothing more."""
        self._waiting.clear()
        while self._running:
            _kill(self._running.pop()[0])


def _file() -> IO[bytes]:
    """A file without a name, in memory where there are such: the disk that fills is what many alarms are about."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("finding"), "w+b")
    return tempfile.TemporaryFile()


def _kill(made: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started."""
    with suppress(OSError):
        if sys.platform != "win32":
            os.killpg(made.pid, signal.SIGKILL)
        else:
            made.kill()
    made.wait()


def split(command: str, *, escapes: bool) -> list[str]:
    r"""Return a command's words, without their quotes; on Windows `\` parts folders and escapes nothing.

    Raises:
        ValueError: where a quote is not closed.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if not escapes:
        lexer.escape = ""
    return list(lexer)


def _words(command: str) -> list[str]:
    hint = "name one that reads JSON from its standard input; pipes need --exec \"sh -c '...'\""
    try:
        words = split(command, escapes=sys.platform != "win32")
    except ValueError as error:
        raise StabtreeError(f"can't be read: {error}", where="--exec", hint=hint) from None
    name = next(iter(words), "")
    if shutil.which(name) is None:
        raise StabtreeError(f"there is no command {name!r}", where="--exec", hint=hint)
    return words
