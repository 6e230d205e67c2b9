"""What held-out data say: overfitting, memorising, and losses that are apart at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, as_factor, as_share, figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import FARTHEST, NOISE_TIMES, above, below, whether
from stabtree.common.stats import change_noise, interval, median, unsure
from stabtree.context.model import LANGUAGE, PREFERENCE
from stabtree.measures.curve import NORMAL_90, leaves, line, turn_of
from stabtree.measures.registry import finite, highest, lowest, measure
from stabtree.measures.start import guess
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import words
from stabtree.metrics.vocabulary import TRAIN
from stabtree.profile import profile_of
from stabtree.profile.build import lasts_from

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.measures.curve import TurningPoint
    from stabtree.run import Run, Series


BETTER, WORSE, STOPPED, PAST = "better", "worse", "stopped", "past"
LASTING = 2  # evaluations after the best one; a single one that is worse may be an accident
LARGEST = 1e300  # no limit: times a level: a change that is larger is no larger
NOTHING = 0.0005  # no limit: of a quality: 0 to three decimals


@measure(
    source="convergence, overfitting; SFT and RL guide, overfitting",
    labels=(YES, BETTER, WORSE, STOPPED, PAST, NO),
    min_points=3,
)
def overfits(
    eval_loss: Series, loss: Series | None = None, eval_quality: Series | None = None, *, rise: float, undone: float
) -> Answer:
    """Has the eval loss risen from its best while the training loss fell?

    Yes where its levels since the best one are higher by at least `rise` of it: 90% of such bounds hold, so that few or
    scattered evaluations must have risen further. The training loss must have fallen since, or lie below half of the
    eval loss, and must not have risen by half as much; and it must end below where it began. A rise by `undone` is
    enough where it is more than all that the eval loss had gained: the model is worse than it came, `worse` where the
    training loss did not fall either. Of a best level at or below 0 no share can be taken: there the rise is compared
    with all that the training loss has fallen. `better`: a quality that was measured beside it still rises, by 5% in
    the second half of what follows. `stopped`: the evaluations ended in the first half of the run. `past`: it rose by
    less, from a best in the first half on, while the training loss fell tenfold.
    """
    turn = turn_of(eval_loss)
    if turn is None:
        return unknown("eval_loss has fewer than 3 finite values", "eval_loss")
    if loss is not None and (stopped := _stopped(eval_loss, loss)):
        return Answer(STOPPED, (stopped,))
    trained = None if loss is None else _trained(loss, turn.step)
    began, before, last = trained or (0.0, 0.0, 0.0)
    scale = turn.level if turn.level > 0 else max(abs(turn.level), began - last)
    gained = max(0.0, float(finite(eval_loss)[1][0]) - turn.level)
    lasting = min(above(turn.after, LASTING), above(turn.worse, NOISE_TIMES * change_noise(finite(eval_loss)[1])))
    lost = min(above(turn.bound, undone * scale), above(turn.bound, gained), lasting)
    risen = max(min(above(turn.bound, rise * scale), lasting), lost)
    share = _share(turn.bound, scale)
    evidence = [_moved("eval_loss", eval_loss, turn, share, rise)]
    strength = risen
    if trained:
        # It goes on learning, or has learned, what the held-out data do not show.
        fell = above(before - last, shared.SHARE_SOME * abs(before))
        apart = below(last, shared.SHARE_HALF * (turn.level + turn.worse))
        rose = below(last - before, shared.SHARE_HALF * turn.worse)
        strength = min(risen, max(fell, apart), rose, whether(began > last))
        text = f"the training loss goes from {figure(before, 4)} to {figure(last, 4)} meanwhile"
        evidence.append(Evidence(text, "loss", (turn.step, int(eval_loss.steps[-1])), last, before))
    verdict = YES
    if strength < 0 <= lost:
        strength, verdict = lost, WORSE
    if strength < 0 and loss is not None and turn.level > 0:
        early = below(turn.step - int(loss.steps[0]), shared.SHARE_HALF * float(loss.steps[-1] - loss.steps[0]))
        past = min(lasting, early, above(turn.bound, undone * scale), below(last * shared.FACTOR_LARGE, before))
        strength, verdict = (past, PAST) if past >= 0 else (strength, verdict)
    better = None if strength < 0 or eval_quality is None else _still_rises(eval_quality, turn.step)
    if better and verdict == YES:
        verdict = BETTER
        evidence.append(better)
    onset, good = turn.step, turn.step
    values = finite(eval_loss)[1]
    rows = max(1, len(values) // shared.LEVELS)
    if median(values[:rows]) - turn.level <= NOISE_TIMES * change_noise(values) / rows**0.5:
        # After a level its lowest row may be any.
        onset, good = leaves(eval_loss, turn)[1::-1]
    return measured(strength, tuple(evidence), verdict, onset_step=onset, last_good_step=good)


def _stopped(eval_loss: Series, loss: Series) -> Evidence | None:
    """Return evidence that the last evaluation lies in the first half of the run, and several are missing since."""
    steps = finite(eval_loss)[0]
    at, begin, last = int(steps[-1]), int(loss.steps[0]), int(loss.steps[-1])
    missing = (last - at) / interval(steps)
    if at - begin >= shared.SHARE_HALF * (last - begin) or missing < shared.ROWS_SHORT:
        return None
    text = f"the last of {len(steps):,} evaluations is that of step {at:,}, the run goes on to {last:,}"
    return Evidence(text, "eval_loss", (at, last), missing, shared.ROWS_SHORT, f"step {at:,} of {last:,}")


def _at_best(eval_loss: Series, turn: TurningPoint) -> bool:
    """Return whether a held-out loss ends at its best, and falls beyond its scatter in the second half of its rows."""
    late = finite(eval_loss)[1][-max(4, len(eval_loss) // 2) :]
    if len(late) < 4 or turn.after:
        return False
    fall, error = line(-late)
    return fall > NORMAL_90 * unsure(len(late) - 2, NORMAL_90) * error


def _share(bound: float, level: float) -> float:
    """Return a change as a share of a level, a finite one however small the level is; 0 of none."""
    with np.errstate(over="ignore"):
        return float(np.clip(np.float64(bound) / level, -LARGEST, LARGEST)) if level else 0.0


def _moved(name: str, series: Series, turn: TurningPoint, share: float, limit: float) -> Evidence:
    """Return evidence of how far a series has come down from its best."""
    change = abs(turn.last - turn.best) / abs(turn.best) if turn.best else 0.0
    side = "above" if turn.last > turn.best else "below"
    apart = "at"
    if turn.last != turn.best:
        apart = f"{as_share(change)} {side}" if change else side
        if turn.best < 0:  # no share of it says anything
            apart = f"{figure(abs(turn.last - turn.best), 2)} {side}"
    text = f"{name} is {apart} its best, {figure(turn.best, 4)} at step {turn.step:,}: {figure(turn.last, 4)} now "
    text += f"({against(max(share, 0.0), limit, '.1%')} with its scatter taken off, limit {limit:.0%})"
    brief = f"best {figure(turn.best, 4)} at step {turn.step:,}, now {figure(turn.last, 4)}"
    if turn.last != turn.best and turn.best > 0:
        signed = turn.last / turn.best - 1
        brief += f" ({as_factor(1 + signed)})" if signed > 1 else f" ({signed:+.0%})"
    return Evidence(text, series.metric, (turn.step, int(series.steps[-1])), share, limit, brief)


def _trained(loss: Series, step: int) -> tuple[float, float, float] | None:
    """Return the levels of the training loss at the start, at a step and at the end; None if not logged around it."""
    steps, values = finite(loss)
    away = np.abs(steps - step)
    if not len(values) or away.min() > max(1, (int(steps[-1]) - int(steps[0])) // shared.ROWS_SHORT):
        return None
    near = away <= max(1, (int(steps[-1]) - int(steps[0])) // shared.LEVELS)
    if near.sum() < shared.ROWS_SHORT:
        near = np.argsort(away, kind="stable")[: shared.ROWS_SHORT]
    profile = profile_of(loss)
    return profile.first, median(values[near]), profile.last


def _still_rises(quality: Series, step: int) -> Evidence | None:
    """Return evidence that a quality gains 5% of itself in the second half of what follows a step, else None.

    It must end better than it was at the step: what only wins back a part of what it lost does not get better.
    """
    steps, values = finite(quality)
    after = values[rows_before(steps, step) :]
    late = after[-max(shared.ROWS_SHORT, len(after) // 2) :]
    if len(late) < shared.ROWS_SHORT:
        return None
    sign = 1 if _higher_is_better(quality) else -1
    gain, error = line(sign * late)
    limit = max(NORMAL_90 * error, shared.SHARE_SOME * abs(median(late)))
    at = len(values) - len(after)
    then = median(values[max(0, at - LASTING) : at + LASTING])
    if gain <= limit or sign * median(late[-LASTING:]) <= sign * then:
        return None
    text = f"{_name(quality)} still gets better: {figure(after[0], 4)} then, {figure(late[0], 4)} halfway, "
    text += f"{figure(late[-1], 4)} now"
    return Evidence(text, quality.metric, (step, int(steps[-1])), gain, limit)


def _higher_is_better(quality: Series) -> bool:
    found = describe_name(quality.origin).better or describe_name(quality.metric).better
    return found != "lower"


def _name(series: Series) -> str:
    return series.origin or series.metric


COLLAPSED, ZERO, SOME_ZERO = "collapsed", "zero", "some-zero"


@measure(source="convergence, overfitting", labels=(YES, COLLAPSED, ZERO, SOME_ZERO, NO))
def quality_falls(
    run: Run, context: Context, eval_quality: Series | None = None, loss: Series | None = None, *, fall: float
) -> Answer:
    """Has the quality on held-out data come down from its best?

    Yes where its levels since the best one are worse by at least `fall` of it, once their scatter is taken off;
    `collapsed` where by half of it or more. `zero`: a quality that should rise is 0.000 in most rows and at the
    end, or one and the same number in each of many: all samples get one answer, or none counts as right. Asked of the
    known measure, else of another one on held-out data. No where neither its rise to the best nor its fall exceeds the
    scatter of single rows, nor of a share that at its best was next to nothing: there is little to lose. No either
    where nothing is learned of the training data: their quality is next to 0, and the loss is that of a guess.
    `some-zero`: the same of one whose name does not say on which data.
    """
    names = {name: describe_name(name) for name in run.others} if eval_quality is None else {}
    # Of measures under unknown names those on held-out data come first, and none is of training.
    fitting = [name for name, about in names.items() if about.role is Role.QUALITY and about.better]
    fitting = [name for name in fitting if not TRAIN & set(words(name))]
    fitting.sort(key=lambda name: (not names[name].held_out, names[name].order))
    quality = run.others[fitting[0]] if fitting else eval_quality
    if quality is None:
        return inapplicable("no quality on held-out data is logged")
    if context.task.value == PREFERENCE and "token" in words(_name(quality)):
        return Answer(NO, (Evidence("learning a preference makes single tokens less likely, the right ones too"),))
    untaught = _untaught(run, context, loss)
    if untaught:
        return Answer(NO, (untaught,))
    name, higher = _name(quality), _higher_is_better(quality)
    turn = turn_of(quality, falls=not higher)
    held_out = describe_name(quality.metric).held_out
    beside = run.series.get("eval_loss")  # where it moves, samples are answered otherwise
    still = held_out and (beside is None or lowest(beside) == highest(beside))
    zero = _zero(quality, higher=higher, held_out=held_out, still=still)
    if zero or turn is None:
        return zero or Answer(NO, (Evidence(f"{name} has fewer than 3 finite values", quality.metric),))
    if not held_out:
        return Answer(NO, (Evidence(f"{name} is not known to be of held-out data", quality.metric),))
    share = _share(turn.bound, abs(turn.level))
    found = _moved(name, quality, turn, share, fall)
    floor = context.chance.value or 0.0 if context.outcome.value == quality.metric else 0.0
    lasting = min(above(turn.after, LASTING), _beyond_scatter(quality, turn, floor if higher else None))
    strength = min(above(share, fall), lasting)
    if higher and finite(quality)[1].min() >= 0:
        strength = min(strength, above(turn.level, shared.SHARE_SOME))
    verdict = COLLAPSED if share >= shared.SHARE_HALF else YES
    if beside is not None and (best := turn_of(beside)) and _at_best(beside, best):
        return Answer(NO, (found, Evidence("the eval loss still falls to its best", "eval_loss")))
    left = leaves(quality, turn, falls=not higher)
    return measured(strength, (found,), verdict, onset_step=left.first_bad_step, last_good_step=left.last_good_step)


def _untaught(run: Run, context: Context, loss: Series | None) -> Evidence | None:
    """Return evidence that nothing is learned of the training data either, so that the evaluation is not at fault."""
    if loss is None:
        return None
    known = guess(profile_of(loss).last, context.classes.value)
    for name, series in run.others.items():
        found = describe_name(name)
        values = finite(series)[1]
        if found.held_out or found.role is not Role.QUALITY or "acc" not in name.lower() or not len(values):
            continue
        level = median(values[-shared.ROWS_SHORT :])
        if known and level < shared.SHARE_SOME:
            return Evidence(f"{name} is {figure(level)} on the training data too, and the loss {known}", "loss")
    return None


def _beyond_scatter(quality: Series, turn: TurningPoint, floor: float | None) -> float:
    """Return how clearly a quality was above a guess, and rose to that or fell from it, by more than rows scatter."""
    values = finite(quality)[1]
    scatter = NOISE_TIMES * change_noise(values)
    gained = abs(turn.level - median(values[: shared.ROWS_SHORT]))
    moved = max(above(gained, scatter), above(turn.worse, scatter))
    if floor is None:
        return moved
    # A correlation that was as far below 0 as above it was never there.
    return min(moved, above(turn.level - floor, max(scatter, -float(values.min()))))


SAME_ROWS = 10  # no limit: evaluations after which not one sample is answered otherwise


def _zero(quality: Series, *, higher: bool, held_out: bool, still: bool) -> Answer | None:
    """Answer that a quality that should rise is 0 to three decimals in most rows and the last, or the same in many.

    A perfect score may stay the same to the last digit.
    """
    steps, values = finite(quality)
    if len(values) < shared.ROWS_SHORT:
        return None
    zero, brief = np.abs(values) < NOTHING, "0"
    share = float(zero.mean()) if higher and zero[-1] else 0.0
    text = f"0.000 in {int(zero.sum()):,} of {len(values):,} evaluations, the last one too; "
    text += f"its highest is {figure(highest(quality), 4)}"
    if still and len(values) >= SAME_ROWS and lowest(quality) == highest(quality) not in (0, 1, 100):
        share, text = 1.0, f"{figure(values[0], 6)} in all {len(values):,} evaluations"
        brief = text
    if share <= shared.SHARE_HALF:
        return None
    span, text = (int(steps[0]), int(steps[-1])), f"{_name(quality)} is {text}"
    found = Evidence(text, quality.metric, span, share, shared.SHARE_HALF, brief)
    strength = above(share, shared.SHARE_HALF)
    return Answer(ZERO if held_out else SOME_ZERO, (found,), onset_step=span[0], strength=strength)


ALONE = "alone"


@measure(
    source="measured: training losses near 0 beside evaluations that never fell", labels=(YES, ALONE, NO), min_points=1
)
def memorised(context: Context, loss: Series, eval_loss: Series | None = None, *, apart: float) -> Answer:
    """Is the training loss next to nothing, while the eval loss never fell by much?

    Yes where the eval loss ends `apart` times above the training loss, and at its best has kept half of where it began.
    `alone`: no eval loss that moves is logged, and a language model's training loss has fallen by that factor: no text
    that was not memorised is predicted so well.
    """
    profile = profile_of(loss)
    where = profile.span or ()
    if context.restless or profile.last < 0:
        return Answer(NO, (Evidence(context.restless or "the loss goes below 0", "loss"),))
    # The same number at every evaluation stands for a measurement, and is none.
    if eval_loss is None or lowest(eval_loss) == highest(eval_loss):
        text = f"the loss has fallen from {figure(profile.first, 4)} to {figure(profile.last, 4)}; no eval loss moves"
        found = Evidence(text, "loss", where, profile.last, profile.first / apart)
        known = whether(context.task.value == LANGUAGE)
        return measured(min(above(profile.first, apart * profile.last), known), (found,), ALONE)
    turn = turn_of(eval_loss)
    if turn is None:
        return unknown("eval_loss has fewer than 3 finite values", "eval_loss")
    if stopped := _stopped(eval_loss, loss):
        return Answer(NO, (stopped,))
    first = float(finite(eval_loss)[1][0])
    text = f"the training loss is down to {figure(profile.last)}; eval_loss began at {figure(first, 4)}, was best at "
    text += f"{figure(turn.best, 4)} and is {figure(turn.last, 4)} now"
    found = Evidence(text, "eval_loss", (turn.step, int(eval_loss.steps[-1])), turn.last, apart * profile.last)
    level = turn.level + max(turn.worse, 0.0)
    strength = min(above(level, apart * profile.last), above(turn.level, shared.SHARE_HALF * first))
    if _at_best(eval_loss, turn):
        strength = -FARTHEST  # what still falls has not fallen as far as it will
    steps, values = finite(loss)
    since = lasts_from(values * apart <= level)
    onset = turn.step if since is None else int(steps[since])
    return measured(strength, (found,), onset_step=onset, last_good_step=min(turn.step, onset))


FEW_WRONG = 0.001  # no limit: a printed accuracy does not show fewer wrong answers
ERROR_COST = 20.0  # no limit: nats; overfit runs reach 12, evaluations of unscaled images 31 and 39


def wrong_share(quality: Series | None) -> float | None:
    """Return the share of wrong answers in the last evaluations; None where the measure is no accuracy."""
    if quality is None or "acc" not in f"{quality.origin} {quality.metric}".lower():
        return None
    _, values = finite(quality)
    if not len(values):
        return None
    right = median(values[-shared.ROWS_SHORT :]) / (100 if values.max() > 1 else 1)
    return 1 - right if 0 <= right <= 1 else None


def cost_of_an_error(eval_loss: Series, wrong: float | None) -> float | None:
    """Return the nats of held-out loss for each wrong answer; None where nearly all answers are right."""
    losses = finite(eval_loss)[1]
    if wrong is None or wrong < FEW_WRONG or not len(losses):
        return None
    return median(losses[-shared.ROWS_SHORT :]) / wrong


@measure(source="convergence O5", labels=(LIKELY, POSSIBLE, NO), min_points=3)
def apart_at_once(loss: Series, eval_loss: Series, eval_quality: Series | None = None) -> Answer:
    """Does the eval loss stand far above the training loss from its first third on, and scatter rather than rise?

    Likely where the median of the first third lies above the training loss there by more than twice all that this ever
    falls, and the last third rises above it by less than its scatter explains: memorising takes time. Possible
    where it rises by more. Likely as well where each wrong answer costs more than `ERROR_COST` nats: logits far outside
    those of training come from inputs of another scale. Possible where no evaluation is better than the untrained
    model.
    """
    wrong = wrong_share(eval_quality)
    each = cost_of_an_error(eval_loss, wrong)
    if wrong is not None and each is not None and each > ERROR_COST:
        text = f"{1 - wrong:.0%} of the held-out answers are right, and a wrong one costs {figure(each)} nats"
        return Answer(LIKELY, (Evidence(text, "eval_loss", (), each, ERROR_COST),))
    (steps, evals), gap_factor = finite(eval_loss), shared.FACTOR_SMALL
    own, trained = finite(loss)
    third = max(1, len(evals) // 3)
    early = trained[own <= steps[third - 1]]
    before = median(early) if len(early) else float(trained[0])
    gap, fall = median(evals[:third]) - before, float(trained.max()) - median(trained[-max(3, len(trained) // 20) :])
    rise, noise = median(evals[-third:]) - median(evals[:third]), change_noise(evals)
    text = f"eval_loss begins {figure(gap)} above the training loss, which falls by {figure(fall)} in all (limit "
    text += f"{gap_factor:g}×), and ends {figure(abs(rise))} {'higher' if rise > 0 else 'lower'} than it began"
    found = Evidence(text, "eval_loss", (int(steps[0]), int(steps[-1])), gap, gap_factor * fall)
    if not gap > gap_factor * fall > 0:
        untrained, best = max(float(evals[0]), float(trained[0])), float(evals.min())
        if not best > (1 - shared.SHARE_SOME) * untrained > 0:
            return Answer(NO, (found,))
        text = f"the best evaluation, {figure(best)}, is no better than the untrained model, {figure(untrained)}"
        return Answer(POSSIBLE, (Evidence(text, "eval_loss", (), best, untrained),))
    return Answer(LIKELY if rise < shared.NOISE_TIMES * noise else POSSIBLE, (found,))
