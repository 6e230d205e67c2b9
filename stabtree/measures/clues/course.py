"""Clues from the course of a run: how much it learned, and how far it overfitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import (
    FACTOR_LARGE,
    FACTOR_SMALL,
    LEVELS,
    NOISE_TIMES,
    ROWS_LONG,
    ROWS_SHORT,
    SHARE_HALF,
    SHARE_MOST,
    SHARE_SOME,
    TREND_Z,
)
from stabtree.common.stats import blocks, interval, kendall_z, median
from stabtree.measures.clues import Seen, clue
from stabtree.measures.clues.rates import rate_times_usual, steps_at_zero
from stabtree.measures.curve import turn_of
from stabtree.measures.drift import all_skipped, beyond_resolution
from stabtree.measures.gradients import always_clipped
from stabtree.measures.metric import ends_of
from stabtree.measures.overfitting import cost_of_an_error as nats_per_error
from stabtree.measures.overfitting import wrong_share
from stabtree.measures.registry import finite, lowest
from stabtree.measures.settings import number
from stabtree.measures.traces import largest_leap
from stabtree.profile import scatter_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.measures.clues import Moment
    from stabtree.measures.registry import Groups
    from stabtree.measures.spike import Spike
    from stabtree.run import Run, Series


@clue
def eval_course(_moment: Moment, eval_loss: Series) -> Seen | None:
    """Return whether the held-out loss ends `falling`, `settled`, or `rising` above its best.

    The last third of its rows is compared with the third before, and with the best level of the log.
    """
    steps, values = finite(eval_loss)
    if len(values) < ROWS_SHORT:
        return None
    third = max(2, len(values) // 3)
    now, before = median(values[-third:]), median(values[-2 * third : -third])
    noise = median(np.abs(np.diff(values))) / 2
    bar = max(NOISE_TIMES * noise, SHARE_SOME * float(np.ptp(values)))
    best = int(np.argmin(values))
    lowest = f"{float(values[best]):.4g} at step {int(steps[best]):,}"
    since = int(steps[-2 * third])
    where = f"the eval loss ends at {float(values[-1]):.4g}, its lowest is {lowest}"
    if now < before - bar:
        return Seen("falling", f"the eval loss still falls; {where}", lowest, "eval_loss")
    if now > float(values[best]) + bar and now > before - bar and best < len(values) - third:
        return Seen("rising", f"the eval loss is past its best: {where}", lowest, "eval_loss", (int(steps[best]),))
    return Seen(
        "settled", f"the eval loss has not fallen since step {since:,}", f"step {since:,}", "eval_loss", (since,)
    )


@clue
def lr_leap(moment: Moment, run: Run, lr: Series) -> Seen | None:
    """Return by how much the rate leaps from one row to the next in the last rows up to the trouble; 1 without a leap.

    A warm-up is none: there the row before had risen as well.
    """
    found = None if moment.onset_step is None else largest_leap(lr, moment.onset_step)
    if found is None:
        return None
    step, old, new = found
    if new <= FACTOR_SMALL * old:
        return Seen(1.0, f"lr does not leap: {_rate(old)} → {_rate(new)} at step {step:,}", "", "lr", (step,))
    factor = new / old
    text = f"lr leaps ×{factor:.3g} at step {step:,}, {_rate(old)} → {_rate(new)}"
    known = run.setting("lr")
    if isinstance(known, int | float) and known > 0:
        text += f" ({_rate(float(known))} is configured)"
    return Seen(factor, text, f"lr {_rate(old)} → {_rate(new)} at step {step:,}", "lr", (step,))


@clue
def rate_is_logged(_moment: Moment, run: Run) -> Seen:
    """Return whether the learning rate is logged: `yes` or `no`."""
    if run.has("lr"):
        return Seen("yes", "lr is logged", "", "lr")
    return Seen("no", "lr is not logged, so it may have jumped", "", "lr")


def _rate(value: float) -> str:
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


YES, NO = "yes", "no"
AT_ONCE_ROWS = 3  # measured: 10 of 11 bad batches of faultbench and the trainers' runs are over by then
ROUNDING = 1e-6  # no limit: float32: what a weight norm shows by rounding alone
BF16_STEP = 2.0**-9  # no limit: half a digit of bf16, relative: a coarser loss was stored in bf16 or with three digits
LARGEST_NORMAL_BOX = 50.0  # no limit: L1 between boxes in 0 to 1 is below 4, and DETR weighs it by 5
STRETCH = 0.1  # no limit: of the rows, before and after a turn
MIN_FALL = 0.01  # no limit: a loss that rests falls by no less
FEW_VALUES = 8  # no limit: a loss of more different values scatters by more than its rounding
NOT_TRAINING = ("val", "eval", "test", "grad", "accum")
NOTHING = (0.93, 1.07)  # no limit: around 1, the variance of the noise that a model is to predict


def _all(run: Run) -> Iterator[tuple[str, Series]]:
    """Yield every series, those that no metric names too, with the lower-case name of its column."""
    for name, series in (*run.series.items(), *run.others.items()):
        yield (series.origin or name).lower(), series


def _gradient_norms(run: Run) -> Iterator[Series]:
    """Yield the series that are norms of the gradient, squared ones too, under any name."""
    for name, series in _all(run):
        if "grad" in name and "norm" in name:
            yield series


@clue
def gradients_flow(_moment: Moment, run: Run) -> Seen | None:
    """Return whether a gradient norm above 0 is logged to the end, under any name."""
    for series in _gradient_norms(run):
        steps, values = finite(series)
        if len(values) < ROWS_SHORT:
            continue
        if np.mean(values > 0) >= SHARE_MOST:
            text = f"{series.metric} runs from {values.min():.3g} to {values.max():.3g}, up to the end: gradients flow"
            return Seen(YES, text, "", series.metric, (int(steps[-1]),))
        if not values.any():
            return Seen(NO, f"{series.metric} is exactly 0 in every row", "", series.metric, (int(steps[0]),))
    return None


@clue
def weights_moved(
    _moment: Moment,
    run: Run,
    weight_norm: Groups | None = None,
    update_ratio: Groups | None = None,
    eval_loss: Series | None = None,
) -> Seen | None:
    """Return whether the weights changed: a norm changed or stayed, or the same held-out loss came out each time."""
    for series in (update_ratio or {}).values():
        top = float(finite(series)[1].max(initial=0.0))
        return Seen(YES if top > 0 else NO, f"{series.metric} is at most {top:.2g}", "", series.metric)
    for series in (weight_norm or {}).values():
        values = finite(series)[1]
        if len(values) > 1 and np.ptp(values) > ROUNDING * abs(float(values[0])):
            text = f"{series.metric} goes from {values[0]:.4g} to {values[-1]:.4g}: the weights move"
            return Seen(YES, text, "", series.metric)
    if eval_loss is not None:
        steps, values = finite(eval_loss)
        if len(values) >= ROWS_SHORT and not np.ptp(values) and scatter_of(eval_loss)[1] < ROUNDING * 100:
            text = f"eval_loss is {values[0]:.6g} to the last digit in all {len(values):,} evaluations: no weight moves"
            return Seen(NO, text, "", "eval_loss", (int(steps[-1]),))
    # Weights that stay keep the level of their gradient.
    for norm in _gradient_norms(run):
        steps, values = finite(norm)
        for first, last in (ends_of(values, ROWS_SHORT) or (0.0, 0.0), _fast_change(values)):
            if min(first, last) > 0 and max(first / last, last / first) >= FACTOR_LARGE:
                text = f"{norm.metric} goes from a level of {first:.3g} to {last:.3g}: the weights moved"
                return Seen(YES, text, "", norm.metric, (int(steps[-1]),))
    return None


def _fast_change(values: Floats) -> tuple[float, float]:
    """Return the levels of the first rows and of all others; 0 where most of the others reach as far.

    Weights may do all their moving in a few rows. The norms of single batches scatter widely, so a change in so few
    rows shows something only where it leaves that scatter.
    """
    begin, rest = values[:ROWS_SHORT], values[ROWS_SHORT:]
    if len(rest) < ROWS_LONG:
        return 0.0, 0.0
    first = median(begin)
    if max(np.mean(rest < first), np.mean(rest > first)) < SHARE_MOST:
        return 0.0, 0.0
    return first, median(rest)


@clue
def rounded_loss(_moment: Moment, loss: Series) -> Seen | None:
    """Return by which share of itself the loss can change, as it was stored or printed, where that is coarse."""
    _, values = finite(loss)
    level = abs(median(values)) if len(values) else 0.0
    _, step = scatter_of(loss)
    if not level or not step or not 1 < len(np.unique(values)) <= FEW_VALUES:
        return None
    share = step / level
    text = f"the logged loss moves in steps of {step:.4g}, {share:.2%} of it: a smaller gain can't be seen"
    return Seen(share / BF16_STEP, text, f"{step:.4g}", "loss")


@clue
def loss_all_zero(_moment: Moment, loss: Series) -> Seen | None:
    """Return whether the loss is exactly 0 in every row."""
    steps, values = finite(loss)
    if not len(values):
        return None
    zero = not values.any()
    text = "the loss is exactly 0 in every row" if zero else "the loss is not 0 in every row"
    return Seen(YES if zero else NO, text, "", "loss", (int(steps[0]),))


@clue
def predicts_nothing(_moment: Moment, loss: Series) -> Seen | None:
    """Return whether the loss stays at 1, the variance of noise and of standardised targets."""
    _, values = finite(loss)
    if not len(values):
        return None
    level = median(values)
    low, high = NOTHING
    text = f"the loss stays at {level:.3g}; answering 0 to values of variance 1 costs 1.0"
    return Seen(YES if low <= level <= high else NO, text, f"{level:.3g}", "loss")


@clue
def box_loss(_moment: Moment, run: Run) -> Seen | None:
    """Return the largest loss of boxes, in units of 50: above that they can't lie between 0 and 1."""
    found = {name: finite(series)[1] for name, series in _all(run) if "box" in name and "loss" in name}
    training = {name: values for name, values in found.items() if not any(word in name for word in NOT_TRAINING)}
    boxes = training or found
    levels = {name: median(values) for name, values in boxes.items() if len(values)}
    if not levels:
        return None
    name = max(levels, key=lambda item: levels[item])
    text = f"{name} is {levels[name]:,.4g}; between boxes of 0 to 1 it stays below {LARGEST_NORMAL_BOX:g}"
    return Seen(levels[name] / LARGEST_NORMAL_BOX, text, f"{name} {levels[name]:,.4g}", name)


@clue
def train_accuracy(_moment: Moment, run: Run) -> Seen | None:
    """Return the last accuracy on the training data, as a share."""
    for name, series in _all(run):
        values = finite(series)[1]
        if "acc" not in name or any(word in name for word in NOT_TRAINING) or not len(values):
            continue
        share = float(values[-1]) / (100 if values.max() > 1 else 1)
        return Seen(share, f"{name} ends at {values[-1]:.4g}", f"{share:.0%}", name)
    return None


@clue
def small_twin(_moment: Moment, run: Run, loss: Series) -> Seen | None:
    """Return a column beside a loss of 0 that shows the same error with more digits: small, but not 0."""
    if finite(loss)[1][-1:].any():
        return None
    for name, series in _all(run):
        values = finite(series)[1]
        if series is loss or len(values) < ROWS_SHORT or not any(word in name for word in ("error", "mse")):
            continue
        last = float(values[-1])
        if 0 < last < values.max() / 100:
            return Seen(last, f"{name} ends at {last:.3g}, above 0", f"{last:.2g}", name)
    return None


@clue
def known_reason(moment: Moment, run: Run, context: Context, loss: Series, lr: Series | None = None) -> Seen | None:
    """Return what the log shows by itself to hold the run back: no trial is needed to find out."""
    boxes, zero = box_loss.func(moment, run), loss_all_zero.func(moment, loss)
    if boxes is not None and float(boxes.value) > 1:
        return Seen("boxes", boxes.text)
    if zero is not None and zero.value == YES:
        return Seen("zero", zero.text)
    rate = rate_times_usual.func(moment, run, context, lr)
    if rate is not None and float(rate.value) > FACTOR_LARGE:
        return Seen("rate", rate.text)
    if lr is not None and len(lr) and not lr.values.any():
        return Seen("rate", "lr is 0 in every row")
    if beyond_resolution.func(loss).verdict == LIKELY:
        return Seen("huge", "the loss is too large for float32 to show a change")
    gone = steps_at_zero.func(moment, lr, loss) if lr is not None else None
    if gone is not None and float(gone.value) > SHARE_HALF:
        return Seen("schedule", gone.text)
    norms, skipped = run.get("grad_norm"), run.get("skipped_steps")
    if skipped is not None and all_skipped.func(run, skipped, loss).verdict in (YES, LIKELY):
        return Seen("skipped", "nearly every update is skipped")
    if norms is not None and always_clipped.func(run, norms).verdict == YES:
        return Seen("clipping", "clipping cuts almost every update to a fraction")
    return None


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
    """Return how many times as fast the training loss falls right after the held-out loss was best; 0 if it does not.

    Compared is by how much its logarithm falls in a stretch before that step, and in one after it. Memorising is
    gradual: a loss that falls far faster at once has been given something easier, the same few batches.
    """
    turn, (steps, values) = turn_of(eval_loss), finite(loss)
    rows = max(2 * ROWS_SHORT, int(STRETCH * len(values)))
    at = rows_upto(steps, turn.step) if turn else 0
    if turn is None or at < rows or len(values) - at < rows or (values <= 0).any():
        return None
    logs, third = np.log(values), max(ROWS_SHORT // 2, rows // 3)
    before = float(median(logs[at - rows : at - rows + third]) - median(logs[at - third : at]))
    after = float(median(logs[at : at + third]) - median(logs[at + rows - third : at + rows]))
    faster = after / max(before, MIN_FALL) if after > STRETCH else 0.0
    text = f"after step {turn.step:,} the training loss falls {figure(faster, 2)} times as fast as right before"
    return Seen(faster, text, f"{figure(faster, 2)}×", "loss", (turn.step,))


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
    value = number(run, "weight_decay")
    return None if value is None else Seen(value, f"weight_decay is {value:g}", f"{value:g}")


@clue
def recovery_rows(_moment: Moment, loss: Series, spike: Spike) -> Seen | None:
    """Return how many rows the loss needed to come back from its spike, or had needed when the log ended.

    None where these are few and the loss is not back, or a row stands for too many steps to show what is over at once.
    """
    top, steps = spike.top, finite(loss)[0]
    back = top.recovered_step
    rows = int(((steps >= top.step) & (steps < (steps[-1] + 1 if back is None else back))).sum())
    if rows <= AT_ONCE_ROWS and (back is None or interval(steps) > ROWS_LONG):
        return None
    text = f"the loss is back after {rows:,} row{'s' if rows != 1 else ''}"
    if back is None:
        text = f"the loss was not back {rows:,} rows after the spike, when the log ends"
    return Seen(float(rows), text, f"{rows:,} rows", "loss", (top.step,))


@clue
def lone_infinite_norms(moment: Moment, grad_norm: Series, loss: Series) -> Seen:
    """Count the infinite gradient norms before the onset whose loss and whose next row are finite."""
    end = moment.onset_step if moment.onset_step is not None else int(grad_norm.steps[-1]) + 1
    before = grad_norm.steps < end
    steps, broken = grad_norm.steps[before], ~np.isfinite(grad_norm.values[before])
    lone = broken[:-1] & ~broken[1:] if len(broken) else broken
    lost = loss.steps[~np.isfinite(loss.values)]
    found = [int(step) for step in steps[: len(lone)][lone] if step not in lost]
    text = f"grad_norm is not finite alone at {len(found):,} rows before, and the loss stays ordinary there"
    return Seen(len(found), text, f"{len(found):,}", "grad_norm", tuple(found[:4]))


@clue
def norm_grows_from_start(moment: Moment, grad_norm: Series) -> Seen | None:
    """Return how many times its first rows grad_norm reaches before the onset, where it rises all the way; else 1."""
    steps, values = finite(grad_norm)
    before = values if moment.onset_step is None else values[: rows_before(steps, moment.onset_step)]
    if lowest(grad_norm) <= 0:
        before = before[before > 0]
    if len(before) < 2 * ROWS_SHORT:
        return None
    first, last = median(before[:ROWS_SHORT]), median(before[-ROWS_SHORT:])
    halfway = median(before[: len(before) // 2])
    levels, _ = blocks(before, min(LEVELS, len(before) // 2))
    rises = kendall_z(levels) > TREND_Z and halfway > (1 + SHARE_HALF) * first
    short = f"{figure(first)} → {figure(last)}"
    text = f"grad_norm goes from {short}" if not rises else f"grad_norm grows from the first rows on: {short}"
    return Seen(last / first if rises else 1.0, text, short, "grad_norm", (int(steps[0]),))


@clue
def step_was_skipped(moment: Moment, grad_norm: Series) -> Seen | None:
    """Return whether grad_norm is exactly 0 at the onset, as where the optimizer's step was skipped: `yes` or `no`."""
    at = grad_norm.values[grad_norm.steps == moment.onset_step]
    if not len(at):
        return None
    return Seen("no" if at.any() else "yes", f"grad_norm is {figure(float(at[0]))} there", "", "grad_norm")
