"""Divergence and its forerunners: norms that lead, logits that drift, gradients that vanish, runs that never held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.registry import UNGROUPED, Groups, predicate
from stabtree.stats import NORMAL_MAD, blocks, kendall_z, median

if TYPE_CHECKING:
    from stabtree._lazy import Floats
    from stabtree.facts.spike import Spike
    from stabtree.run import Run, Series


def _ends(values: Floats, levels: int) -> tuple[float, float, float]:
    """The level at the beginning, the level at the end, and the trend's z."""
    medians, _ = blocks(values, min(max(levels, 1), max(1, len(values) // 3)))
    return float(median(medians[:3])), float(median(medians[-3:])), kendall_z(medians)


@predicate(source="precision P12")
def grad_norm_leads(
    spike: Spike,
    grad_norm: Series,
    *,
    sigma: float,
    factor: float,
    rows: int,
    lead_rows: int,
    least_rows: int,
    least_lead_rows: int,
) -> Answer:
    """Did grad_norm rise for some steps before the loss spiked?

    Read are the `rows` rows before the spike, `least_rows` at least: but for the last `lead_rows` they give its usual
    level, and yes takes at least `least_lead_rows` rows in a row, up to the spike, above `factor` times that level and
    `sigma` robust deviations.
    """
    top = spike.top
    steps, values = finite(grad_norm)
    end = int(np.searchsorted(steps, top.step))
    if end < max(least_rows, 1):
        return unknown("too few rows of grad_norm before the spike", "grad_norm")
    before = values[max(0, end - max(rows, 1)) : end]
    usual = before[: max(len(before) - lead_rows, lead_rows)] if lead_rows else before
    level = float(median(usual))
    scatter = NORMAL_MAD * float(median(np.abs(usual - level)))
    bar = max(factor * level, level + sigma * scatter)
    high = before > bar
    led = len(high) if high.all() else int(np.argmax(~high[::-1]))
    peak = float(before[-led:].max()) if led else float(before[-1])
    lead = top.step - int(steps[end - led]) if led else 0
    text = f"grad_norm was above {bar:.3g} (usual {level:.3g}) for {led} rows before the spike at step {top.step:,}"
    text += f", a lead of {lead:,} steps, up to {peak:.3g}" if led else ""
    found = (Evidence(text, "grad_norm", (top.step,), float(led), float(least_lead_rows)),)
    return Answer(YES if led >= max(least_lead_rows, 1) else NO, found)


@predicate(source="precision P15")
def logits_drift(
    logits_max: Series | None = None,
    logsumexp: Series | None = None,
    *,
    growth: float,
    least: float,
    trend_z: float,
    levels: int,
) -> Answer:
    """Do the output logits drift away?

    Yes when the absolute value of the largest logit or of log Z has a rising trend (that of `levels` block medians,
    above `trend_z`), ends above `growth` times its level at the beginning and above `least`: at 20, exp() of it spans
    nine decades.
    """
    told = []
    for name, series in (("logits_max", logits_max), ("logsumexp", logsumexp)):
        values = np.abs(finite(series)[1]) if series is not None else np.zeros(0)
        if series is None or len(values) < max(levels, 1):
            continue
        begin, end, trend = _ends(values, levels)
        yes = trend > trend_z and end > growth * begin and end > least
        text = f"|{name}| goes from {begin:.3g} to {end:.3g}, trend z {trend:.1f}"
        told.append((yes, Evidence(text, name, (), end, max(growth * begin, least))))
    if not told:
        return unknown("neither logits_max nor logsumexp was logged often enough", "logits_max", "logsumexp")
    yes = any(item[0] for item in told)
    return Answer(YES if yes else NO, tuple(evidence for found, evidence in told if found or not yes))


@predicate(source="precision P16")
def attention_logits_grow(
    attention_logits_max: Groups, *, growth: float, least: float, trend_z: float, levels: int
) -> Answer:
    """Do the attention logits of some layer grow without a bound?

    Yes when a layer's largest Q·K has a rising trend (of `levels` block medians, above `trend_z`), ends above `growth`
    times its level at the beginning and above `least`, where its softmax has long since put all its weight on one key.
    """
    worst: tuple[bool, float, str, float] | None = None
    for name, series in attention_logits_max.items():
        values = np.abs(finite(series)[1])
        if len(values) < max(levels, 1):
            continue
        begin, end, trend = _ends(values, levels)
        yes = trend > trend_z and end > growth * begin and end > least
        of = "" if name == UNGROUPED else f"{name}: "
        told = f"{of}{begin:.3g} at the beginning, {end:.3g} at the end, z {trend:.1f}"
        worst = max(worst or (False, -1.0, "", 0.0), (yes, end, told, max(growth * begin, least)))
    if worst is None:
        return unknown("attention_logits_max has too few rows", "attention_logits_max")
    text = f"the largest attention logits are those of {worst[2]}"
    return Answer(YES if worst[0] else NO, (Evidence(text, "attention_logits_max", (), worst[1], worst[3]),))


@predicate(source="precision P17", min_points=3)
def diverges_early(run: Run, loss: Series, *, first_steps: int, factor: float, begin_share: float) -> Answer:
    """Did the run break down in its first few hundred steps?

    Yes when the loss stops being finite, or rises above `factor` times its first level and stays there, within
    `first_steps` steps (of which `begin_share` may be missing), in the run and in a rerun with another learning rate.
    One run alone can't tell it from a rate that is too high: of 75 labelled faulted runs a dozen break so early, none
    for its initialisation.
    """
    broke = _breaks_early(loss, first_steps, factor, begin_share)
    if broke is None:
        text = f"the loss holds through its first {first_steps:,} steps, or the log begins later"
        return Answer(NO, (Evidence(text, "loss", (), 0.0, factor),))
    text = f"the loss broke down at step {broke:,}, within the first {first_steps:,}"
    found = [Evidence(text, "loss", (broke,), float(broke), float(first_steps))]
    other = run.rerun.get("loss") if run.rerun else None
    rates = [item.setting("lr") for item in (run, run.rerun) if item]
    again = _breaks_early(other, first_steps, factor, begin_share) if other is not None else None
    if again is not None and len(set(rates)) == 2 and None not in rates:
        text = f"and so did the rerun at step {again:,}, with a learning rate of {rates[1]} instead of {rates[0]}"
        found.append(Evidence(text, "loss", (again,)))
        return Answer(YES, tuple(found))
    return unknown(f"{text}; give a rerun with another learning rate (--rerun) to tell")


def _breaks_early(loss: Series, first_steps: int, factor: float, begin_share: float) -> int | None:
    if not len(loss) or int(loss.steps[0]) > begin_share * first_steps:
        return None
    inside = loss.steps <= first_steps
    steps, values = loss.steps[inside], loss.values[inside]
    usable = values[np.isfinite(values)]
    if not len(usable):
        return int(steps[0])
    level = float(median(usable[:3]))
    bad = ~np.isfinite(values) | ((values > factor * level) if level > 0 else np.zeros(len(values), dtype=bool))
    held = np.flatnonzero(~bad)
    at = int(held[-1]) + 1 if len(held) else 0
    # What comes back within these steps was a spike.
    return int(steps[at]) if at < len(steps) - 1 else None


@predicate(source="precision P18", min_points=40)
def gradients_vanish(
    loss: Series,
    grad_norm: Series,
    *,
    share: float,
    loss_share: float,
    tiny: float,
    trend_z: float,
    levels: int,
) -> Answer:
    """Do the gradients vanish while the loss is still high?

    Yes when grad_norm ends below `share` of its level at the beginning, or below `tiny`, with a falling trend
    (of `levels` block medians, below -`trend_z`), while
    the loss ends above `loss_share` of its first level. A loss that has gone to 0 takes its gradients along: no fault.
    """
    begin, end, trend = _ends(finite(grad_norm)[1], levels)
    first, last, _ = _ends(finite(loss)[1], levels)
    text = f"grad_norm goes from {begin:.3g} to {end:.3g} (z {trend:.1f}) while the loss goes from {first:.4g} to "
    text += f"{last:.4g}"
    found = (Evidence(text, "grad_norm", (), end, max(share * begin, tiny)),)
    yes = trend < -trend_z and end < max(share * begin, tiny) and first > 0 and last > loss_share * first
    return Answer(YES if yes else NO, found)


@predicate(source="precision P11", labels=("data", "numerics", "gone", NO))
def nan_returns(run: Run, loss: Series) -> Answer:
    """Does the NaN come back at the same step when the run is run again?

    `data`: the loss breaks at the same step in the run and its rerun, and on the same batch where batches were logged;
    `numerics`: at another step or batch; `gone`: only one of them breaks; `no`: neither does.
    """
    other = run.rerun.get("loss") if run.rerun else None
    if other is None:
        return unknown("no rerun was given (--rerun), or it has no loss")
    here, there = _first_break(loss), _first_break(other)
    if here is None and there is None:
        return Answer(NO, (Evidence("the loss is finite in both runs", "loss", (), 0.0, 0.0),))
    if here is None or there is None:
        place = f"at step {here or there:,} in the {'run' if there is None else 'rerun'} alone"
        return Answer("gone", (Evidence(f"the loss breaks {place}", "loss", (int(here or there or 0),)),))
    batches = [_batch_at(run, here), _batch_at(run.rerun, there) if run.rerun else None]
    known = None not in batches
    same = here == there if not known else batches[0] == batches[1]
    about = f", on {'the same batch' if batches[0] == batches[1] else 'different batches'}" if known else ""
    text = f"the loss breaks at step {here:,} in the run and at step {there:,} in its rerun{about}"
    found = (Evidence(text, "loss", (here, there)),)
    return Answer("data" if same else "numerics", found, onset_step=here)


def _first_break(loss: Series) -> int | None:
    bad = np.flatnonzero(~np.isfinite(loss.values))
    return int(loss.steps[bad[0]]) if len(bad) else None


def _batch_at(run: Run, step: int) -> float | None:
    batch = run.get("batch_id")
    row = int(np.searchsorted(batch.steps, step)) if batch is not None else 0
    if batch is None or row >= len(batch) or int(batch.steps[row]) != step or not np.isfinite(batch.values[row]):
        return None
    return float(batch.values[row])
