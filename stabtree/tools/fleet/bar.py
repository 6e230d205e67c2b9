"""How far a scan is, on standard error: runs, rate, time left, what was found so far; on a terminal alone."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stabtree.common.answer import UNKNOWN
from stabtree.judging.outcome import ORDER, UNREAD

if TYPE_CHECKING:
    from stabtree.tools.fleet.loop import Progress

PATIENCE_SECONDS = 1.0
EACH_SECONDS = 0.1
WORDS = {UNREAD: "not read", UNKNOWN: "not judged"}


class Bar:
    """A line that is there while a scan lasts, from one second after its start on."""

    def __init__(self) -> None:
        self._wanted = sys.stderr is not None and sys.stderr.isatty()
        self._since = self._updated = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.stop()

    def tell(self, progress: Progress) -> None:
        """Show how far the scan is."""
        now = time.monotonic()
        if not self._wanted or now - self._since < PATIENCE_SECONDS or now - self._updated < EACH_SECONDS:
            return
        self._updated = now
        # A terminal that takes no more, or not these letters, is no reason to fail.
        with suppress(OSError, ValueError):
            self._show(progress, now)

    def _show(self, progress: Progress, now: float) -> None:
        if self._bar is None:
            from rich.console import Console  # only where there is something to tell
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Drawn

            columns = (BarColumn(20), TextColumn("{task.description}"), TimeRemainingColumn())
            self._bar = Drawn(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        found = ", ".join(
            f"{count:,} {WORDS.get(badge, badge)}"
            for badge in map(str, ORDER)
            if (count := progress.found.get(badge, 0))
        )
        rate = progress.runs / max(now - progress.since, 1e-9)
        text = f"{progress.runs:,} runs, {rate:,.0f}/s: {found}"
        self._bar.update(self._task, completed=progress.done, total=progress.done + progress.waiting, description=text)
