"""SIGTERM, which schedulers send before they kill: what was kept in memory is written first."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class OnTerminate:
    """Calls a function when SIGTERM arrives, and then does what was done before it was there.

    Only the main thread may handle signals: made in another one it does nothing.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call
        self._process = os.getpid()
        self._before: Any = None
        if _is_main():
            self._before = signal.getsignal(signal.SIGTERM)
        if self._before is not None:  # one that was not installed from Python can't be called
            signal.signal(signal.SIGTERM, self._handle)

    def close(self) -> None:
        """Go back to what was there before; where another one has come on top, it finds nothing to do."""
        self._call = None
        if self._before is not None and _is_main() and signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, self._before)

    def _handle(self, number: int, frame: Any) -> None:
        if self._call is not None and os.getpid() == self._process:
            self._call()
        if callable(self._before):
            self._before(number, frame)
        elif self._before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
