"""Steps told by epochs: batches that are counted anew in each of them, and rows that name an epoch and no step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.loaders.table import MIN_ROWS

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats

# Nearly all epochs, or gaps, are alike; the first and the last may not be.
MOST = 0.9
# The rows of batches are so many times as many as those that sum up an epoch.
DENSER = 3
# PyTorch's examples count samples, in batches of a multiple of this.
BATCH = 8
# Fewer of them are batches.
MANY_SAMPLES = 1000


def counted_on(step: Floats, logged: Bools, epoch: Floats, epoch_logged: Bools, losses: Bools) -> Floats | None:
    """Steps over the whole run where the rows count them within each epoch: epoch x batches + batch; else None.

    Args:
        step: float64 (n,).
        logged: bool (n,).
        epoch: float64 (n,).
        epoch_logged: bool (n,).
        losses: bool (n,), the rows that hold a loss, which decide.
    """
    both = logged & epoch_logged & losses
    at, of = step[both], epoch[both]
    if len(at) < MIN_ROWS or not (np.isfinite(at).all() and np.isfinite(of).all() and (of == np.floor(of)).all()):
        return None
    next_epoch = np.flatnonzero(np.diff(of) > 0) + 1
    inside = np.diff(at)[np.diff(of) == 0]
    if len(next_epoch) == len(at) - 1 and not np.ptp(at):
        # One row an epoch, always at the same batch: `Epoch [3/60], Step [600/600]`; at batch 0 the epoch alone counts.
        counted = step + (epoch - min(of[0], 1.0)) * at[0] if at[0] > 0 else epoch
        return np.where(logged & epoch_logged, counted, step)
    if not len(next_epoch) or np.count_nonzero(at[next_epoch] < at[next_epoch - 1]) < MOST * len(next_epoch):
        return None
    if (inside < 0).any():
        return None
    first = float(at[next_epoch].min())
    if len(next_epoch) == 1 and first > at[0]:
        return None
    rises = inside[inside > 0]
    batches = float(at.max()) - first + (median(rises) if len(rises) else 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.where(logged & epoch_logged, step + (epoch - min(of[0], 1.0)) * np.ceil(batches), step)
    return whole if np.isfinite(whole).all() else None


def are_samples(done: Floats, total: Floats) -> bool:
    """Whether positions in the epoch count samples, as `[640/60000 (1%)]` does, and not batches.

    Args:
        done: float64 (n,), of rows that also print the share in percent.
        total: float64 (n,).
    """
    if len(done) < MIN_ROWS or total.min() < MANY_SAMPLES or (done >= total - 1).any():
        return False
    gaps = np.diff(done)
    rises = gaps[gaps > 0]
    return len(rises) > 0 and bool((rises % BATCH == 0).all())


def from_bar(done: Floats, total: Floats) -> Floats | None:
    """The steps of rows by the bar that is drawn anew below each, where they are evenly spread; None where unsure.

    Args:
        done: float64 (n,), the bar below each row with a loss; NaN where there is none.
        total: float64 (n,), of how many.
    """
    count = len(done)
    bars = total[np.isfinite(done)]
    if len(bars) < MIN_ROWS:
        return None
    kinds, counts = np.unique(bars, return_counts=True)
    known = np.flatnonzero(np.isfinite(done) & (total == kinds[np.argmax(counts)]))
    if len(known) < max(MIN_ROWS, MOST * count):
        return None
    at = done[known]
    gaps = np.diff(at) / np.diff(known)
    usual = median(gaps)
    if usual > 0 and np.count_nonzero(gaps == usual) >= MOST * len(gaps) - 1:
        steps = np.round(np.interp(np.arange(count), known, at))
        after = np.arange(known[-1] + 1, count)
        steps[after] = at[-1] + usual * (after - known[-1])
        return steps
    # A bar that was written to another stream lags behind by less than the distance of two rows.
    each = round(float(at[-1] - at[0]) / int(known[-1] - known[0]))
    if each < 1:
        return None
    steps = np.round(each * (median(np.ceil(at / each) - known) + np.arange(count)))
    lags = steps[known] - at
    fits = (lags >= 0) & (lags <= each)
    return steps if fits.mean() >= MOST and steps[0] >= 0 else None


def summaries(loss: Bools, step_logged: Bools, epoch_logged: Bools) -> Bools | None:
    """Which rows sum up an epoch whose batches are logged too: they name it, and no step; None where there are none."""
    batches = loss & step_logged
    sums = loss & ~step_logged & epoch_logged
    few = np.count_nonzero(sums)
    return sums if few and np.count_nonzero(batches) >= DENSER * few else None
