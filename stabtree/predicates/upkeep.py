"""Convergence: what goes wrong beside a loss that falls: schedule, eval loss, dead units, gradients that add up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.learning import first_level
from stabtree.predicates.registry import UNGROUPED, Groups, predicate
from stabtree.stats import SAMPLE, blocks, kendall_z, median, row_medians

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints
    from stabtree.run import Run, Series

MOVES = ("cos", "linear", "poly", "exp", "inv", "sqrt", "cycl", "one", "warm_restart", "noam", "wsd")
STEPPED = ("step", "milestone", "piecewise")
FIXED = 1e-3  # a rate printed with four digits has not moved below this relative change


@predicate(source="convergence O8 and O23", labels=("frozen", "early", "follows"), min_points=2)
def schedule_followed(
    run: Run,
    lr: Series,
    *,
    least_fall: float,
    early_share: float,
    zero_share: float,
    left_share: float,
    floor_share: float,
) -> Answer:
    """Does the logged learning rate do what the configured schedule says?

    `frozen`: the schedule should by now have lowered the rate by `least_fall` (a cosine does so after a tenth of its
    way, a stepped one at its first milestone), and since the warm-up it has not moved by 0.1%. `early`: before
    `early_share` of the planned steps the rate goes below `zero_share` of its peak for good, or, where the schedule
    moves to its end, to a floor below `floor_share` of its peak, and stays for `left_share` of the plan at least: a
    scheduler that is stepped more often than planned. Needs `lr_schedule` and `max_steps` or `lr_milestones` from the
    configuration.
    """
    steps, values = finite(lr)
    schedule = str(run.setting("lr_schedule") or "").lower()
    planned, warmup = run.setting("max_steps"), run.setting("warmup_steps")
    milestones = run.setting("lr_milestones")
    if not schedule:
        return unknown("the configuration names no lr_schedule")
    begin = warmup if isinstance(warmup, int) else 0
    last, peak = int(steps[-1]), float(values.max())
    after = values[steps >= begin]
    if len(after) < 3 or peak <= 0:
        return unknown(f"lr has fewer than three rows after the warm-up of {begin:,} steps", "lr")
    by: int | None = None
    if any(word in schedule for word in STEPPED) and isinstance(milestones, tuple) and milestones:
        by = milestones[0]
    elif any(word in schedule for word in MOVES) and "constant" not in schedule and isinstance(planned, int):
        by = begin + math.ceil((planned - begin) * math.acos(max(-1.0, 1 - 2 * least_fall)) / math.pi)
    if by is not None and last > by and float(np.ptp(after)) <= FIXED * peak:
        text = f"lr stays at {after[-1]:.3g} from step {int(steps[steps >= begin][0]):,} to {last:,}, although the "
        text += f"schedule is {schedule!r} and should have moved it by step {by:,}"
        onset = int(steps[steps >= by][0])
        found = (Evidence(text, "lr", (onset, last), float(np.ptp(after)) / peak, FIXED),)
        return Answer("frozen", found, onset_step=onset, last_good_step=onset)
    at = _ends(steps, values, schedule, zero_share, floor_share)
    if isinstance(planned, int) and at is not None and at < early_share * planned and last - at > left_share * planned:
        text = f"lr is down to {values[-1]:.2g}, from {peak:.3g}, at step {at:,} of {planned:,} planned, for good"
        return Answer("early", (Evidence(text, "lr", (at, last), at / planned, early_share),), onset_step=at)
    text = f"lr goes from {after[0]:.3g} to {after[-1]:.3g} after the warm-up, the schedule is {schedule!r}"
    return Answer("follows", (Evidence(text, "lr", (int(steps[0]), last), float(np.ptp(after)) / peak, FIXED),))


def _ends(steps: Ints, values: Floats, schedule: str, zero_share: float, floor_share: float) -> int | None:
    """The step from which on the rate is next to nothing, or at the floor of a schedule that should still move."""
    if any(word in schedule for word in (*STEPPED, "cycl", "restart")):
        return None  # may be this low early by design
    peak, floor = float(values.max()), float(values[-1])
    moves = any(word in schedule for word in MOVES) and "constant" not in schedule
    low = values < zero_share * peak
    if moves and floor < floor_share * peak:
        low |= values <= floor + FIXED * peak
    high = np.flatnonzero(~low)
    return int(steps[high[-1] + 1]) if len(high) and high[-1] + 1 < len(steps) else None


@predicate(source="convergence, overfitting; SFT and RL guide, overfitting", min_points=2)
def overfits(
    loss: Series,
    eval_loss: Series,
    *,
    rise: float,
    range_share: float,
    half: float,
    thrown: float,
    least_rows: int,
) -> Answer:
    """Does the eval loss rise for good while the training loss goes on falling?

    Compared is the end of the eval loss (median of its last three) with its lowest level (medians of three): a rise by
    more than `rise` of the lowest value and by more than `range_share` of all that it had fallen, while the training
    loss has fallen since that lowest point, or lies below `half` of the eval loss and has not risen by `half` as much.
    A training loss that does not end below where it began has learned nothing, so nothing by heart either. Labelled
    healthy runs rise by at most 5% and 1%, labelled overfitting ones by at least 34% and 20%.
    """
    steps, values = finite(eval_loss)
    if len(values) < max(least_rows, 3):
        return unknown(f"eval_loss has {len(values)} finite values, {least_rows} are needed", "eval_loss")
    inner = row_medians(np.lib.stride_tricks.sliding_window_view(values, 3))
    at = int(np.argmin(inner)) + 1
    low, end = float(inner[at - 1]), float(median(values[-3:]))
    fallen = float(values[: at + 1].max()) - low
    relative = (end - low) / abs(low) if low else math.inf
    share = (end - low) / fallen if fallen > 0 else math.inf
    turned = int(steps[at])
    text = f"eval_loss is lowest at {low:.4g} around step {turned:,} and ends at {end:.4g}: {min(relative, 1e6):.1%} "
    text += f"higher (takes {rise:.0%}), {min(share, 1e6):.1%} of what it had fallen (takes {range_share:.0%})"
    found = Evidence(text, "eval_loss", (turned, int(steps[-1])), min(relative, 1e300), rise)
    if relative <= rise or share <= range_share:
        return Answer(NO, (found,))
    own, trained = finite(loss)
    around = trained[np.abs(own - turned) <= max(1, (int(own[-1]) - int(own[0])) // 20)]
    if not len(around):
        return unknown(f"the training loss was not logged around step {turned:,}, where eval_loss is lowest", "loss")
    before, last = float(median(around)), float(median(trained[-max(5, len(trained) // 20) :]))
    if last >= (began := first_level(trained, thrown)):
        text = f"the training loss ends at {last:.4g} and began at {began:.4g}: what did not learn can't overfit"
        return Answer(NO, (found, Evidence(text, "loss", (int(own[0]), int(own[-1])), last, began)))
    if last > before and (last >= half * end or last - before >= half * (end - low)):
        text = f"the training loss rises as well ({before:.4g} to {last:.4g}): that is no overfitting"
        return Answer(NO, (found, Evidence(text, "loss", (turned, int(own[-1])), last, before)))
    text = f"the training loss goes from {before:.4g} to {last:.4g} meanwhile"
    told = (found, Evidence(text, "loss", (turned, int(own[-1])), last, before))
    past = np.flatnonzero((values > low * (1 + rise) if low > 0 else values > low) & (steps > turned))
    onset = int(steps[past[0]]) if len(past) else turned
    return Answer(YES, told, onset_step=onset, last_good_step=turned)


@predicate(source="convergence O25; CS231n, Neural Networks 1; SageMaker Debugger, DeadRelu", min_points=2)
def units_die(dead_relu_frac: Groups, *, dead_share: float, growth: float) -> Answer:
    """Are more and more units dead?

    Yes when a layer ends with more than `dead_share` of its units dead (SageMaker Debugger's rule for a layer), at
    least `growth` times as many as in the first rows (the least of three). Labelled healthy runs end below 9%.
    """
    ends = {}
    for name, series in dead_relu_frac.items():
        steps, values = finite(series)
        if len(values) > 2:
            part = max(1, len(values) // 10)
            ends[name] = (float(median(values[-part:])), float(values[:3].min()), steps, values)
    if not ends:
        return unknown("dead_relu_frac has too few values", "dead_relu_frac")
    name = max(ends, key=lambda key: ends[key][0])
    end, begin, steps, values = ends[name]
    of = "" if name == UNGROUPED else f" in {name}"
    text = f"{begin:.0%} of the units{of} are dead at the beginning, {end:.0%} at the end (takes {dead_share:.0%})"
    metric = "dead_relu_frac" if name == UNGROUPED else f"dead_relu_frac/{name}"
    bad = end > dead_share and end > growth * begin
    dead = np.flatnonzero(values > (begin + end) / 2)
    onset = int(steps[dead[0]]) if bad and len(dead) else None
    found = (Evidence(text, metric, (int(steps[0]), int(steps[-1])), end, dead_share),)
    return Answer(YES if bad else NO, found, onset_step=onset)


@predicate(source="convergence O4", min_points=4)
def gradients_add_up(
    grad_norm: Series,
    loss: Series | None = None,
    *,
    growth: float,
    smooth: float,
    trend_z: float,
    levels: int,
    least_rows: int,
) -> Answer:
    """Does grad_norm grow all along, and far more smoothly than the gradients of single batches do?

    A gradient that is never zeroed is the sum of all batches so far: it leaves the level of its first rows within a few
    steps, goes on growing and changes little from one step to the next. Yes when it ends more than `growth` times above
    its first three rows with a rising trend (Mann-Kendall z of `levels` block medians above `trend_z`), while
    neighbouring rows differ by less than `smooth` (median), and by less than those of the loss: the gradient of a batch
    is never steadier than its loss. Where the sum is clipped in place it can't grow, and does little harm.
    """
    values = _positive(grad_norm)
    needed = max(least_rows, levels, 4)
    if len(values) < needed:
        return unknown(f"grad_norm has fewer than {needed} positive values", "grad_norm")
    medians, _ = blocks(values, max(levels, 4))
    factor = min(float(median(medians[-3:])) / float(median(values[:3])), 1e300)
    jitter, trend = _jitter(values), kendall_z(medians)
    bar = min([smooth, *([_jitter(own)] if loss is not None and len(own := _positive(loss)) > 1 else [])])
    text = (
        f"grad_norm ends {factor:.3g}× above its first rows (takes {growth:g}×), trend z {trend:.1f}, and neighbouring "
    )
    text += f"rows differ by {jitter:.1%} (takes less than {bar:.1%})"
    found = (Evidence(text, "grad_norm", (), factor, growth),)
    yes = factor > growth and trend > trend_z and jitter < bar
    return Answer(YES if yes else NO, found, onset_step=int(grad_norm.steps[0]) if yes else None)


def _positive(series: Series) -> Floats:
    _, values = finite(series)
    return values[values > 0]


def _jitter(values: Floats) -> float:
    """By what share neighbouring rows differ, in the median."""
    stride = 1 + len(values) // SAMPLE
    return float(median(np.abs(np.log(values[1::stride] / values[:-1:stride][: len(values[1::stride])]))))
