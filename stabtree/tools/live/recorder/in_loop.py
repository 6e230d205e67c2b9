"""How the log of a loop is judged, wherever that is done: in a process of its own, or else inside the loop."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import Outcome
from stabtree.loaders import load_runs
from stabtree.metrics.names import named
from stabtree.tools.live.cadence import Cadence
from stabtree.tools.live.news import HOLD_ROWS, TOLD_FROM, Announcer
from stabtree.tools.live.row_zero import RowZero
from stabtree.tools.live.watch.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.tools.live.news import News
    from stabtree.tools.live.recorder.beside import Setup

BUDGET = 0.01
"""The share of the wall-clock time that judging may take inside a loop, which waits for it."""


def judged(setup: Setup, judges: RowZero) -> list[Outcome]:
    """Return what `stabtree watch` would find now."""
    try:
        return [judges.outcome(item) for item in load_runs(setup.file, **setup.judging.settings.reading())]
    except StabtreeError as error:
        return [Outcome(str(setup.file), error)]  # as after it was moved away: it is begun anew, and judged again


def announcer(setup: Setup) -> Announcer:
    """Return what decides which findings are reported, and when."""
    lowest, hold_rows = TOLD_FROM, setup.hold_rows
    if setup.mildest is not None:
        lowest = min(TOLD_FROM, setup.mildest, key=lambda level: level.rank)
    if hold_rows is None:
        hold_rows = HOLD_ROWS
    return Announcer(hold_rows, lowest)


class LoopWatch:
    """Judges the log inside the loop that writes it, where no process can be started."""

    def __init__(self, setup: Setup) -> None:
        settings = setup.judging.settings
        self._file = setup.file
        self._names = named(settings.column, settings.step_column or None)
        judges = RowZero(setup.judging)
        self._watching = Watching(
            lambda: judged(setup, judges), cadence=Cadence(budget=BUDGET), announcer=announcer(setup)
        )

    @property
    def waits(self) -> bool:
        """Whether something was found that is reported once it has held for some rows."""
        return self._watching.waits

    def grown(self, row: Mapping[str, float]) -> tuple[News, ...]:
        """Take in a row that was written, and judge the log where it makes a judging point: what is new.

        Args:
            row: its numbers by the names under which they were written.
        """
        known = {metric: value for name, value in row.items() if (metric := self._names.metric(name))}
        return self._watching.grown([known], self._size())

    def ended(self) -> tuple[News, ...]:
        """Judge the log for the last time: what is new, whether it held or not."""
        return self._watching.ended(self._size())

    def _size(self) -> int:
        with suppress(OSError):
            return self._file.stat().st_size
        return 0

    def abandon(self) -> None:
        """Do nothing: no process is left behind."""
