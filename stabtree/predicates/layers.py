"""Inside the model, by layer or parameter group: weights, their updates, dead units, logits."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, UNKNOWN, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.stats import ends_and_trend, median
from stabtree.common.strength import above, strongest, weakest
from stabtree.facts.registry import finite
from stabtree.predicates.registry import UNGROUPED, Groups, predicate

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.lazy import Floats
    from stabtree.run import Series

STILL = 1e-6  # no limit: float32: the relative change that weights show by rounding alone


@predicate(source="convergence O2 and O3", labels=("still", "no_gradient", "moving"), min_points=2)
def weights_move(
    grad_norm: Series | None = None,
    weight_norm: Groups | None = None,
    update_ratio: Groups | None = None,
    *,
    zero_share: float = shared.SHARE_HALF,
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
        text = f"{metric} is at most {figure(change, 2)} in the whole run; at 0 no weight moves"
        return Answer("moving" if change > 0 else "still", (Evidence(text, metric, (), change, 0.0),))
    if norms is None:
        return unknown("neither weight norms nor update ratios were logged", "weight_norm", "update_ratio")
    change, metric = norms
    text = f"{metric} changes by {figure(change, 2)} in the whole run; rounding alone explains {figure(STILL)}"
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
def update_size(update_ratio: Groups, *, usual: float, factor: float = shared.FACTOR_LARGE) -> Answer:
    """Is the update-to-weight ratio near 1e-3?

    Compared is the median over the run of each group's ratio. CS231n's rule of thumb is 1e-3; labelled healthy runs
    have medians of 4e-4 to 4e-3, so only a `factor` off counts.
    """
    medians = _medians(update_ratio, min_values=2)
    if not medians:
        return unknown("update_ratio has too few values", "update_ratio")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    verdict, name = "usual", high
    if medians[high] < usual / factor:
        verdict, name = "low", high
    elif medians[high] > usual * factor:
        verdict = "high"
    elif medians[low] < usual / factor:
        name = low
    bar = usual / factor if verdict != "high" else usual * factor
    of = "" if name == UNGROUPED else f" of {name}"
    text = f"the update ratio{of} is {against(medians[name], bar, '.2g')}; {figure(usual)} is usual, below "
    text += f"{figure(usual / factor)} it is too small, above {figure(usual * factor)} too large"
    metric = "update_ratio" if name == UNGROUPED else f"update_ratio/{name}"
    return Answer(verdict, (Evidence(text, metric, (), medians[name], bar),))


@predicate(source="convergence O7 and O22; CS231n, Neural Networks 3", min_points=2)
def updates_small(update_ratio: Groups, *, usual: float, factor: float = shared.FACTOR_LARGE) -> Answer:
    """Is the update-to-weight ratio of every group far below 1e-3?

    The `low` of `update_size` alone, for a cause that it supports or rules out.
    """
    answer: Answer = update_size.func(update_ratio, usual=usual, factor=factor)
    if answer.verdict == UNKNOWN:
        return answer
    return Answer(YES, answer.evidence) if answer.verdict == "low" else Answer(NO, answer.evidence, contrary=True)


@predicate(source="convergence O22", min_points=5)
def groups_apart(update_ratio: Groups, *, factor: float = shared.FACTOR_HUGE) -> Answer:
    """Do some parameter groups move far faster or slower than others?

    Yes when the medians of two groups differ by more than `factor`. With 100, one of them lies more than ten times away
    from the usual 1e-3, whatever the other does.
    """
    medians = {name: value for name, value in _medians(update_ratio, min_values=1).items() if value > 0}
    if len(medians) < 2:
        return unknown("update_ratio was not logged per parameter group", "update_ratio/<group>")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    ratio = min(medians[high] / medians[low], 1e100)
    text = f"update ratios run from {figure(medians[low], 2)} ({low}) to {figure(medians[high], 2)} ({high}), "
    text += f"{against(ratio, factor)}× (limit {factor:g}×)"
    found = (Evidence(text, "update_ratio", (), ratio, factor),)
    return measured(above(ratio, factor), found)


@predicate(source="convergence O25; CS231n, Neural Networks 1; SageMaker Debugger, DeadRelu", min_points=2)
def units_die(
    dead_relu_frac: Groups,
    *,
    dead_share: float,
    growth: float = shared.FACTOR_SMALL,
    all_share: float = shared.SHARE_MOST,
) -> Answer:
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
    text = (
        f"{against(end, dead_share, '.0%')} of the units{of} are dead at the end (limit {dead_share:.0%}), {begin:.0%} "
    )
    text += "at the beginning"
    metric = "dead_relu_frac" if name == UNGROUPED else f"dead_relu_frac/{name}"
    strength = weakest(above(end, dead_share), strongest(above(end, growth * begin), above(end, all_share)))
    onset = int(steps[np.argmax(values >= (begin + end) / 2)])
    found = (Evidence(text, metric, (int(steps[0]), int(steps[-1])), end, dead_share),)
    return measured(strength, found, onset_step=onset)


@predicate(source="precision P15")
def logits_drift(
    logits_max: Series | None = None,
    logsumexp: Series | None = None,
    *,
    least: float,
    growth: float = shared.FACTOR,
    trend_z: float = shared.TREND_Z,
) -> Answer:
    """Do the output logits keep growing?

    Yes when the absolute value of the largest logit or of log Z has a rising trend (that of block medians, above
    `trend_z`), ends above `growth` times its level at the beginning and above `least`: at 20, exp() of it spans nine
    decades.
    """
    grown = []
    for name, series in (("logits_max", logits_max), ("logsumexp", logsumexp)):
        if series is not None and len(finite(series)[1]):
            grown.append(_growth(series, name, f"|{name}| goes from", (growth, least, trend_z)))
    if not grown:
        return unknown("neither logits_max nor logsumexp was logged", "logits_max", "logsumexp")
    strength, evidence = max(grown, key=itemgetter(0))
    return measured(strength, (evidence,))


@predicate(source="precision P16")
def attention_logits_grow(
    attention_logits_max: Groups, *, least: float, growth: float = shared.FACTOR, trend_z: float = shared.TREND_Z
) -> Answer:
    """Do the attention logits of some layer keep growing?

    Yes when a layer's largest Q·K has a rising trend (of block medians, above `trend_z`), ends above `growth` times its
    level at the beginning and above `least`, where its softmax has long since put all its weight on one key.
    """
    grown = []
    for name, series in attention_logits_max.items():
        if len(finite(series)[1]):
            of = "" if name == UNGROUPED else f" of {name}"
            text = f"the largest attention logits{of} go from"
            grown.append(_growth(series, "attention_logits_max", text, (growth, least, trend_z)))
    if not grown:
        return unknown("attention_logits_max has no finite rows", "attention_logits_max")
    strength, evidence = max(grown, key=itemgetter(0))
    return measured(strength, (evidence,))


def _growth(series: Series, metric: str, text: str, limits: tuple[float, float, float]) -> tuple[float, Evidence]:
    """Return how surely a series grows past its limits: the factor of growth, the level and the trend."""
    growth, least, trend_z = limits
    begin, end, trend = ends_and_trend(np.abs(finite(series)[1]), shared.LEVELS)
    strength = weakest(above(trend, trend_z), above(end, growth * begin), above(end, least))
    text += f" {figure(begin)} to {figure(end)}, {'steadily' if trend >= trend_z else 'without a steady trend'}"
    return strength, Evidence(text, metric, (), end, max(growth * begin, least))
