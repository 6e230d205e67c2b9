"""What the process beside a loop does: it watches the log as `stabtree watch` does, and reports what it finds."""

from __future__ import annotations

import os
import pickle
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.outcome import Outcome
from stabtree.run import Run
from stabtree.tools.live.recorder.beside import BEGIN, END, LENGTH, LOOK, Reply
from stabtree.tools.live.recorder.in_loop import announcer, judged
from stabtree.tools.live.row_zero import RowZero
from stabtree.tools.live.session import End, Session
from stabtree.tools.live.watch.follow import Follower
from stabtree.tools.live.watch.watching import Watching

if TYPE_CHECKING:
    from stabtree.tools.live.recorder.beside import Setup

ROW_SECONDS = 1.0
"""Between two looks at whether the loop is still there while it writes nothing."""
LOOK_SECONDS = 0.02
"""Between two looks at a log that nobody asked to look at: one costs a tenth of a millisecond."""


class Requests:
    """What the loop asks for, as it comes.

    Attributes:
        followed: how many requests had come before the last look.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._came = threading.Event()
        self._count = 0
        self._parent = os.getppid()
        self.followed = 0
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def has_ended(self) -> bool:
        """Return whether the log has ended."""
        return self._ended

    def wait_for_a_row(self) -> None:
        """Wait for the first request."""
        while not (self.followed or self._ended):
            self.wait(ROW_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait for a request, for so long at longest."""
        self._came.wait(seconds)
        if os.getppid() != self._parent:  # its end of the pipe may live on in a worker that it forked
            os._exit(0)
        self._came.clear()
        self.followed = self._count

    def _read(self) -> None:
        while True:
            piece = self._stream.read(1)
            if not piece:
                os._exit(0)  # the loop is gone, and nobody reads what is found
            self._count += piece == LOOK
            self._ended |= piece == END
            self._came.set()


class Sender:
    """Sends replies to the loop, each with its length before it, the first one after `BEGIN`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._begin = BEGIN
        self._sent: Reply | None = None

    def send(self, reply: Reply) -> None:
        """Send a reply, unless it says what the last one said."""
        if reply == self._sent:
            return
        self._sent = reply._replace(news=())
        data = pickle.dumps(reply)
        begin, self._begin = self._begin, b""
        self._stream.write(begin + LENGTH.pack(len(data)) + data)
        self._stream.flush()


class Judge:
    """Judges the log for a watch; a fault of ours is reported to the loop, and ends nothing."""

    def __init__(self, setup: Setup, sender: Sender) -> None:
        self._setup, self._sender = setup, sender
        self._judges = RowZero(setup.judging)
        self._faults: set[str] = set()

    def outcomes(self) -> list[Outcome]:
        """Return what is found now, or that it can't be judged just now."""
        try:
            return judged(self._setup, self._judges)
        except Exception as error:  # whatever it is: it is tried again as the log grows
            fault = f"{type(error).__name__}: {clean(error, 200)}"
            if fault not in self._faults:
                self._faults.add(fault)
                text = f"the log could not be judged; it is tried again as it grows: {fault}"
                self._sender.send(Reply(0, fault=text))
            return [Outcome(str(self._setup.file), StabtreeError(fault))]


def follow(setup: Setup, requests: Requests, sender: Sender) -> None:
    """Watch the log until the loop says that it has ended; each watch that ends before by itself is followed by one."""
    reading = setup.judging.settings.reading()
    follower = Follower([str(setup.file)], columns=reading["columns"], step_column=reading["step_column"])
    watching = Watching(Judge(setup, sender).outcomes, announcer=announcer(setup))
    setup.judging.diagnosed(Run("nothing yet", {}))  # what it can't be judged by, no run can
    sender.send(Reply(0))
    requests.wait_for_a_row()  # until then the file is what another run left
    end = End.COMPLETE
    while end is not End.ASKED:
        session = Session(follower, watching, every=LOOK_SECONDS, stopped=requests.has_ended, sleep=requests.wait)
        for round_ in session.rounds():
            sender.send(Reply(requests.followed, watching.waits, round_.news))
        end = session.end
    sender.send(Reply(requests.followed, last=True))


def serve(receives: BinaryIO, sends: BinaryIO) -> None:
    """Read the setup, and follow the log until the loop says that it has ended.

    Args:
        receives: what the loop sends.
        sends: what it reads.
    """
    setup: Setup = pickle.load(receives)  # noqa: S301 - of the process that started this one
    requests, sender = Requests(receives), Sender(sends)
    with suppress(BrokenPipeError):
        try:
            follow(setup, requests, sender)
        except Exception as error:
            fault = f"it is not judged any more: {type(error).__name__}: {clean(error, 200)}"
            sender.send(Reply(0, fault=fault, last=True))
