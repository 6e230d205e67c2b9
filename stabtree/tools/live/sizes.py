"""How many rows each log holds: those of one make nothing hold that was found in another, unless it grows no more."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import Run


class _LogSize(NamedTuple):
    """The log of a run when it was judged.

    Attributes:
        rows: how many rows it holds, of all its runs.
        all_rows: how many all logs held when it was first seen as long.
        beside: how many logs there are, with itself.
    """

    rows: int
    all_rows: int
    beside: int


class LogSizes:
    """The rows of all logs, by run.

    Attributes:
        rows: how many there are.
    """

    def __init__(self) -> None:
        self._logs: dict[str, _LogSize] = {}
        self.rows = 0

    def count(self, runs: Sequence[tuple[str, Run]]) -> None:
        """Count the rows of the log of each run, by the run's key."""
        rows: Counter[str] = Counter()
        for _, run in runs:
            rows[_log_of(run)] += rows_of(run)
        self.rows = rows.total()
        for key, run in runs:
            known, count = self._logs.get(key), rows[_log_of(run)]
            all_rows = self.rows
            if known is not None and known.rows == count:
                all_rows = known.all_rows
            self._logs[key] = _LogSize(count, all_rows, len(rows))

    def of(self, key: str) -> int:
        """Return how many rows the log of a run holds."""
        return self._logs[key].rows

    def reached(self, key: str, rows: int) -> bool:
        """Whether a run's log holds so many rows; or it grows no more, and each of the others got what it lacks."""
        log = self._logs[key]
        return log.rows >= rows or self.rows - log.all_rows >= log.beside * (rows - log.rows)


def _log_of(run: Run) -> str:
    """Return the file that a run is in: the first of several."""
    return run.sources[0].path if run.sources else ""


def rows_of(run: Run) -> int:
    """Return how many rows a run has: those of its longest series."""
    return max(map(len, run.series.values()), default=0)
