"""The questions that data can answer. A tree calls them by name."""

from __future__ import annotations

from stabtree.predicates import (
    drift,
    learning,
    levels,
    lines,
    nan_origin,
    nonfinite,
    precision,
    resumes,
    scaling,
    signatures,
    spike_panels,
    spikes,
    stability,
    upkeep,
    wiring,
)
from stabtree.predicates.registry import Predicate

PREDICATES: dict[str, Predicate] = {
    item.name: item
    for item in (
        nonfinite.nonfinite_loss,
        nonfinite.dtype_regime,
        nonfinite.trained_in_fp8,
        nan_origin.nan_origin,
        nan_origin.loss_became_infinite,
        nan_origin.embedding_grad_infinite,
        nan_origin.activation_overflow,
        spikes.spike,
        spikes.spike_recovers,
        spike_panels.spike_cause,
        spike_panels.lr_jumps_at_spike,
        spike_panels.batch_repeats_at_spike,
        spike_panels.grad_norm_at_spike,
        precision.nonfinite_grad,
        precision.loss_scale_history,
        precision.overflow_fingerprint,
        drift.loss_rising,
        drift.lr_rising,
        drift.warming_up,
        drift.weight_norm_change,
        drift.grad_norm_rising,
        drift.settled,
        nonfinite.nonfinite_eval,
        resumes.resume_seam,
        learning.leaves_start,
        learning.weights_move,
        learning.update_size,
        learning.updates_small,
        learning.double_softmax,
        upkeep.schedule_followed,
        upkeep.overfits,
        upkeep.units_die,
        upkeep.gradients_add_up,
        levels.stays_above,
        levels.stays_near_zero,
        levels.no_trend,
        levels.falls_back,
        levels.climbs_to_cap,
        levels.stops_early,
        levels.only_eval_breaks,
        signatures.setting_is,
        signatures.is_logged,
        signatures.loss_zero_with_grad_nan,
        signatures.grad_zero_with_lr_zero,
        signatures.initial_loss_high,
        signatures.isolated_nonfinite,
        signatures.breaks_at_start,
        signatures.loss_before_break,
        signatures.jump_at_tiny_lr,
        resumes.jump_at_resume,
        signatures.falls_despite_scale,
        signatures.grad_norm_off_scale,
        signatures.loss_left_out_with_grad_nan,
        lines.line_says,
        scaling.norm_is_scaled,
        scaling.gradients_underflow,
        scaling.scale_drifts_down,
        scaling.always_clipped,
        scaling.skips_rise,
        stability.grad_norm_leads,
        stability.logits_drift,
        stability.attention_logits_grow,
        stability.diverges_early,
        stability.gradients_vanish,
        stability.nan_returns,
        wiring.starts_above_chance,
        wiring.starts_near_zero,
        wiring.follows_padding,
        wiring.norm_is_multiple,
        wiring.groups_apart,
    )
}


def predicate_named(name: str) -> Predicate | None:
    """The predicate that a tree calls by this name: one of ours, else one of an installed package, else None.

    Raises:
        StabtreeError: where a package offers one that can't be used.
    """
    if name in PREDICATES or not name:
        return PREDICATES.get(name)
    from stabtree.predicates.registry import loaded, offered

    entry = offered(PREDICATES).get(name)
    return loaded(entry) if entry else None


def predicate_names() -> list[str]:
    """The names of all predicates, ours and those of installed packages."""
    from stabtree.predicates.registry import offered

    return [*PREDICATES, *offered(PREDICATES)]


__all__ = ["PREDICATES", "Predicate", "predicate_named", "predicate_names"]
