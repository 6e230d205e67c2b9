"""One log while it grows: which row makes a judging point, what is found there, what of that is reported."""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import repeat
from typing import TYPE_CHECKING

from stabtree.tools.live.cadence import Cadence
from stabtree.tools.live.news import Announcer
from stabtree.tools.live.signs import Signs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stabtree.judging.outcome import Outcome
    from stabtree.tools.live.news import News


class Watching:
    """Judges a growing log at its judging points, each time whole, as `diagnose` would judge it then.

    Args:
        judge: reads the log as it is now, and judges its runs.
        cadence: when it is judged.
        announcer: what of it is reported, and when.
        clock: seconds that do not go back.
    """

    def __init__(
        self,
        judge: Callable[[], Sequence[Outcome]],
        *,
        cadence: Cadence | None = None,
        announcer: Announcer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._judge = judge
        self._cadence = cadence or Cadence()
        self._announcer = announcer or Announcer()
        self.clock = clock
        self._signs: defaultdict[str, Signs] = defaultdict(Signs)
        self._rows = 0
        self.outcomes: Sequence[Outcome] = ()

    @property
    def waits(self) -> bool:
        """Whether something was found that is reported once it has held for some rows."""
        return self._announcer.waits_until() is not None

    @property
    def awaits_end(self) -> bool:
        """Whether an error was found that the run may have died of, or may survive."""
        return self._announcer.awaits_end

    def grown(
        self, rows: Iterable[Mapping[str, float]], size: int, files: Iterable[str] = repeat("")
    ) -> tuple[News, ...]:
        """Take in new rows; judge the log where they make a judging point.

        Args:
            rows: what is new, each metric -> value; empty where the log can't be read row by row: what waits for its
                rows is then looked for whenever the log has grown.
            size: how long the log is now, in rows or bytes, the same unit always.
            files: the file that each row came to, where there may be several: each has its own course.
        """
        called, before = False, self._rows
        for file, row in zip(files, rows, strict=False):
            self._rows += 1
            called |= self._signs[file].call(row)
        until = self._announcer.waits_until(self.clock())
        called |= until is not None and (self._rows >= until or self._rows == before)
        if not self._cadence.due(size, self.clock(), called=called):
            return ()
        return self._judged(size)

    def ended(self, size: int) -> tuple[News, ...]:
        """Judge the log where nothing is waited for: for the last time, or since it has fallen silent."""
        return self._judged(size, final=True)

    def _judged(self, size: int, *, final: bool = False) -> tuple[News, ...]:
        began = self.clock()
        try:
            self.outcomes = self._judge()
            news = self._announcer.judged(self.outcomes, final=final, now=began)
        finally:
            self._cadence.judged(size, began, self.clock())  # a failure costs its time too
        self._rows = self._announcer.rows or self._rows
        return news
