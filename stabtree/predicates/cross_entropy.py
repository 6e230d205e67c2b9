"""The loss as a cross-entropy over classes: where it begins, what it does not fall below, what it is averaged over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.registry import predicate
from stabtree.stats import median

if TYPE_CHECKING:
    from stabtree.run import Run, Series


def n_classes(run: Run) -> int | None:
    """Classes or vocabulary that the loss is a cross-entropy over, where the configuration says so."""
    for key in ("n_classes", "vocab_size"):
        value = run.setting(key)
        if isinstance(value, int) and value > 1:
            return value
    return None


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
    if run.moves_by_nature:
        return unknown(f"{run.moves_by_nature} begins anywhere", "loss")
    classes, first = n_classes(run), _first(loss, first_step)
    if classes is None or first is None:
        return unknown("neither n_classes nor vocab_size is configured, or the log begins too late", "loss")
    bar = share * math.log(classes)
    text = f"the loss begins at {first[1]:.4g}; an untrained model of {classes:,} classes at {math.log(classes):.4g}"
    found = (Evidence(text, "loss", (first[0],), first[1], bar),)
    return Answer(YES if first[1] < bar else NO, found)


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
