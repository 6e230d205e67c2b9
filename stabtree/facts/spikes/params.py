"""How spikes are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import interval
from stabtree.facts.registry import finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Ints
    from stabtree.run import Series


class SpikeSearchParams(NamedTuple):
    """How spikes are searched for: the parameters of the fact.

    Attributes:
        window_steps: the stretch before a step over which its mean and sigma are taken.
        sigma: how many sigmas above that mean a step must be.
        chance: how many steps as high the run's own noise may explain; 1 is the document's own rule.
        back_sigma: how close to the mean before it, in sigmas, a spike must come to be over.
        horizon_steps: steps within which a loss comes back, and after which one that has not stays up.
        lasting_share: what stays up by no more than this share of the loss's range has come back.
        rare: below how many expected by chance a spike is rare.
        level_rows: rows that make a level: a window of fewer widens, and a shift lasts as many.
        tail_exponent: the exponent of the tail where the run has few high rows; measured on labelled runs 1.6 to 5
            where rows are enough, median 3.8.
        log_share: the largest share of the rows that a window takes; a log of one row an epoch would else be all
            window. A log without `level_rows` rows in it has no windows: see `find_short`.
        shift_sigma: how far a shift must be above the mean before it, where the window is long; twice as far where it
            has no more than `level_rows` rows.
        shift_share: by how much of all that the loss covers a shift must rise.
    """

    window_steps: int
    sigma: float
    chance: float
    back_sigma: float
    horizon_steps: int
    lasting_share: float
    rare: float
    level_rows: int
    tail_exponent: float
    log_share: float
    shift_sigma: float
    shift_share: float

    @property
    def guarded(self) -> bool:
        """Whether chance is considered as well; else only the document's own limit counts."""
        return self.chance < 1

    def rows(self, series: Series) -> int:
        """Return the window in rows of a series."""
        # A trend and the scatter about it take three rows, whatever is asked for.
        steps = finite(series)[0]
        few = max(self.level_rows, 3)
        rows = max(round(self.window_steps / interval(steps)), few)
        return self._within_log(rows, len(steps), few) if self.guarded else rows

    def first(self, steps: Ints, rows: int) -> int:
        """Return the first row to judge: `rows` before it, and past the window's own steps (document: t > 100)."""
        return rows if int(steps[rows]) > max(self.window_steps, rows * interval(steps)) else rows + 1

    def horizon(self, series: Series) -> int:
        """Return `horizon_steps`, or as many steps of a short log as a window may take of its rows."""
        if not self.guarded:
            return self.horizon_steps
        steps = finite(series)[0]
        apart = interval(steps)
        rows = self._within_log(round(self.horizon_steps / apart), len(steps), ROWS_SHORT)
        return min(self.horizon_steps, round(rows * apart))

    def short(self, series: Series) -> bool:
        """Return whether a log is too short for windows."""
        return self.guarded and self.log_share * len(finite(series)[0]) < self.level_rows

    def shift_bar(self, rows: int) -> float:
        """Return how many sigmas of a window of so many rows make a shift."""
        # A sigma of few rows is a rough one, and rougher still where neighbours are alike.
        return self.shift_sigma * (1 + self.level_rows / rows)

    def _within_log(self, rows: int, all_rows: int, least: int) -> int:
        return min(rows, max(least, round(self.log_share * all_rows)))
