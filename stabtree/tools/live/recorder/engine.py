"""The process beside a loop: `stabtree watch` on the log that the loop writes, with what it finds sent back.

Started by a Recorder, with the setup on standard input; findings go to standard output.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from stabtree.common.text import clean
from stabtree.tools.live.recorder.beside import END, LENGTH, LOOK, Frame

if TYPE_CHECKING:
    from stabtree.tools.live.recorder.beside import Setup

NICENESS = 10


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

    def wait(self, seconds: float | None) -> None:
        """Wait for a request, for so long at longest; None for as long as it takes."""
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
    """Sends frames to the loop, each with its length before it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sent: Frame | None = None

    def send(self, frame: Frame) -> None:
        """Send a frame, unless it says what the last one said."""
        if frame == self._sent:
            return
        self._sent = frame._replace(news=())
        data = pickle.dumps(frame)
        self._stream.write(LENGTH.pack(len(data)) + data)
        self._stream.flush()


def main() -> None:
    """Read the setup, and follow the log; what that takes is imported once the process gives way to others."""
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to all of a job: the loop says when to end
    from stabtree.tools.live.recorder.following import follow

    setup: Setup = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    requests, sender = Requests(sys.stdin.buffer), Sender(sys.stdout.buffer)
    try:
        follow(setup, requests, sender)
    except BrokenPipeError:
        pass
    except Exception as error:
        sender.send(
            Frame(0, fault=f"it is not judged any more: {type(error).__name__}: {clean(error, 200)}", last=True)
        )
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
