"""Section 4: silent divergence. The loss creeps up, and what creeps with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import FACTOR_SMALL, SHARE_MOST
from stabtree.common.stats import NEARLY_ZERO, blocks, interval, kendall_z, median
from stabtree.common.strength import beyond, weakest
from stabtree.facts.curve.rise import Rise
from stabtree.facts.registry import Absent, Unknown, finite
from stabtree.predicates.registry import Count, Groups, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.curve.levels import Levels
    from stabtree.facts.rate import Rate
    from stabtree.run import Run, Series

CLIMB_BLOCKS = 40  # no limit: how finely it is looked at when a rise was made


def _stretch(loss: Series, rise: Rise | Absent | Unknown, window_steps: int, *, stretched: bool) -> tuple[int, int]:
    """Return the steps that Q4.2 to Q4.4 look at: the last `window_steps`, stretched back to the low of the rise."""
    last = int(loss.steps[-1])
    start = last - window_steps
    return (min(start, rise.low_step) if stretched and isinstance(rise, Rise) else start), last


def _within(series: Series, start: int, end: int) -> tuple[Ints, Floats]:
    steps, values = finite(series)
    inside = slice(rows_before(steps, start), rows_upto(steps, end))
    return steps[inside], values[inside]


@predicate(source="phase19 Q4.1; Mann 1945, Kendall 1975")
def loss_rising(rise: Rise) -> Answer:
    """Has the loss been rising slowly, up to the end?

    Document: monotonic over the last `window_steps` steps (`strict`), which no noisy loss ever is. The
    default tests the trend of block medians from the lowest level to the end: a Mann-Kendall score above
    `trend_z`, an end that is `noise_factor` times the blocks' own scatter
    above the low, and at least `range_share` of all that the loss ever moved. Labelled healthy runs reach 1.5,
    1.4 and 0.11; all three at once none. A rise that has levelled off has no trend any more: one that is far higher
    counts without. Looked at is the whole run, and with higher limits its last 2, 4, 8, ... times `window_steps`.
    """
    low_step = rise.low_step
    return Answer(YES, (rise.evidence,), onset_step=low_step, last_good_step=low_step, strength=rise.strength)


def _ratio(begin: float, end: float) -> float:
    """Return the end over the beginning of something that should be positive, bounded so that it can be printed."""
    if begin <= 0:
        return 1e300 if end > 0 else 1.0
    return float(np.clip(end / begin, -1e300, 1e300))


@predicate(source="phase19 Q4.2", min_points=2)
def lr_rising(
    loss: Series,
    lr: Series,
    rise: Rise | Absent | Unknown,
    *,
    window_steps: Count,
    stretched: bool,
    min_factor: float,
) -> Answer:
    """Has the learning rate risen while the loss rose?

    Compared are the medians of the first and the last tenth of the stretch over which the loss rises (at
    least `window_steps`); a rise is more than `min_factor`, above any rounding of a logged rate.
    """
    start, last = _stretch(loss, rise, window_steps, stretched=stretched)
    steps, values = _within(lr, start, last)
    if len(values) < 2:
        return unknown(f"lr has fewer than two points in steps {start:,} to {last:,}", "lr")
    part = max(1, len(values) // 10)
    begin, end = median(values[:part]), median(values[-part:])
    ratio = _ratio(begin, end)
    if stretched and isinstance(rise, Rise):
        since, rates = _within(lr, rise.low_step, last)
        part = max(1, len(rates) // 10)
        fallen = _ratio(median(rates[:part]), median(rates[-part:])) if len(rates) > 1 else 1.0
        if fallen < 1:  # it rose before the loss did, as in a warm-up, and not with it
            steps, ratio = since, fallen
            begin, end = median(rates[:part]), median(rates[-part:])
    text = f"lr goes from {figure(begin)} to {figure(end)} ({against(ratio, min_factor)}×) "
    text += f"over steps {int(steps[0]):,} to {int(steps[-1]):,}"
    found = (Evidence(text, "lr", (int(steps[0]), int(steps[-1])), ratio, min_factor),)
    return measured(beyond(ratio - 1, min_factor - 1), found)


@predicate(source="phase19 Q4.2", labels=(LIKELY, POSSIBLE, NO))
def lr_climbs_along(
    loss: Series, rate: Rate, rise: Rise | Absent | Unknown, lr: Series | None = None, *, factor: float = FACTOR_SMALL
) -> Answer:
    """Did the learning rate climb while the loss made its rise, whatever it did later?

    Compared are the medians of its first and last tenth from the low of the loss to where most of the rise is made:
    more than `factor` times. A schedule that warms up and decays ends lower than it began, and broke the run on its way
    up. Where it did not climb, it is as for `rate_too_high`.
    """
    if isinstance(rise, Rise) and lr is not None:
        steps, values = _within(loss, rise.low_step, rise.last_step)
        medians, starts = blocks(values, min(CLIMB_BLOCKS, len(values)))
        up = int(starts[int(np.argmax(medians >= rise.low + SHARE_MOST * (rise.end - rise.low)))])
        at, rates = _within(lr, rise.low_step, int(steps[up]))
        part = max(1, len(rates) // 10)
        if len(rates) > 1 and (ratio := _ratio(median(rates[:part]), median(rates[-part:]))) > factor:
            ends = f"from {figure(median(rates[:part]))} to {figure(median(rates[-part:]))}"
            text = f"lr rises {as_factor(ratio)} while the loss rises (limit {factor:g}×), {ends} "
            text += f"over steps {int(at[0]):,} to {int(at[-1]):,}"
            return Answer(LIKELY, (Evidence(text, "lr", (int(at[0]), int(at[-1])), ratio, factor),))
    return Answer(rate.too_high, rate.evidence)


@predicate(source="phase19 Q4.2, the warm-up that never ends")
def warming_up(run: Run, loss: Series, rise: Rise | Absent | Unknown) -> Answer:
    """Did the loss turn while the learning rate was still in its planned warm-up?

    Needs `warmup_steps` in the manifest.
    """
    planned = run.setting("warmup_steps")
    if not isinstance(planned, int) or not planned:
        return unknown("the manifest does not say how long the warm-up is", "warmup_steps")
    low_step = rise.low_step if isinstance(rise, Rise) else int(loss.steps[-1])
    text = f"the warm-up is planned for {planned:,} steps, the loss turned around step {low_step:,}"
    found = Evidence(text, "lr", (low_step,), float(low_step), float(planned))
    return Answer(YES, (found,)) if low_step < planned else Answer(NO, (found,), contrary=True)


@predicate(source="phase19 Q4.3", labels=("up", "down", "no"))
def weight_norm_change(
    loss: Series,
    weight_norm: Groups,
    rise: Rise | Absent | Unknown,
    *,
    window_steps: Count,
    stretched: bool,
    factor: float,
) -> Answer:
    """Did the weights of some parameter group double or halve in size?

    `up`: the decay is too low, `down`: too high. Asked only once the loss rises, since early growth of
    that size is true of a quarter of healthy runs. The document looks at the last `window_steps`; where
    `stretched`, every such window since the loss was lowest counts. Logged less often than every `window_steps`,
    it is unknown.
    """
    start, last = _stretch(loss, rise, window_steps, stretched=stretched)
    best: tuple[float, int, int, str] | None = None
    for name, series in weight_norm.items():
        steps, values = _within(series, start, last)
        keep = values > 0
        low = rise.low_step if stretched and isinstance(rise, Rise) else start
        change = _largest_change(steps[keep], values[keep], window_steps, low)
        if change and (best is None or _size(change[0]) > _size(best[0])):
            best = (*change, name)
    if best is None:
        return unknown(
            f"weight norms have no two points within {window_steps} steps of {start:,} to {last:,}", "weight_norm"
        )
    ratio, at, to, name = best
    bar = factor if ratio > 1 else 1 / max(factor, NEARLY_ZERO)
    text = f"the norm of {name} changes {against(ratio, bar)}× from step {at:,} to {to:,} (limit {bar:g}×)"
    found = (Evidence(text, f"weight_norm/{name}", (at, to), ratio, bar),)
    if ratio > 1:
        return measured(beyond(ratio, bar), found, "up")
    return measured(beyond(1 / ratio, 1 / bar), found, "down")


def _size(ratio: float) -> float:
    return abs(float(np.log(max(ratio, NEARLY_ZERO))))


def _largest_change(steps: Ints, values: Floats, window_steps: int, low_step: int) -> tuple[float, int, int] | None:
    """Return the largest ratio of a row to the first one at most `window_steps` before, up or down, and both steps.

    Rows up to `low_step`, where the loss was still falling, say nothing of its rise.
    """
    if len(steps) < 2 or interval(steps) > window_steps:
        return None
    first = np.searchsorted(steps, steps - window_steps)
    ratio = np.clip(values / values[first], NEARLY_ZERO, 1e300)
    ratio[steps <= low_step] = 1.0
    at = int(np.argmax(np.abs(np.log(ratio))))
    return float(ratio[at]), int(steps[first[at]]), int(steps[at])


@predicate(source="phase19 Q4.4", min_points=2)
def grad_norm_rising(
    loss: Series,
    grad_norm: Series,
    rise: Rise | Absent | Unknown,
    levels: Levels,
    *,
    window_steps: Count,
    stretched: bool,
    trend_z: float,
    min_factor: float,
) -> Answer:
    """Is the rolling mean of grad_norm trending up while the loss rises?

    Block medians over the stretch over which the loss rises: Mann-Kendall above `trend_z` and an end at
    least `min_factor` times the beginning. Alone it says little, healthy gradients grow too; with a
    rising loss it means that the landscape is getting harder.
    """
    start, last = _stretch(loss, rise, window_steps, stretched=stretched)
    steps, values = _within(grad_norm, start, last)
    count = min(levels.max_levels // 2, len(values) // 2)
    if count < 4:
        return unknown(
            f"grad_norm has {len(values)} finite points in steps {start:,} to {last:,}, 8 are needed", "grad_norm"
        )
    medians, _ = blocks(values, count)
    score = kendall_z(medians)
    begin, end = median(medians[:3]), median(medians[-3:])
    ratio = _ratio(begin, end)
    text = (
        f"grad_norm goes from {figure(begin)} to {figure(end)} ({against(ratio, min_factor)}×, limit {min_factor:g}×) "
    )
    text += f"over steps {int(steps[0]):,} to {int(steps[-1]):,}"
    if ratio >= min_factor and score < trend_z:
        text += ", without a steady trend"
    found = (Evidence(text, "grad_norm", (int(steps[0]), int(steps[-1])), score, trend_z),)
    return measured(weakest(beyond(score, trend_z), beyond(ratio - 1, min_factor - 1)), found)
