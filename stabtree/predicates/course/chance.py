"""Whether the loss ever got better than a guess, and where a schedule left it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, as_share, figure
from stabtree.common.stats import median
from stabtree.common.strength import FARTHEST, below, weakest
from stabtree.context.model import CLASSIFICATION, CONTINUED, INFERRED, LANGUAGE
from stabtree.context.outcome import is_guess_of_two
from stabtree.facts.registry import finite, highest, middle
from stabtree.predicates.course.cross_entropy import ROUND, guess
from stabtree.predicates.course.fall import Fall, done_share, fall_of, first_level
from stabtree.predicates.course.start import beyond_guess, speaks, trained_before
from stabtree.predicates.registry import predicate
from stabtree.run import Series

if TYPE_CHECKING:
    from stabtree.common.answer import Answer
    from stabtree.context.model import Context
    from stabtree.run import Run

FEW = 10  # classes that a loss of an unknown task may be a guess among


class Guess(NamedTuple):
    """What a guess costs.

    Attributes:
        classes: among how many classes or answers.
        known: whether that is known of this run, rather than a round number near its loss.
    """

    classes: int
    known: bool

    @property
    def loss(self) -> float:
        """The loss of the guess."""
        return math.log(self.classes)


@predicate(source="convergence O1; a guess among C classes costs ln(C)", min_points=5)
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
    chance = _guess_of(run, context, end)
    fall = fall_of(later, chance.loss)
    over, begin = end / chance.loss - 1, first_level(values, shared.FACTOR_SMALL) / chance.loss - 1
    ends = _ends_at(chance, context, fall, (begin, over), (flat_share, above_share))
    done = done_share(run, context, loss, lr, steps)
    strength = weakest(below(fall.at_most, flat_share * done), ends)
    text = f"the loss ends at {figure(end, 4)}, {as_share(abs(over))} {'above' if over >= 0 else 'below'} "
    text += (
        f"ln {chance.classes:,} = {figure(chance.loss, 4)}, the cost of a guess; its lowest is {figure(fall.low, 4)}"
    )
    brief = guess(middle(loss), chance.classes)
    found = (Evidence(text, "loss", (int(at[0]), int(at[-1])), fall.at_most, flat_share * done, brief),)
    return measured(strength, found, onset_step=int(at[0]))


def _guess_of(run: Run, context: Context, level: float) -> Guess:
    """Return what a guess costs in a run; where that is not known, the round number of classes nearest to a level."""
    classes = context.classes.value
    if is_guess_of_two(context) and not any("nll" in name.lower() for name in run.others):
        return Guess(2, known=True)
    if classes and classes > 1 and context.task.value in (LANGUAGE, CLASSIFICATION, None):
        return Guess(classes, known=True)
    return Guess(min(ROUND, key=lambda count: abs(math.log(count) - level)), known=False)


def _ends_at(
    chance: Guess, context: Context, fall: Fall, ends: tuple[float, float], limits: tuple[float, float]
) -> float:
    """Return the strength of the statement that it ends at a guess, and is not still on its way down to it."""
    (near, far), (begin, over) = limits, ends
    coming = -fall.falls if over > near else FARTHEST
    if is_guess_of_two(context) and over > far:
        return FARTHEST
    if chance.known or (context.task.value == CLASSIFICATION and chance.classes > 2):
        return weakest(below(over, far), coming)
    if speaks(context) or chance.classes > FEW:
        return -FARTHEST  # no vocabulary has so round a number of tokens, and any loss lies near one of them
    still = -fall.falls if chance.classes > 2 else FARTHEST
    return weakest(below(abs(over), near), below(begin, shared.SHARE_HALF), still)


@predicate(source="measured: runs of which most is frozen or left out of the optimizer", min_points=5)
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
    limit = end_share * done_share(run, context, loss, lr, steps)
    over = below(float(rates[-1]), left * peak) if peak > 0 else -FARTHEST
    untrained = min(FARTHEST, max(-FARTHEST, (fall.first - nats) / math.log(2)))  # in doublings of the perplexity
    if trained_before(context, fall.first, nats) or (beyond_guess(context, fall.first) and fall.falls >= 0):
        untrained = -FARTHEST
    strength = weakest(over, untrained, below(fall.at_most, limit))
    text = f"the loss fell by at most {against(fall.at_most, limit, '.1%')} (limit {limit:.0%} by then), from "
    text += f"{figure(fall.first, 4)} to {figure(fall.low, 4)}; lr is down from {figure(peak)} to {figure(rates[-1])}"
    steps_at = (int(finite(loss)[0][0]), int(at[-1]))
    return measured(strength, (Evidence(text, "loss", steps_at, fall.at_most, limit),), onset_step=steps_at[0])
