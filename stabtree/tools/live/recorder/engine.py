"""The process beside a loop: `stabtree watch` on the log that the loop writes, with what it finds sent back.

A Recorder starts it, with the setup on standard input; what is found goes to standard output.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

NICENESS = 10
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def main() -> None:
    """Give way to the loop, and only then import what judging takes."""
    if sys.platform != "win32":
        with suppress(AttributeError, OSError):
            os.nice(NICENESS)
    for name in _ONE_THREAD:
        os.putenv(name, "1")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to all of a job: the loop says when to end
    from stabtree.tools.live.recorder.following import serve

    sends = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a rule of the user's may print
    serve(sys.stdin.buffer, sends)
    os._exit(0)  # a thread still waits for the loop
