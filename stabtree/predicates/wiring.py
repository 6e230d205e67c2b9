"""How a loss was put together: where it begins, what it follows, how large its gradient is beside a second run's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.learning import n_classes
from stabtree.predicates.registry import Groups, predicate
from stabtree.stats import median

if TYPE_CHECKING:
    from stabtree.run import Run, Series


def _first(loss: Series, first_step: int) -> tuple[int, float] | None:
    """The first step and loss of a log that begins at the beginning: a later one shows no untrained model."""
    steps, values = finite(loss)
    return (int(steps[0]), float(values[0])) if len(values) and int(steps[0]) <= first_step else None


@predicate(source="convergence O1", min_points=1)
def starts_above_chance(run: Run, loss: Series, *, factor: float, first_step: int) -> Answer:
    """Does the loss begin far above that of a model that knows nothing?

    A cross-entropy over C classes begins at ln(C) with equal logits. Yes when the first loss lies above `factor` times
    that by step `first_step`: the logits are large before anything was learned.
    """
    classes, first = n_classes(run), _first(loss, first_step)
    if classes is None or first is None:
        return unknown("neither n_classes nor vocab_size is configured, or the log begins too late", "loss")
    chance = math.log(classes)
    text = f"the loss begins at {first[1]:.4g}; chance among {classes:,} is ln({classes:,}) = {chance:.4g}"
    found = (Evidence(text, "loss", (first[0],), first[1], factor * chance),)
    return Answer(YES if first[1] > factor * chance else NO, found)


@predicate(source="convergence O15 and O16", min_points=1)
def starts_near_zero(run: Run, loss: Series, *, share: float, first_step: int) -> Answer:
    """Is the loss next to zero, or below, before anything was learned?

    Yes when the first loss of a run with C classes lies below `share` of ln(C). An untrained classifier can't do that;
    a loss averaged over padding can, and so can NLLLoss on probabilities or a target that leaks into the input. The
    loss of a run that learns from a reward is 0 by construction.
    """
    if run.get("reward") is not None:
        return unknown("a reward is logged: the loss of reinforcement learning begins anywhere", "loss")
    classes, first = n_classes(run), _first(loss, first_step)
    if classes is None or first is None:
        return unknown("neither n_classes nor vocab_size is configured, or the log begins too late", "loss")
    bar = share * math.log(classes)
    text = f"the loss begins at {first[1]:.4g}; an untrained model of {classes:,} classes at {math.log(classes):.4g}"
    found = (Evidence(text, "loss", (first[0],), first[1], bar),)
    return Answer(YES if first[1] < bar else NO, found)


@predicate(source="convergence O15", min_points=3)
def follows_padding(loss: Series, pad_share: Series, *, correlation: float, least_rows: int) -> Answer:
    """Does the loss go down where the batch holds more padding?

    Compared are the changes of both from row to row, so that a trend of either says nothing.
    """
    _, here, there = np.intersect1d(loss.steps, pad_share.steps, assume_unique=True, return_indices=True)
    a, b = loss.values[here], pad_share.values[there]
    keep = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < 1e100) & (np.abs(b) < 1e100)
    a, b = np.diff(a[keep]), np.diff(b[keep])
    if len(a) < max(least_rows, 2) or not a.std() or not b.std():
        return unknown("loss and pad_share share too few rows, or one of them does not vary", "pad_share")
    value = float(np.corrcoef(a, b)[0, 1])
    if not math.isfinite(value):
        return unknown("loss and pad_share can't be compared", "pad_share")
    text = f"changes of the loss and of the share of padding have a correlation of {value:.2f} over {len(a):,} rows"
    return Answer(YES if value < -correlation else NO, (Evidence(text, "pad_share", (), value, -correlation),))


@predicate(source="convergence O9")
def norm_is_multiple(run: Run, grad_norm: Series, *, rows: int, whole: float, most: int) -> Answer:
    """Is grad_norm a whole multiple of that of a second run?

    Compared are the medians of the first `rows` rows of the run and its rerun, before the two part. Yes when one is N
    times the other, N a whole number from 2 to `most`, within `whole`: the configured accumulation steps where they are
    known.
    """
    other = run.rerun.get("grad_norm") if run.rerun else None
    if other is None:
        return unknown("no rerun was given (--rerun), or it has no grad_norm", "grad_norm")
    mine, theirs = finite(grad_norm)[1][: max(rows, 1)], finite(other)[1][: max(rows, 1)]
    a, b = (float(median(part)) if len(part) else 0.0 for part in (mine, theirs))
    if min(a, b) <= 0:
        return unknown("grad_norm is 0 or not logged at the beginning of one of the runs", "grad_norm")
    ratio = max(a, b) / min(a, b)
    steps = {item.setting("accumulation_steps") for item in (run, run.rerun) if item} - {None, 1}
    wanted = steps or {round(min(ratio, 1e6))}
    near = [n for n in wanted if isinstance(n, int) and 2 <= n <= most and abs(ratio / n - 1) < whole / max(1, n / 8)]
    text = f"the first grad_norms have medians of {a:.4g} here and {b:.4g} in the rerun: a factor of "
    text += f"{min(ratio, 1e9):.3g}"
    text += f", configured are {', '.join(map(str, steps))} accumulation steps" if steps else ""
    found = (Evidence(text, "grad_norm", (), min(ratio, 1e9), float(near[0]) if near else 2.0),)
    return Answer(YES if near else NO, found)


@predicate(source="convergence O22", min_points=5)
def groups_apart(update_ratio: Groups, *, factor: float) -> Answer:
    """Do some parameter groups move far faster or slower than others?

    Yes when the medians of two groups differ by more than `factor`. With 100, one of them lies more than ten times away
    from the usual 1e-3, whatever the other does.
    """
    medians = {name: float(median(values)) for name, s in update_ratio.items() if len(values := finite(s)[1])}
    medians = {name: value for name, value in medians.items() if value > 0}
    if len(medians) < 2:
        return unknown("update_ratio was not logged per parameter group", "update_ratio")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    ratio = min(medians[high] / medians[low], 1e100)
    text = f"update ratios run from {medians[low]:.2g} ({low}) to {medians[high]:.2g} ({high}), "
    text += f"a factor of {ratio:,.3g}"
    found = (Evidence(text, "update_ratio", (), ratio, factor),)
    return Answer(YES if ratio > factor else NO, found)
