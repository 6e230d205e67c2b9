"""Clues from spikes, values that are not finite, printed lines and what was saved."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import FACTOR, ROWS_LONG, ROWS_SHORT, SHARE_HALF
from stabtree.common.stats import LARGEST, interval, median
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue
from stabtree.predicates.lines import own_frame

if TYPE_CHECKING:
    from stabtree.context.model import Known
    from stabtree.facts.movers import Break
    from stabtree.facts.spike import Spike
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series


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


SCALE_FLOOR = 1.0  # Phase 19, Q3.2: a loss scale below it has collapsed


@clue
def first_bad_value(_moment: Moment, loss_break: Break) -> Seen:
    """Return what the loss became first: `nan` or `inf`."""
    word = "inf" if np.isinf(loss_break.value) else "nan"
    name = "infinite" if word == "inf" else "NaN"
    return Seen(word, f"the loss is {name} at step {loss_break.step:,}", name, "loss", (loss_break.step,))


@clue
def broken_from_start(_moment: Moment, loss: Series) -> Seen:
    """Return whether the very first loss is NaN or infinite: `yes` or `no`."""
    broken = not np.isfinite(loss.values[0])
    what = "NaN or infinite" if broken else "finite"
    return Seen("yes" if broken else "no", f"the very first loss is {what}", "", "loss", (int(loss.steps[0]),))


@clue
def rise_before_break(_moment: Moment, loss: Series, loss_break: Break, grad_norm: Series | None = None) -> Seen | None:
    """Return how many times its usual value the loss or the gradient reaches in the last rows before the break.

    Of a log with fewer than four rows before it, how many times its first value the loss reaches.
    """
    series = (loss,) if grad_norm is None else (loss, grad_norm)
    rises = [(found[0], item.metric) for item in series if (found := loss_break.rise_before(item))]
    values = loss.values[: loss_break.row]
    if not rises and len(values) > 1 and values[0] > 0 and np.isfinite(values).all():
        rises = [(min(float(values[-1] / values[0]), LARGEST), "loss")]
    if not rises:
        return None
    times, metric = max(rises)
    text = f"{metric} had risen to {times:,.3g} times its usual value right before"
    return Seen(times, text, f"{times:,.3g}", metric)


@clue
def sound_rows_after(_moment: Moment, loss: Series, loss_break: Break) -> Seen:
    """Return which share of the rows after the first bad one is finite: 0 where the weights are lost."""
    after = np.isfinite(loss.values[loss_break.row + 1 :])
    share = float(after.mean()) if len(after) else 0.0
    text = f"{int(after.sum()):,} of the {len(after):,} rows after it are finite"
    return Seen(share, text, f"{share:.0%}", "loss", (loss_break.step,))


@clue
def loss_alone(_moment: Moment, loss: Series, loss_break: Break, grad_norm: Series) -> Seen | None:
    """Return whether only the loss breaks: the gradient is finite from there on, and so are later losses.

    Weights that hold a NaN give neither. None where fewer than three gradients were logged from the break on.
    """
    norms = grad_norm.values[rows_before(grad_norm.steps, loss_break.step) :]
    if len(norms) < ROWS_SHORT:
        return None
    back = int(np.isfinite(loss.values[loss_break.row + 1 :]).sum())
    sound = int((np.isfinite(norms) & (norms > 0)).sum())
    alone = back >= ROWS_SHORT and sound == len(norms)
    text = f"from step {loss_break.step:,} on {sound:,} of {len(norms):,} gradient norms are finite and above 0, and "
    text += f"the loss comes back in {back:,} rows"
    return Seen("yes" if alone else "no", text, "", "loss", (loss_break.step,))


@clue
def number_format(_moment: Moment, precision: Known[str]) -> Seen | None:
    """Return the number format that the run is known to train in: `fp32`, `fp16`, `bf16` or `fp8`."""
    if not precision.value:
        return None
    why = f" ({precision.why})" if precision.why else ""
    return Seen(precision.value, f"the run trains in {precision.value}{why}", precision.value)


@clue
def halvings_left(moment: Moment, loss_scale: Series) -> Seen | None:
    """Return how often the loss scale could still be halved before it is below 1, at the onset."""
    end = loss_scale.steps[-1] if moment.onset_step is None else moment.onset_step
    values = loss_scale.values[(loss_scale.steps <= end) & np.isfinite(loss_scale.values) & (loss_scale.values > 0)]
    if not len(values):
        return None
    left = max(0.0, float(np.floor(np.log2(float(values[-1]) / SCALE_FLOOR))))
    text = f"the loss scale is {float(values[-1]):,.6g}: {left:.0f} halvings above 1"
    return Seen(left, text, f"{left:.0f} halvings", "loss_scale")


@clue
def dead_gradients(moment: Moment, grad_norm: Series) -> Seen | None:
    """Return whether most gradient norms from the onset on are NaN or infinite: `yes` or `no`."""
    if moment.onset_step is None:
        return None
    after = grad_norm.values[rows_before(grad_norm.steps, moment.onset_step) :]
    if not len(after):
        return None
    broken = int((~np.isfinite(after)).sum())
    word = "yes" if broken >= SHARE_HALF * len(after) else "no"
    return Seen(word, f"{broken:,} of the {len(after):,} gradient norms from there on are not finite", "", "grad_norm")


_RANK = re.compile(r"\brank ?[1-9]|local_rank", re.IGNORECASE)


@clue
def failing_line(_moment: Moment, run: Run) -> Seen | None:
    """Return the last line of the user's own code in the traceback that ended the run."""
    frame = own_frame(run)
    return Seen("yes", f"the error was raised at {frame}", frame) if frame else None


@clue
def several_ranks(_moment: Moment, run: Run) -> Seen:
    """Return whether the log is of several ranks."""
    if run.ranks or any(_RANK.search(line.text) for line in run.lines):
        return Seen("yes", "the log names several ranks")
    return Seen("no", "the log names one process only")


YES, NO = "yes", "no"
ROWS_AFTER = 20  # no limit: rows after a resume in which what was not restored shows


@clue
def resumed_before(moment: Moment, run: Run, loss: Series) -> Seen | None:
    """Return whether the run was resumed within 20 rows before the onset; None without an onset."""
    if moment.onset_step is None:
        return None
    row = int(np.searchsorted(loss.steps, moment.onset_step))
    since = int(loss.steps[max(row - ROWS_AFTER, 0)]) if len(loss) else 0
    found = [item.to_step for item in run.resumes if since <= item.to_step <= moment.onset_step]
    if not found:
        return Seen(NO, "the log shows no resume in the 20 rows before", "", "loss")
    text = f"the run was resumed at step {found[-1]:,}, right before"
    return Seen(YES, text, f"step {found[-1]:,}", "loss", (found[-1],))


@clue
def quality_back(moment: Moment, eval_loss: Series) -> Seen | None:
    """Return the best held-out loss after the onset over the best before it: 1 where the model is as good again."""
    if moment.onset_step is None:
        return None
    steps, values = finite(eval_loss)
    before, after = values[: rows_before(steps, moment.onset_step)], values[rows_before(steps, moment.onset_step) :]
    if not len(before) or not len(after) or before.min() <= 0:
        return None
    share = float(after.min() / before.min())
    text = f"eval_loss was {figure(before.min())} at its best before, and {figure(after.min())} after"
    return Seen(share, text, f"{figure(before.min())} → {figure(after.min())}", "eval_loss")
