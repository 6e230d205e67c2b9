"""The questions that data can answer. A tree calls them by name."""

from __future__ import annotations

from stabtree.common.lazy import Imported
from stabtree.predicates.registry import Predicate

_NAMES = {
    "nonfinite": "nonfinite_loss last_row_alone dtype_regime trained_in_fp8 nonfinite_eval only_eval_breaks",
    "nan_origin": "nan_origin loss_became_infinite embedding_grad_infinite activation_overflow nan_returns",
    "schedule": "lr_leaps_before_break schedule_followed climbs_past_plan lr_at_zero lr_rises_late lr_restarts",
    "spikes.spike": "spike spike_recovers grad_norm_leads",
    "spikes.collapse": "loss_collapses",
    "spikes.cause": "spike_cause",
    "spikes.panels": "lr_jumps_at_spike batch_repeats_at_spike grad_norm_at_spike",
    "precision.overflow": "nonfinite_grad overflow_fingerprint skips_rise",
    "precision.scale": "loss_scale_history no_scale_helps scale_drifts_down",
    "course.drift": "loss_rising lr_rising lr_climbs_along warming_up weight_norm_change grad_norm_rising",
    "course.plateau": "settled",
    "course.adversaries": "discriminator_wins",
    "course.collapse": "code_collapses",
    "log": "resume_seam jump_at_resume throughput_collapses stalled",
    "course.start": "leaves_start",
    "layers": "weights_move update_size updates_small units_die logits_drift attention_logits_grow groups_apart",
    "course.cross_entropy": "double_softmax starts_above_chance above_any_chance starts_near_zero follows_padding",
    "course.overfitting": "overfits memorised quality_falls",
    "course.held_out": "apart_at_once suddenly_easier",
    "gradients": (
        "gradients_add_up norm_is_scaled gradients_underflow always_clipped gradients_vanish norm_is_multiple "
        "nonfinite_in_fp32 never_finite_again"
    ),
    "metric.stays": "never_pays stays_above stood_above stays_below stays_near_zero",
    "metric.moves": "shoots_up climbs_to_cap",
    "metric.grows": "outgrows outgrew",
    "metric.policy": "dies_without_gain shrinks_away multiplies prefers_rejected",
    "metric.falls": "falls_through never_varies no_trend falls_back",
    "course.end": "stops_early diverges_early overshoots loses_progress",
    "signatures": (
        "setting_is answered is_logged loss_zero_with_grad_nan grad_zero_with_lr_zero initial_loss_high "
        "isolated_nonfinite breaks_at_start loss_before_break jump_at_tiny_lr falls_despite_scale "
        "grad_norm_off_scale loss_left_out_with_grad_nan"
    ),
    "traces": (
        "rate_too_high rate_runs_out norm_sums_up data_changes batches_recur clipped_throughout "
        "gradient_outlives zero_at_once rises_to above_throughout"
    ),
    "course.updates": "all_skipped beyond_resolution best_untrained",
    "metric.breaks": "series_breaks",
    "lines": "line_says ended_by failed_without_reason stops_short",
    "course.exact": "loss_at_zero zero_rows loss_repeats",
    "course.chance": "stands_at_chance ends_at_start",
    "course.noise": "noise_vanishes batch_stays",
    "course.climb": "grad_norm_climbs",
    "settings.values": "setting_says setting_outside setting_matches setting_exceeds setting_misspelled",
    "settings.rates": "rate_unusual",
    "settings.plan": (
        "not_clipped outlasts_schedule starts_at_peak warms_up_beyond warms_up_briefly averages_too_slowly "
        "epsilon_vanishes batch_differs groups_split"
    ),
    "settings.watching": (
        "best_mismatched eval_never saves_never saves_rarely keeps_too_few logs_too_little logs_too_rarely"
    ),
}


PREDICATES: Imported[Predicate] = Imported(__name__, _NAMES)


def predicate_named(name: str) -> Predicate | None:
    """Return the predicate of this name, one of ours or of an installed package; None where there is none.

    Raises:
        StabtreeError: where a package offers one that can't be used.
    """
    found: Predicate | None = PREDICATES.get(name)
    if found is not None or not name:
        return found
    from stabtree.predicates.registry import loaded, offered

    entry = offered(PREDICATES).get(name)
    return loaded(entry) if entry else None


def predicate_names() -> list[str]:
    """Return the names of all predicates, ours and those of installed packages."""
    from stabtree.predicates.registry import offered

    return [*PREDICATES, *offered(PREDICATES)]


__all__ = ["PREDICATES", "Predicate", "predicate_named", "predicate_names"]
