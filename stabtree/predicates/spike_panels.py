"""The three panels of Q2.3: learning rate, batch and gradient norm around a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import LIKELY, NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import finite, predicate
from stabtree.predicates.spike_search import Spike, find
from stabtree.predicates.spikes import worst

if TYPE_CHECKING:
    from stabtree._lazy import Ints
    from stabtree.run import Run, Series

NEARBY_ROWS = 5  # rows before a spike in which a jump of the learning rate may have set it off
NO_SPIKE = "no spike was found"


@predicate(
    source="phase19 Q2.3",
    labels=("lr_jump", "duplicate_batch", "bad_batch", "unexplained", "within_noise"),
    min_points=12,
)
def spike_cause(
    run: Run,
    loss: Series,
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
) -> Answer:
    """Which of the three panels explains the spike: learning rate, batch, or gradient norm?

    A jump of the learning rate and a repeated batch are causes; a high grad_norm is what a bad batch looks
    like, and what the other two look like as well, so it is asked last. Without a panel a spike is
    `unexplained` when it rises by more than `range_share` of all that the loss ever moved (its 2nd to 98th
    percentile), else `within_noise`; a merely likely bad batch counts from `likely_share` on. Spikes that
    heal by themselves below a quarter of that range are common in healthy labelled runs, half of it was
    never reached by one.
    """
    top = worst(loss, find(loss, window_steps=window_steps, sigma=sigma, chance=chance, back_sigma=back_sigma))
    if top is None:
        return unknown(NO_SPIKE, "loss")
    panels = {
        "lr_jump": _lr_panel(run.get("lr"), top, lr_factor),
        "duplicate_batch": _batch_panel(run.get("batch_id"), top, window_steps),
        "bad_batch": _grad_norm_panel(run.get("grad_norm"), top, grad_norm_factor, grad_norm_likely_factor),
    }
    notes = tuple(e for panel in panels.values() for e in panel.evidence)
    gaps = tuple(metric for panel in panels.values() for metric in panel.missing)
    span = float(np.subtract(*np.quantile(finite(loss)[1], [0.98, 0.02])))
    share = min((top.peak - top.mean) / span, 1e300) if span > 0 else 1e300
    for verdict, panel in panels.items():
        if panel.verdict == YES or (panel.verdict == LIKELY and share > likely_share):
            own = panel.evidence
            return Answer(verdict, own + tuple(e for e in notes if e not in own), missing=gaps, onset_step=top.step)
    text = f"it rises by {share:.2g}× the range that the loss covers in the whole run"
    found = Evidence(text, "loss", (top.step,), share, range_share)
    label = "unexplained" if share > range_share else "within_noise"
    return Answer(label, (found, *notes), missing=gaps, onset_step=top.step, last_good_step=top.last_good_step)


@predicate(source="phase19 Q2.3, second panel", min_points=12)
def lr_jumps_at_spike(
    loss: Series,
    lr: Series,
    *,
    window_steps: int = 100,
    sigma: float = 3.0,
    chance: float = 0.1,
    back_sigma: float = 0.5,
    factor: float = 1.5,
) -> Answer:
    """Does the learning rate jump where the loss spikes?

    A jump is a rise by more than `factor` from one row to the next and more than five times the usual
    change of the rows before, so that a steep warm-up logged coarsely is none. Labelled schedule bugs
    multiply the rate by 3 and more; warm-ups past step 100 move it by less than 1.5 a row.
    """
    top = worst(loss, find(loss, window_steps=window_steps, sigma=sigma, chance=chance, back_sigma=back_sigma))
    return _lr_panel(lr, top, factor) if top else unknown(NO_SPIKE, "loss")


@predicate(source="phase19 Q2.3, third panel", min_points=12)
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

    An index that recurs once per epoch is normal: a batch counts as repeated when it comes back in less
    than half the distance at which batches of this run usually recur.
    """
    top = worst(loss, find(loss, window_steps=window_steps, sigma=sigma, chance=chance, back_sigma=back_sigma))
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
    factor: float = 30.0,
    likely_factor: float = 8.0,
) -> Answer:
    """Is grad_norm before clipping far above its rolling mean at the spike?

    `factor` (30) is the document's and confirms a bad batch. Measured on the labelled bad batches it
    catches about half; from `likely_factor` on, which healthy runs hardly reach, one is likely.
    """
    top = worst(loss, find(loss, window_steps=window_steps, sigma=sigma, chance=chance, back_sigma=back_sigma))
    return _grad_norm_panel(grad_norm, top, factor, likely_factor) if top else unknown(NO_SPIKE, "loss")


def _rows_at(steps: Ints, top: Spike, before: int) -> tuple[int, int]:
    """Rows from `before` rows ahead of the spike to its peak, as a half-open range."""
    start = int(np.searchsorted(steps, top.step))
    end = int(np.searchsorted(steps, top.peak_step, side="right"))
    return max(start - before, 0), max(end, start + 1)


def _lr_panel(lr: Series | None, top: Spike, factor: float) -> Answer:
    if lr is None:
        return unknown("lr was not logged", "lr")
    steps, values = finite(lr)
    start, end = _rows_at(steps, top, NEARBY_ROWS)
    if start < 1 or end > len(steps) or end - start < 2:
        return unknown("lr is not logged around the spike", "lr")
    logs = np.log(np.maximum(values[: end + 1], 1e-300))
    changes = np.diff(logs)
    near, usual = changes[start - 1 : end], float(np.median(np.abs(changes[: max(start - 1, 1)])))
    at = int(np.argmax(near))
    jump, step = float(np.exp(min(near[at], 700.0))), int(steps[start + at])
    if near[at] > max(np.log(factor), 5 * usual):
        text = f"lr jumps ×{jump:.3g} at step {step:,} ({values[start + at - 1]:.3g} → {values[start + at]:.3g})"
        return Answer(YES, (Evidence(text, "lr", (step,), jump, factor),), onset_step=step)
    text = f"lr is continuous around the spike (largest step ×{jump:.3g}, a jump is ×{factor:g})"
    return Answer(NO, (Evidence(text, "lr", (step,), jump, factor),))


def _grad_norm_panel(grad_norm: Series | None, top: Spike, factor: float, likely_factor: float) -> Answer:
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    start, end = _rows_at(grad_norm.steps, top, 1)
    before = grad_norm.values[max(start - 100, 0) : start]
    before = before[np.isfinite(before)]
    if start >= len(grad_norm) or not len(before) or float(before.mean()) <= 0:
        return unknown("grad_norm is not logged around the spike", "grad_norm")
    mean = float(before.mean())
    near = grad_norm.values[start:end]
    at = int(np.argmax(np.nan_to_num(near, nan=np.inf)))
    step = int(grad_norm.steps[start + at])
    if not np.isfinite(near[at]):
        return Answer(YES, (Evidence(f"grad_norm is not finite at step {step:,}", "grad_norm", (step,), None, factor),))
    ratio = min(float(near[at]) / mean, 1e300)
    verdict = YES if ratio > factor else LIKELY if ratio > likely_factor else NO
    text = f"grad_norm is {ratio:.3g}× its rolling mean at step {step:,} ({factor:g}× confirms a bad batch, "
    text += f"{likely_factor:g}× makes it likely)"
    return Answer(verdict, (Evidence(text, "grad_norm", (step,), ratio, factor),))


def _batch_panel(batch_id: Series | None, top: Spike, window_steps: int) -> Answer:
    if batch_id is None:
        return unknown("batch_id was not logged", "batch_id")
    start = int(np.searchsorted(batch_id.steps, top.step - window_steps))
    end = int(np.searchsorted(batch_id.steps, top.peak_step, side="right"))
    if end <= start or batch_id.steps[-1] < top.step:
        return unknown("batch_id is not logged around the spike", "batch_id")
    distance = _recurrence(batch_id)
    usual = distance[:start][distance[:start] > 0]
    epoch = float(np.median(usual)) if len(usual) else float("inf")
    near = distance[start:end]
    repeats = np.flatnonzero((near > 0) & (near < 0.5 * epoch))
    if not len(repeats):
        text = f"no batch of the {window_steps} steps before the spike had been seen before"
        if np.isfinite(epoch):
            text = f"the batches before the spike recur once per epoch ({epoch:,.0f} steps), as usual"
        return Answer(NO, (Evidence(text, "batch_id", (top.step,), 0.0, 1.0),))
    row = start + int(repeats[-1])
    step, back = int(batch_id.steps[row]), int(distance[row])
    text = f"the batch of step {step:,} is that of step {step - back:,}; {len(repeats):,} repeats in the "
    text += f"{window_steps} steps before"
    text += (
        f", where batches recur every {epoch:,.0f} steps" if np.isfinite(epoch) else ", where none had recurred before"
    )
    return Answer(YES, (Evidence(text, "batch_id", (step, step - back), float(len(repeats)), 1.0),))


def _recurrence(batch_id: Series) -> Ints:
    """Steps since the same batch was last seen, 0 for the first time: (n,)."""
    order = np.lexsort((batch_id.steps, batch_id.values))
    same = batch_id.values[order][1:] == batch_id.values[order][:-1]
    distance = np.zeros(len(batch_id), dtype=np.int64)
    distance[order[1:][same]] = np.diff(batch_id.steps[order])[same]
    return distance
