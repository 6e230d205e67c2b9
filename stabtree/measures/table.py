"""Where each measure is: a module is imported when the first of its measures is asked for."""

from __future__ import annotations

from typing import Any

from stabtree.common.extensions import table
from stabtree.common.lazy import Imported

_NAMES = {
    "batches": "batches monitor",
    "checkpoints": "checkpoints",
    "curve": "rise",
    "movers": "loss_break movers",
    "progress": "progress rate reading scale context precision",
    "spike": "spike",
    "nonfinite": (
        "nonfinite_loss last_row_alone dtype_regime nonfinite_eval nan_origin loss_became_infinite "
        "embedding_grad_infinite activation_overflow gradient_outlives nan_returns series_breaks"
    ),
    "traces": "norm_sums_up data_changes schedule_followed lr_at_zero lr_rises_late lr_restarts",
    "spikes": ("loss_spikes spike_recovers spike_cause"),
    "exact": ("loss_at_zero zero_rows loss_repeats noise_vanishes stalled"),
    "precision": (
        "nonfinite_grad overflow_fingerprint skips_rise loss_scale_history scale_drifts_down falls_despite_scale"
    ),
    "drift": "loss_rising lr_rising weight_norm_change grad_norm_rising",
    "end": "stops_early overshoots loses_progress settled discriminator_wins",
    "start": (
        "starts_above_chance above_any_chance starts_near_zero double_softmax follows_padding leaves_start "
        "stands_at_chance ends_at_start "
    ),
    "gradients": (
        "gradients_add_up no_gradient_of_rewards gradients_vanish norm_is_scaled gradients_underflow always_clipped "
        "nonfinite_in_fp32 never_finite_again weights_move update_size updates_idle groups_apart units_die "
        "keeps_growing norm_leaves_level"
    ),
    "overfitting": "overfits quality_falls memorised apart_at_once",
    "metric": (
        "stays_above high_beside_reward stood_above stays_near_zero never_pays shoots_up climbs_to_cap outgrows "
        "changes_by prefers_rejected falls_back falls_through no_trend"
    ),
    "observed": (
        "from_rewards eval_repeats rows_logged rate_judged rows_up norm_steady lone_infinite_norms loss_trend "
        "rate_times_usual rate_at_onset rate_left rate_is_constant onset_share rise_form rise_times came_back "
        "gradient_first spikes_counted passes resumed_before norm_level norm_times norm_fades start_over_chance "
        "loss_size loss_below_zero loss_gain loss_scatter same_digits loss_zero_share finite_after nan_from_start "
        "rise_before_nan sound_terms loss_alone terms_rising largest_term others_learn evaluations eval_jumps "
        "best_evaluation train_since_best closest_gap weights_sound trains_on steps_skipped gap_at_end trainer_names "
        "quality_after_best quality_gain quality_repeats train_accuracy entropy_left update_kl clipped_share "
        "value_times return_size reward_gain reward_is_constant reward_lost_at_once episode_changes cut_share "
        "broken_observations critic_loss_level no_batches printed"
    ),
    "machine": "waits_for_data memory_grows slow_steps",
    "rewards": "heldout_reward_flat only_form_pays reward_settles",
    "lines": "line_says ended_by failed_without_reason stops_short",
    "settings": "setting_says",
}
MEASURES: Imported[Any] = Imported(
    "stabtree", {**{f"measures.{module}": names for module, names in _NAMES.items()}, **table("MEASURES")}
)
"""By name, in no order: what one of them asks for is found first."""
