"""What the rows of a log say about its checkpoints: where epochs end, and where one was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.table import Column, Save

MAX_EPOCHS = 100_000  # what is counted further is rows or episodes


def epoch_ends(steps: Ints, epochs: Column | None, keep: Bools | None) -> Mapping[int, int]:
    """Return the epochs that end within a log, as they are counted there, by the last step that was logged in each.

    A share of an epoch (2.37) counts what was done: 2 ends at the last row up to 2.0. Empty where epochs do not rise
    with the steps.

    Args:
        steps: int64 (n,), the step of each row.
        epochs: the column that counts epochs.
        keep: bool (n,), false for rows without a step; None where all have one.
    """
    if epochs is None:
        return {}
    known = epochs.mask & np.isfinite(epochs.values) & (True if keep is None else keep)
    at, count = steps[known], epochs.values[known]
    if len(at) < 2 or (np.diff(at) < 0).any() or (np.diff(count) < 0).any() or count[0] < 0:
        return {}
    done = np.ceil(count)
    last = np.flatnonzero(np.diff(done) > 0)
    if len(last) > MAX_EPOCHS:
        return {}
    return {int(at[row]): int(done[row]) for row in last if at[row] > 0}


def saved(steps: Ints, saves: Iterable[Save]) -> Mapping[int, int]:
    """Return the steps at which checkpoints were saved, with the numbers of the lines that say so.

    A line's step is a number in it between the steps of the rows around it, else that of the row before.
    """
    found = {}
    for save in saves:
        here = int(steps[save.row])
        after = int(steps[min(save.row + 1, len(steps) - 1)])
        step = max((number for number in save.numbers if here < number <= after), default=here)
        if step > 0:
            found[step] = save.line
    return found
