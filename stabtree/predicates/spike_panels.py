"""The three panels of Q2.3: learning rate, batch and gradient norm around a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import LIKELY, NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import finite, predicate
from stabtree.predicates.spikes import rise_share, worst_spike

if TYPE_CHECKING:
    from stabtree._lazy import Ints
    from stabtree.predicates.spike_search import Spike
    from stabtree.run import Run, Series

NEARBY_ROWS = 5  # rows before a spike in which a jump of the learning rate may have set it off
# Names of schedules that raise the rate in jumps by design.
CYCLIC = ("restart", "cycl", "triang", "warm_restart", "sgdr")
NO_SPIKE = "no spike was found"


@predicate(
    source="phase19 Q2.3",
    labels=("lr_jump", "duplicate_batch", "bad_batch", "unexplained", "minor"),
    min_points=12,
)
def spike_cause(
    run: Run,
    loss: Series,
    lr: Series | None = None,
    batch_id: Series | None = None,
    grad_norm: Series | None = None,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
    lr_factor: float = 1.5,
    grad_norm_factor: float = 30.0,
    grad_norm_likely_factor: float = 8.0,
    likely_share: float = 0.15,
    range_share: float = 0.5,
    level_share: float = 0.25,
) -> Answer:
    """Which of the three panels explains the spike: learning rate, batch, or gradient norm?

    A jump of the learning rate and a repeated batch are causes; a high grad_norm is what a bad batch looks
    like, and what the other two look like as well, so it is asked last. Without a panel a spike is
    `unexplained` when it rises by more than `range_share` of all that the loss ever moved (its 2nd to 98th
    percentile) and by more than `level_share` of the mean before it (a flat log has no range to speak of),
    else `minor`; a merely likely bad batch counts from `likely_share` on. Spikes that
    heal by themselves below a quarter of that range are common in healthy labelled runs, half of it was
    never reached by one.
    """
    top = worst_spike(loss, window_steps, sigma, chance, back_sigma)
    if top is None:
        return unknown(NO_SPIKE, "loss")
    panels = {
        "lr_jump": _lr_panel(run, lr, top, lr_factor),
        "duplicate_batch": _batch_panel(batch_id, top, window_steps),
        "bad_batch": _grad_norm_panel(grad_norm, top, window_steps, grad_norm_factor, grad_norm_likely_factor),
    }
    notes = tuple(e for panel in panels.values() for e in panel.evidence)
    gaps = tuple(metric for panel in panels.values() for metric in panel.missing)
    share = rise_share(loss, top, top.peak)
    for verdict, panel in panels.items():
        if panel.verdict == YES or (panel.verdict == LIKELY and share > likely_share):
            own = panel.evidence
            told = own + tuple(e for e in notes if e not in own)
            good = panel.last_good_step if panel.last_good_step is not None else top.last_good_step
            return Answer(verdict, told, missing=gaps, onset_step=top.step, last_good_step=good)
    text = f"it rises by {share:.2g}× the range that the loss covers in the whole run"
    found = Evidence(text, "loss", (top.step,), share, range_share)
    lifted = top.peak - top.mean > level_share * abs(top.mean)
    label = "unexplained" if share > range_share and lifted else "minor"
    return Answer(label, (found, *notes), missing=gaps, onset_step=top.step, last_good_step=top.last_good_step)


@predicate(source="phase19 Q2.3, second panel", min_points=12)
def lr_jumps_at_spike(
    run: Run,
    loss: Series,
    lr: Series,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
    lr_factor: float = 1.5,
) -> Answer:
    """Does the learning rate jump where the loss spikes?

    A jump is a rise by more than `lr_factor` from one row to the next and more than five times the usual
    change of the rows before, so that a steep warm-up logged coarsely is none. A schedule that jumps by
    design is no bug: by its name (restarts, cycles), or because it goes back to a rate that the run had before.
    Labelled schedule bugs multiply the rate by 3 and more; warm-ups past step 100 move it by less than 1.5 a row.
    """
    top = worst_spike(loss, window_steps, sigma, chance, back_sigma)
    return _lr_panel(run, lr, top, lr_factor) if top else unknown(NO_SPIKE, "loss")


@predicate(source="phase19 Q2.3, third panel", labels=("yes", "likely", "no"), min_points=12)
def batch_repeats_at_spike(
    loss: Series,
    batch_id: Series,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
) -> Answer:
    """Is a batch around the spike a duplicate of a recent one?

    Batches recur once per epoch, and around the turn of a reshuffled epoch a few come back early. A loader bug
    shows as batches that come back within a fifth of `window_steps` (20), in less than half the distance at
    which batches of this run usually recur: two confirm it, one makes it likely.
    """
    top = worst_spike(loss, window_steps, sigma, chance, back_sigma)
    return _batch_panel(batch_id, top, window_steps) if top else unknown(NO_SPIKE, "loss")


@predicate(source="phase19 Q2.3, first panel", labels=("yes", "likely", "no"), min_points=12)
def grad_norm_at_spike(
    loss: Series,
    grad_norm: Series,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
    grad_norm_factor: float = 30.0,
    grad_norm_likely_factor: float = 8.0,
) -> Answer:
    """Is grad_norm before clipping far above its rolling mean at the spike?

    `grad_norm_factor` (30) is the document's and confirms a bad batch. Measured on the labelled bad batches it
    catches about half; from `grad_norm_likely_factor` on, which healthy runs hardly reach, one is likely.
    """
    top = worst_spike(loss, window_steps, sigma, chance, back_sigma)
    if top is None:
        return unknown(NO_SPIKE, "loss")
    return _grad_norm_panel(grad_norm, top, window_steps, grad_norm_factor, grad_norm_likely_factor)


def _rows_at(steps: Ints, top: Spike) -> tuple[int, int]:
    """Rows around the onset of a spike as a half-open range: what comes long after it is not its cause."""
    start = int(np.searchsorted(steps, top.step))
    return max(start - NEARBY_ROWS, 0), min(start + NEARBY_ROWS, len(steps))


def _lr_panel(run: Run, lr: Series | None, top: Spike, factor: float) -> Answer:
    if lr is None:
        return unknown("lr was not logged", "lr")
    steps, values = finite(lr)
    start, end = _rows_at(steps, top)
    if start < 1 or end - start < 2 or steps[-1] < top.step:
        return unknown("lr is not logged around the spike", "lr")
    changes = np.diff(np.log(np.maximum(values, 1e-300)))
    near, before = changes[start - 1 : end - 1], changes[: start - 1]
    usual = float(np.median(np.abs(before))) if len(before) else 0.0
    at = int(np.argmax(near))
    jump, row = float(np.exp(min(near[at], 690.0))), start + at
    step = int(steps[row])
    if near[at] <= max(float(np.log(max(factor, 1e-300))), 5 * usual):
        text = f"lr is continuous around the spike (largest step ×{jump:.3g}, a jump is ×{factor:g})"
        return Answer(NO, (Evidence(text, "lr", (step,), jump, factor),))
    schedule = str(run.setting("lr_schedule") or "")
    planned = next((word for word in CYCLIC if word in schedule.lower()), "")
    if planned or values[row] <= 1.05 * values[:row].max():
        by = f"the schedule is {schedule!r}" if planned else "back to a rate that the run had before"
        planned_text = f"lr jumps ×{jump:.3g} at step {step:,} by plan: {by}"
        return Answer(NO, (Evidence(planned_text, "lr", (step,), jump, factor),))
    text = f"lr jumps ×{jump:.3g} at step {step:,} ({values[row - 1]:.3g} → {values[row]:.3g})"
    found = (Evidence(text, "lr", (step,), jump, factor),)
    return Answer(YES, found, onset_step=step, last_good_step=int(steps[row - 1]))


def _grad_norm_panel(
    grad_norm: Series | None, top: Spike, window_steps: int, factor: float, likely_factor: float
) -> Answer:
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    start, end = _rows_at(grad_norm.steps, top)
    inside = (grad_norm.steps >= top.step - window_steps) & (grad_norm.steps < top.step)
    before = grad_norm.values[inside & np.isfinite(grad_norm.values)]
    if grad_norm.steps[-1] < top.step or not len(before) or float(before.mean()) <= 0:
        return unknown("grad_norm is not logged around the spike", "grad_norm")
    start = max(int(np.searchsorted(grad_norm.steps, top.step)) - 1, 0)
    near = grad_norm.values[start:end]
    at = int(np.argmax(np.nan_to_num(near, nan=np.inf)))
    step = int(grad_norm.steps[start + at])
    if not np.isfinite(near[at]):
        found = Evidence(f"grad_norm is not finite at step {step:,}", "grad_norm", (step,), None, factor)
        return Answer(YES, (found,))
    ratio = min(float(near[at]) / float(before.mean()), 1e300)
    verdict = YES if ratio > factor else LIKELY if ratio > likely_factor else NO
    likely = f", {likely_factor:g}× makes it likely" if likely_factor < factor else ""
    text = f"grad_norm is {ratio:.3g}× its rolling mean at step {step:,} ({factor:g}× confirms a bad batch{likely})"
    return Answer(verdict, (Evidence(text, "grad_norm", (step,), ratio, factor),))


def _batch_panel(batch_id: Series | None, top: Spike, window_steps: int) -> Answer:
    if batch_id is None:
        return unknown("batch_id was not logged", "batch_id")
    start = int(np.searchsorted(batch_id.steps, top.step - window_steps))
    end = min(int(np.searchsorted(batch_id.steps, top.step)) + NEARBY_ROWS, len(batch_id))
    if end <= start or batch_id.steps[-1] < top.step:
        return unknown("batch_id is not logged around the spike", "batch_id")
    distance = _recurrence(batch_id)
    usual = distance[:start][distance[:start] > 0]
    epoch = float(np.median(usual)) if len(usual) else float("inf")
    near = distance[start:end]
    repeats = np.flatnonzero((near > 0) & (near <= window_steps / 5) & (near < 0.5 * epoch))
    recur = f"batches recur every {epoch:,.0f} steps" if np.isfinite(epoch) else "no batch had recurred before"
    if not len(repeats):
        text = f"no batch around the spike is a repeat of a recent one ({recur})"
        return Answer(NO, (Evidence(text, "batch_id", (top.step,), 0.0, 1.0),))
    last, first = start + int(repeats[-1]), start + int(repeats[0])
    step, back = int(batch_id.steps[last]), int(distance[last])
    text = f"the batch of step {step:,} is that of step {step - back:,}; {len(repeats):,} early repeats in the "
    text += f"{window_steps} steps before ({recur})"
    found = (Evidence(text, "batch_id", (step, step - back), float(len(repeats)), 1.0),)
    good = int(batch_id.steps[first]) - int(distance[first])
    return Answer(YES if len(repeats) > 1 else LIKELY, found, onset_step=step, last_good_step=good)


def _recurrence(batch_id: Series) -> Ints:
    """Steps since the same batch was last seen, 0 for the first time: (n,)."""
    order = np.lexsort((batch_id.steps, batch_id.values))
    same = batch_id.values[order][1:] == batch_id.values[order][:-1]
    distance = np.zeros(len(batch_id), dtype=np.int64)
    distance[order[1:][same]] = np.diff(batch_id.steps[order])[same]
    return distance
