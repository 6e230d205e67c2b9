"""What the log shows of a loss that is NaN or infinite: the first such value, the number format, the rows after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import ROWS_SHORT, SHARE_HALF
from stabtree.common.stats import LARGEST
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.context.model import Known
    from stabtree.facts.loss_break import Break
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Series

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
