"""Counters beside each other: batches that are counted within an epoch, and lengths that count nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_MOST
from stabtree.common.stats import median

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints

MIN_ROWS = 3
# Nearly all epochs are alike; the first and the last may not be.
MIN_SHARE = SHARE_MOST
# Steps that repeat or go back in more of the rows are no count, where so many rows are counted otherwise.
LENGTH_ROWS, LENGTH_SHARE = 8, 0.2


class Count(NamedTuple):
    """A column that counts.

    Attributes:
        values: float64 (n,).
        logged: bool (n,), which of them were logged.
    """

    values: Floats
    logged: Bools


def count_on(step: Count, epoch: Count, losses: Bools) -> Floats | None:
    """Return steps over the whole run from rows that count them within each epoch: epoch x batches + batch.

    Args:
        step: of each row, (n,).
        epoch: of each row, (n,).
        losses: bool (n,), the rows that hold a loss, which decide.

    Returns:
        float64 (n,); None if the rows don't count within epochs.
    """
    both = step.logged & epoch.logged
    at, of = step.values[both & losses], epoch.values[both & losses]
    if len(at) < MIN_ROWS or not (np.isfinite(at).all() and np.isfinite(of).all() and (of == np.floor(of)).all()):
        return None
    before = epoch.values - min(of[0], 1.0)  # epochs
    starts = np.flatnonzero(np.diff(of) > 0) + 1
    if len(starts) == len(at) - 1 and not np.ptp(at):
        # One row an epoch, always at the same batch: `Epoch [3/60], Step [600/600]`; at batch 0 the epoch alone counts.
        counted = step.values + before * at[0] if at[0] > 0 else epoch.values
        return np.where(both, counted, step.values)
    batches = _batches(at, of, starts)
    if batches is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.where(both, step.values + before * np.ceil(batches), step.values)
    if np.isfinite(whole).all():
        return whole
    return None


def _batches(at: Floats, of: Floats, starts: Ints) -> float | None:
    """Return how many batches an epoch has; None if the steps are not counted within epochs.

    Args:
        at: float64 (n,), the steps.
        of: float64 (n,), the epoch of each.
        starts: the rows that begin another epoch.
    """
    if not len(starts) or np.count_nonzero(at[starts] < at[starts - 1]) < MIN_SHARE * len(starts):
        return None
    inside = np.diff(at)[np.diff(of) == 0]
    first = float(at[starts].min())
    if (inside < 0).any() or (len(starts) == 1 and first > at[0]):
        return None
    rises = inside[inside > 0]
    return float(at.max()) - first + (median(rises) if len(rises) else 1.0)


def is_length(values: Floats, other: Floats) -> bool:
    """Return whether a column holds how long each episode took: it goes up and down where another one counts.

    Args:
        values: float64 (n,), the column.
        other: float64 (n,), the one that may count rows.
    """
    if len(values) < LENGTH_ROWS or not np.isfinite(other).all() or (other != np.floor(other)).any():
        return False
    rises = np.diff(other) > 0
    # An appended run begins again.
    if np.count_nonzero(~rises) > (1 - MIN_SHARE) * len(rises):
        return False
    changes = np.diff(values)[rises]
    falls = np.count_nonzero(changes < 0) > LENGTH_SHARE * len(changes)
    return bool(falls or not changes.any())


def is_no_count(values: Floats) -> bool:
    """Return whether numbers go up and down as if drawn by chance; those of a log that was shuffled are evenly spaced.

    Args:
        values: float64 (n,), finite.
    """
    if len(values) < LENGTH_ROWS:
        return False
    changes = np.diff(values)
    share = LENGTH_SHARE * len(changes)
    if min(np.count_nonzero(changes < 0), np.count_nonzero(changes > 0)) <= share:
        return False
    at = np.flatnonzero(changes < 0) + 1
    if len(np.unique(values[at])) <= LENGTH_SHARE * len(at):
        return False  # batches of short epochs begin at the same one
    apart = np.diff(np.unique(values))
    return bool(np.count_nonzero(apart == np.median(apart)) < (1 - LENGTH_SHARE) * len(apart))


def lexicographic(step: Floats, epoch: Floats | None) -> Floats:
    """Return what orders rows by epoch first, so that steps that are counted in each of them go back at no new one.

    Args:
        step: float64 (n,), finite.
        epoch: float64 (n,), finite; None where there is none.
    """
    if epoch is None or (step[1:] >= step[:-1]).all():
        return step
    with np.errstate(over="ignore", invalid="ignore"):
        ordered = step + (epoch - min(epoch.min(), 1.0)) * (step.max() + 1.0)
    return ordered if np.isfinite(ordered).all() else step


def first_row(row: int, axis: Count, carries: Bools) -> int:
    """Return the first row of the run whose first loss is in `row`: evaluations before it have no later step.

    Args:
        row: the row.
        axis: what counts the rows, (n,).
        carries: bool (n,), the rows that hold a loss.
    """
    first = axis.values[row]
    while row and not carries[row - 1] and (not axis.logged[row - 1] or axis.values[row - 1] <= first):
        row -= 1
    return row
