"""How a run begins: whether it leaves its start, and what a guess would reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, as_share, figure
from stabtree.common.lazy import np
from stabtree.common.passes import extremes, rows_upto
from stabtree.common.shared import FARTHEST, above, below, whether
from stabtree.common.stats import LARGEST, NEARLY_ZERO, NORMAL_99, median
from stabtree.context import model
from stabtree.context.find import FIRST_STEPS, MIN_UNTRAINED, guesses_between_two
from stabtree.context.model import (
    CLASSIFICATION,
    CONTINUED,
    FINE_TUNE,
    FROM_SCRATCH,
    GRPO,
    INFERRED,
    LANGUAGE,
    LORA,
    PREFERENCE,
)
from stabtree.frameworks.load import framework
from stabtree.measures.drift import Fall, done_share, early_rows, fall_of, first_level
from stabtree.measures.registry import finite, highest, lowest, measure, middle, paired
from stabtree.profile import profile_of
from stabtree.profile.change import change_point
from stabtree.run import Series

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.run import Run


# Tasks whose loss does not begin at the logarithm of a number of classes.
NO_CLASSES = (
    *(model.REGRESSION, model.DIFFUSION, model.GAN, model.CONTRASTIVE, model.CTC, model.DETECTION),
    *model.FROM_REWARDS,
)
# A loss of these is 0 wherever the margin is kept, or by construction.
ZERO_BY_NATURE = ("hinge", "margin", "triplet", "contrastive", "grpo", "rl", "ppo", "gan", "wgan", "relu", "quantile")

LARGEST_VOCABULARY = 262_144  # no limit: of the language models in use in 2026
ROUND = (2, 10, 100, 1000)  # no limit: the numbers of classes that a loss is looked up in where none is configured
ROUNDED = 1e-3  # no limit: of a bound, by which a printed loss may miss it
SETTLED = 0.15  # of all that a loss wins: what one that has settled wins in the second half
WHOLE = 0.02  # of a number of classes, by which it may miss a whole number
AT_CHANCE = 0.01  # how far from ln(C) a loss still reads as it


def guess(value: float, classes: int | None) -> str:
    """Describe the loss as that of a random guess; empty where no number of classes gives it.

    >>> guess(0.6931, None), guess(2.29, 10), guess(0.5, 2)
    ('0.693 = ln 2, chance for 2 classes', '2.29 ≈ ln 10, chance for 10 classes', '')
    """
    for count in (classes,) if classes else ROUND:
        chance = math.log(count)
        if abs(value - chance) < AT_CHANCE * chance:
            sign = "=" if f"{figure(value)}" == f"{figure(chance)}" else "≈"
            return f"{figure(value)} {sign} ln {count:,}, chance for {count:,} classes"
    return ""


def _first(context: Context, loss: Series) -> tuple[int, float, int] | Answer:
    """Return the first step and loss, and the classes; unknown where the log does not show the untrained model."""
    if context.task.value in NO_CLASSES:
        return inapplicable(f"the loss of {context.task.value} is not one of classes alone")
    steps, values = finite(loss)
    count_of = "vocab_size" if context.task.value in (LANGUAGE, GRPO, PREFERENCE) else "n_classes"
    if not len(values) or int(steps[0]) > FIRST_STEPS:
        return unknown(f"the log begins after step {FIRST_STEPS:,}: its first loss is not known", count_of)
    if context.classes.value is None:
        return unknown("neither n_classes nor vocab_size is configured", count_of)
    return int(steps[0]), float(values[0]), context.classes.value or 1


@measure(source="convergence O1", min_points=1)
def starts_above_chance(context: Context, loss: Series, *, factor: float = shared.FACTOR_SMALL) -> Answer:
    """Does the loss begin far above that of an untrained model?

    A cross-entropy over C classes begins at ln(C) with equal logits. Yes when the first loss lies above `factor` times
    that: the logits are large before anything was learned.
    """
    known = _first(context, loss)
    if isinstance(known, Answer):
        return known
    step, first, classes = known
    chance = math.log(classes)
    text = f"the loss begins at {figure(first, 4)}; chance among {classes:,} is ln({classes:,}) = {figure(chance, 4)}"
    found = (Evidence(text, "loss", (step,), first, factor * chance),)
    return measured(above(first, factor * chance), found)


@measure(source="measured: classifiers of inputs that were not scaled", min_points=shared.ROWS_SHORT)
def above_any_chance(context: Context, loss: Series, *, factor: float = shared.FACTOR) -> Answer:
    """Is the loss of a classifier far above that of a guess up to its end, for any number of classes?

    Yes where its lowest level lies above `factor` times the logarithm of the largest vocabulary in use, and it does not
    end below where it began, as a sum over the batches of a run that learns does. Such logits come from inputs or
    weights of a wrong scale.
    """
    if context.task.value != model.CLASSIFICATION:
        return inapplicable("the run is not known to train a classifier")
    profile, most = profile_of(loss), math.log(LARGEST_VOCABULARY)
    text = f"the lowest level of the loss is {figure(profile.best, 4)}; a guess among {LARGEST_VOCABULARY:,} classes "
    text += f"costs {figure(most, 3)}; it goes from {figure(profile.first, 4)} to {figure(profile.last, 4)}"
    found = Evidence(text, "loss", profile.span or (), profile.best, factor * most)
    stays = above(profile.last, (1 - shared.SHARE_SOME) * profile.first)
    return measured(min(above(profile.best, factor * most), stays), (found,), onset_step=int(loss.steps[0]))


@measure(source="convergence O15 and O16", min_points=1)
def starts_near_zero(context: Context, loss: Series, *, share: float) -> Answer:
    """Is the loss almost 0, or below, before anything was learned?

    Yes when the first loss of a run with C classes lies below `share` of ln(C). An untrained classifier can't do that;
    a loss averaged over padding can, and so can NLLLoss on probabilities or a target that leaks into the input. The
    loss of a run that learns from a reward is 0 by construction.
    """
    if context.restless:
        return inapplicable(f"{context.restless} may begin anywhere")
    known = _first(context, loss)
    if isinstance(known, Answer):
        return known
    step, first, classes = known
    chance = math.log(classes)
    text = f"the loss begins at {figure(first, 4)}; an untrained model of {classes:,} classes at {figure(chance, 4)}"
    found = (Evidence(text, "loss", (step,), first, share * chance),)
    return measured(below(first, share * chance), found)


@measure(source="convergence O12", min_points=10)
def double_softmax(
    loss: Series,
    context: Context,
    eval_loss: Series | None = None,
    eval_quality: Series | None = None,
    *,
    near_share: float,
    start_share: float,
) -> Answer:
    """Does the loss settle at the floor of a double softmax?

    A cross-entropy of C probabilities lies between ln(1 + (C - 1)/e) and ln(C - 1 + e), whatever the model does. Yes
    when no row lies outside, the loss begins within `start_share` of ln(C), and ends in the lowest `near_share` of the
    way from ln(C) down to the floor, its fall over. C is configured, or follows from the accuracy, since a sure model
    then has a loss of the floor plus the share that it gets wrong; else it is 10, 100 or 1000.
    """
    steps, values = finite(loss)
    first, part = float(values[0]), max(3, len(values) // 10)
    by_accuracy = _by_accuracy(eval_loss, eval_quality)
    likely = min(ROUND[1:], key=lambda count: abs(math.log(count) - first))
    classes = max(context.classes.value or by_accuracy or likely, 2)
    chance, floor, ceiling = math.log(classes), math.log1p((classes - 1) / math.e), math.log(classes - 1 + math.e)
    end, low, high = median(values[-part:]), lowest(loss), highest(loss)
    text = f"the loss ends at {figure(end, 4)} and stays between {figure(low, 4)} and {figure(high, 4)}; a double "
    text += f"softmax over {classes:,} classes keeps it in {figure(floor, 4)} to {figure(ceiling, 4)}"
    if not context.classes.value:
        text += f" (no number of classes is configured: {'by the accuracy' if by_accuracy else 'by the first loss'})"
    above_floor = (end - floor) / (chance - floor)
    within = low > floor * (1 - ROUNDED) and high < ceiling * (1 + ROUNDED) and classes > 2
    at_floor = below(above_floor, shared.SHARE_HALF)
    # An accuracy that agrees says more; and the first row of an epoch is the mean of what was learned in it.
    if not by_accuracy:
        begins = below(abs(first - chance), start_share * chance)
        late = (median(values[len(values) // 2 :][:part]) - end) / max(first - end, NEARLY_ZERO)
        at_floor = min(below(above_floor, near_share), begins, below(late, SETTLED))
    strength = min(whether(within), at_floor)
    evidence = (Evidence(text, "loss", (int(steps[-1]),), above_floor, near_share),)
    return measured(strength, evidence, onset_step=int(steps[0]))


def _by_accuracy(eval_loss: Series | None, quality: Series | None) -> int | None:
    """Return the number of classes of which loss, accuracy and a double softmax agree at the end; None for none."""
    if eval_loss is None or quality is None or "acc" not in quality.origin.lower():
        return None
    _, losses, shares = paired(eval_loss, quality)
    floors = (losses + shares / (100 if quality.values.max() > 1 else 1) - 1)[-shared.ROWS_SHORT :]
    if len(floors) < shared.ROWS_SHORT or not np.isfinite(floors).all() or floors.max() > math.log(1e6):
        return None
    classes = 1 + math.e * (np.exp(floors) - 1)
    count = round(median(classes))
    return count if count > 2 and float(np.abs(classes - count).max()) < WHOLE * count else None


@measure(source="convergence O15", min_points=4)
def follows_padding(loss: Series, pad_share: Series, *, correlation: float = shared.SHARE_HALF) -> Answer:
    """Does the loss go down where the batch holds more padding?

    Compared are the changes of both from row to row, so that a trend of either says nothing. The correlation is that
    which the number of rows leaves sure.
    """
    _, a, b = paired(loss, pad_share)
    keep = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < LARGEST) & (np.abs(b) < LARGEST)
    a, b = np.diff(a[keep]), np.diff(b[keep])
    if len(a) < shared.ROWS_SHORT or not a.std() or not b.std():
        return unknown("loss and pad_share share too few rows, or one of them does not vary", "pad_share")
    value = float(np.corrcoef(a, b)[0, 1])
    if not math.isfinite(value):
        return unknown("loss and pad_share can't be compared", "pad_share")
    # Fisher's transformation: its error is that of a normal variable.
    sure = math.tanh(math.atanh(max(-1 + 1e-12, min(1 - 1e-12, value))) + NORMAL_99 / math.sqrt(len(a) - 3))
    text = f"loss and share of padding move against each other in {len(a):,} rows: correlation {value:.2f}, at most "
    text += f"{sure:.2f} for sure (limit {-correlation:g})"
    return measured(above(-sure, correlation), (Evidence(text, "pad_share", (), value, -correlation),))


def may_be_zero(run: Run, context: Context, loss: Series) -> str:
    """Return why a loss of exactly 0 means nothing in this run; empty where it does mean something."""
    kind = str(run.setting("loss_kind") or run.setting("loss") or "").lower()
    reasons = {
        f"{context.restless} may be 0 by construction": context.learns_from_rewards,
        "the loss goes below 0: it is not a cross-entropy, and 0 is nothing special": lowest(loss) < 0,
        f"the loss is configured as {kind}, which may be 0": any(word in kind for word in ZERO_BY_NATURE),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


# No log-likelihood of a sample comes to so many nats, whatever constant is added: a loss above is in other units.
NATS = 1e4
MIN_EVALS = 3
STILL = 1e-5  # no limit: of a held-out loss, by which it differs for the same weights: rounding


@measure(source="convergence O1 and O7", labels=("yes", "flat", "slow", "worse"), min_points=5)
def leaves_start(
    run: Run,
    loss: Series,
    context: Context,
    eval_loss: Series | None = None,
    lr: Series | None = None,
    grad_norm: Series | None = None,
    eval_quality: Series | None = None,
    *,
    min_share: float,
    flat_share: float,
    steps: int,
    nats: float,
    rise: float = shared.SHARE_SOME,
) -> Answer:
    """Does the loss fall clearly below the level at which it began?

    `flat`: neither it nor the held-out loss can have fallen by `flat_share` of its first level, whatever the scatter of
    the rows hides, and there is no trend; `slow`: the same, falling; or, of a model that was not trained before, by
    `min_share`. A model that was trained before may win as little, so that only what does not fall at all is flat: one
    that its settings call so, that of a trainer mostly used on such models, or a cross-entropy that begins below what
    an untrained model has, `nats` where the tokens are not counted. In the first `steps` steps at the full rate less
    can be expected, in proportion. `worse`: its lowest level lies more than `rise` above the first, or above at all
    where the first updates threw it up, and it does not fall, nor does the held-out loss; one that was thrown up and
    ends above by `rise` may fall, from where it had climbed to. A gradient of exactly 0 in every row leaves it flat at
    any length.
    """
    if context.restless:
        return inapplicable(f"{context.restless} need not fall")
    fall, held_out = fall_of(loss), None
    if eval_loss is not None and len(finite(eval_loss)[1]) >= MIN_EVALS:
        held_out = fall_of(eval_loss, rows=1)  # one evaluation is over many batches
    falls = [one for one in (fall, held_out) if one]
    found = _evidence(loss, falls, context, flat_share)
    begin, rows = int(finite(loss)[0][0]), 0 if grad_norm is None else len(grad_norm)
    frozen = grad_norm is not None and rows >= shared.ROWS_SHORT and extremes(grad_norm) == (0, 0, True)
    if grad_norm is not None and frozen and fall.at_least < min_share:
        text = f"grad_norm is exactly 0 in each of its {rows:,} rows: nothing is learned"
        nothing = Evidence(text, "grad_norm", (int(grad_norm.steps[0]), int(grad_norm.steps[-1])), 0.0, 0.0)
        return Answer("flat", (found, nothing), onset_step=begin, strength=FARTHEST)
    if lowest(loss) == highest(loss) == 0:
        return inapplicable("the loss is exactly 0 in every row, which is asked about by itself")
    if run.excerpt_from is not None:
        return unknown(f"the log begins at step {run.excerpt_from:,}: the loss before that is not known")
    worse = _is_worse(falls, rise)
    if worse >= 0:
        return Answer("worse", (found,), onset_step=begin, strength=worse)
    done = done_share(run, loss, lr, steps)
    trained = trained_before(context, max(fall.first, fall.low), nats)
    little = -max(min(one.falls, above(one.share, flat_share / shared.FACTOR_HUGE)) for one in falls)
    if trained:
        limit = flat_share * done * shared.SHARE_HALF  # for a model that can win little, it takes twice the power
        still = min(_stays_within(falls, limit, min_share), little, _held_out_still(eval_loss))
        return _answer(loss, falls, still, (found, Evidence(trained, "loss", (), fall.first)))
    if context.phase.value == FROM_SCRATCH or context.task.value:
        still = _stays_within(falls, min_share * done, min_share)
    else:
        still = min(_stays_within(falls, flat_share * done, min_share), max(little, _no_better(eval_quality)))
    return _answer(loss, falls, min(still, -_far(context, fall)), (found,))


def _stays_within(falls: list[Fall], limit: float, burst: float) -> float:
    """Return the strength of the statement that neither loss fell by a share of the first level.

    The one that leaves less room has to rule it out, or the training loss where it falls; of the other it is enough not
    to show it beyond its error. Nor may the first row of the training loss lie by the share `burst` above all others.
    """
    sharper = falls[0] if falls[0].falls >= 0 else min(falls, key=lambda fall: fall.at_most)
    others = [below(fall.share - fall.error, limit) for fall in falls if fall is not sharper]
    return min(below(sharper.at_most, limit), *others, below(falls[0].burst, burst))


def _answer(loss: Series, falls: list[Fall], strength: float, found: tuple[Evidence, ...]) -> Answer:
    fall, limit = falls[0], shared.TREND_Z
    verdict = "flat"
    if fall.trend < -limit:
        verdict = "worse" if fall.share + fall.error < 0 else "slow"  # from where it had climbed to is no fall
    text = f"the loss has {'a' if fall.trend < -limit else 'no'} steady downward trend"
    found = (*found, Evidence(text, "loss", (), fall.trend, -limit))
    if strength < 0:
        if max(fall.burst, *(one.at_least for one in falls)) <= 0 and strength < -1:
            return unknown(f"{found[0].text}: too little to call it falling, too much to call it flat")
        return Answer(YES, found, strength=strength, near=verdict)
    if verdict == "flat" and (climb := _climbs(loss)):
        return Answer(YES, (*found, climb), strength=-FARTHEST)
    return Answer(verdict, found, onset_step=int(finite(loss)[0][0]), strength=strength)


def _climbs(loss: Series) -> Evidence | None:
    """Return evidence that the loss left its level upwards later on, which ends what was flat; None if it did not."""
    steps, values = finite(loss)
    left = change_point(steps, values)
    if left is None:
        return None
    row = rows_upto(steps, left.last_good_step)
    level, end = median(values[:row]), median(values[row:])
    if end - level < shared.SHARE_SOME * abs(level):
        return None
    text = f"the loss left its level at step {left.first_bad_step:,}, from {figure(level, 4)} to {figure(end, 4)} since"
    return Evidence(text, "loss", (left.first_bad_step, int(steps[-1])), end, level)


def _evidence(loss: Series, falls: list[Fall], context: Context, limit: float) -> Evidence:
    """Describe the first and the lowest level, what the scatter leaves open, and the rows of the first level."""
    (steps, values), fall = finite(loss), falls[0]
    side = "below" if fall.share >= 0 else "above"
    text = f"the lowest level of the loss is {as_share(abs(fall.share))} {side} its start"
    if fall.share + fall.room > 0:
        text += f" (at most {as_share(fall.at_most)} below)" if fall.at_most < 1 else " (its scatter is as large)"
    text += f": {figure(fall.low, 4)} after {figure(fall.first, 4)}"
    first = float(values[0])
    if fall.thrown:
        text += " in its first row, before it was thrown up"
    elif abs(first - fall.first) > limit * abs(fall.first):
        text += f", the median of {early_rows(len(values))} rows (the first is {figure(first, 4)})"
    for held in falls[1:]:
        text += f"; the held-out loss goes from {figure(held.first, 4)} to {figure(held.low, 4)}"
    brief = "" if speaks(context) and not context.classes.value else guess(middle(loss), context.classes.value)
    return Evidence(text, "loss", (int(steps[0]), int(steps[fall.low_row])), fall.share, limit, brief)


def _no_better(quality: Series | None) -> float:
    """Return the strength of the statement that a quality on held-out data does not rise."""
    if quality is None or len(finite(quality)[1]) < shared.ROWS_SHORT:
        return -FARTHEST
    return below(profile_of(quality).trend, shared.TREND_Z)


def _far(context: Context, fall: Fall) -> float:
    """Return the strength of the statement that a loss of an unknown floor falls far, whatever share of it that is.

    Where anything may have been added to it, it is far if a likelihood multiplies.
    """
    guesses = context.classes.value and not beyond_guess(context, fall.first)
    if guesses or not 0 < fall.first < NATS:
        return -FARTHEST
    return min(fall.falls, above(fall.at_least * fall.first, math.log(shared.FACTOR_SMALL)))


def beyond_guess(context: Context, level: float) -> bool:
    """Return whether a loss is too high for a guess among the classes: something else is in it, and no share counts."""
    return level > shared.FACTOR_SMALL * math.log(context.classes.value or LARGEST_VOCABULARY)


def _held_out_still(eval_loss: Series | None) -> float:
    """Return the strength of the statement that held-out data see no other model at the end than at the beginning."""
    values = finite(eval_loss)[1] if eval_loss is not None else np.zeros(0)
    return whether(len(values) < MIN_EVALS or float(np.ptp(values)) <= STILL * abs(float(values[0])))


def _is_worse(falls: list[Fall], rise: float) -> float:
    """Return the strength of the statement that the loss stays above its first level."""
    fall = falls[0]
    if fall.first <= 0:
        return -FARTHEST
    ends_above = above(-fall.share - fall.error - fall.coarse, rise)
    times = fall.high / fall.first
    if fall.thrown and ends_above >= 0 and times >= shared.FACTOR_SMALL:
        return ends_above  # what falls is only what the first updates threw up
    thrown_up = above(times, 1 + shared.FACTOR_SMALL) if fall.thrown and fall.share < 0 else -FARTHEST
    stays = max(ends_above, thrown_up)
    return min(stays, -max(one.falls for one in falls))


def speaks(context: Context) -> bool:
    """Return whether a run that names no number of classes is likely one of a language model."""
    return context.task.value == LANGUAGE or (mostly_tunes(context) and not context.task.value)


def mostly_tunes(context: Context) -> bool:
    """Return whether the trainer is mostly used on models that were trained before."""
    return framework(context.framework.value or "").defaults.fine_tunes


def trained_before(context: Context, level: float, nats: float) -> str:
    """Return why a model whose loss began at a level was likely trained before; empty where that is not known."""
    if context.phase.value in (FINE_TUNE, LORA, CONTINUED):
        return f"the model was trained before ({context.phase.why or context.phase.value}): it may win little"
    guesses = speaks(context) or context.task.value in (CLASSIFICATION, PREFERENCE)
    if context.phase.value == FROM_SCRATCH or not guesses or level <= 0:
        return ""
    classes = context.classes.value
    if not classes and mostly_tunes(context):
        return "its trainer is mostly used on models that were trained before, and nothing says that this one was not"
    limit = nats if speaks(context) and not classes else MIN_UNTRAINED * math.log(classes or 2)
    if level >= limit:
        return ""
    return f"the loss begins below {figure(limit)}, less than an untrained model has: it was likely trained before"


FEW = 10  # classes that a loss of an unknown task may be a guess among


@measure(source="convergence O1; a guess among C classes costs ln(C)", min_points=5)
def stands_at_chance(
    run: Run,
    loss: Series,
    context: Context,
    lr: Series | None = None,
    *,
    flat_share: float,
    steps: int,
    above_share: float,
) -> Answer:
    """Does the loss never get better than a random guess?

    Yes where none of its levels after the first rows can be lower than ln(C) by `flat_share` (in the first `steps`
    steps at the full rate by less, in proportion), it does not fall, and it ends at most `above_share` above. C is
    configured, or 2 for a preference, whose loss may end anywhere above; or else one of 2, 10, 100 and 1000, where the
    loss must end within `flat_share` of it, unless it is that of a classifier of more than 2.
    """
    if context.restless:
        return inapplicable(f"{context.restless} need not fall")
    at, values = finite(loss)
    skip = int(shared.SHARE_SOME * len(values))
    later = Series("loss", at[skip:], values[skip:], "")
    end = median(values[-max(3, len(values) // 3) :])
    classes, known = _guess_of(run, context, end)
    chance = math.log(classes)
    fall = fall_of(later, chance)
    over, begin = end / chance - 1, first_level(values) / chance - 1
    ends = _ends_at((classes, known), context, fall, (begin, over), (flat_share, above_share))
    done = done_share(run, loss, lr, steps)
    strength = min(below(fall.at_most, flat_share * done), ends)
    text = f"the loss ends at {figure(end, 4)}, {as_share(abs(over))} {'above' if over >= 0 else 'below'} "
    text += f"ln {classes:,} = {figure(chance, 4)}, the cost of a guess; its lowest is {figure(fall.low, 4)}"
    brief = guess(middle(loss), classes)
    found = (Evidence(text, "loss", (int(at[0]), int(at[-1])), fall.at_most, flat_share * done, brief),)
    return measured(strength, found, onset_step=int(at[0]))


def _guess_of(run: Run, context: Context, level: float) -> tuple[int, bool]:
    """Return among how many classes a guess is, and whether that is known, or the round number nearest to a level."""
    classes, of_two = context.classes.value, guesses_between_two(context.task.value, context.algorithm.value)
    if of_two and not any("nll" in name.lower() for name in run.others):
        return 2, True
    if classes and classes > 1 and context.task.value in (LANGUAGE, CLASSIFICATION, None):
        return classes, True
    return min(ROUND, key=lambda count: abs(math.log(count) - level)), False


def _ends_at(
    among: tuple[int, bool], context: Context, fall: Fall, ends: tuple[float, float], limits: tuple[float, float]
) -> float:
    """Return the strength of the statement that it ends at a guess, and is not still on its way down to it."""
    (near, far), (begin, over), (classes, known) = limits, ends, among
    coming = -fall.falls if over > near else FARTHEST
    if guesses_between_two(context.task.value, context.algorithm.value) and over > far:
        return FARTHEST
    if known or (context.task.value == CLASSIFICATION and classes > 2):
        return min(below(over, far), coming)
    if speaks(context) or classes > FEW:
        return -FARTHEST  # no vocabulary has so round a number of tokens, and any loss lies near one of them
    still = -fall.falls if classes > 2 else FARTHEST
    return min(below(abs(over), near), below(begin, shared.SHARE_HALF), still)


@measure(source="measured: runs of which most is frozen or left out of the optimizer", min_points=5)
def ends_at_start(
    run: Run,
    context: Context,
    loss: Series,
    lr: Series,
    *,
    nats: float,
    end_share: float,
    steps: int,
    left: float = shared.SHARE_HALF,
) -> Answer:
    """Is the schedule over, and the loss still near where an untrained model begins?

    Yes where lr has come down to `left` of its peak, and the loss, which began above `nats`, can't have lost more than
    `end_share` of that. No trained model begins there, so it is no fine-tune that knew its task; and of a loss above
    any guess, to which something was added, a share means nothing where it falls. In the first `steps` steps at the
    full rate less can be expected, in proportion.
    """
    at, rates = finite(lr)
    if context.restless:
        return inapplicable(context.restless)
    if context.phase.value == CONTINUED and context.phase.how == INFERRED:
        return unknown(f"{context.phase.why}: the loss before that is not known")
    peak, fall = highest(lr), fall_of(loss)
    limit = end_share * done_share(run, loss, lr, steps)
    over = below(float(rates[-1]), left * peak) if peak > 0 else -FARTHEST
    untrained = min(FARTHEST, max(-FARTHEST, (fall.first - nats) / math.log(2)))  # in doublings of the perplexity
    if trained_before(context, fall.first, nats) or (beyond_guess(context, fall.first) and fall.falls >= 0):
        untrained = -FARTHEST
    strength = min(over, untrained, below(fall.at_most, limit))
    text = f"the loss fell by at most {against(fall.at_most, limit, '.1%')} (limit {limit:.0%} by then), from "
    text += f"{figure(fall.first, 4)} to {figure(fall.low, 4)}; lr is down from {figure(peak)} to {figure(rates[-1])}"
    steps_at = (int(finite(loss)[0][0]), int(at[-1]))
    return measured(strength, (Evidence(text, "loss", steps_at, fall.at_most, limit),), onset_step=steps_at[0])
