"""What held-out data show beside the training loss: memorised samples, another preparation, wrong labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_upto
from stabtree.common.shared import ROWS_SHORT, SHARE_SOME
from stabtree.common.stats import median
from stabtree.facts.curve.turn import turn_of
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue
from stabtree.predicates.course.held_out import cost_of_an_error as nats_per_error
from stabtree.predicates.course.held_out import said, speed_up, wrong_share

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series


@clue
def best_eval(moment: Moment, run: Run, eval_loss: Series) -> Seen | None:
    """Return where the held-out loss is best."""
    turn = turn_of(eval_loss)
    if turn is None:
        return None
    unit = "epoch" if run.by_epoch else moment.unit
    at = f"{unit} {turn.step:,}"
    return Seen(float(turn.step), f"eval_loss is best at {at}: {figure(turn.best, 4)}", at, "eval_loss", (turn.step,))


@clue
def training_since_best(_moment: Moment, loss: Series, eval_loss: Series) -> Seen | None:
    """Return how far the training loss has fallen since the held-out loss was best: the last level over that one.

    Quoted are the logged values, which a reader can look up, unless their noise hides which way the levels went.
    """
    turn = turn_of(eval_loss)
    steps, values = finite(loss)
    if turn is None or len(values) < 2 * ROWS_SHORT:
        return None
    near = np.argsort(np.abs(steps - turn.step), kind="stable")[:ROWS_SHORT]
    then, now = median(values[near]), median(values[-ROWS_SHORT:])
    if then <= 0 or now < 0:
        return None
    ends = float(values[near[0]]), float(values[-1])
    if (ends[1] < ends[0]) != (now < then):
        ends = then, now
    first, last = (figure(value, 4) for value in ends)  # as many digits as the table of rows shows
    text = f"the training loss went from {first} to {last} after step {turn.step:,}"
    return Seen(now / then, text, f"{first} → {last}", "loss", (turn.step, int(steps[-1])))


@clue
def training_rises_too(_moment: Moment, loss: Series, eval_loss: Series) -> Seen | None:
    """Return the training loss between the best evaluation and the next but one, over that up to the best one.

    Above 1 the model did not learn its samples by heart there: the steps harmed it on both kinds of data.
    """
    turn = turn_of(eval_loss)
    steps, values = finite(loss)
    if turn is None:
        return None
    later = eval_loss.steps[rows_upto(eval_loss.steps, turn.step) :][:2]
    before = values[: rows_upto(steps, turn.step)][-ROWS_SHORT:]
    after = values[(steps > turn.step) & (steps <= later[-1])] if len(later) else before[:0]
    if min(len(before), len(after)) < ROWS_SHORT or median(before) <= 0:
        return None
    then, now = median(before), median(after)
    text = f"the training loss goes with the eval loss: {figure(then)} up to step {turn.step:,}, {figure(now)} after it"
    return Seen(now / then, text, f"{figure(then)} → {figure(now)}", "loss", (turn.step, int(later[-1])))


@clue
def training_left(_moment: Moment, loss: Series) -> Seen | None:
    """Return which share of its first level the training loss has left."""
    steps, values = finite(loss)
    if len(values) < 2 * ROWS_SHORT:
        return None
    first, last = float(values[:ROWS_SHORT].max()), median(values[-ROWS_SHORT:])
    if first <= 0 or last < 0:
        return None
    text = f"the training loss fell from {figure(first)} to {figure(last)}: the training samples are memorised"
    return Seen(last / first, text, f"{figure(last, 2)}", "loss", (int(steps[-1]),))


@clue
def eval_gain(_moment: Moment, eval_loss: Series, loss: Series | None = None) -> Seen | None:
    """Return the share of its untrained level that the held-out loss has gained at its best.

    The first training loss counts as well: the first evaluation may come after an epoch.
    """
    turn = turn_of(eval_loss)
    if turn is None:
        return None
    first = float(finite(eval_loss)[1][0])
    trained = finite(loss)[1] if loss is not None else np.array([])
    began = max(first, float(trained[0])) if len(trained) else first
    if began <= 0:
        return None
    gain = 1 - turn.best / began
    text = f"the eval loss fell from {figure(began)} to {figure(turn.best)} before it rose"
    if gain < SHARE_SOME:
        text = f"the best eval loss, {figure(turn.best)}, is hardly below that of the untrained model, {figure(began)}"
    return Seen(gain, text, f"{gain:.0%}", "eval_loss", (turn.step,))


@clue
def cost_of_an_error(_moment: Moment, eval_loss: Series, eval_quality: Series | None = None) -> Seen | None:
    """Return how many nats of held-out loss there are for each wrong answer.

    Where most answers are right and the loss is high all the same, the few wrong ones are given with logits far outside
    those of training: the inputs have another scale.
    """
    wrong = wrong_share(eval_quality)
    cost = nats_per_error(eval_loss, wrong)
    if wrong is None or cost is None:
        return None
    text = f"{1 - wrong:.0%} of the held-out answers are right, and each wrong one costs {figure(cost)} nats"
    return Seen(cost, text, f"{figure(cost)} nats", "eval_loss")


@clue
def accuracy_over_chance(_moment: Moment, context: Context, eval_quality: Series | None = None) -> Seen | None:
    """Return the held-out accuracy of the last evaluations over that of a guess."""
    wrong, classes = wrong_share(eval_quality), context.classes.value
    chance = 0.5 if context.task.value == "preference" else 1 / classes if classes and classes > 1 else None
    if wrong is None or chance is None or eval_quality is None:
        return None
    right = 1 - wrong
    text = f"held-out accuracy ends at {figure(right)}; a guess gets {figure(chance)}"
    return Seen(right / chance, text, f"{figure(right)}", eval_quality.metric)


@clue
def fall_speeds_up(_moment: Moment, loss: Series, eval_loss: Series) -> Seen | None:
    """Return how many times as fast the training loss falls right after the held-out loss was best."""
    found = speed_up(loss, eval_loss)
    if found is None:
        return None
    step, faster = found
    return Seen(faster, said(step, faster), f"{figure(faster, 2)}×", "loss", (step,))


@clue
def regularisation(_moment: Moment, run: Run) -> Seen | None:
    """Return the larger of weight decay and dropout, as configured."""
    known = {key: run.setting(key) for key in ("weight_decay", "dropout")}
    found = {key: float(value) for key, value in known.items() if isinstance(value, int | float)}
    if not found:
        return None
    text = " and ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in found.items())
    return Seen(max(found.values()), f"configured: {text}", text, "")


@clue
def configured_decay(_moment: Moment, run: Run) -> Seen | None:
    """Return the configured weight decay."""
    return _setting(run, "weight_decay")


@clue
def adapter_rank(_moment: Moment, run: Run) -> Seen | None:
    """Return the configured rank of a LoRA."""
    return _setting(run, "lora_rank")


def _setting(run: Run, key: str) -> Seen | None:
    value = run.setting(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return Seen(float(value), f"{key} is {value:g}", f"{value:g}")
