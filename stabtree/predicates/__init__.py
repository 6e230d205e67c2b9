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
    signatures,
    spike_panels,
    spikes,
    upkeep,
)
from stabtree.predicates.registry import Predicate

PREDICATES: dict[str, Predicate] = {
    item.name: item
    for item in (
        nonfinite.nonfinite_loss,
        nonfinite.dtype_regime,
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
        learning.leaves_start,
        learning.weights_move,
        learning.update_size,
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
        signatures.jump_at_resume,
        signatures.falls_despite_scale,
        signatures.grad_norm_off_scale,
        signatures.loss_left_out_with_grad_nan,
        lines.line_says,
    )
}

__all__ = ["PREDICATES", "Predicate"]
