"""Ctrl-C, SIGTERM and a closed terminal as a wish to end, for what is to end by itself; the second stops at once."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Any

SLICE_SECONDS = 0.1


class Stop:
    """While it lasts, the first signal to end is only remembered; after it all is as it was before."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # no other one may
            numbers: list[int] = [signal.SIGINT, signal.SIGTERM]
            if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup has it
                numbers.append(signal.SIGHUP)
            for number in numbers:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, _number: int, _frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the end is asked for."""
        until = time.monotonic() + seconds
        # Waiting for an event could not be ended from a handler without the danger of a deadlock.
        while not self.asked and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
