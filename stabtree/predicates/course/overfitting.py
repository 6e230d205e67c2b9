"""The eval loss beside the training loss: does it rise while that falls, or stay far above it from the start?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import change_noise, interval, median, medians_of_three
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.predicates.course.start import NATS, first_level
from stabtree.predicates.registry import predicate
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.run import Series

BETTER = "better"


class Rebound(NamedTuple):
    """The eval loss at its lowest and in its last third.

    Attributes:
        step: the step of the lowest evaluation, and `lowest` that value.
        low: the lowest level; of three evaluations, where there are enough of them.
        end: the median of the last third.
        lowest_late: the lowest value in it.
        past: whether the lowest evaluation comes before it.
        fallen: how far it had fallen to `low`.
        noise: the scatter of single evaluations.
    """

    step: int
    lowest: float
    low: float
    end: float
    lowest_late: float
    past: bool
    fallen: float
    noise: float

    @property
    def rise(self) -> float:
        """How far the last third is above the low."""
        return self.end - self.low

    @property
    def relative(self) -> float:
        """The same as a share of the low."""
        return self.rise / abs(self.low) if self.low else math.inf


def _turn(steps: Ints, values: Floats, single_rows: int) -> Rebound:
    levels = values if len(values) < single_rows else medians_of_three(values)
    at = int(np.argmin(levels))
    lowest = max(at - 1, 0) + int(np.argmin(values[max(at - 1, 0) : at + 2]))
    third = len(values) - max(2, len(values) // 3)
    last, low = values[third:], float(levels[at])
    fallen = float(values[: at + 1].max()) - low
    past = lowest < third
    return Rebound(
        int(steps[lowest]),
        float(values[lowest]),
        low,
        median(last),
        float(last.min()),
        past,
        fallen,
        change_noise(values),
    )


@predicate(source="convergence, overfitting; SFT and RL guide, overfitting", labels=(YES, BETTER, NO), min_points=2)
def overfits(
    eval_loss: Series,
    loss: Series | None = None,
    eval_quality: Series | None = None,
    *,
    rise: float,
    min_rise: float,
    range_share: float,
    half: float,
    thrown: float,
    min_rows: int,
    few_rows: int,
    single_rows: int,
    noise_factor: float,
    rest_share: float,
    gap_factor: float,
    max_nats: float,
    min_fall_share: float,
    quality_noise: float,
) -> Answer:
    """Does the eval loss keep rising while the training loss falls?

    Compared is the median of the last third of the evaluations with the lowest level (medians of three, or single
    ones below `single_rows`): a rise by more than `rise` of it, or more than `min_rise` nats (a constant may have
    been added to the loss; one that falls by more than `max_nats` is in other units), and by more than `range_share`
    of all that it had fallen, while the training loss has fallen since, by `min_fall_share` of that rise, or lies
    below `half` of the eval loss and has not risen by `half` as much. It has to be lasting: more
    than `noise_factor` times the scatter of the evaluations, and the whole last third at least `rest_share` of the rise
    above the low. Noisy evaluations that lie further above the training loss than `gap_factor` times all that this has
    fallen are no luck, whatever their scatter. Fewer than `few_rows` evaluations count only under a training loss
    below `half` of them.
    A training loss that does not end below where it began has learned nothing, so nothing by heart either. Where none
    is logged, `few_rows` evaluations that last suffice. `better`:
    a quality that was measured beside it is still higher in the last third, by more than `quality_noise` times its
    scatter; a model that grows too sure of its few mistakes loses nats, not answers.
    """
    steps, values = finite(eval_loss)
    if len(values) < max(min_rows, 3):
        return unknown(f"eval_loss has {len(values)} finite values, {max(min_rows, 3)} are needed", "eval_loss")
    turn = _turn(steps, values, max(single_rows, 3))
    own, trained = (steps[:0], values[:0]) if loss is None else finite(loss)
    began = last = turn.end  # where no training loss is logged it is not apart from the eval loss
    if len(trained):
        began, last = first_level(trained, thrown), median(trained[-max(5, len(trained) // 20) :])
    apart = last < half * turn.end
    wide = apart and turn.end - last > gap_factor * (began - last)
    by_nats = turn.rise > min_rise and turn.low < NATS and max(turn.fallen, began - last) < max_nats
    far = by_nats if turn.low < 0 else turn.relative > rise or by_nats
    lasting = (
        turn.past and turn.rise > noise_factor * turn.noise and turn.lowest_late - turn.low > rest_share * turn.rise
    )
    text = f"{_lowest(eval_loss, turn)}, its last third has a median of "
    # A share of a level below 0 means nothing: there the rise itself counts, in nats.
    below = turn.low < 0
    in_nats = f"{against(turn.rise, min_rise)} nats higher (limit {min_rise:g})"
    higher = in_nats if below else f"{against(min(turn.relative, 1e6), rise, '.1%')} higher (limit {rise:.0%})"
    text += f"{turn.end:.4g}: {higher}, {_of_fall(turn, range_share)}, "
    if wide and not lasting:
        text += f"further above the training loss than {gap_factor:g}× all that this has fallen"
    else:
        text += f"{against(_times(turn.rise, turn.noise), noise_factor)}× its scatter (limit {noise_factor:g})"
    if far and not below and not turn.relative > rise:
        text += f"; that is {against(turn.rise, min_rise)} nats (limit {min_rise:g})"
    seen = (turn.rise, min_rise) if below else (min(turn.relative, 1e300), rise)
    found = Evidence(text, "eval_loss", (turn.step, int(steps[-1])), *seen)
    if not far or turn.rise <= range_share * turn.fallen or not (lasting or wide):
        return Answer(NO, (found,))
    if loss is None:
        return _alone(turn, found, enough=len(values) >= few_rows)
    around = trained[np.abs(own - turn.step) <= max(1, (int(own[-1]) - int(own[0])) // 20)]
    if not len(around):
        reason = f"the training loss was not logged around step {turn.step:,}, where the level of eval_loss is lowest"
        return unknown(reason, "loss")
    few = f"with {len(values)} evaluations" if len(values) < few_rows else ""
    levels = _Trained(began, median(around), last)
    verdict, text = _learned(turn, levels, half, min_fall_share, few)
    before = began if last >= began else levels.before
    evidence = [found, Evidence(text, "loss", (turn.step, int(own[-1])), last, before)]
    better = _better(eval_quality, turn.step, quality_noise) if verdict == YES and eval_quality is not None else None
    if better:
        verdict = BETTER
        evidence.append(better)
    if verdict == NO:
        return Answer(NO, tuple(evidence))
    return Answer(verdict, tuple(evidence), onset_step=turn.step, last_good_step=turn.step)


class _Trained(NamedTuple):
    """Levels of the training loss: at the start, where the eval loss is lowest, and at the end."""

    began: float
    before: float
    last: float


def _learned(turn: Rebound, loss: _Trained, half: float, min_fall_share: float, few: str) -> tuple[str, str]:
    """Judge by the training loss whether an eval loss that rises is overfitting, and describe what it does.

    `few` says how many evaluations there are, where these are so few that more is asked of the training loss.
    """
    apart = loss.last < half * turn.end
    if loss.last >= loss.began:
        text = f"the training loss ends at {loss.last:.4g} and began at {loss.began:.4g}"
        return NO, f"{text}: a run that did not learn can't overfit"
    text = f"the training loss goes from {loss.before:.4g} to {loss.last:.4g} meanwhile"
    if loss.last > loss.before and (not apart or loss.last - loss.before >= half * turn.rise):
        text = f"the training loss rises as well ({loss.before:.4g} to {loss.last:.4g})"
        return NO, f"{text}, which is not overfitting"
    if not apart and loss.before - loss.last < min_fall_share * turn.rise:
        share = f"(limit {min_fall_share:.0%} of the eval's rise)"
        return NO, f"{text}: too little for a memorised training set {share}"
    if few and not apart:
        return NO, f"{text}: {few}, the training loss must fall below {half:g}× the eval loss"
    return YES, text


def _alone(turn: Rebound, found: Evidence, *, enough: bool) -> Answer:
    """Answer for an eval loss that rises where no training loss is logged."""
    if not enough:
        return unknown("the training loss is not logged, and the evaluations are few", "loss")
    text = "no training loss is logged, so that it fell meanwhile is likely and not proved"
    evidence = (found, Evidence(text, "eval_loss", (turn.step,), turn.end, turn.low))
    return Answer(YES, evidence, onset_step=turn.step, last_good_step=turn.step)


@predicate(source="convergence O5", labels=(LIKELY, POSSIBLE, NO), min_points=3)
def apart_at_once(loss: Series, eval_loss: Series, *, gap_factor: float, noise_factor: float) -> Answer:
    """Does the eval loss stand far above the training loss from its first third on, and scatter rather than rise?

    Likely where the median of the first third lies above the training loss there by more than `gap_factor` times all
    that this ever falls, and the last third rises above it by less than `noise_factor` times the scatter: learning by
    heart takes time. Possible where it rises by more.
    """
    steps, evals = finite(eval_loss)
    own, trained = finite(loss)
    third = max(1, len(evals) // 3)
    early = trained[own <= steps[third - 1]]
    before = median(early) if len(early) else float(trained[0])
    gap, fall = median(evals[:third]) - before, float(trained.max()) - median(trained[-max(3, len(trained) // 20) :])
    rise, noise = median(evals[-third:]) - median(evals[:third]), change_noise(evals)
    text = f"in its first third eval_loss lies {gap:.3g} above the training loss, which falls by {fall:.3g} in all "
    text += f"(limit {gap_factor:g}×); its last third lies {abs(rise):.3g} {'higher' if rise > 0 else 'lower'}, its "
    text += f"scatter is {noise:.3g} (limit {noise_factor:g}×)"
    found = Evidence(text, "eval_loss", (int(steps[0]), int(steps[-1])), gap, gap_factor * fall)
    if not gap > gap_factor * fall > 0:
        return Answer(NO, (found,))
    return Answer(LIKELY if rise < noise_factor * noise else POSSIBLE, (found,))


def _lowest(eval_loss: Series, turn: Rebound) -> str:
    """Describe the lowest level of the evaluations, and the lowest value, which may be a lucky one elsewhere."""
    exact = profile_of(eval_loss).lowest
    if exact is not None and exact.value < turn.lowest:
        text = f"eval_loss has its lowest level, {turn.low:.4g}, around step {turn.step:,} (its lowest value is "
        return f"{text}{exact.value:.4g}, at step {exact.step:,})"
    level = f", a level of {turn.low:.4g}" if turn.low != turn.lowest else ""
    return f"eval_loss is lowest at {turn.lowest:.4g} (step {turn.step:,}){level}"


def _of_fall(turn: Rebound, range_share: float) -> str:
    """Describe the rise as a share of what the evaluations had fallen before."""
    if turn.fallen <= 0:
        return "and it never fell"
    return f"{_times(turn.rise, turn.fallen):.1%} of what it had fallen (limit {range_share:.0%})"


def _times(rise: float, of: float) -> float:
    return max(-1e6, min(rise / of, 1e6)) if of > 0 else 1e6


def _better(quality: Series, turned: int, quality_noise: float) -> Evidence | None:
    """Return evidence that the quality is higher at the end than where the eval loss was lowest, else None."""
    steps, values = finite(quality)
    if len(values) < 3:
        return None
    at = int(np.argmin(np.abs(steps - turned)))
    then = median(values[max(0, at - 1) : at + 2])
    now = median(values[-max(2, len(values) // 3) :])
    bar = quality_noise * change_noise(values)
    if now - then <= bar:
        return None
    text = f"eval_quality was {then:.4g} there and is {now:.4g} in the last third: more than its scatter of {bar:.2g}"
    return Evidence(text, "eval_quality", (turned, int(steps[-1])), now - then, bar)


SCALE, RAISED = "scale", "raised"


@predicate(
    source="convergence O5; measured: evaluations of healthy runs", labels=(YES, SCALE, RAISED, NO), min_points=3
)
def eval_apart(
    context: Context,
    loss: Series,
    eval_loss: Series,
    *,
    factor: float,
    far_factor: float,
    falls_share: float,
    late_start_steps: int,
    thrown: float,
) -> Answer:
    """Does the eval loss lie far above the training loss from the first evaluation on?

    Yes where every evaluation is more than `factor` times where the training loss began, and their median more than
    `far_factor` times: the model is worse on what it is evaluated on than it was, untrained, on what it is trained on.
    `raised`: the first alone, as held-out data of another kind may give it. `scale`: the eval loss has fallen, too, by
    more than `falls_share` of what the training loss has, each as a share of its own beginning: the same loss in other
    units. Not asked of a log that begins after step `late_start_steps`, nor of a loss that moves by nature; for
    `thrown` see `first_level`.
    """
    steps, values = finite(loss)
    at, evals = finite(eval_loss)
    first, low = first_level(values, thrown), float(evals.min())
    why = context.restless or ("the loss begins at or below 0, where multiples mean nothing" if first <= 0 else "")
    late = max(late_start_steps, 5 * interval(steps))
    if why:
        return inapplicable(why)
    if int(steps[0]) > late:
        return unknown(f"the log begins at step {int(steps[0]):,}: its first loss is not known")
    over, middle = min(low / first, 1e300), min(float(median(evals)) / first, 1e300)
    text = f"the loss begins at {first:.4g}, and no evaluation lies below {low:.4g}, {against(over, factor)}× that "
    text += f"(limit {factor:g}×); their median is {against(middle, far_factor)}× that (limit {far_factor:g}×)"
    found = [Evidence(text, "eval_loss", (int(at[0]), int(at[-1])), over, factor)]
    if over <= factor:
        return Answer(NO, tuple(found))
    part = max(1, len(values) // 10)
    left, eval_left = float(median(values[-part:])) / first, float(median(evals[-3:])) / float(evals[0])
    fallen, eval_fallen = 1 - min(left, 1e300), 1 - min(eval_left, 1e300)
    text = f"the training loss has lost {fallen:.0%} of its beginning, the eval loss {eval_fallen:.0%}"
    found.append(Evidence(text, "eval_loss", (int(at[0]), int(at[-1])), eval_fallen, falls_share * fallen))
    if eval_fallen > 0 and eval_fallen > falls_share * fallen:
        return Answer(SCALE, tuple(found))
    return Answer(YES if middle > far_factor else RAISED, tuple(found), onset_step=int(at[0]))
