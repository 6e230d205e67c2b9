"""The questions that data can answer. A tree calls them by name."""

from __future__ import annotations

from stabtree.predicates import (
    drift,
    learning,
    lines,
    nan_origin,
    nonfinite,
    precision,
    scaling,
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

__all__ = ["PREDICATES", "Predicate"]
