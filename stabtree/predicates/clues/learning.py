"""Why a run does not learn: whether its weights move, what its loss can show, and what it stays at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_LARGE, ROWS_LONG, ROWS_SHORT, SHARE_MOST
from stabtree.common.stats import median
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue
from stabtree.predicates.clues.usual_rates import rate_above_usual
from stabtree.predicates.course.updates import all_skipped, beyond_resolution
from stabtree.predicates.traces import clipped_throughout, rate_runs_out
from stabtree.profile import scatter_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.facts.registry import Groups
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series

YES, NO = "yes", "no"
ROUNDING = 1e-6  # no limit: float32: what a weight norm shows by rounding alone
BF16_STEP = 2.0**-9  # no limit: half a digit of bf16, relative: a coarser loss was stored in bf16 or with three digits
LARGEST_NORMAL_BOX = 50.0  # no limit: L1 between boxes in 0 to 1 is below 4, and DETR weighs it by 5
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
        if len(values) >= ROWS_SHORT and not np.ptp(values) and scatter_of(eval_loss).quantum < ROUNDING * 100:
            text = f"eval_loss is {values[0]:.6g} to the last digit in all {len(values):,} evaluations: no weight moves"
            return Seen(NO, text, "", "eval_loss", (int(steps[-1]),))
    return next(filter(None, map(_by_gradient, _gradient_norms(run))), None)


def _by_gradient(grad_norm: Series) -> Seen | None:
    """Return that the weights moved where the level of the gradient changed for good: fixed weights keep theirs."""
    steps, values = finite(grad_norm)
    for first, last in (_ends(values), _fast_change(values)):
        if min(first, last) > 0 and max(first / last, last / first) >= FACTOR_LARGE:
            text = f"{grad_norm.metric} goes from a level of {first:.3g} to {last:.3g}: the weights moved"
            return Seen(YES, text, "", grad_norm.metric, (int(steps[-1]),))
    return None


def _ends(values: Floats) -> tuple[float, float]:
    """Return the levels of the first and the last tenth; 0 where there are too few rows."""
    part = max(ROWS_SHORT, len(values) // 10)
    if len(values) < 2 * part:
        return 0.0, 0.0
    return median(values[:part]), median(values[-part:])


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
    step = scatter_of(loss).quantum
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
    rate = rate_above_usual.func(moment, run, context, lr)
    if rate is not None and float(rate.value) > FACTOR_LARGE:
        return Seen("rate", rate.text)
    if beyond_resolution.func(loss).verdict == LIKELY:
        return Seen("huge", "the loss is too large for float32 to show a change")
    if lr is not None and rate_runs_out.func(lr).verdict == LIKELY:
        return Seen("schedule", "lr is almost 0 for most of the run")
    norms, skipped = run.get("grad_norm"), run.get("skipped_steps")
    if skipped is not None and all_skipped.func(run, skipped, loss).verdict in (YES, LIKELY):
        return Seen("skipped", "nearly every update is skipped")
    if norms is not None and clipped_throughout.func(run, norms).verdict == LIKELY:
        return Seen("clipping", "clipping cuts almost every update to a fraction")
    return None
