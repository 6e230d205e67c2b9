"""Inside the model, by layer or parameter group: weights, their updates, dead units, logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN, YES, Answer, Evidence, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import ends_and_trend, median
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.predicates.registry import UNGROUPED, Count, Groups, predicate

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.lazy import Floats
    from stabtree.run import Series

STILL = 1e-6  # float32: the relative change that weights show by rounding alone


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
        text = f"{metric} is at most {change:.2g} in the whole run (0 means that no weight moves)"
        return Answer("moving" if change > 0 else "still", (Evidence(text, metric, (), change, 0.0),))
    if norms is None:
        return unknown("neither weight norms nor update ratios were logged", "weight_norm", "update_ratio")
    change, metric = norms
    text = f"{metric} changes by {change:.2g} in the whole run, the most of any group (rounding alone: {STILL:g})"
    return Answer("still" if change <= STILL else "moving", (Evidence(text, metric, (), change, STILL),))


def _largest(groups: Groups, metric: str, measure: Callable[[Floats], float | None]) -> tuple[float, str] | None:
    """Return the largest measure of any group with at least two finite values, and the metric of that group."""
    found = []
    for name, series in groups.items():
        _, values = finite(series)
        size = measure(values) if len(values) > 1 else None
        if size is not None:
            found.append((min(size, 1e300), metric if name == UNGROUPED else f"{metric}/{name}"))
    return max(found, default=None)


def _medians(groups: Groups, min_values: int) -> dict[str, float]:
    """Return the median of each group that has so many finite values."""
    values = {name: finite(series)[1] for name, series in groups.items()}
    return {name: median(some) for name, some in values.items() if len(some) >= min_values}


@predicate(source="convergence O7 and O22; CS231n, Neural Networks 3", labels=("low", "high", "usual"), min_points=2)
def update_size(update_ratio: Groups, *, usual: float, low_factor: float, high_factor: float) -> Answer:
    """Is the update-to-weight ratio near 1e-3?

    Compared is the median over the run of each group's ratio. CS231n's rule of thumb is 1e-3; labelled healthy runs
    have medians of 4e-4 to 4e-3, so only a factor of `low_factor` or `high_factor` off counts.
    """
    medians = _medians(update_ratio, min_values=2)
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
    text = f"the update ratio{of} has a median of {against(medians[name], bar, '.2g')} (usual {usual:g}, "
    text += f"too small below {usual / low_factor:g} and too large above {usual * high_factor:g})"
    metric = "update_ratio" if name == UNGROUPED else f"update_ratio/{name}"
    return Answer(verdict, (Evidence(text, metric, (), medians[name], bar),))


@predicate(source="convergence O7 and O22; CS231n, Neural Networks 3", min_points=2)
def updates_small(update_ratio: Groups, *, usual: float, low_factor: float, high_factor: float) -> Answer:
    """Is the update-to-weight ratio of every group far below 1e-3?

    The `low` of `update_size` alone, for a cause that it supports or rules out.
    """
    answer: Answer = update_size.func(update_ratio, usual=usual, low_factor=low_factor, high_factor=high_factor)
    if answer.verdict == UNKNOWN:
        return answer
    return Answer(YES, answer.evidence) if answer.verdict == "low" else Answer(NO, answer.evidence, contrary=True)


@predicate(source="convergence O22", min_points=5)
def groups_apart(update_ratio: Groups, *, factor: float) -> Answer:
    """Do some parameter groups move far faster or slower than others?

    Yes when the medians of two groups differ by more than `factor`. With 100, one of them lies more than ten times away
    from the usual 1e-3, whatever the other does.
    """
    medians = {name: value for name, value in _medians(update_ratio, min_values=1).items() if value > 0}
    if len(medians) < 2:
        return unknown("update_ratio was not logged per parameter group", "update_ratio/<group>")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    ratio = min(medians[high] / medians[low], 1e100)
    text = f"update ratios run from {medians[low]:.2g} ({low}) to {medians[high]:.2g} ({high}), "
    text += f"a factor of {against(ratio, factor)}"
    found = (Evidence(text, "update_ratio", (), ratio, factor),)
    return Answer(YES if ratio > factor else NO, found)


@predicate(source="convergence O25; CS231n, Neural Networks 1; SageMaker Debugger, DeadRelu", min_points=2)
def units_die(dead_relu_frac: Groups, *, dead_share: float, growth: float, all_share: float) -> Answer:
    """Are more and more units dead?

    Yes when a layer ends with more than `dead_share` of its units dead (SageMaker Debugger's rule for a layer), at
    least `growth` times as many as in the first rows (the least of three), or `all_share` of them at least, whatever it
    began with. Labelled healthy runs end below 9%.
    """
    ends = {}
    for name, series in dead_relu_frac.items():
        steps, values = finite(series)
        if len(values) > 2:
            part = max(1, len(values) // 10)
            ends[name] = (median(values[-part:]), float(values[:3].min()), steps, values)
    if not ends:
        return unknown("dead_relu_frac has too few values", "dead_relu_frac")
    name = max(ends, key=lambda key: ends[key][0])
    end, begin, steps, values = ends[name]
    of = "" if name == UNGROUPED else f" in {name}"
    text = f"{begin:.0%} of the units{of} are dead at the beginning, "
    text += f"{against(end, dead_share, '.0%')} at the end, in the median of its last tenth (limit {dead_share:.0%})"
    metric = "dead_relu_frac" if name == UNGROUPED else f"dead_relu_frac/{name}"
    bad = end > dead_share and (end > growth * begin or end >= all_share)
    dead = np.flatnonzero(values >= (begin + end) / 2)
    onset = int(steps[dead[0]]) if bad and len(dead) else None
    found = (Evidence(text, metric, (int(steps[0]), int(steps[-1])), end, dead_share),)
    return Answer(YES if bad else NO, found, onset_step=onset)


@predicate(source="precision P15")
def logits_drift(
    logits_max: Series | None = None,
    logsumexp: Series | None = None,
    *,
    growth: float,
    least: float,
    trend_z: float,
    levels: Count,
) -> Answer:
    """Do the output logits keep growing?

    Yes when the absolute value of the largest logit or of log Z has a rising trend (that of `levels` block medians,
    above `trend_z`), ends above `growth` times its level at the beginning and above `least`: at 20, exp() of it spans
    nine decades.
    """
    measured = []
    for name, series in (("logits_max", logits_max), ("logsumexp", logsumexp)):
        values = np.abs(finite(series)[1]) if series is not None else np.zeros(0)
        if series is None or len(values) < levels:
            continue
        begin, end, trend = ends_and_trend(values, levels)
        yes = trend > trend_z and end > growth * begin and end > least
        text = f"|{name}| goes from a level of {begin:.3g} to one of {end:.3g}, trend z {trend:.1f}"
        measured.append((yes, Evidence(text, name, (), end, max(growth * begin, least))))
    if not measured:
        return unknown("neither logits_max nor logsumexp was logged often enough", "logits_max", "logsumexp")
    yes = any(item[0] for item in measured)
    return Answer(YES if yes else NO, tuple(evidence for found, evidence in measured if found or not yes))


@predicate(source="precision P16")
def attention_logits_grow(
    attention_logits_max: Groups, *, growth: float, least: float, trend_z: float, levels: Count
) -> Answer:
    """Do the attention logits of some layer keep growing?

    Yes when a layer's largest Q·K has a rising trend (of `levels` block medians, above `trend_z`), ends above `growth`
    times its level at the beginning and above `least`, where its softmax has long since put all its weight on one key.
    """
    worst: tuple[bool, float, str, float] | None = None
    for name, series in attention_logits_max.items():
        values = np.abs(finite(series)[1])
        if len(values) < levels:
            continue
        begin, end, trend = ends_and_trend(values, levels)
        yes = trend > trend_z and end > growth * begin and end > least
        of = "" if name == UNGROUPED else f"{name}: "
        description = f"{of}a level of {begin:.3g} at the beginning, {end:.3g} at the end, z {trend:.1f}"
        worst = max(worst or (False, -1.0, "", 0.0), (yes, end, description, max(growth * begin, least)))
    if worst is None:
        return unknown("attention_logits_max has too few rows", "attention_logits_max")
    text = f"the largest attention logits are those of {worst[2]}"
    return Answer(YES if worst[0] else NO, (Evidence(text, "attention_logits_max", (), worst[1], worst[3]),))
