"""Progress on standard error, once a command has taken a while; on a terminal alone."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_SECONDS = 2.0


class Busy:
    """Shows what a command is doing, from two seconds after its start.

    Args:
        wanted: False where nothing may be shown: for machines, for one line, at a prompt.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._since = time.monotonic()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show one stage while it lasts; the line is gone when it ends."""
        if not self._wanted:
            yield
            return
        done = threading.Event()
        thread = threading.Thread(target=self._show, args=(clean(what, 60), done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _show(self, what: str, done: threading.Event) -> None:
        left = self._since + PATIENCE_SECONDS - time.monotonic()
        if done.wait(max(0.0, left)):
            return
        from rich.console import Console  # only where there is something to show

        # A terminal that takes no more, or not these letters, is no reason to fail.
        with suppress(OSError, ValueError), Console(stderr=True).status(f"{what} ...", spinner="line"):
            done.wait()
