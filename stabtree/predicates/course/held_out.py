"""Why held-out data look worse than training data: another preparation of them, or the same batches in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, POSSIBLE, Answer, Evidence, measured, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.stats import change_noise, median
from stabtree.common.strength import above
from stabtree.facts.curve.turn import turn_of
from stabtree.facts.registry import finite
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Series

FEW_WRONG = 0.001  # no limit: a printed accuracy does not show fewer wrong answers
ERROR_COST = 20.0  # no limit: nats; overfit runs reach 12, evaluations of unscaled images 31 and 39
STRETCH = 0.1  # no limit: of the rows, before and after a turn
MIN_FALL = 0.01  # no limit: a loss that rests falls by no less
SPEED_UP = 6.0  # no limit: overfit runs reach 3.6, one batch over and over 14


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


@predicate(source="convergence O5", labels=(LIKELY, POSSIBLE, NO), min_points=3)
def apart_at_once(
    loss: Series,
    eval_loss: Series,
    eval_quality: Series | None = None,
    *,
    cost: float = ERROR_COST,
    gap_factor: float = shared.FACTOR_SMALL,
    noise_factor: float = shared.NOISE_TIMES,
) -> Answer:
    """Does the eval loss stand far above the training loss from its first third on, and scatter rather than rise?

    Likely where the median of the first third lies above the training loss there by more than `gap_factor` times all
    that this ever falls, and the last third rises above it by less than `noise_factor` times the scatter: learning by
    heart takes time. Possible where it rises by more. Likely as well where each wrong answer costs more than `cost`
    nats: logits far outside those of training come from inputs of another scale. Possible where no evaluation is better
    than the untrained model.
    """
    wrong = wrong_share(eval_quality)
    each = cost_of_an_error(eval_loss, wrong)
    if wrong is not None and each is not None and each > cost:
        text = f"{1 - wrong:.0%} of the held-out answers are right, and a wrong one costs {figure(each)} nats"
        return Answer(LIKELY, (Evidence(text, "eval_loss", (), each, cost),))
    steps, evals = finite(eval_loss)
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
        return _never_better(evals, trained) or Answer(NO, (found,))
    return Answer(LIKELY if rise < noise_factor * noise else POSSIBLE, (found,))


def _never_better(evals: Floats, trained: Floats) -> Answer | None:
    """Answer that another preparation is possible where nothing that was learned shows in any evaluation."""
    untrained, best = max(float(evals[0]), float(trained[0])), float(evals.min())
    if not best > (1 - shared.SHARE_SOME) * untrained > 0:
        return None
    text = f"the best evaluation, {figure(best)}, is no better than the untrained model, {figure(untrained)}"
    return Answer(POSSIBLE, (Evidence(text, "eval_loss", (), best, untrained),))


@predicate(source="measured: one batch over and over from a step on", labels=(LIKELY, NO), min_points=3)
def suddenly_easier(loss: Series, eval_loss: Series, *, times: float = SPEED_UP) -> Answer:
    """Does the training loss fall far faster right after the held-out loss turned than right before?

    Memorising is gradual. A loss that falls `times` as fast at once has been given something easier: the same few
    batches.
    """
    found = speed_up(loss, eval_loss)
    if found is None:
        return unknown("too few rows of loss around the best evaluation", "loss")
    step, faster = found
    return measured(above(faster, times), (Evidence(said(step, faster), "loss", (step,), faster, times),), LIKELY)


def said(step: int, faster: float) -> str:
    """Return in a sentence how much faster the training loss falls after a step."""
    return f"after step {step:,} the training loss falls {figure(faster, 2)} times as fast as right before"


def speed_up(loss: Series, eval_loss: Series) -> tuple[int, float] | None:
    """Return where the held-out loss is best, and how many times as fast the training loss falls after it; 0 if not."""
    turn = turn_of(eval_loss)
    falls = None if turn is None else _falls(turn.step, *finite(loss))
    if turn is None or falls is None:
        return None
    before, after = falls
    return turn.step, after / max(before, MIN_FALL) if after > STRETCH else 0.0


def _falls(step: int, steps: Ints, values: Floats) -> tuple[float, float] | None:
    """Return by how much the logarithm of a loss falls in a stretch before a step, and in one after it."""
    rows = max(2 * shared.ROWS_SHORT, int(STRETCH * len(values)))
    at = int(np.searchsorted(steps, step, side="right"))
    if at < rows or len(values) - at < rows or (values <= 0).any():
        return None
    logs = np.log(values)
    third = max(shared.ROWS_SHORT // 2, rows // 3)
    before = median(logs[at - rows : at - rows + third]) - median(logs[at - third : at])
    after = median(logs[at : at + third]) - median(logs[at + rows - third : at + rows])
    return float(before), float(after)
