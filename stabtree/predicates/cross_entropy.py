"""The loss as a cross-entropy over classes: where it begins, what it does not fall below, what no batch gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import SOME, median, resolution, stretches
from stabtree.context.model import CLASSIFICATION
from stabtree.facts.registry import finite
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

# A loss of these is 0 wherever the margin is kept, or by construction.
ZERO_BY_NATURE = ("hinge", "margin", "triplet", "contrastive", "grpo", "rl", "ppo", "gan", "wgan", "relu", "quantile")

ROUND = (2, 10, 100, 1000)  # the numbers of classes that a loss is looked up in where none is configured
AT_CHANCE = 0.01  # how far from ln(C) a loss still reads as it


def guess(value: float, classes: int | None) -> str:
    """Describe the loss as that of a random guess; empty where no number of classes gives it.

    >>> guess(0.6931, None), guess(2.29, 10), guess(0.5, 2)
    ('0.693 = ln 2, chance for 2 classes', '2.29 ≈ ln 10, chance for 10 classes', '')
    """
    for count in (classes,) if classes else ROUND:
        chance = math.log(count)
        if abs(value - chance) < AT_CHANCE * chance:
            sign = "=" if f"{value:.3g}" == f"{chance:.3g}" else "≈"
            return f"{value:.3g} {sign} ln {count:,}, chance for {count:,} classes"
    return ""


def _first(loss: Series, first_step: int) -> tuple[int, float] | None:
    """Return the first step and loss; None where the log begins too late to show the untrained model."""
    steps, values = finite(loss)
    return (int(steps[0]), float(values[0])) if len(values) and int(steps[0]) <= first_step else None


def _count_of(context: Context) -> str:
    """Return the setting that counts what one guess is among: classes, or the tokens of a vocabulary."""
    return "n_classes" if context.task.value == CLASSIFICATION else "vocab_size"


@predicate(source="convergence O1", min_points=1)
def starts_above_chance(context: Context, loss: Series, *, factor: float, first_step: int) -> Answer:
    """Does the loss begin far above that of an untrained model?

    A cross-entropy over C classes begins at ln(C) with equal logits. Yes when the first loss lies above `factor` times
    that by step `first_step`: the logits are large before anything was learned.
    """
    classes, first = context.classes.value, _first(loss, first_step)
    if first is None:
        return unknown(f"the log begins after step {first_step:,}: its first loss is not known")
    if classes is None:
        return unknown("neither n_classes nor vocab_size is configured", _count_of(context))
    chance = math.log(classes)
    text = f"the loss begins at {first[1]:.4g}; chance among {classes:,} is ln({classes:,}) = {chance:.4g}"
    found = (Evidence(text, "loss", (first[0],), first[1], factor * chance),)
    return Answer(YES if first[1] > factor * chance else NO, found)


@predicate(source="convergence O15 and O16", min_points=1)
def starts_near_zero(context: Context, loss: Series, *, share: float, first_step: int) -> Answer:
    """Is the loss almost 0, or below, before anything was learned?

    Yes when the first loss of a run with C classes lies below `share` of ln(C). An untrained classifier can't do that;
    a loss averaged over padding can, and so can NLLLoss on probabilities or a target that leaks into the input. The
    loss of a run that learns from a reward is 0 by construction.
    """
    if context.restless:
        return inapplicable(f"{context.restless} may begin anywhere")
    classes, first = context.classes.value, _first(loss, first_step)
    if first is None:
        return unknown(f"the log begins after step {first_step:,}: its first loss is not known")
    if classes is None:
        return unknown("neither n_classes nor vocab_size is configured", _count_of(context))
    bar = share * math.log(classes)
    text = f"the loss begins at {first[1]:.4g}; an untrained model of {classes:,} classes at {math.log(classes):.4g}"
    found = (Evidence(text, "loss", (first[0],), first[1], bar),)
    return Answer(YES if first[1] < bar else NO, found)


@predicate(source="convergence O12", min_points=30)
def double_softmax(
    run: Run,
    loss: Series,
    context: Context,
    *,
    near_share: float,
    start_share: float,
    settled_share: float,
    guess_share: float,
    apart: float,
    floor_rows: Count,
) -> Answer:
    """Does the loss settle at the floor of a double softmax?

    A cross-entropy of C probabilities lies between ln(1 + (C - 1)/e) and ln(C - 1 + e), whatever the model does. Yes
    when no row lies outside, the loss begins within `start_share` of ln(C), has ended its fall (its second half wins
    less than `settled_share` of what the whole run did), and ends in the lowest `near_share` of the way from ln(C) down
    to the floor. C is taken from the configuration, else from the first loss: then nearly any loss lies close to some
    ln(C), so that the exponential of the first must lie within `apart` of a whole number, and `floor_rows` rows
    within `guess_share` of the floor.
    """
    steps, values = finite(loss)
    first = float(values[0])
    known = context.classes.value
    if known is None and run.has("token_accuracy"):
        return unknown("a language model's number of classes is its vocab_size, which is not configured", "loss")
    if not 0 < first < math.log(1e6):
        return inapplicable("the loss does not begin where an untrained classifier's does")
    classes = known or round(math.exp(first))
    guessed_wrong = known is None and abs(math.exp(first) - classes) > apart
    if classes < 3 or guessed_wrong or abs(first - math.log(classes)) > start_share * math.log(classes):
        text = f"the loss begins at {first:.3g}, an untrained model of {classes:,} classes at {math.log(classes):.3g}"
        return Answer(NO, (Evidence(text, "loss", (int(steps[0]),), first, math.log(max(classes, 1))),))
    floor, ceiling = math.log1p((classes - 1) / math.e), math.log(classes - 1 + math.e)
    part = max(5, len(values) // 10)
    middle = median(values[len(values) // 2 - part // 2 :][:part])
    end, lowest, highest = median(values[-part:]), float(values.min()), float(values.max())
    above = (end - floor) / (math.log(classes) - floor)
    text = (
        f"the loss goes from {first:.4g} to {end:.4g}, its rows from {lowest:.4g} to {highest:.4g}; a double softmax "
    )
    text += f"over {classes:,} classes keeps it between {floor:.4g} and {ceiling:.4g}"
    if known is None:
        text += " (no number of classes is configured: taken from the first loss)"
    found = (Evidence(text, "loss", (int(steps[-1]),), above, near_share),)
    on_floor = known is not None or int((values < floor * (1 + guess_share)).sum()) >= floor_rows
    within = on_floor and lowest > floor * (1 - 1e-3) and highest < ceiling * (1 + 1e-3)
    yes = within and above < near_share and middle - end < settled_share * (first - end)
    return Answer(YES if yes else NO, found, onset_step=int(steps[0]) if yes else None)


@predicate(source="convergence O15", min_points=3)
def follows_padding(loss: Series, pad_share: Series, *, correlation: float, min_rows: int) -> Answer:
    """Does the loss go down where the batch holds more padding?

    Compared are the changes of both from row to row, so that a trend of either says nothing.
    """
    _, here, there = np.intersect1d(loss.steps, pad_share.steps, assume_unique=True, return_indices=True)
    a, b = loss.values[here], pad_share.values[there]
    keep = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < 1e100) & (np.abs(b) < 1e100)
    a, b = np.diff(a[keep]), np.diff(b[keep])
    if len(a) < max(min_rows, 2) or not a.std() or not b.std():
        return unknown("loss and pad_share share too few rows, or one of them does not vary", "pad_share")
    value = float(np.corrcoef(a, b)[0, 1])
    if not math.isfinite(value):
        return unknown("loss and pad_share can't be compared", "pad_share")
    text = f"changes of the loss and of the share of padding have a correlation of {value:.2f} over {len(a):,} rows"
    return Answer(YES if value < -correlation else NO, (Evidence(text, "pad_share", (), value, -correlation),))


def may_be_zero(run: Run, context: Context, values: Floats) -> str:
    """Return why a loss of exactly 0 means nothing in this run; empty where it does mean something."""
    kind = str(run.setting("loss_kind") or run.setting("loss") or "").lower()
    reasons = {
        f"{context.restless} may be 0 by construction": context.learns_from_rewards,
        "the loss goes below 0: it is not a cross-entropy, and 0 is nothing special": bool((values < 0).any()),
        f"the loss is configured as {kind}, which may be 0": any(word in kind for word in ZERO_BY_NATURE),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


@predicate(source="masked labels: every label -100", min_points=8)
def loss_at_zero(run: Run, context: Context, loss: Series, *, share: float, gap_share: float) -> Answer:
    """Is the loss exactly 0 throughout, or from some row on?

    Yes where at least `share` of the rows are exactly 0, the last one as well, and the loss did not come down to 0
    through small values: the smallest one above 0 is more than `gap_share` of the median of those above 0.
    """
    steps, values = finite(loss)
    why = may_be_zero(run, context, values)
    if why:
        return inapplicable(why)
    zero = values == 0
    seen, above = float(zero.mean()), values[~zero] if zero.any() else values
    text = f"the loss is exactly 0 in {int(zero.sum()):,} of {len(values):,} rows"
    text += f"; its other values go from {above.min():.3g} to {above.max():.3g}" if len(above) else ""
    found = (Evidence(text, "loss", (int(steps[0]), int(steps[-1])), seen, share),)
    if seen < share or not zero[-1] or (len(above) and float(above.min()) <= gap_share * median(above)):
        return Answer(NO, found)
    at = int(np.argmax(zero))
    return Answer(YES, found, onset_step=int(steps[at]), last_good_step=int(steps[at - 1]) if at else None)


@predicate(source="batches without a label; NaN rows logged as 0 (logging_nan_inf_filter)", min_points=12)
def zero_rows(
    run: Run,
    context: Context,
    loss: Series,
    *,
    near_rows: Count,
    near_share: float,
    wide_rows: Count,
    small_share: float,
    digits: float,
    share: float,
) -> Answer:
    """Are single rows of the loss exactly 0, between ordinary ones?

    A row counts where each of the `near_rows` rows other than 0 on either side is at least `near_share` of their
    median, and that median has `digits` steps of the last digit printed: then 0 is no small value rounded, nor one
    that the loss was on its way to. At most `share` of the rows may be 0, else it is the level of the loss. Nor does a
    row count where one of the `wide_rows` on either side lies below `small_share` of their median: a loss of margins
    comes as near to 0 as it likes, and 0 is the end of its scatter.
    """
    steps, values = finite(loss)
    why = may_be_zero(run, context, values)
    if why:
        return inapplicable(why)
    zero = np.flatnonzero(values == 0)
    if not len(zero) or len(zero) > share * len(values):
        text = f"{len(zero):,} of {len(values):,} rows of the loss are exactly 0"
        return Answer(NO, (Evidence(text, "loss", (), len(zero) / len(values), share),))
    others, last_digit = np.flatnonzero(values != 0), resolution(values)
    alone = []
    for at in zero:
        index = int(np.searchsorted(others, at))
        near = values[others[max(0, index - near_rows) : index + near_rows]]
        level = median(near)
        wide = values[others[max(0, index - wide_rows) : index + wide_rows]]
        scatters = float(wide.min()) < small_share * median(wide)
        if float(near.min()) >= near_share * level and level >= digits * last_digit and not scatters:
            alone.append(int(at))
    text = f"the loss is exactly 0 in {len(zero):,} rows, {len(alone):,} of them among ordinary ones"
    text += f", the first at step {int(steps[alone[0]]):,}" if alone else ""
    found = (Evidence(text, "loss", tuple(int(steps[at]) for at in alone[:5]), len(alone) / len(values), share),)
    if not alone:
        return Answer(NO, found)
    before = alone[0] - 1
    return Answer(
        YES, found, onset_step=int(steps[alone[0]]), last_good_step=int(steps[before]) if before >= 0 else None
    )


@predicate(source="stuck loggers and loaders", min_points=8)
def loss_repeats(
    context: Context,
    loss: Series,
    *,
    rows: Count,
    values_most: Count,
    few_rows: Count,
    digits: float,
    plain: float,
) -> Answer:
    """Is the loss exactly the same number in many rows?

    Yes where one value other than 0 fills `rows` neighbouring rows or more, or the whole log holds at most
    `values_most` different values, one only where it has fewer than `few_rows` rows. Each must have `digits` steps
    of the last digit printed, so that rounding does not make different losses equal; a log of one single value
    needs no more than to be `plain` or above, since no loss that is trained stays within a rounding of so large a
    number from the first row to the last.
    """
    steps, values = finite(loss)
    same = np.concatenate(([False], (values[1:] == values[:-1]) & (values[1:] != 0)))
    different = _different(values, values_most)
    begin, end = _longest(same)
    last_digit = 0.0
    if different or end - begin + 1 >= rows:  # else nothing rests on the digits, which take a while in a long log
        last_digit = resolution(values)
        begin, end = _longest(same & (np.abs(values) >= digits * last_digit))
    count = end - begin + 1
    max_values = values_most if len(values) >= few_rows else 1
    min_size = digits * last_digit if last_digit < 1 else math.inf
    few = len(different) <= max_values and _repeats_few(different, min_size, plain)
    if few and count < rows:
        listed = ", ".join(f"{value:.6g}" for value in different)
        text = f"all {len(values):,} rows of the loss hold {len(different)} different value"
        text += f"{'s' if len(different) > 1 else ''} (limit {max_values}): {listed}"
        one = _one_value(different[0], len(values), context.classes.value) if len(different) == 1 else ""
        span = (int(steps[0]), int(steps[-1]))
        found = (Evidence(text, "loss", span, float(len(different)), float(max_values), one),)
    else:
        text = f"the longest stretch of one value is {count:,} rows of {values[begin - 1]:.6g}, from step "
        text += f"{int(steps[begin - 1]):,} (limit {rows:,})"
        one = _one_value(float(values[begin - 1]), count, context.classes.value)
        found = (Evidence(text, "loss", (int(steps[begin - 1]), int(steps[end - 1])), float(count), float(rows), one),)
    if count < rows and not few:
        return Answer(NO, found)
    at = 0 if few else begin - 1
    return Answer(YES, found, onset_step=int(steps[at]), last_good_step=int(steps[at - 1]) if at else None)


def _one_value(value: float, rows: int, classes: int | None) -> str:
    return f"{guess(value, classes) or f'{value:.6g}'} in {rows:,} rows"


def _longest(same: Bools) -> tuple[int, int]:
    return max(stretches(same), key=lambda part: part[1] - part[0], default=(1, 1))


def _different(values: Floats, max_values: int) -> list[float]:
    """Return the different values of a log, none where there are more than `max_values`."""
    if len(set(values[:SOME].tolist())) > max_values:  # as in nearly every log
        return []
    found: list[float] = np.unique(values).tolist()
    return found if len(found) <= max_values else []


def _repeats_few(different: list[float], min_size: float, plain: float) -> bool:
    """Return whether these few values are too large for rounding to have made them equal; one alone needs less."""
    if len(different) == 1 and abs(different[0]) >= plain:
        return True
    return bool(different) and all(value != 0 and abs(value) >= min_size for value in different)
