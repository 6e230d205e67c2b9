"""The process that judges the log of a loop beside it: it follows the file, and sends back what it finds."""

from __future__ import annotations

import math
import os
import pickle
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from stabtree.tools.live.signs import LOOKS, signs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.judging.judge import Judging
    from stabtree.tools.live.news import News
    from stabtree.tree.model import Severity

LENGTH = struct.Struct(">Q")
LOOK, END = b".", b"E"
"""What the loop sends: the log has grown and is to be looked at now; it has ended."""
BEGIN = b"\0stabtree replies\0"
"""Comes before the first reply: what was printed before it is of an interpreter that is set up to print."""
SIGN_SECONDS = 5.0
"""So long a row that no healthy run writes waits for what is found in it: a process has been started by then."""
WAITED_SECONDS, WAITED_SHARE = 10.0, 0.01
"""So long all such rows may wait in all, or for this share of the time."""
END_SECONDS = 60.0
"""So long the end of the loop waits for the last judgement."""
KILL_SECONDS = 5.0
"""So long a killed process is waited for: one that waits for a disk that hangs can't die."""
PAUSE_SECONDS = 0.001
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from stabtree.tools.live.recorder.engine import main; main()"


class Setup(NamedTuple):
    """How a log is judged.

    Attributes:
        file: the log, wherever the loop goes.
        judging: how its runs are judged.
        hold_rows: for so many rows a finding must hold before it is reported; None for those of a watch.
        mildest: the mildest level that is reported, where it is milder than a warning.
    """

    file: Path
    judging: Judging
    hold_rows: int | None
    mildest: Severity | None


class Reply(NamedTuple):
    """What the process sends.

    Attributes:
        looks: how many requests to look at the log it has followed.
        waits: whether something was found that is reported once it has held for some rows.
        news: what is reported.
        fault: what went wrong with judging; empty where nothing did.
        last: whether the log was judged for the last time.
    """

    looks: int
    waits: bool = False
    news: tuple[News, ...] = ()
    fault: str = ""
    last: bool = False


class JudgeProcess:
    """A process that is the engine of `stabtree watch` on the log of a loop, which shares nothing with it but the file.

    It ends when the loop says so, and when the process of the loop is gone.

    Args:
        setup: how the log is judged.
        failed: is called with what goes wrong.

    Raises:
        OSError: where it can't be started; or whatever `pickle` says of the setup.
    """

    def __init__(self, setup: Setup, failed: Callable[[str], None]) -> None:
        self._failed = failed
        given = pickle.dumps(setup)
        self._process = _start()
        self._to = cast("IO[bytes]", self._process.stdin)
        self._from = cast("IO[bytes]", self._process.stdout)
        try:
            rest = memoryview(given)
            while rest:
                rest = rest[self._to.write(rest) :]
            for pipe in (self._to, self._from):
                if sys.platform != "win32" or sys.version_info >= (3, 12):  # `_start` has refused the others
                    os.set_blocking(pipe.fileno(), False)
        except BaseException:
            self.abandon()
            raise
        self._received = bytearray()
        self._begun = time.monotonic()
        self._waited = 0.0
        self._asked = self._followed = 0
        self._before: frozenset[str] = frozenset()
        self._looks = 0
        self._begins = self._runs = self._over = self._gone = False
        self.waits = False

    def grown(self, row: Mapping[str, float]) -> tuple[News, ...]:
        """Return what was found since; after a row that no healthy run writes, wait briefly for what is found there.

        Args:
            row: the numbers of a row that was written, by the names under which they were written.
        """
        sure = self._is_sign(row)
        news = self._received_news()  # first: writing to a process that is gone may end ours, by SIGPIPE
        if sure or self.waits or not self._asked:
            self._ask(LOOK)
        allowed = max(WAITED_SECONDS, WAITED_SHARE * (time.monotonic() - self._begun)) - self._waited
        if sure and allowed > 0:
            began = time.monotonic()
            news += self._await(self._asked, min(SIGN_SECONDS, allowed))
            self._waited += time.monotonic() - began
        return news

    def ended(self) -> tuple[News, ...]:
        """Wait for the last judgement of the log, and return what is new in it."""
        news: tuple[News, ...] = ()
        if self._asked:  # else there is no row of this run in it
            news = self._received_news()  # first, as in `grown`
            self._ask(END)
            news += self._await(math.inf, END_SECONDS)
            if not self._over:
                self._failed(f"it was not judged to its end, which took more than {END_SECONDS:.0f} s")
        self.abandon()
        return news

    def abandon(self) -> None:
        """End the process, whatever it does."""
        self._over = True
        for pipe in (self._to, self._from):
            with suppress(OSError):
                pipe.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_SECONDS)

    def _is_sign(self, row: Mapping[str, float]) -> bool:
        """Return whether a row shows what no healthy run does and the row before did not, or follows close on one."""
        found = signs(row) | {name for name, value in row.items() if not math.isfinite(value)}
        if not found <= self._before:
            self._looks = LOOKS + 1
        self._before = found
        self._looks -= self._looks > 0
        return self._looks > 0

    def _ask(self, what: bytes) -> None:
        if self._over:
            return
        with suppress(BlockingIOError, OSError):  # full: it is asked already; broken: so the reading end says
            os.write(self._to.fileno(), what)
            self._asked += what == LOOK

    def _await(self, looks: float, seconds: float) -> tuple[News, ...]:
        """Return what comes until so many requests were followed, for so many seconds at longest."""
        until, news = time.monotonic() + seconds, self._received_news()
        while self._followed < looks and not self._over and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)
            news += self._received_news()
        return news

    def _received_news(self) -> tuple[News, ...]:
        """Return the news that have come.

        Raises:
            ChildProcessError: where the process has ended before it sent anything.
        """
        news: tuple[News, ...] = ()
        self._receive()
        while (reply := self._next_reply()) is not None:
            self._followed, self.waits = max(reply.looks, self._followed), reply.waits
            self._over |= reply.last
            self._runs = True
            news += reply.news
            if reply.fault:
                self._failed(reply.fault)
        if self._gone and not self._over:
            self._over, self.waits = True, False
            if not self._runs:
                raise ChildProcessError("the process did not run")
            self._failed("the process that judges it has ended: it is not judged any more")
        return news

    def _receive(self) -> None:
        """Take what lies in the pipe."""
        while not (self._over or self._gone):
            try:
                piece = os.read(self._from.fileno(), 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._gone = True
                return
            self._received += piece

    def _next_reply(self) -> Reply | None:
        """Return the next reply that is whole; of one that has begun to come the rest is waited for."""
        received = self._received
        if not self._begins:
            at = received.find(BEGIN)
            if at < 0:
                return None
            del received[: at + len(BEGIN)]
            self._begins = True
        if len(received) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(received)
        end = LENGTH.size + length
        until = time.monotonic() + SIGN_SECONDS
        while len(received) < end and not self._gone and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)
            self._receive()
        if len(received) < end:
            return None
        reply: Reply = pickle.loads(received[LENGTH.size : end])  # noqa: S301 - by a process of our own
        del received[:end]
        return reply


def _start() -> subprocess.Popen[bytes]:
    """Start the process, apart from the signals that the terminal and the scheduler send to the loop.

    Raises:
        OSError: where none can be started.
    """
    if not sys.executable or getattr(sys, "frozen", False) or not hasattr(os, "set_blocking"):
        raise OSError("there is no interpreter to start")
    # Modules are found where the loop finds them, wherever that is.
    found = [str(Path(place).absolute()) for place in sys.path]
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.BELOW_NORMAL_PRIORITY_CLASS}
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", _CODE, *found],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        **options,
    )
