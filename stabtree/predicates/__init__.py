"""The questions that data can answer. A tree calls them by name."""

from __future__ import annotations

from stabtree.predicates import (
    gradients,
    layers,
    lines,
    log,
    nan_origin,
    nonfinite,
    schedule,
    signatures,
    traces,
)
from stabtree.predicates.course import (
    adversaries,
    chance,
    climb,
    collapse,
    cross_entropy,
    drift,
    end,
    exact,
    held_out,
    noise,
    overfitting,
    plateau,
    start,
    updates,
)
from stabtree.predicates.metric import breaks, falls, grows, moves, policy, stays
from stabtree.predicates.precision import overflow, scale
from stabtree.predicates.registry import Predicate
from stabtree.predicates.settings import plan, values, watching
from stabtree.predicates.spikes import cause, panels, spike

PREDICATES: dict[str, Predicate] = {
    item.name: item
    for item in (
        nonfinite.nonfinite_loss,
        nonfinite.last_row_alone,
        nonfinite.dtype_regime,
        nonfinite.trained_in_fp8,
        nan_origin.nan_origin,
        nan_origin.loss_became_infinite,
        schedule.lr_leaps_before_break,
        nan_origin.embedding_grad_infinite,
        nan_origin.activation_overflow,
        spike.spike,
        spike.spike_recovers,
        cause.spike_cause,
        panels.lr_jumps_at_spike,
        panels.batch_repeats_at_spike,
        panels.grad_norm_at_spike,
        overflow.nonfinite_grad,
        scale.loss_scale_history,
        scale.no_scale_helps,
        overflow.overflow_fingerprint,
        drift.loss_rising,
        drift.lr_rising,
        drift.lr_climbs_along,
        drift.warming_up,
        drift.weight_norm_change,
        drift.grad_norm_rising,
        plateau.settled,
        adversaries.discriminator_wins,
        collapse.code_collapses,
        nonfinite.nonfinite_eval,
        log.resume_seam,
        start.leaves_start,
        layers.weights_move,
        layers.update_size,
        layers.updates_small,
        cross_entropy.double_softmax,
        schedule.schedule_followed,
        schedule.climbs_past_plan,
        overfitting.overfits,
        held_out.apart_at_once,
        held_out.suddenly_easier,
        layers.units_die,
        gradients.gradients_add_up,
        stays.never_pays,
        stays.stays_above,
        stays.stood_above,
        stays.stays_below,
        moves.shoots_up,
        grows.outgrows,
        grows.outgrew,
        policy.dies_without_gain,
        policy.shrinks_away,
        policy.multiplies,
        policy.prefers_rejected,
        falls.falls_through,
        stays.stays_near_zero,
        falls.never_varies,
        falls.no_trend,
        falls.falls_back,
        moves.climbs_to_cap,
        end.stops_early,
        nonfinite.only_eval_breaks,
        signatures.setting_is,
        signatures.answered,
        signatures.is_logged,
        signatures.loss_zero_with_grad_nan,
        signatures.grad_zero_with_lr_zero,
        signatures.initial_loss_high,
        signatures.isolated_nonfinite,
        signatures.breaks_at_start,
        signatures.loss_before_break,
        signatures.jump_at_tiny_lr,
        log.jump_at_resume,
        signatures.falls_despite_scale,
        signatures.grad_norm_off_scale,
        signatures.loss_left_out_with_grad_nan,
        traces.rate_too_high,
        traces.rate_runs_out,
        traces.norm_sums_up,
        traces.data_changes,
        traces.batches_recur,
        traces.clipped_throughout,
        traces.gradient_outlives,
        traces.zero_at_once,
        traces.rises_to,
        traces.above_throughout,
        updates.all_skipped,
        updates.beyond_resolution,
        updates.best_untrained,
        breaks.series_breaks,
        lines.line_says,
        lines.ended_by,
        lines.failed_without_reason,
        lines.stops_short,
        gradients.norm_is_scaled,
        gradients.gradients_underflow,
        scale.scale_drifts_down,
        gradients.always_clipped,
        overflow.skips_rise,
        spike.grad_norm_leads,
        layers.logits_drift,
        layers.attention_logits_grow,
        end.diverges_early,
        gradients.gradients_vanish,
        nan_origin.nan_returns,
        cross_entropy.starts_above_chance,
        cross_entropy.above_any_chance,
        cross_entropy.starts_near_zero,
        cross_entropy.follows_padding,
        gradients.norm_is_multiple,
        layers.groups_apart,
        schedule.lr_at_zero,
        schedule.lr_rises_late,
        schedule.lr_restarts,
        exact.loss_at_zero,
        exact.zero_rows,
        exact.loss_repeats,
        end.overshoots,
        end.loses_progress,
        chance.stands_at_chance,
        chance.ends_at_start,
        gradients.nonfinite_in_fp32,
        gradients.never_finite_again,
        spike.loss_collapses,
        overfitting.memorised,
        noise.noise_vanishes,
        noise.batch_stays,
        overfitting.quality_falls,
        climb.grad_norm_climbs,
        log.throughput_collapses,
        log.stalled,
        values.setting_says,
        values.setting_is_said,
        values.setting_outside,
        values.setting_matches,
        values.setting_exceeds,
        values.setting_misspelled,
        plan.outlasts_schedule,
        plan.starts_at_peak,
        plan.warms_up_beyond,
        plan.warms_up_briefly,
        plan.averages_too_slowly,
        plan.epsilon_vanishes,
        plan.batch_differs,
        plan.groups_split,
        watching.eval_never,
        watching.saves_never,
        watching.saves_rarely,
        watching.keeps_too_few,
        watching.logs_too_little,
        watching.logs_too_rarely,
    )
}


def predicate_named(name: str) -> Predicate | None:
    """Return the predicate of this name, one of ours or of an installed package; None where there is none.

    Raises:
        StabtreeError: where a package offers one that can't be used.
    """
    if name in PREDICATES or not name:
        return PREDICATES.get(name)
    from stabtree.predicates.registry import loaded, offered

    entry = offered(PREDICATES).get(name)
    return loaded(entry) if entry else None


def predicate_names() -> list[str]:
    """Return the names of all predicates, ours and those of installed packages."""
    from stabtree.predicates.registry import offered

    return [*PREDICATES, *offered(PREDICATES)]


__all__ = ["PREDICATES", "Predicate", "predicate_named", "predicate_names"]
