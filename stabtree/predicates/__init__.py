"""The questions that data can answer. A tree calls them by name."""

from __future__ import annotations

from stabtree.common.lazy import Imported
from stabtree.predicates.registry import Predicate

_NAMES = {
    "nonfinite": (
        "nonfinite_loss last_row_alone dtype_regime trained_in_fp8 nonfinite_eval "
        "nan_origin loss_became_infinite embedding_grad_infinite activation_overflow nan_returns "
        "series_breaks"
    ),
    "traces": (
        "lr_leaps_before_break schedule_followed climbs_past_plan lr_at_zero lr_rises_late lr_restarts "
        "rate_too_high rate_runs_out norm_sums_up data_changes clipped_throughout "
        "gradient_outlives zero_at_once rises_to above_throughout"
    ),
    "spikes": (
        "spike spike_recovers grad_norm_leads spike_cause lr_jumps_at_spike batch_repeats_at_spike grad_norm_at_spike"
    ),
    "exact": (
        "loss_collapses resume_seam throughput_collapses stalled loss_at_zero zero_rows "
        "loss_repeats noise_vanishes batch_stays"
    ),
    "precision": "nonfinite_grad overflow_fingerprint skips_rise loss_scale_history no_scale_helps scale_drifts_down",
    "drift": (
        "loss_rising lr_rising lr_climbs_along warming_up weight_norm_change grad_norm_rising "
        "all_skipped beyond_resolution best_untrained"
    ),
    "end": "settled discriminator_wins stops_early diverges_early overshoots loses_progress grad_norm_climbs",
    "start": (
        "leaves_start double_softmax starts_above_chance above_any_chance starts_near_zero follows_padding "
        "stands_at_chance ends_at_start"
    ),
    "gradients": (
        "weights_move update_size updates_small units_die keeps_growing groups_apart "
        "gradients_add_up norm_is_scaled gradients_underflow always_clipped gradients_vanish "
        "nonfinite_in_fp32 never_finite_again"
    ),
    "overfitting": "overfits memorised quality_falls apart_at_once suddenly_easier",
    "metric": ("never_pays stays_above stood_above stays_near_zero shoots_up climbs_to_cap outgrows outgrew"),
    "policy": ("shrinks_away multiplies prefers_rejected falls_through no_trend falls_back"),
    "signatures": (
        "setting_is answered is_logged loss_zero_with_grad_nan grad_zero_with_lr_zero initial_loss_high "
        "isolated_nonfinite breaks_at_start loss_before_break falls_despite_scale "
        ""
    ),
    "lines": "line_says ended_by failed_without_reason stops_short",
    "settings": "setting_says setting_outside setting_matches setting_exceeds setting_misspelled rate_unusual",
    "plans": (
        "not_clipped outlasts_schedule starts_at_peak warms_up_beyond warms_up_briefly averages_too_slowly "
        "epsilon_vanishes batch_differs groups_split best_mismatched eval_never saves_never saves_rarely "
        "keeps_too_few logs_too_little logs_too_rarely"
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
