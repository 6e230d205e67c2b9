"""What happened at a spike and after it: how often, on which batch, at which resume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import FACTOR, ROWS_LONG, ROWS_SHORT
from stabtree.common.stats import interval, median
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.facts.spike import Spike
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Series

AT_ONCE_ROWS = 3  # measured: 10 of 11 bad batches of faultbench and the trainers' runs are over by then


@clue
def spikes_now_and_before(_moment: Moment, loss: Series, spike: Spike) -> Seen:
    """Return how many times more spikes the second half of the log has than the first."""
    steps, _ = finite(loss)
    middle = int(steps[len(steps) // 2])
    found = [item.step for item in spike.search.spikes]
    late = sum(step >= middle for step in found)
    early = len(found) - late
    short = f"{late:,} in the last {int(steps[-1]) - middle + 1:,} steps, {early:,} before"
    return Seen(late / max(early, 1), f"spikes: {short}", short, "loss", tuple(found[-4:]))


@clue
def spikes_in_all(_moment: Moment, spike: Spike) -> Seen:
    """Count the spikes of the whole log."""
    found = [item.step for item in spike.search.spikes]
    short = f"{len(found):,} spikes"
    return Seen(float(len(found)), f"the loss spikes {len(found):,} times", short, "loss", tuple(found[:4]))


@clue
def over_at_once(_moment: Moment, loss: Series, spike: Spike) -> Seen | None:
    """Return whether the loss is back within three rows, `yes` or `no`; None where three rows are too many steps."""
    steps, _ = finite(loss)
    back = spike.top.recovered_step
    rows = int(((steps >= spike.top.step) & (steps < (steps[-1] + 1 if back is None else back))).sum())
    if rows <= AT_ONCE_ROWS and interval(steps) > ROWS_LONG:
        return None
    word = "yes" if back is not None and rows <= AT_ONCE_ROWS else "no"
    text = f"the loss is back after {rows:,} row{'s' if rows != 1 else ''}"
    return Seen(word, text if back is not None else "the loss does not come back", "", "loss", (spike.top.step,))


@clue
def peak_over_start(_moment: Moment, loss: Series, spike: Spike) -> Seen | None:
    """Return how many times the loss of the first rows the spike reaches: a model that knows nothing is at 1."""
    start = median(finite(loss)[1][:ROWS_SHORT])
    if start <= 0:
        return None
    times = spike.top.peak / start
    return Seen(
        times, f"the loss reaches {times:.3g} times its first level", f"{times:.3g}", "loss", (spike.top.peak_step,)
    )


@clue
def gradient_rows_up(_moment: Moment, grad_norm: Series, spike: Spike) -> Seen | None:
    """Return for how many rows in a row, from the spike on, grad_norm is three times its usual value or not finite."""
    top = spike.top
    before = grad_norm.values[(grad_norm.steps < top.step) & np.isfinite(grad_norm.values)][-ROWS_LONG:]
    after = grad_norm.values[rows_before(grad_norm.steps, top.step) :]
    usual = median(before) if len(before) >= ROWS_SHORT else 0.0
    if usual <= 0 or not len(after):
        return None
    up = ~(after <= FACTOR * usual)
    rows = int(np.argmin(up)) if not up.all() else len(up)
    text = f"grad_norm is above {FACTOR:g} times its usual value for {rows:,} row{'s' if rows != 1 else ''}"
    return Seen(rows, text, f"{rows:,}", "grad_norm", (top.step,))


@clue
def same_batch(moment: Moment, batch_id: Series) -> Seen | None:
    """Return for how many rows in a row before the trouble the batch was one and the same."""
    if moment.onset_step is None:
        return None
    steps, ids = finite(batch_id)
    end = int(np.searchsorted(steps, moment.onset_step))
    new = np.flatnonzero(np.diff(ids[:end]))
    best, where = 0, 0
    starts = np.concatenate(([0], new + 1))
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        if int(stop) - int(start) >= best:
            best, where = int(stop) - int(start), int(start)
    if not end or not best:
        return None
    name = batch_id.labels.get(float(ids[where])) or f"{ids[where]:.0f}"
    first, last = int(steps[where]), int(steps[where + best - 1])
    text = f"batch {name[:16]} comes {best:,} times in a row, steps {first:,} to {last:,}"
    return Seen(best, text, f"steps {first:,} to {last:,}", "batch_id", (first, last))
