"""The loss as a cross-entropy over classes: where it begins, and what it does not fall below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST, NEARLY_ZERO, NORMAL_99, median
from stabtree.common.strength import above, below, weakest, whether
from stabtree.context import model
from stabtree.context.model import GRPO, LANGUAGE, PREFERENCE
from stabtree.context.phase import FIRST_STEPS
from stabtree.facts.registry import finite, highest, lowest, paired
from stabtree.predicates.registry import predicate
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

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


def _first(context: Context, loss: Series) -> tuple[int, float] | str:
    """Return the first step and loss; why it is not known where the log begins too late to show the untrained model."""
    steps, values = finite(loss)
    if not len(values) or int(steps[0]) > FIRST_STEPS:
        return f"the log begins after step {FIRST_STEPS:,}: its first loss is not known"
    if context.classes.value is None:
        return "neither n_classes nor vocab_size is configured"
    return int(steps[0]), float(values[0])


def _count_of(context: Context) -> str:
    """Return the setting that counts what one guess is among: the tokens of a vocabulary, or classes."""
    return "vocab_size" if context.task.value in (LANGUAGE, GRPO, PREFERENCE) else "n_classes"


@predicate(source="convergence O1", min_points=1)
def starts_above_chance(context: Context, loss: Series, *, factor: float = shared.FACTOR_SMALL) -> Answer:
    """Does the loss begin far above that of an untrained model?

    A cross-entropy over C classes begins at ln(C) with equal logits. Yes when the first loss lies above `factor` times
    that: the logits are large before anything was learned.
    """
    if context.task.value in NO_CLASSES:
        return inapplicable(f"the loss of {context.task.value} is not one of classes alone")
    classes, first = context.classes.value or 1, _first(context, loss)
    if isinstance(first, str):
        return unknown(first, _count_of(context))
    chance = math.log(classes)
    text = (
        f"the loss begins at {figure(first[1], 4)}; chance among {classes:,} is ln({classes:,}) = {figure(chance, 4)}"
    )
    found = (Evidence(text, "loss", (first[0],), first[1], factor * chance),)
    return measured(above(first[1], factor * chance), found)


@predicate(source="measured: classifiers of inputs that were not scaled", min_points=shared.ROWS_SHORT)
def above_any_chance(context: Context, loss: Series, *, factor: float = shared.FACTOR) -> Answer:
    """Is the loss of a classifier far above that of a guess up to its end, however many classes there are?

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
    return measured(weakest(above(profile.best, factor * most), stays), (found,), onset_step=int(loss.steps[0]))


@predicate(source="convergence O15 and O16", min_points=1)
def starts_near_zero(context: Context, loss: Series, *, share: float) -> Answer:
    """Is the loss almost 0, or below, before anything was learned?

    Yes when the first loss of a run with C classes lies below `share` of ln(C). An untrained classifier can't do that;
    a loss averaged over padding can, and so can NLLLoss on probabilities or a target that leaks into the input. The
    loss of a run that learns from a reward is 0 by construction.
    """
    if context.restless:
        return inapplicable(f"{context.restless} may begin anywhere")
    if context.task.value in NO_CLASSES:
        return inapplicable(f"the loss of {context.task.value} is not one of classes alone")
    classes, first = context.classes.value or 1, _first(context, loss)
    if isinstance(first, str):
        return unknown(first, _count_of(context))
    chance = math.log(classes)
    text = f"the loss begins at {figure(first[1], 4)}; an untrained model of {classes:,} classes at {figure(chance, 4)}"
    found = (Evidence(text, "loss", (first[0],), first[1], share * chance),)
    return measured(below(first[1], share * chance), found)


class _Softmax(NamedTuple):
    """What a softmax before a cross-entropy of so many classes leaves of it: at least the floor, whatever the model."""

    classes: int

    @property
    def chance(self) -> float:
        return math.log(self.classes)

    @property
    def floor(self) -> float:
        return math.log1p((self.classes - 1) / math.e)

    @property
    def ceiling(self) -> float:
        return math.log(self.classes - 1 + math.e)


@predicate(source="convergence O12", min_points=10)
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
    found = _Softmax(max(context.classes.value or by_accuracy or likely, 2))
    end, low, high = median(values[-part:]), lowest(loss), highest(loss)
    text = f"the loss ends at {figure(end, 4)} and stays between {figure(low, 4)} and {figure(high, 4)}; a double "
    text += f"softmax over {found.classes:,} classes keeps it in {figure(found.floor, 4)} to {figure(found.ceiling, 4)}"
    if not context.classes.value:
        text += f" (no number of classes is configured: {'by the accuracy' if by_accuracy else 'by the first loss'})"
    above_floor = (end - found.floor) / (found.chance - found.floor)
    within = low > found.floor * (1 - ROUNDED) and high < found.ceiling * (1 + ROUNDED) and found.classes > 2
    at_floor = below(above_floor, shared.SHARE_HALF)
    # An accuracy that agrees says more; and the first row of an epoch is the mean of what was learned in it.
    if not by_accuracy:
        begins = below(abs(first - found.chance), start_share * found.chance)
        late = (median(values[len(values) // 2 :][:part]) - end) / max(first - end, NEARLY_ZERO)
        at_floor = weakest(below(above_floor, near_share), begins, below(late, SETTLED))
    strength = weakest(whether(within), at_floor)
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


@predicate(source="convergence O15", min_points=4)
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
