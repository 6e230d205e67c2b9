"""The three panels of Q2.3: learning rate, batch and gradient norm around a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import LIKELY, NO, YES, Answer, Evidence, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import ROWS_SHORT, SHARE_SOME
from stabtree.common.stats import median
from stabtree.common.strength import above
from stabtree.facts.registry import Unknown, finite
from stabtree.facts.spikes.rarity import rarity
from stabtree.facts.spikes.scores import many_spikes
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.batches import Batches
    from stabtree.facts.spike import Spike
    from stabtree.facts.spikes.excursions import Excursion
    from stabtree.run import Run, Series

USUAL_FACTOR = 5.0
"""How many times its usual change a rate must jump: a steep warm-up logged coarsely does not."""

# Names of schedules that raise the rate in jumps by design.
CYCLIC = ("restart", "cycl", "triang", "warm_restart", "sgdr")


class NormPanelLimits(NamedTuple):
    """Limits of a grad_norm that points to a bad batch; see `grad_norm_at_spike`."""

    factor: float
    likely_factor: float


@predicate(source="phase19 Q2.3, learning rate")
def lr_jumps_at_spike(
    run: Run,
    spike: Spike,
    lr: Series,
    *,
    lr_factor: float,
    lr_falls: bool,
) -> Answer:
    """Does the learning rate jump where the loss spikes?

    A jump is a rise (with `lr_falls` a fall as well) by more than `lr_factor` from one row to the next, within
    `ROWS_SHORT` rows of the spike, and more than `USUAL_FACTOR` times the usual change of the rows before, so that a
    steep warm-up logged coarsely is none. A schedule that jumps by design is no bug: by its name (restarts, cycles), or
    because it goes back to a rate that the run had before, hardly above it.
    Labelled schedule bugs multiply the rate by 3 and more; warm-ups past step 100 move it by less than 1.5 a row.
    """
    return lr_panel(run, lr, spike.top, lr_factor, falls=lr_falls)


@predicate(source="phase19 Q2.3, batch", labels=("yes", "likely", "no"))
def batch_repeats_at_spike(spike: Spike, batches: Batches) -> Answer:
    """Is a batch around the spike a duplicate of a recent one?

    Batches recur once per epoch, and around the turn of a reshuffled epoch a few come back early. A loader bug
    shows as batches that come back within `recent_steps`, although `others` times as many have been seen:
    `stuck_share` of the rows before the spike (at least `stuck_rows`) confirm it, fewer make it likely.
    """
    return batch_panel(batches, spike)


@predicate(source="phase19 Q2.3, gradient norm", labels=("yes", "likely", "no"))
def grad_norm_at_spike(
    run: Run,
    spike: Spike,
    grad_norm: Series,
    *,
    grad_norm_factor: float,
    grad_norm_likely_factor: float,
) -> Answer:
    """Is grad_norm before clipping far above its rolling mean at the spike?

    `grad_norm_factor` is the document's and confirms a bad batch. Measured on the labelled bad batches it
    catches about half. A grad_norm above `grad_norm_likely_factor` times its mean that its own noise does not
    explain (as `rare` as the spike must be) makes one likely: labelled bad batches lie below 1e-4, spikes of healthy
    runs that reach twice the mean above 0.02. No where the loss takes long to come back: one batch is over at once.
    """
    limits = NormPanelLimits(grad_norm_factor, grad_norm_likely_factor)
    return grad_norm_panel(run, grad_norm, spike, limits)


def batch_panel(batches: Batches | Unknown, spike: Spike) -> Answer:
    """Answer `batch_repeats_at_spike`; unknown also where the batches are."""
    if isinstance(batches, Unknown):
        return unknown(batches.reason, *batches.missing)
    top, series = spike.top, batches.series
    if series.steps[-1] < top.step or series.steps[0] >= top.step:
        return unknown("batch_id is not logged around the spike", "batch_id")
    found = batches.around(top.step, spike.params.window_steps)
    if found is None:
        before = int(batches.known[int(np.searchsorted(series.steps, top.step)) - 1])
        text = (
            f"no batch around the spike repeats one of the {batches.recent_steps:,} steps before it, and no sequence "
        )
        text += f"of older batches comes back in its order ({before:,} different ones before)"
        # Where every step has its batch, and none ever came back, there is no repeat to look for.
        every = bool((np.diff(series.steps) == 1).all()) and not batches.since_steps.any()
        return Answer(NO, (Evidence(text, "batch_id", (top.step,), 0.0, 1.0),), contrary=every)
    step, back = int(series.steps[found.last]), int(batches.since_steps[found.last])
    since = int(series.steps[found.first])
    text = f"batches repeat from step {since:,} on: that of step {step:,} is that of step {step - back:,}, and "
    text += f"{found.rows:,} of the {found.window_rows:,} rows around the spike are early repeats"
    evidence = (Evidence(text, "batch_id", (since, step), float(found.rows), 1.0),)
    good = since - int(batches.since_steps[found.first])
    strength = above(found.rows, found.stuck_rows)
    verdict = YES if strength >= 0 else LIKELY
    return Answer(verdict, evidence, onset_step=step, last_good_step=good, strength=max(strength, 0.0))


def _rows_at(steps: Ints, top: Excursion) -> tuple[int, int]:
    """Return the rows around the onset of a spike as a half-open range: what comes long after it is not its cause."""
    start = int(np.searchsorted(steps, top.step))
    return max(start - ROWS_SHORT, 0), min(start + ROWS_SHORT, len(steps))


def lr_panel(run: Run, lr: Series | None, top: Excursion, factor: float, *, falls: bool) -> Answer:
    """Answer `lr_jumps_at_spike`; unknown also where no rate was logged."""
    if lr is None:
        return unknown("lr was not logged", "lr")
    steps, values = finite(lr)
    start, end = _rows_at(steps, top)
    if start < 1 or end - start < 2 or steps[-1] < top.step:
        return _same_on_both_sides(steps, values, top, factor)
    changes = _log_changes(lr)
    sizes = np.abs(changes) if falls else changes
    near, before = sizes[start - 1 : end - 1], changes[: start - 1]
    usual = median(np.abs(before)) if len(before) else 0.0
    at = int(np.argmax(near))
    row = start + at
    jump = float(np.exp(np.clip(changes[row - 1], -690.0, 690.0)))
    step = int(steps[row])
    limit = max(float(np.log(max(factor, 1e-300))), USUAL_FACTOR * usual)
    if near[at] <= limit:
        text = _continuous(steps[start:end], changes[start - 1 : end - 1], jump, factor)
        allowed = float(np.exp(min(limit, 690.0)))
        return Answer(NO, (Evidence(text, "lr", (step,), jump, allowed),), contrary=_at_every_row(run, lr))
    schedule = str(run.setting("lr_schedule") or "")
    planned = next((word for word in CYCLIC if word in schedule.lower()), "")
    if planned or (not falls and values[row] <= (1 + SHARE_SOME) * values[:row].max()):
        by = f"the schedule is {schedule!r}" if planned else "back to a rate that the run had before"
        planned_text = f"lr jumps ×{figure(jump)} at step {step:,} as planned: {by}"
        return Answer(NO, (Evidence(planned_text, "lr", (step,), jump, factor),))
    text = f"lr jumps ×{against(jump, factor)} at step {step:,} ({figure(values[row - 1])} → {figure(values[row])})"
    found = (Evidence(text, "lr", (step,), jump, factor),)
    strength = above(jump, factor)
    return Answer(YES, found, onset_step=step, last_good_step=int(steps[row - 1]), strength=abs(strength))


@remembered
def _log_changes(lr: Series) -> Floats:
    """Return the changes of the logarithm of a rate from row to row."""
    return np.diff(np.log(np.maximum(finite(lr)[1], 1e-300)))


def _same_on_both_sides(steps: Ints, values: Floats, top: Excursion, factor: float) -> Answer:
    """Answer no where a rarely logged learning rate is the same before and after the spike, else unknown."""
    after = int(np.searchsorted(steps, top.step))
    if not 0 < after < len(steps) or values[after] != values[after - 1]:
        return unknown("lr is not logged around the spike", "lr")
    before, then = int(steps[after - 1]), int(steps[after])
    text = f"lr is {figure(values[after])} before the spike and after it (steps {before:,} and {then:,})"
    return Answer(NO, (Evidence(text, "lr", (before, then), 1.0, factor),))


def _continuous(steps: Ints, changes: Floats, jump: float, factor: float) -> str:
    """Describe that lr does not jump, with its fall, or a rise that is usual in this run, where there is one."""
    low = int(np.argmin(changes))
    fall = float(np.exp(np.clip(changes[low], -690.0, 690.0)))
    if jump > factor:
        text = f"lr rises by no more than in the rows before: by ×{figure(jump)} at most"
    elif fall * factor < 1:
        text = f"lr does not rise by more than ×{against(jump, factor)} around the spike (limit ×{factor:g})"
    else:
        largest = fall if fall * jump < 1 else jump
        return f"lr is continuous around the spike (largest change ×{against(largest, factor)}, limit ×{factor:g})"
    return f"{text}; it falls to ×{figure(fall)} at step {int(steps[low]):,}" if fall * factor < 1 else text


def _at_every_row(run: Run, lr: Series) -> bool:
    """Return whether the learning rate was logged wherever the loss was."""
    loss = run.get("loss")
    return loss is not None and (loss.steps is lr.steps or bool(np.isin(loss.steps, lr.steps).all()))


def _spikes_with_loss(grad_norm: Series, spike: Spike) -> bool:
    """Return whether most of many spikes of grad_norm come with one of the loss; pulses by themselves are its noise."""
    tops = [excursion.step for excursion in spike.search.spikes]
    many = [recovery.step for recovery in many_spikes(grad_norm)]
    rows = [np.searchsorted(grad_norm.steps, steps) for steps in (tops, many)]
    near = sum(bool(np.any(np.abs(rows[0] - row) <= ROWS_SHORT)) for row in rows[1])
    return near > len(many) / 2


def grad_norm_panel(run: Run, grad_norm: Series | None, spike: Spike, limits: NormPanelLimits) -> Answer:
    """Answer `grad_norm_at_spike`; unknown also where no norm was logged."""
    if grad_norm is None:
        return unknown("grad_norm was not logged", "grad_norm")
    top, factor = spike.top, limits.factor
    _, end = _rows_at(grad_norm.steps, top)
    first, last = np.searchsorted(grad_norm.steps, (top.step - spike.params.window_steps, top.step))
    before = grad_norm.values[first:last]
    before = before[np.isfinite(before)]
    if grad_norm.steps[-1] < top.step or not len(before) or float(before.mean()) <= 0:
        return unknown("grad_norm is not logged around the spike", "grad_norm")
    start = max(int(np.searchsorted(grad_norm.steps, top.step)) - 1, 0)
    near = grad_norm.values[start:end]
    at = int(np.argmax(np.nan_to_num(near, nan=np.inf)))
    step = int(grad_norm.steps[start + at])
    if not np.isfinite(near[at]):
        if run.get("loss_scale") is not None or run.setting("dtype") == "fp16":
            return unknown(f"grad_norm is not finite at step {step:,}, which in fp16 may be an ordinary overflow")
        found = Evidence(f"grad_norm is not finite at step {step:,}", "grad_norm", (step,), None, factor)
        return Answer(YES, (found,))
    ratio = min(float(near[at]) / float(before.mean()), 1e300)
    text = (
        f"grad_norm is {against(ratio, factor)}× its rolling mean at step {step:,}; more than {factor:g}× confirms a "
    )
    text += "bad batch"
    verdict = YES if ratio > factor else NO
    if verdict == NO and ratio > limits.likely_factor:
        expected = rarity(grad_norm, step, spike.params, _spikes_with_loss(grad_norm, spike))
        verdict = LIKELY if expected < spike.params.rare else NO
        text += f", and its own noise {'does not explain' if verdict == LIKELY else 'explains'} it"
    loss = run.get("loss")
    slow = top.recovered_step is not None and loss is not None and spike.took(loss) > spike.quick(loss)
    if spike.params.guarded and loss is not None and slow:
        text += f"; a single batch is over at once, the loss took {spike.took(loss):,} steps"
        verdict = NO
    return Answer(verdict, (Evidence(text, "grad_norm", (step,), ratio, factor),))
