"""Convergence: does the run learn at all, and if not, what stands still?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.predicates.registry import Groups, finite, predicate
from stabtree.stats import blocks, interval, kendall_z

if TYPE_CHECKING:
    from stabtree._lazy import Floats
    from stabtree.run import Run, Series

LEVELS = 20  # block medians that a run is judged by
LEAST_ROWS = 30
TREND_Z = 2.33  # one in a hundred without a trend
AT_CHANCE = 0.8  # a loss that begins below this share of ln(classes) is not that of an untrained model
WARM = 0.9  # share of its peak from which on the learning rate has warmed up
SETTLED = 0.1  # a run that wins less than this share of its gain in its second half has settled
STILL = 1e-6  # relative change that float32 weights show by rounding alone


def n_classes(run: Run) -> int | None:
    """Classes or vocabulary that the loss is a cross-entropy over, where the configuration says so."""
    for key in ("n_classes", "vocab_size"):
        value = run.setting(key)
        if isinstance(value, int) and value > 1:
            return value
    return None


def _first_level(values: Floats) -> float:
    """Where the loss began: the median of its first rows, a twentieth of them, three to ten."""
    return float(np.median(values[: max(3, min(10, len(values) // 20))]))


def _too_early(run: Run, loss: Series, lr: Series | None, least_steps: int, least_progress: float) -> str:
    """Why a run can't be called flat yet; nothing where it can."""
    steps, values = finite(loss)
    if len(values) < LEAST_ROWS:
        return f"the loss has {len(values):,} finite rows, {LEAST_ROWS} are needed to call it flat"
    first, last = int(steps[0]), int(steps[-1])
    planned = run.setting("max_steps")
    young = last < least_steps or (isinstance(planned, int) and last < least_progress * planned)
    warm = 0
    if lr is not None and len(lr) > 2 and lr.values.max() > 0:
        warm = int(lr.steps[int(np.argmax(lr.values >= WARM * lr.values.max()))])
    late_start = first > max(10.0, 5 * interval(steps))
    reasons = {
        f"the log begins at step {first:,}: what the loss did before is not known": late_start,
        f"the log ends at step {last:,}, too early to call a loss flat": young,
        f"the learning rate peaks only at step {warm:,}: too late to judge": last - warm < least_progress * last,
        "the loss begins at or below 0, where a share of it has no meaning": _first_level(values) <= 0,
        "a reward is logged: the loss of reinforcement learning need not fall": run.get("reward") is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


@predicate(source="convergence O1 and O7", labels=("yes", "no", "slow"), min_points=12)
def leaves_start(
    run: Run,
    loss: Series,
    lr: Series | None = None,
    *,
    least_share: float = 0.06,
    least_steps: int = 300,
    least_progress: float = 0.25,
) -> Answer:
    """Does the loss fall clearly below the level at which it began?

    `no`: its lowest level lies less than `least_share` of the first one below it, and there is no trend;
    `slow`: there is one. Labelled runs that do not learn lose at most 3.4% of their first loss, all others at
    least 11%. Asked of runs that are logged from the beginning, for `least_steps` steps and
    `least_progress` of the planned ones, warm-up excluded: healthy runs stay flat for up to 250 steps. A loss that
    begins well below ln(classes) is that of a trained model, from which a slow fall is all that can be expected.
    """
    early = _too_early(run, loss, lr, least_steps, least_progress)
    if early:
        return unknown(early, "loss")
    steps, values = finite(loss)
    levels, starts = blocks(values, min(LEVELS, len(values) // 3))
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(levels, 3), axis=1)
    low, first = float(min(smooth.min(), np.median(levels[-3:]))), _first_level(values)
    share, trend = (first - low) / first, kendall_z(levels)
    text = f"from {first:.4g} at the beginning down to a level of {low:.4g} at best: {share:.1%} lower "
    text += f"(learning takes {least_share:.0%})"
    found = Evidence(text, "loss", (int(steps[0]), int(steps[starts[int(np.argmin(levels))]])), share, least_share)
    if share > least_share:
        return Answer(YES, (found,))
    classes = n_classes(run)
    if trend < -TREND_Z:
        if classes and first < AT_CHANCE * math.log(classes):
            text = f"the first loss lies below that of an untrained model, ln({classes:,}) = {math.log(classes):.3g}"
            return Answer(YES, (found, Evidence(text, "loss", (int(steps[0]),), first, math.log(classes))))
        text = f"it does fall, with a trend of z {trend:.1f}"
        return Answer(
            "slow", (found, Evidence(text, "loss", (), trend, -TREND_Z)), onset_step=_settles(loss, first, low)
        )
    text = f"no trend: z {trend:.1f} (a fall has less than {-TREND_Z:g})"
    return Answer(NO, (found, Evidence(text, "loss", (), trend, -TREND_Z)), onset_step=int(steps[0]))


def _settles(loss: Series, first: float, low: float) -> int:
    """The first step by which half of what little it falls is lost."""
    steps, values = finite(loss)
    return int(steps[int(np.argmax(values <= (first + low) / 2))])


@predicate(source="convergence O2 and O3", labels=("still", "no_gradient", "moving"), min_points=2)
def weights_move(
    grad_norm: Series | None = None,
    weight_norm: Groups | None = None,
    update_ratio: Groups | None = None,
) -> Answer:
    """Do the weights move at all?

    `no_gradient`: grad_norm is exactly 0 in more than half of the rows: nothing flows back. `still`: every weight norm
    stays within 1e-6 of itself (float32's rounding), or every update ratio is 0, under a gradient that is
    not 0: the optimizer steps something else.
    """
    if grad_norm is not None:
        _, values = finite(grad_norm)
        zero = float(np.mean(values == 0)) if len(values) else 0.0
        if zero > 0.5:
            text = f"grad_norm is exactly 0 in {zero:.0%} of its rows"
            return Answer("no_gradient", (Evidence(text, "grad_norm", (int(grad_norm.steps[0]),), zero, 0.5),))
    largest: tuple[float, str, str] | None = None
    for name, series in (weight_norm or {}).items():
        _, values = finite(series)
        if len(values) > 1 and float(values[0]) > 0:
            change = min(float(np.ptp(values)) / float(values[0]), 1e300)
            largest = max(largest or (change, "", ""), (change, f"weight_norm/{name}", "changes by"))
    if largest is None:
        for name, series in (update_ratio or {}).items():
            _, values = finite(series)
            if len(values) > 1:
                top = float(np.abs(values).max())
                largest = max(largest or (top, "", ""), (top, f"update_ratio/{name}", "is at most"))
    if largest is None:
        return unknown("neither weight norms nor update ratios were logged", "weight_norm", "update_ratio")
    change, metric, verb = largest
    text = f"{metric} {verb} {change:.2g} in the whole run, the most of any group (rounding alone: {STILL:g})"
    return Answer("still" if change <= STILL else "moving", (Evidence(text, metric, (), change, STILL),))


@predicate(source="convergence O7 and O22; CS231n, Neural Networks 3", labels=("low", "high", "usual"), min_points=2)
def update_size(
    update_ratio: Groups, *, usual: float = 0.001, low_factor: float = 10.0, high_factor: float = 10.0
) -> Answer:
    """Is the update-to-weight ratio near 1e-3?

    Compared is the median over the run of each group's ratio. CS231n's rule of thumb is 1e-3; labelled healthy runs
    have medians of 4e-4 to 4e-3, so only a factor of `low_factor` or `high_factor` off counts.
    """
    medians = {name: float(np.median(values)) for name, s in update_ratio.items() if len(values := finite(s)[1]) > 1}
    if not medians:
        return unknown("update_ratio has too few values", "update_ratio")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    verdict, name = "usual", high
    if medians[high] < usual / low_factor:
        verdict, name = "low", high
    elif medians[high] > usual * high_factor:
        verdict = "high"
    elif medians[low] < usual / low_factor:
        name = low
    bar = usual / low_factor if verdict != "high" else usual * high_factor
    of = "" if name == "all" else f" of {name}"
    text = f"the update ratio{of} has a median of {medians[name]:.2g} (usual {usual:g}, far off below "
    text += f"{usual / low_factor:g} and above {usual * high_factor:g})"
    metric = "update_ratio" if name == "all" else f"update_ratio/{name}"
    return Answer(verdict, (Evidence(text, metric, (), medians[name], bar),))


@predicate(source="convergence O12", min_points=30)
def double_softmax(run: Run, loss: Series, *, near_share: float = 0.05, start_share: float = 0.05) -> Answer:
    """Does the loss settle on the floor of a cross-entropy over probabilities?

    With softmax applied twice the best that C classes can reach is ln(1 + (C - 1)/e). Yes when the loss begins within
    `start_share` of ln(C), has ended its fall within `near_share` above the floor (its second half wins less than a
    tenth of what the whole run did), and no row lies below. C is taken from the configuration, else from the
    first loss.
    """
    steps, values = finite(loss)
    first = float(values[0])
    if not 0 < first < math.log(1e6):
        return unknown("the loss does not begin where an untrained classifier's does", "loss")
    classes = n_classes(run) or round(math.exp(first))
    if classes < 3 or abs(first - math.log(classes)) > start_share * math.log(classes):
        text = f"the loss begins at {first:.3g}, an untrained model of {classes:,} classes at {math.log(classes):.3g}"
        return Answer(NO, (Evidence(text, "loss", (int(steps[0]),), first, math.log(max(classes, 1))),))
    floor = math.log1p((classes - 1) / math.e)
    part = max(5, len(values) // 10)
    middle = float(np.median(values[len(values) // 2 - part // 2 :][:part]))
    end, least = float(np.median(values[-part:])), float(values.min())
    above = end / floor - 1
    text = f"the loss ends at {end:.4g} and its lowest row is {least:.4g}; the floor of a softmax taken twice over "
    text += f"{classes:,} classes is {floor:.4g}"
    found = (Evidence(text, "loss", (int(steps[-1]),), above, near_share),)
    yes = least > floor * (1 - 1e-3) and above < near_share and middle - end < SETTLED * (first - end)
    return Answer(YES if yes else NO, found, onset_step=int(steps[0]) if yes else None)
