"""Traces that causes leave in a log: what is examined after a finding, to decide which cause made it.

None of them raises an alarm, so their limits may be lower than those of a question: `likely` is the most they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.stats import median
from stabtree.common.strength import above, weakest, whether
from stabtree.facts.registry import finite
from stabtree.predicates.gradients import always_clipped
from stabtree.predicates.metric.stays import stays_above
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.facts.batches import Batches
    from stabtree.facts.movers import Movers
    from stabtree.facts.rate import Rate
    from stabtree.facts.spike import Spike
    from stabtree.run import Run, Series

# What the model does itself, before a loss that other data would raise at once.
OURS = ("grad_norm", "weight_norm", "update_ratio")


@predicate(source="convergence O7 and O22", labels=(LIKELY, POSSIBLE, NO))
def rate_too_high(rate: Rate, *, guess: bool = True) -> Answer:
    """Is the learning rate far above what is usual for its optimizer, or did the loss jump up in its first rows?

    Without `guess` it is no where nothing speaks for it.
    """
    return Answer(rate.too_high if guess or rate.too_high == LIKELY else NO, rate.evidence)


@predicate(source="convergence O8", labels=(LIKELY, NO), min_points=4)
def rate_runs_out(lr: Series, *, share: float = shared.SHARE_SOME, rows_share: float = shared.SHARE_HALF) -> Answer:
    """Is the learning rate almost 0 for most of the run?

    Below `share` of its peak in at least `rows_share` of its rows, all of them after the peak.
    """
    steps, values = finite(lr)
    peak = int(np.argmax(values))
    gone = values[peak:] < share * values[peak]
    part = float(gone.sum() / len(values))
    text = f"lr is below {share:g} of its peak of {figure(values[peak])} in {part:.0%} of its rows"
    found = (Evidence(text, "lr", (int(steps[peak]),), part, rows_share),)
    return measured(above(part, rows_share), found, LIKELY)


@predicate(source="convergence O4", labels=(LIKELY, NO))
def norm_sums_up(grad_norm: Series, *, rows: Count = shared.ROWS_SHORT, growth: float = shared.FACTOR) -> Answer:
    """Does grad_norm grow like a sum over the very first steps?

    A gradient that is never zeroed is the sum of the batches so far: the norms of the first `rows` steps rise one after
    the other, to more than `growth` times the first.
    """
    first, steps = grad_norm.values[:rows], grad_norm.steps[:rows]
    if rows < 2 or len(first) < rows or steps[0] > 1 or (np.diff(steps) != 1).any():
        return unknown(f"grad_norm is not logged at each of the first {rows} steps", "grad_norm")
    if not np.isfinite(first).all() or first[0] <= 0:
        return Answer(NO, (Evidence(f"grad_norm is 0 or not finite in its first {rows} rows", "grad_norm"),))
    times = float(np.clip(first[-1] / first[0], -1e300, 1e300))
    text = f"grad_norm goes from {figure(first[0])} to {figure(first[-1])} over its first {rows} steps"
    found = (Evidence(text, "grad_norm", (int(grad_norm.steps[rows - 1]),), times, growth),)
    return measured(weakest(above(times, growth), whether(bool((np.diff(first) > 0).all()))), found, LIKELY)


@predicate(source="phase19 Q4.4", labels=(LIKELY, POSSIBLE, NO))
def data_changes(
    spike: Spike,
    movers: Movers,
    grad_norm: Series | None = None,
    lr: Series | None = None,
    *,
    factor: float,
    lr_factor: float,
    rows: Count,
) -> Answer:
    """Does the level of the loss change for good while the gradient stays as before?

    Likely where the median of grad_norm in the `rows` rows from the onset on is below `factor` times its mean before:
    the weights were not thrown, so it is what they are shown. Possible where no grad_norm was logged. No where a
    gradient, a weight or an update left its course before the loss did, or where lr rises by more than `lr_factor`
    from the window before
    to these rows: then it may be the rate.
    """
    top = spike.top
    level = Evidence(f"the loss changes its level at step {top.step:,}", "loss", (top.step,))
    led = [move for move in movers.by(top.step) if move.step < top.step and move.metric.partition("/")[0] in OURS]
    if led:
        return Answer(NO, tuple(move.before(top.step) for move in led[:1]))
    if lr is not None:
        steps, rates = finite(lr)
        old = rates[rows_before(steps, top.step - spike.params.window_steps) : rows_before(steps, top.step)]
        new = rates[rows_before(steps, top.step) :][:rows]
        if len(old) and len(new) and float(new.max()) > lr_factor * float(old.min()):
            text = f"lr goes from {figure(float(old.min()))} to {figure(float(new.max()))} around step {top.step:,}"
            return Answer(NO, (Evidence(text, "lr", (top.step,)),))
    if grad_norm is None:
        return Answer(POSSIBLE, (level,))
    before = (grad_norm.steps >= top.step - spike.params.window_steps) & (grad_norm.steps < top.step)
    usual = grad_norm.values[before & np.isfinite(grad_norm.values)]
    after = grad_norm.values[rows_before(grad_norm.steps, top.step) :][:rows]
    if not len(usual) or not len(after) or float(usual.mean()) <= 0:
        return Answer(POSSIBLE, (level,))
    ratio = float(np.clip(median(np.nan_to_num(after, nan=np.inf)) / float(usual.mean()), -1e300, 1e300))
    text = f"grad_norm is {against(ratio, factor)}× its mean before, the median of the {len(after)} rows "
    text += f"from step {top.step:,} on"
    found = Evidence(f"{text} (limit {factor:g}×)", "grad_norm", (top.step,), ratio, factor)
    return Answer(LIKELY if ratio < factor else NO, (found,))


@predicate(source="phase19 Q2.3, third panel", labels=(LIKELY, NO))
def batches_recur(batches: Batches, *, share: float = shared.SHARE_SOME) -> Answer:
    """Do batches come back early throughout the run?

    In at least `share` of the rows a batch comes back within a few steps, although many others had been seen.
    """
    rows = len(batches.series)
    early = int(batches.early.sum())
    text = f"{early:,} of {rows:,} batches come back early"
    found = (Evidence(text, "batch_id", (), early / rows, share),)
    if early >= share * rows:
        return Answer(LIKELY, found)
    return Answer(NO, found, contrary=not batches.since_steps.any())


@predicate(source="precision P13", labels=(LIKELY, NO), min_points=shared.ROWS_SHORT)
def clipped_throughout(run: Run, grad_norm: Series) -> Answer:
    """Does clipping cut almost every update to a fraction?

    As `always_clipped`, of which it is no more than likely that it is what holds the run back.
    """
    answer: Answer = always_clipped.func(run, grad_norm)
    return Answer(LIKELY, answer.evidence, strength=answer.strength) if answer.verdict == YES else answer


@predicate(source="transformers: a NaN in the mean of the logged loss", labels=(LIKELY, NO))
def gradient_outlives(
    loss: Series,
    grad_norm: Series,
    *,
    outlive_rows: Count = shared.ROWS_SHORT,
    outlive_share: float = shared.SHARE_MOST,
) -> Answer:
    """Does the gradient stay finite after the loss no longer is?

    In at least `outlive_share` of the rows of grad_norm after the last finite loss, in `outlive_rows` of them at least,
    and not the same number in all: weights that hold a NaN give no such gradient, so it is the logged loss that holds
    one. No where the loss is infinite there, which log(0) makes of sound weights.
    """
    good = loss.steps[np.isfinite(loss.values)]
    last = int(good[-1]) if len(good) else int(loss.steps[0]) - 1
    after = grad_norm.values[rows_upto(grad_norm.steps, last) :]
    sound = after[np.isfinite(after) & (after > 0)]
    alive = len(sound) if len(np.unique(sound)) > 1 else 0
    text = f"grad_norm is finite and above 0 in {alive:,} of its {len(after):,} rows after the last finite loss"
    found = (Evidence(text, "grad_norm", (last,), float(alive), float(outlive_rows)),)
    enough = alive >= outlive_rows and alive >= outlive_share * len(after)
    infinite = bool(np.isinf(loss.values[rows_upto(loss.steps, last) :]).any())
    return Answer(LIKELY if enough and not infinite else NO, found)


@predicate(source="public threads: a reward function that fails", labels=(LIKELY, NO), min_points=4)
def zero_at_once(
    run: Run, *, metric: str = "reward", rows: Count = shared.ROWS_SHORT, usual: float = shared.SHARE_HALF
) -> Answer:
    """Does a metric go to exactly 0 from one row to the next, up to the end?

    In each of its last `rows` rows or more, while the row before them is at `usual` of its level before at least: a
    policy that forgets passes through what lies between.
    """
    series = run.get(metric)
    if series is None:
        return unknown(f"{metric} was not logged", metric)
    steps, values = finite(series)
    alive = np.flatnonzero(values != 0)
    if not len(alive):
        return Answer(NO, (Evidence(f"{metric} is 0 in every row", metric),))
    last = int(alive[-1])
    zeros = len(values) - 1 - last
    level = abs(median(values[: last + 1]))
    if not zeros:
        return Answer(
            NO, (Evidence(f"{metric} ends at {figure(values[last])}, not at 0", metric, (int(steps[last]),)),)
        )
    text = f"{metric} is exactly 0 in its last {zeros:,} rows; before them it was at {figure(values[last])}"
    text += f" (usually {figure(level)})"
    found = (Evidence(text, metric, (int(steps[last]),), float(zeros), float(rows)),)
    return Answer(LIKELY if zeros >= max(rows, 1) and abs(values[last]) >= usual * level > 0 else NO, found)


@predicate(source="SFT and RL guide", labels=(LIKELY, POSSIBLE, NO))
def above_throughout(run: Run, *, metric: str = "clipped_ratio", level: float) -> Answer:
    """Does a metric stay at a level from the first row on?

    As `stays_above`; where the first row lies below the level it is possible at most: training brought it there.
    """
    answer = stays_above.func(run, metric=metric, level=level)
    if answer.verdict != YES:
        return answer
    at, values = finite(run.series[metric])
    first = float(values[0])
    text = f"{metric} begins at {figure(first)}"
    found = Evidence(text, metric, (int(at[0]),), first, level)
    return Answer(LIKELY if first >= level else POSSIBLE, (*answer.evidence, found))


@predicate(source="SFT and RL guide")
def rises_to(run: Run, *, metric: str = "entropy", level: float, growth: float = shared.FACTOR_SMALL) -> Answer:
    """Did a metric rise to a level and stay there?

    As `stays_above`, but a metric that was within `growth` of its end from the start did not rise: it is not the cause.
    """
    answer = stays_above.func(run, metric=metric, level=level)
    if answer.verdict != YES:
        return answer
    _, values = finite(run.series[metric])
    first, last = median(values[: max(shared.ROWS_SHORT, len(values) // 10)]), median(values[-shared.ROWS_SHORT :])
    text = f"{metric} goes from {figure(first)} to {figure(last)} (limit {growth:g}×)"
    found = (Evidence(text, metric, (), last, growth * first),)
    return Answer(YES, (*found, *answer.evidence)) if last > growth * first else Answer(NO, found, contrary=True)
