"""Whether the loss leaves the level at which it began."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.figures import as_share, figure
from stabtree.common.lazy import np
from stabtree.common.passes import extremes
from stabtree.common.strength import FARTHEST, above, below, strongest, weakest, whether
from stabtree.context.model import (
    CLASSIFICATION,
    CONTINUED,
    FINE_TUNE,
    FROM_SCRATCH,
    LANGUAGE,
    LORA,
    PREFERENCE,
)
from stabtree.context.phase import MIN_UNTRAINED
from stabtree.facts.registry import finite, highest, lowest, middle
from stabtree.frameworks.load import framework
from stabtree.predicates.course.cross_entropy import LARGEST_VOCABULARY, guess
from stabtree.predicates.course.fall import Fall, begins_late, done_share, early_rows, fall_of, first_level
from stabtree.predicates.registry import predicate
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

__all__ = ["NATS", "first_level", "leaves_start"]

# No log-likelihood of a sample comes to so many nats, whatever constant is added: a loss above is in other units.
NATS = 1e4
MIN_EVALS = 3
STILL = 1e-5  # no limit: of a held-out loss, by which it differs for the same weights: rounding


class Opening(NamedTuple):
    """The falls of the training and of the held-out loss, each None where it is not logged."""

    loss: Fall
    held_out: Fall | None

    @property
    def sharper(self) -> Fall:
        """The one that leaves less room."""
        return min((fall for fall in (self.loss, self.held_out) if fall), key=lambda fall: fall.at_most)

    def stays_within(self, limit: float, burst: float) -> float:
        """Return the strength of the statement that neither fell by a share of the first level.

        The sharper one has to rule it out; of the other it is enough not to show it beyond its error. Nor may the
        first row alone lie by the share `burst` above all others.
        """
        others = [fall.share - fall.error for fall in (self.loss, self.held_out) if fall and fall is not self.sharper]
        still = weakest(below(self.sharper.at_most, limit), *(below(share, limit) for share in others))
        return weakest(still, below(self.loss.burst, burst))

    @property
    def falls(self) -> float:
        """The strength of the statement that one of them falls, however little."""
        return strongest(*(fall.falls for fall in (self.loss, self.held_out) if fall))

    def wins(self, share: float) -> float:
        """Return the strength of the statement that one of them surely falls, by a share of its first level."""
        some = (fall for fall in (self.loss, self.held_out) if fall)
        return strongest(*(weakest(fall.falls, above(fall.share, share)) for fall in some))


@predicate(source="convergence O1 and O7", labels=("yes", "flat", "slow", "worse"), min_points=5)
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
    course = Opening(fall_of(loss), _held_out(eval_loss))
    fall = course.loss
    found = _evidence(loss, course, context, flat_share)
    begin = int(finite(loss)[0][0])
    frozen = _no_gradient(grad_norm)
    if frozen and course.loss.at_least < min_share:
        return Answer("flat", (found, frozen), onset_step=begin, strength=FARTHEST)
    if lowest(loss) == highest(loss) == 0:
        return inapplicable("the loss is exactly 0 in every row, which is asked about by itself")
    late = begins_late(run, loss)
    if late:
        return unknown(late)
    worse = _is_worse(course, rise)
    if worse >= 0:
        return Answer("worse", (found,), onset_step=begin, strength=worse)
    done = done_share(run, context, loss, lr, steps)
    trained = trained_before(context, max(fall.first, fall.low), nats)
    little = -course.wins(flat_share / shared.FACTOR_HUGE)
    if trained:
        limit = flat_share * done * shared.SHARE_HALF  # for a model that can win little, it takes twice the power
        still = weakest(course.stays_within(limit, min_share), little, _held_out_still(eval_loss))
        return _answer(loss, course, still, (found, Evidence(trained, "loss", (), fall.first)))
    if context.phase.value == FROM_SCRATCH or context.task.value:
        still = course.stays_within(min_share * done, min_share)
    else:
        still = weakest(course.stays_within(flat_share * done, min_share), max(little, _no_better(eval_quality)))
    return _answer(loss, course, weakest(still, -_far(context, fall)), (found,))


def _answer(loss: Series, course: Opening, strength: float, found: tuple[Evidence, ...]) -> Answer:
    fall = course.loss
    limit = shared.TREND_Z
    verdict = "flat"
    if fall.trend < -limit:
        verdict = "worse" if fall.share + fall.error < 0 else "slow"  # from where it had climbed to is no fall
    text = f"the loss has {'a' if fall.trend < -limit else 'no'} steady downward trend"
    found = (*found, Evidence(text, "loss", (), fall.trend, -limit))
    if strength < 0:
        surely = max(fall.at_least, fall.burst, course.held_out.at_least if course.held_out else -1.0)
        if surely <= 0 and strength < -1:
            return unknown(f"{found[0].text}: too little to call it falling, too much to call it flat")
        return Answer(YES, found, strength=strength, near=verdict)
    return Answer(verdict, found, onset_step=int(finite(loss)[0][0]), strength=strength)


def _evidence(loss: Series, course: Opening, context: Context, limit: float) -> Evidence:
    """Describe the first and the lowest level, and what the scatter leaves open."""
    steps, fall = finite(loss)[0], course.loss
    side = "below" if fall.share >= 0 else "above"
    text = f"the lowest level of the loss is {as_share(abs(fall.share))} {side} its start"
    text += f"{_room(fall)}: {figure(fall.low, 4)} after {figure(fall.first, 4)}{_read_from(loss, fall, limit)}"
    if course.held_out:
        held = course.held_out
        text += f"; the held-out loss goes from {figure(held.first, 4)} to {figure(held.low, 4)}"
    brief = "" if speaks(context) and not context.classes.value else guess(middle(loss), context.classes.value)
    return Evidence(text, "loss", (int(steps[0]), int(steps[fall.low_row])), fall.share, limit, brief)


def _room(fall: Fall) -> str:
    """Describe how far the loss can have fallen, its scatter counted."""
    if fall.share + fall.room <= 0:
        return ""
    return f" (at most {as_share(fall.at_most)} below)" if fall.at_most < 1 else " (its scatter is as large)"


def _read_from(loss: Series, fall: Fall, apart: float) -> str:
    """Describe the rows that the first level was read from, and the first row where it is that far from the level."""
    values = finite(loss)[1]
    rows, first = early_rows(len(values)), float(values[0])
    if fall.thrown:
        return " in its first row, before it was thrown up"
    odd = abs(first - fall.first) > apart * abs(fall.first)
    return f", the median of {rows} rows (the first is {figure(first, 4)})" if odd else ""


def _held_out(eval_loss: Series | None) -> Fall | None:
    if eval_loss is None or len(finite(eval_loss)[1]) < MIN_EVALS:
        return None
    return fall_of(eval_loss, rows=1)  # one evaluation is over many batches


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
    return weakest(fall.falls, above(fall.at_least * fall.first, math.log(shared.FACTOR_SMALL)))


def beyond_guess(context: Context, level: float) -> bool:
    """Return whether a loss is too high for a guess among the classes: something else is in it, and no share counts."""
    return level > shared.FACTOR_SMALL * math.log(context.classes.value or LARGEST_VOCABULARY)


def _held_out_still(eval_loss: Series | None) -> float:
    """Return the strength of the statement that held-out data see no other model at the end than at the beginning."""
    values = finite(eval_loss)[1] if eval_loss is not None else np.zeros(0)
    return whether(len(values) < MIN_EVALS or float(np.ptp(values)) <= STILL * abs(float(values[0])))


def _no_gradient(grad_norm: Series | None) -> Evidence | None:
    """Return evidence that the gradient is exactly 0 in every row; None where it is not, or not logged."""
    if grad_norm is None or len(grad_norm) < shared.ROWS_SHORT or extremes(grad_norm) != (0, 0, True):
        return None
    text = f"grad_norm is exactly 0 in each of its {len(grad_norm):,} rows: nothing is learned"
    return Evidence(text, "grad_norm", (int(grad_norm.steps[0]), int(grad_norm.steps[-1])), 0.0, 0.0)


def _is_worse(course: Opening, rise: float) -> float:
    """Return the strength of the statement that the loss stays above its first level."""
    fall = course.loss
    if fall.first <= 0:
        return -FARTHEST
    ends_above = above(-fall.share - fall.error - fall.coarse, rise)
    times = fall.high / fall.first
    if fall.thrown and ends_above >= 0 and times >= shared.FACTOR_SMALL:
        return ends_above  # what falls is only what the first updates threw up
    thrown_up = above(times, 1 + shared.FACTOR_SMALL) if fall.thrown and fall.share < 0 else -FARTHEST
    stays = strongest(ends_above, thrown_up)
    return weakest(stays, -course.falls)


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
