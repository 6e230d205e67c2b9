"""How far a run was to go, as its own counters say: to 600 of `step 399/600`, to 10 of `Epoch 3/10`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.loaders.text.cells import Dense
    from stabtree.loaders.text.lines.line import Line

MAX_TOTALS = 3  # a counter with more than one total is of parts of the run, such as evaluations


class Totals:
    """Collects the totals of counters while a log is read."""

    def __init__(self) -> None:
        self._steps: set[int] = set()
        self._epochs: set[int] = set()

    def saw(self, line: Line) -> None:
        """Note the totals of a line of training."""
        for pair, totals in ((line.step, self._steps), (line.epoch, self._epochs)):
            if pair and pair.of and len(totals) < MAX_TOTALS:
                totals.add(pair.of)

    def settings(self, step: Dense, epoch: Dense, *, counted_on: bool) -> dict[str, int]:
        """Return the planned steps, or epochs where no step is logged; nothing where that is not certain.

        Args:
            step: of each row, (n,).
            epoch: of each row, (n,).
            counted_on: whether the log's own steps start again in each epoch.
        """
        if not step.logged.any():
            return _planned("epochs", self._epochs, epoch)
        one_epoch = epoch.logged.any() and len(np.unique(epoch.values[epoch.logged])) == 1
        if counted_on or one_epoch:  # the total may be that of the epoch
            return {}
        return _planned("max_steps", self._steps, step)


def _planned(key: str, totals: set[int], axis: Dense) -> dict[str, int]:
    """Return the one total of a counter as a setting, if the log does not go beyond it."""
    total = next(iter(totals), 0)
    if len(totals) != 1 or not axis.logged.any() or axis.values[axis.logged].max() > total:
        return {}
    return {key: total}
