"""Convergence: does the run learn at all, and if not, what stands still?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import NO, UNKNOWN, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.registry import UNGROUPED, Groups, predicate
from stabtree.stats import blocks, interval, kendall_z, median, row_medians

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree._lazy import Floats
    from stabtree.run import Run, Series

EPOCHS = ("epoch", "row number", "Epoch", "epochs")  # what steps were read from where a row is far more than a step
STILL = 1e-6  # float32: the relative change that weights show by rounding alone


def n_classes(run: Run) -> int | None:
    """Classes or vocabulary that the loss is a cross-entropy over, where the configuration says so."""
    for key in ("n_classes", "vocab_size"):
        value = run.setting(key)
        if isinstance(value, int) and value > 1:
            return value
    return None


def first_level(values: Floats, thrown: float) -> float:
    """Where the loss began: the median of its first rows, a twentieth of them, three to ten.

    Only the first row comes before any update: where the rows after it are `thrown` times as high, the first updates
    threw them up, and it is the level.
    """
    early, first = float(median(values[: max(3, min(10, len(values) // 20))])), float(values[0])
    return first if 0 < first * thrown < early else early


class Young(NamedTuple):
    """When a run is too young to be called flat; see `leaves_start`."""

    least_rows: int
    least_steps: int
    least_progress: float
    warm_share: float
    late_start_steps: int
    late_start_rows: int


def _too_early(run: Run, loss: Series, lr: Series | None, bars: Young, first_loss: float) -> str:
    """Why a run can't be called flat yet; nothing where it can."""
    steps, values = finite(loss)
    least_steps, least_progress = bars.least_steps, bars.least_progress
    if len(values) < bars.least_rows:
        return f"the loss has {len(values):,} finite rows, {bars.least_rows} are needed to call it flat"
    first, last = int(steps[0]), int(steps[-1])
    planned = run.setting("max_steps")
    by_epoch = any(source.steps_from in EPOCHS for source in run.sources)
    young = (last < least_steps and not by_epoch) or (isinstance(planned, int) and last < least_progress * planned)
    warm = 0
    if lr is not None and len(lr) > 2 and lr.values.max() > 0:
        warm = int(lr.steps[int(np.argmax(lr.values >= bars.warm_share * lr.values.max()))])
    late_start = first > max(bars.late_start_steps, bars.late_start_rows * interval(steps))
    reasons = {
        f"the log begins at step {first:,}: what the loss did before is not known": late_start,
        f"the log ends at step {last:,}, too early to call a loss flat": young,
        f"the learning rate peaks only at step {warm:,}: too late to judge": last - warm < least_progress * last,
        "the loss begins at or below 0, where a share of it has no meaning": first_loss <= 0,
        "a reward is logged: the loss of reinforcement learning need not fall": run.get("reward") is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


@predicate(source="convergence O1 and O7", labels=("yes", "flat", "slow", "worse"), min_points=12)
def leaves_start(
    run: Run,
    loss: Series,
    lr: Series | None = None,
    *,
    least_share: float,
    least_steps: int,
    least_progress: float,
    worse_share: float,
    least_rows: int,
    levels: int,
    trend_z: float,
    at_chance: float,
    thrown: float,
    warm_share: float,
    late_start_steps: int,
    late_start_rows: int,
) -> Answer:
    """Does the loss fall clearly below the level at which it began?

    `flat`: its lowest level lies less than `least_share` of the first one below it, and there is no trend; `slow`:
    there is one; `worse`: even its lowest level since lies more than `worse_share` above. Labelled runs that do not
    learn lose at most 3.4% of their first loss, all others at least 11%. Asked of runs that are logged from the
    beginning (by step `late_start_steps`, or `late_start_rows` rows), for `least_rows` rows, `least_steps` steps and
    `least_progress` of the planned ones after lr has reached `warm_share` of its peak: healthy runs stay flat for up to
    250 steps. A loss that begins below `at_chance` of ln(classes) is that of a trained model, from which a slow fall is
    all that can be expected. The trend is that of `levels` block medians against `trend_z`; for `thrown` see
    `first_level`.
    """
    steps, values = finite(loss)
    first = first_level(values, thrown)
    bars = Young(max(least_rows, 12), least_steps, least_progress, warm_share, late_start_steps, late_start_rows)
    early = _too_early(run, loss, lr, bars, first)
    if early:
        return unknown(early, "loss")
    medians, starts = blocks(values, min(max(levels, 4), len(values) // 3))
    smooth = row_medians(np.lib.stride_tricks.sliding_window_view(medians, 3))
    low = float(min(smooth.min(), median(medians[-3:])))
    share = max(-1e9, min(1e9, (first - low) / first))  # a first loss of 5e-324 makes it infinite
    trend = kendall_z(medians)
    text = f"from {first:.4g} at the beginning to a level of {low:.4g} at best: {abs(share):.1%} "
    text += f"{'lower' if share >= 0 else 'higher'} (learning takes {least_share:.0%} lower)"
    found = Evidence(text, "loss", (int(steps[0]), int(steps[starts[int(np.argmin(medians))]])), share, least_share)
    if share > least_share:
        return Answer(YES, (found,))
    if -share > worse_share:
        return Answer("worse", (found,), onset_step=int(steps[0]))
    classes = n_classes(run)
    if trend < -trend_z:
        if classes and first < at_chance * math.log(classes):
            text = f"the first loss lies below that of an untrained model, ln({classes:,}) = {math.log(classes):.3g}"
            return Answer(YES, (found, Evidence(text, "loss", (int(steps[0]),), first, math.log(classes))))
        text = f"it does fall, with a trend of z {trend:.1f}"
        return Answer(
            "slow", (found, Evidence(text, "loss", (), trend, -trend_z)), onset_step=_settles(loss, first, low)
        )
    text = f"no trend: z {trend:.1f} (a fall has less than {-trend_z:g})"
    return Answer("flat", (found, Evidence(text, "loss", (), trend, -trend_z)), onset_step=int(steps[0]))


def _settles(loss: Series, first: float, low: float) -> int:
    """The first step by which half of what little it falls is lost."""
    steps, values = finite(loss)
    return int(steps[int(np.argmax(values <= (first + low) / 2))])


@predicate(source="convergence O2 and O3", labels=("still", "no_gradient", "moving"), min_points=2)
def weights_move(
    grad_norm: Series | None = None,
    weight_norm: Groups | None = None,
    update_ratio: Groups | None = None,
    *,
    zero_share: float,
) -> Answer:
    """Do the weights move at all?

    `no_gradient`: grad_norm is exactly 0 in more than `zero_share` of the rows: nothing flows back. `still`: every
    weight norm stays within 1e-6 of itself (float32's rounding), or every update ratio is 0, under a gradient that is
    not 0: the optimizer steps something else. An update ratio above 0 means that they move, however little.
    """
    if grad_norm is not None:
        _, values = finite(grad_norm)
        zero = float(np.mean(values == 0)) if len(values) else 0.0
        if zero > zero_share:
            text = f"grad_norm is exactly 0 in {zero:.0%} of its rows"
            return Answer("no_gradient", (Evidence(text, "grad_norm", (int(grad_norm.steps[0]),), zero, zero_share),))
    norms = _largest(weight_norm or {}, "weight_norm", lambda v: float(np.ptp(v)) / float(v[0]) if v[0] > 0 else None)
    ratios = _largest(update_ratio or {}, "update_ratio", lambda v: float(np.abs(v).max()))
    if ratios is not None and (norms is None or (ratios[0] > 0 and norms[0] <= STILL)):
        change, metric = ratios
        text = f"{metric} is at most {change:.2g} in the whole run (weights that stand still: 0)"
        return Answer("moving" if change > 0 else "still", (Evidence(text, metric, (), change, 0.0),))
    if norms is None:
        return unknown("neither weight norms nor update ratios were logged", "weight_norm", "update_ratio")
    change, metric = norms
    text = f"{metric} changes by {change:.2g} in the whole run, the most of any group (rounding alone: {STILL:g})"
    return Answer("still" if change <= STILL else "moving", (Evidence(text, metric, (), change, STILL),))


def _largest(groups: Groups, metric: str, measure: Callable[[Floats], float | None]) -> tuple[float, str] | None:
    """The largest measure of any group with two finite values or more, and that group's metric."""
    found = [
        (min(size, 1e300), metric if name == UNGROUPED else f"{metric}/{name}")
        for name, series in groups.items()
        if len(values := finite(series)[1]) > 1 and (size := measure(values)) is not None
    ]
    return max(found, default=None)


@predicate(source="convergence O7 and O22; CS231n, Neural Networks 3", labels=("low", "high", "usual"), min_points=2)
def update_size(update_ratio: Groups, *, usual: float, low_factor: float, high_factor: float) -> Answer:
    """Is the update-to-weight ratio near 1e-3?

    Compared is the median over the run of each group's ratio. CS231n's rule of thumb is 1e-3; labelled healthy runs
    have medians of 4e-4 to 4e-3, so only a factor of `low_factor` or `high_factor` off counts.
    """
    medians = {name: float(median(values)) for name, s in update_ratio.items() if len(values := finite(s)[1]) > 1}
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
    of = "" if name == UNGROUPED else f" of {name}"
    text = f"the update ratio{of} has a median of {medians[name]:.2g} (usual {usual:g}, far off below "
    text += f"{usual / low_factor:g} and above {usual * high_factor:g})"
    metric = "update_ratio" if name == UNGROUPED else f"update_ratio/{name}"
    return Answer(verdict, (Evidence(text, metric, (), medians[name], bar),))


@predicate(source="convergence O7 and O22; CS231n, Neural Networks 3", min_points=2)
def updates_small(update_ratio: Groups, *, usual: float, low_factor: float, high_factor: float) -> Answer:
    """Is the update-to-weight ratio of every group far below 1e-3?

    The `low` of `update_size` alone, for a cause that it bears out or rules out.
    """
    answer: Answer = update_size.func(update_ratio, usual=usual, low_factor=low_factor, high_factor=high_factor)
    return answer if answer.verdict == UNKNOWN else Answer(YES if answer.verdict == "low" else NO, answer.evidence)


@predicate(source="convergence O12", min_points=30)
def double_softmax(run: Run, loss: Series, *, near_share: float, start_share: float, settled_share: float) -> Answer:
    """Does the loss settle on the floor of a cross-entropy over probabilities?

    A cross-entropy of C probabilities lies between ln(1 + (C - 1)/e) and ln(C - 1 + e), whatever the model does. Yes
    when no row lies outside, the loss begins within `start_share` of ln(C), has ended its fall (its second half wins
    less than `settled_share` of what the whole run did), and ends in the lowest `near_share` of the way from ln(C) down
    to the floor. C is taken from the configuration, else from the first loss.
    """
    steps, values = finite(loss)
    first = float(values[0])
    if not 0 < first < math.log(1e6):
        return unknown("the loss does not begin where an untrained classifier's does", "loss")
    classes = n_classes(run) or round(math.exp(first))
    if classes < 3 or abs(first - math.log(classes)) > start_share * math.log(classes):
        text = f"the loss begins at {first:.3g}, an untrained model of {classes:,} classes at {math.log(classes):.3g}"
        return Answer(NO, (Evidence(text, "loss", (int(steps[0]),), first, math.log(max(classes, 1))),))
    floor, ceiling = math.log1p((classes - 1) / math.e), math.log(classes - 1 + math.e)
    part = max(5, len(values) // 10)
    middle = float(median(values[len(values) // 2 - part // 2 :][:part]))
    end, least, most = float(median(values[-part:])), float(values.min()), float(values.max())
    above = (end - floor) / (math.log(classes) - floor)
    text = (
        f"the loss goes from {first:.4g} to {end:.4g}, its rows from {least:.4g} to {most:.4g}; a softmax taken twice "
    )
    text += f"over {classes:,} classes can't leave {floor:.4g} to {ceiling:.4g}"
    found = (Evidence(text, "loss", (int(steps[-1]),), above, near_share),)
    within = least > floor * (1 - 1e-3) and most < ceiling * (1 + 1e-3)
    yes = within and above < near_share and middle - end < settled_share * (first - end)
    return Answer(YES if yes else NO, found, onset_step=int(steps[0]) if yes else None)
