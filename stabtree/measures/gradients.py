"""Gradients: their norm, their sums, and what they do to the weights of each layer."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, UNKNOWN, YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, extremes, rows_at_end
from stabtree.common.shared import FARTHEST, above, below, whether
from stabtree.common.stats import LARGEST, SAMPLE, blocks, ends_and_trend, kendall_z, median, running_medians
from stabtree.measures.movers import suffers
from stabtree.measures.registry import UNGROUPED, Count, Groups, finite, lowest, measure, paired, seen
from stabtree.measures.spike import Spike
from stabtree.profile.change import left_course

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.lazy import Floats
    from stabtree.measures.progress import Learned
    from stabtree.measures.registry import Absent, Unknown
    from stabtree.run import Run, Series


@measure(source="convergence O4", min_points=4)
def gradients_add_up(
    grad_norm: Series, loss: Series | None = None, *, growth: float, smooth: float = shared.SHARE_SOME
) -> Answer:
    """Does grad_norm keep growing, far more smoothly than the gradients of single batches do?

    A gradient that is never zeroed is the sum of all batches so far: it leaves the level of its first rows within a few
    steps, goes on growing and changes little from one step to the next. Yes when it ends more than `growth` times above
    its first three rows with a rising trend (Mann-Kendall z of block medians), while
    neighbouring rows differ by less than `smooth` (median), and by less than those of the loss: the gradient of a batch
    is never steadier than its loss. Where the sum is clipped in place it can't grow, and does little harm.
    """
    values = _positive(grad_norm)
    if len(values) < 8:
        return unknown("grad_norm has fewer than 8 positive values", "grad_norm")
    medians, _ = blocks(values, min(shared.LEVELS, len(values) // 2))
    factor = min(median(medians[-3:]) / median(values[:3]), 1e300)
    jitter, trend = _jitter(values), kendall_z(medians)
    leap = float(np.exp(np.diff(np.log(medians)).max()))
    losses = _positive(loss) if loss is not None else values[:0]
    bar = min(smooth, _jitter(losses)) if len(losses) > 1 else smooth
    text = f"grad_norm ends {against(factor, growth)}× above its first rows (limit {growth:g}×); neighbouring rows "
    text += f"differ by {against(jitter, bar, '.1%')} (limit {against(bar, jitter, '.1%')})"
    if factor >= growth and trend < shared.TREND_Z:
        text += ", without a steady trend"
    found = (Evidence(text, "grad_norm", (), factor, growth),)
    # No sum gains in one level as much as in all others together.
    gradual = below(leap, max(factor, 1.0) ** shared.SHARE_HALF)
    strength = min(above(factor, growth), above(trend, shared.TREND_Z), below(jitter, bar), gradual)
    return measured(strength, found, onset_step=int(grad_norm.steps[0]))


JUMPS, SPIKES = "jumps", "spikes"


@measure(source="measured: gradient norms of public logs", labels=(YES, JUMPS, SPIKES, NO), min_points=shared.ROWS_LONG)
def norm_leaves_level(
    grad_norm: Series,
    spike: Spike | Absent | Unknown,
    loss: Series | None = None,
    *,
    factor: float,
    growth: float = shared.FACTOR_HUGE,
    rows: Count = shared.ROWS_SHORT,
) -> Answer:
    """Does grad_norm leave its usual size: growing up to the end, in one jump that lasts, or in spikes?

    Yes where it ends more than `growth` times above the median of its first half and climbs there over `rows` rows or
    more. `jumps`: all levels after a row are `factor` times all before. `spikes`: two rows or more are `factor` times
    the median of their neighbours, after the first tenth of the rows. Neither is asked where the loss spikes too, none
    where it is not finite.
    """
    if broken := _of_section_1(loss):
        return broken
    steps, values = finite(grad_norm)
    steps, values = steps[values > 0], values[values > 0]
    if len(values) < shared.ROWS_LONG:
        return unknown(f"grad_norm has {len(values):,} rows above 0", "grad_norm")
    grown = _growth_at_end(values, rows)
    if grown is not None and grown[1] >= growth:
        row, times = grown
        brief, strength = f"grew to {figure(times, 2)} times its usual size", above(times, growth)
        found = Evidence(f"grad_norm {brief}", "grad_norm", (int(steps[row]),), times, growth, brief)
        return measured(strength, (found,), onset_step=int(steps[row]), last_good_step=int(steps[row - 1]))
    if isinstance(spike, Spike):
        return Answer(NO, (Evidence("the loss spikes too, which is reported separately", "loss"),))
    jump = _lasting_jump(values, factor)
    if jump is not None:
        times = median(values[jump:]) / median(values[:jump])
        brief = f"jumped to {figure(times, 2)} times its size, and stays there"
        found = Evidence(f"grad_norm {brief}", "grad_norm", (int(steps[jump]),), times, factor, brief)
        return Answer(JUMPS, (found,), onset_step=int(steps[jump]), last_good_step=int(steps[jump - 1]))
    near = running_medians(np.pad(values, shared.ROWS_LONG // 2, mode="edge"), shared.ROWS_LONG + 1)
    high = np.flatnonzero(values >= factor * near)
    high = high[high >= len(values) // 10]
    times = float((values / near).max())
    brief = f"spiked {len(high):,} times, up to {figure(times, 2)} times its usual size"
    where = tuple(steps[high[:rows]].tolist())
    found = Evidence(f"grad_norm {brief} (limit {factor:g}×)", "grad_norm", where, times, factor, brief)
    many = whether(1 < len(high) <= len(values) / shared.FACTOR_LARGE)
    onset = where[0] if where else None
    return measured(min(above(times, factor), many), (found,), SPIKES, onset_step=onset)


def _growth_at_end(values: Floats, rows: int) -> tuple[int, float] | None:
    """Return the row from which values climb to the end, and how many times their usual size they reach, if so."""
    usual = median(values[: len(values) // 2])
    row = int(np.flatnonzero(values <= shared.FACTOR * usual)[-1]) + 1
    tail = values[row:]
    if len(tail) < rows or kendall_z(blocks(tail, min(len(tail), shared.LEVELS))[0]) < shared.TREND_Z:
        return None
    return row, min(median(tail[-3:]) / usual, LARGEST)


def _lasting_jump(values: Floats, factor: float) -> int | None:
    """Return the row from which on all levels are a factor above all before it; None where there is none."""
    levels = running_medians(values, shared.ROWS_SHORT)
    before, after = np.maximum.accumulate(levels), np.minimum.accumulate(levels[::-1])[::-1]
    size = shared.ROWS_SHORT
    if len(levels) <= 5 * size:
        return None
    # The levels that hold the jump itself are left out on both sides, and so are the last ones, which show no state.
    apart = after[2 * size : -2 * size] / before[: -4 * size]
    best = int(np.argmax(apart))
    if apart[best] < factor:
        return None
    inside = np.log(values[best : best + 3 * size])
    return best + 1 + int(np.argmax(np.diff(inside)))


def _positive(series: Series) -> Floats:
    _, values = finite(series)
    return values if lowest(series) > 0 else values[values > 0]


def _jitter(values: Floats) -> float:
    """Return the median relative change from one row to the next."""
    stride = 1 + len(values) // SAMPLE
    return median(np.abs(np.log(values[1::stride] / values[:-1:stride][: len(values[1::stride])])))


@measure(source="precision P18", min_points=shared.ROWS_SHORT)
def gradients_vanish(loss: Series, grad_norm: Series, *, share: float, loss_share: float = shared.SHARE_HALF) -> Answer:
    """Do the gradients vanish while the loss is still high?

    Yes when grad_norm ends below `share` of its level at the beginning, with a falling trend of block medians, while
    the loss ends above `loss_share` of its first level. A loss that has gone to 0 takes its
    gradients along: no fault.
    """
    steps, norms = finite(grad_norm)
    begin, end, trend = ends_and_trend(norms, shared.LEVELS)
    first, last, _ = ends_and_trend(finite(loss)[1], shared.LEVELS)
    text = f"grad_norm goes from {figure(begin)} to {figure(end)} while the loss goes from {figure(first, 4)} to "
    text += figure(last, 4)
    found = (Evidence(text, "grad_norm", (), end, share * begin),)
    high = min(above(last, loss_share * first), whether(first > 0))
    strength = min(below(end, share * begin), above(-trend, shared.TREND_Z), high)
    if strength < 0:
        return measured(strength, found)
    left = left_course(steps, -np.log(np.maximum(norms, 1e-12 * begin)))
    return measured(strength, found, onset_step=left.first_bad_step, last_good_step=left.last_good_step)


MEASURED = "measured"


@measure(source="precision P7", labels=(YES, MEASURED, NO))
def norm_is_scaled(run: Run, grad_norm: Series, loss_scale: Series, *, min_ratio: float) -> Answer:
    """Is the logged grad_norm that of gradients still multiplied by the loss scale?

    Yes when its median is of the order of the scale (more than `min_ratio` of it, and both above 100, below which
    the two look alike) and, where the scale moves by two halvings or more, the norm moves with it, with a slope
    above one half: an unscaled norm knows nothing of the scale. `measured`: so it is, and no `grad_clip` below that
    median is configured, so that nothing is clipped by it.
    """
    _, norm, scale = paired(grad_norm, loss_scale)
    keep = (norm > 0) & (scale > 0) & (norm < LARGEST) & (scale < LARGEST)
    norm, scale = norm[keep], scale[keep]
    if not len(norm):
        return unknown("grad_norm and loss_scale share no rows", "loss_scale")
    stride = 1 + len(norm) // SAMPLE
    middle, level = median(norm[::stride]), median(scale[::stride])
    ratio = min(middle / level, LARGEST)
    text = f"grad_norm is {figure(ratio, 2)} times the loss scale: {figure(middle, 4)} and {figure(level, 4)} (medians)"
    found = [Evidence(text, "grad_norm", (), ratio, min_ratio)]
    strength = min(above(ratio, min_ratio), above(min(middle, level), shared.FACTOR_HUGE))
    if strength >= 0 and float(scale.max()) >= 4 * float(scale.min()):
        slope = float(np.polyfit(np.log2(scale), np.log2(norm), 1)[0])
        text = f"when the scale doubles, the norm grows {figure(2**slope, 2)}× (a scaled one 2×, an unscaled one 1×)"
        found.append(Evidence(text, "loss_scale", (), slope, shared.SHARE_HALF))
        strength = min(strength, above(slope, shared.SHARE_HALF))
    clip = run.setting("grad_clip")
    clips = isinstance(clip, int | float) and 0 < clip < middle
    return measured(strength, tuple(found), YES if clips else MEASURED)


@measure(source="precision P5 and P10", min_points=1)
def gradients_underflow(
    run: Run, grad_norm: Series, loss_scale: Series | None = None, *, zero_share: float = shared.SHARE_SOME
) -> Answer:
    """Do gradients vanish in fp16 because there is no loss scale?

    Yes in an fp16 run whose scale is 1 or not logged and whose grad_norm is exactly 0 in more than `zero_share` of the
    rows: without a scale, small gradients are flushed to 0. In nearly all of them it is not measured: Megatron writes
    0.000 where it does not clip.
    """
    dtype = run.setting("dtype")
    if dtype is None:
        return unknown("it is not known that the run is fp16", "dtype")
    if dtype != "fp16":
        return inapplicable(f"dtype is {dtype}, in which gradients don't underflow")
    values = finite(grad_norm)[1]
    share = float(np.mean(values == 0))
    if share > shared.SHARE_MOST:
        return unknown("grad_norm is 0 throughout, as when it is not measured", "grad_norm")
    scale = finite(loss_scale)[1] if loss_scale is not None else np.zeros(0)
    scaled = bool(len(scale)) and float(scale.max()) > 1
    about = f"a loss scale of up to {figure(scale.max(), 6)}" if scaled else "no loss scale above 1"
    text = f"grad_norm is exactly 0 in {against(share, zero_share, '.1%')} of the rows, with {about}"
    found = (Evidence(text, "grad_norm", (), share, zero_share),)
    return measured(min(above(share, zero_share), whether(not scaled)), found)


@measure(source="precision P13", min_points=shared.ROWS_SHORT)
def always_clipped(
    run: Run, grad_norm: Series, *, share: float = shared.SHARE_MOST, depth: float = shared.FACTOR_LARGE
) -> Answer:
    """Is the gradient clipped hard at almost every step?

    Compared is grad_norm before clipping with the configured `grad_clip`, over the second half of the run. Clipping
    alone is no sign: 6 of 49 labelled healthy runs clip at 95% of their steps, with a median norm of up to 4.6 times
    the clip. Yes takes a median above `depth` times the clip.
    """
    clip = run.setting("grad_clip")
    if not isinstance(clip, int | float) or not 0 < clip < 1e100:
        configured = "grad_clip" in run.config
        return inapplicable("the run does not clip") if configured else unknown("grad_clip is not known", "grad_clip")
    values = finite(grad_norm)[1]
    late = values[len(values) // 2 :]
    clipped = float(np.mean(late > clip))
    text = f"grad_norm is above the clip of {clip:g} at {against(clipped, share, '.0%')} of the steps in the "
    middle = min(median(late) / float(clip), 1e100)
    text += f"second half, its median is {against(middle, depth)} times the clip"
    found = (Evidence(text, "grad_norm", (), middle, depth),)
    return measured(min(above(clipped, share), above(middle, depth)), found)


def _of_section_1(loss: Series | None) -> Answer | None:
    """Answer no where the loss is not finite either, which section 1 covers; None where it is finite."""
    if loss is None or extremes(loss).finite:
        return None
    return Answer(NO, (Evidence("the loss itself is not finite: section 1 covers it", "loss"),))


@measure(source="measured: single-precision runs whose gradient overflows", min_points=1)
def nonfinite_in_fp32(
    run: Run, grad_norm: Series, loss: Series | None = None, *, rows: Count = shared.ROWS_SHORT
) -> Answer:
    """Is the gradient of a run in fp32 infinite or NaN again and again?

    Yes where at least `rows` rows of grad_norm are not finite, under a loss that is. No scaler
    skips such a step there: each one puts NaN into the weights, or is left out by the loop's own check.
    """
    if run.setting("dtype") != "fp32":
        return Answer(NO, (Evidence("the run is not known to be in fp32: section 3 covers its gradient", "grad_norm"),))
    if broken := _of_section_1(loss):
        return broken
    bad, count = broken_rows(grad_norm), len(broken_rows(grad_norm))
    text = f"grad_norm is not finite in {count:,} of {len(grad_norm):,} rows (limit {rows:,})"
    at = int(bad[0]) if count else 0
    found = (Evidence(text, "grad_norm", (int(grad_norm.steps[at]),) if count else (), float(count), float(rows)),)
    good = int(grad_norm.steps[at - 1]) if at else None
    return measured(above(count, rows), found, onset_step=int(grad_norm.steps[at]), last_good_step=good)


@measure(source="precision P10; Q3.2", min_points=1)
def never_finite_again(
    grad_norm: Series, loss: Series | None = None, *, share: float = shared.SHARE_SOME, rows: Count = shared.ROWS_LONG
) -> Answer:
    """Is the gradient not finite in any of the last rows?

    Yes where the last `rows` rows of grad_norm and `share` of all, and no fewer, are infinite or NaN, after finite
    ones, under a loss that is finite: with a loss scale every one of these steps is skipped. The last row is enough
    where its loss is far above all before: the update of such a step was not skipped.
    """
    if broken := _of_section_1(loss):
        return broken
    count, size = rows_at_end(broken_rows(grad_norm), len(grad_norm)), len(grad_norm)
    text = f"the last {count:,} of {size:,} rows of grad_norm are not finite (limit {rows:,} and {share:.0%})"
    at = size - count
    found = (Evidence(text, "grad_norm", (int(grad_norm.steps[min(at, size - 1)]),), float(count), float(rows)),)
    if not 0 < at < size:
        return Answer(NO, found)
    strength, suffered = min(above(count, rows), above(count, share * size)), None
    if loss is not None and suffers(loss, grad_norm):
        text = f"the loss of its last row, {figure(loss.values[-1], 4)}, is far above all before"
        suffered, strength = Evidence(text, "loss", (int(loss.steps[-1]),)), FARTHEST
    onset, good = int(grad_norm.steps[at]), int(grad_norm.steps[at - 1])
    return measured(strength, seen(*found, suffered), onset_step=onset, last_good_step=good)


STILL = 1e-6  # no limit: float32: the relative change that weights show by rounding alone


@measure(source="axolotl, Training Stability & Debugging, key metrics for RL", min_points=3)
def no_gradient_of_rewards(
    grad_norm: Series,
    reward_std: Series,  # noqa: ARG001 - asked of runs that learn from groups of answers
    frac_reward_zero_std: Series | None = None,
    *,
    share: float = shared.SHARE_HALF,
    rows: Count = shared.ROWS_LONG,
) -> Answer:
    """Is grad_norm exactly 0 although the answers to a prompt differ in reward?

    Yes where it is so in `share` of the rows in which they differ for some prompts, in all of fewer than `rows`. Where
    the share of prompts without a difference is not logged, it has to be so in each of the last `rows` rows.
    """
    steps, norms = finite(grad_norm)
    what = "rows"
    if frac_reward_zero_std is not None:
        steps, norms, idle = paired(grad_norm, frac_reward_zero_std)
        steps, norms, what = steps[idle < 1], norms[idle < 1], "rows in which rewards differ"
    elif len(norms) >= rows:
        steps, norms, share = steps[-rows:], norms[-rows:], 1.0
    else:
        return unknown(f"grad_norm has {len(norms):,} finite rows, at least {rows} are needed", "grad_norm")
    zero, needed = norms == 0, share if len(norms) >= rows else 1.0
    text = f"grad_norm is exactly 0 in {int(zero.sum()):,} of {len(norms):,} {what} (limit {needed:.0%})"
    seen_share = float(zero.mean()) if len(norms) else 0.0
    first = int(steps[np.argmax(zero)]) if len(norms) else int(grad_norm.steps[0])
    found = Evidence(text, "grad_norm", (first,), seen_share, needed, f"{seen_share:.0%}")
    return measured(min(above(seen_share, needed), whether(len(norms) >= 3)), (found,), onset_step=first)


@measure(source="convergence O2 and O3", labels=("still", "no_gradient", "moving"), min_points=2)
def weights_move(
    grad_norm: Series | None = None, weight_norm: Groups | None = None, update_ratio: Groups | None = None
) -> Answer:
    """Do the weights move at all?

    `no_gradient`: grad_norm is exactly 0 in more than half of the rows: nothing flows back. `still`: every
    weight norm stays within 1e-6 of itself (float32's rounding), or every update ratio is 0, under a gradient that is
    not 0: the optimizer steps something else. An update ratio above 0 means that they move, however little.
    """
    if grad_norm is not None:
        _, values = finite(grad_norm)
        zero = float(np.mean(values == 0)) if len(values) else 0.0
        if zero > shared.SHARE_HALF:
            text = f"grad_norm is exactly 0 in {zero:.0%} of its rows"
            found = Evidence(text, "grad_norm", (int(grad_norm.steps[0]),), zero, shared.SHARE_HALF)
            return Answer("no_gradient", (found,))
    norms = _largest(weight_norm or {}, "weight_norm", lambda v: float(np.ptp(v)) / float(v[0]) if v[0] > 0 else None)
    ratios = _largest(update_ratio or {}, "update_ratio", lambda v: float(np.abs(v).max()))
    if ratios is not None and (norms is None or (ratios[0] > 0 and norms[0] <= STILL)):
        change, metric = ratios
        text = f"{metric} is at most {figure(change, 2)} in the whole run; at 0 no weight moves"
        return Answer("moving" if change > 0 else "still", (Evidence(text, metric, (), change, 0.0),))
    if norms is None:
        return unknown("neither weight norms nor update ratios were logged", "weight_norm", "update_ratio")
    change, metric = norms
    text = f"{metric} changes by {figure(change, 2)} in the whole run; rounding alone explains {figure(STILL)}"
    return Answer("still" if change <= STILL else "moving", (Evidence(text, metric, (), change, STILL),))


def _largest(groups: Groups, metric: str, measure: Callable[[Floats], float | None]) -> tuple[float, str] | None:
    """Return the largest measure of any group with at least two finite values, and the metric of that group."""
    found = []
    for name, series in groups.items():
        _, values = finite(series)
        size = measure(values) if len(values) > 1 else None
        if size is not None:
            found.append((min(size, 1e300), metric if name == UNGROUPED else f"{metric}/{name}"))
    return max(found, default=None)


def _medians(groups: Groups, min_values: int) -> dict[str, float]:
    """Return the median of each group that has so many finite values."""
    values = {name: finite(series)[1] for name, series in groups.items()}
    return {name: median(some) for name, some in values.items() if len(some) >= min_values}


@measure(source="convergence O7 and O22; CS231n, Neural Networks 3", labels=("low", "high", "usual"), min_points=2)
def update_size(update_ratio: Groups, *, usual: float, factor: float = shared.FACTOR_LARGE) -> Answer:
    """Is the update-to-weight ratio near 1e-3?

    Compared is the median over the run of each group's ratio. CS231n's rule of thumb is 1e-3; labelled healthy runs
    have medians of 4e-4 to 4e-3, so only a `factor` off counts.
    """
    medians = _medians(update_ratio, min_values=2)
    if not medians:
        return unknown("update_ratio has too few values", "update_ratio")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    verdict, name = "usual", high
    if medians[high] < usual / factor:
        verdict, name = "low", high
    elif medians[high] > usual * factor:
        verdict = "high"
    elif medians[low] < usual / factor:
        name = low
    bar = usual / factor if verdict != "high" else usual * factor
    of = "" if name == UNGROUPED else f" of {name}"
    text = f"the update ratio{of} is {against(medians[name], bar, '.2g')}; {figure(usual)} is usual, below "
    text += f"{figure(usual / factor)} it is too small, above {figure(usual * factor)} too large"
    metric = "update_ratio" if name == UNGROUPED else f"update_ratio/{name}"
    return Answer(verdict, (Evidence(text, metric, (), medians[name], bar),))


@measure(source="convergence O7 and O22; CS231n, Neural Networks 3", min_points=2)
def updates_idle(
    progress: Learned, update_ratio: Groups, *, usual: float, factor: float = shared.FACTOR_LARGE
) -> Answer:
    """Is the update-to-weight ratio of every group far below 1e-3 in a run that nothing shows to get better?"""
    answer: Answer = update_size.func(update_ratio, usual=usual, factor=factor)
    if answer.verdict == UNKNOWN:
        return answer
    if answer.verdict != "low":
        return Answer(NO, answer.evidence, contrary=True)
    return Answer(NO, (*answer.evidence, *progress.answer.evidence)) if progress.shown else Answer(YES, answer.evidence)


@measure(source="convergence O22", min_points=5)
def groups_apart(update_ratio: Groups, *, factor: float = shared.FACTOR_HUGE) -> Answer:
    """Do some parameter groups move far faster or slower than others?

    Yes when the medians of two groups differ by more than `factor`. With 100, one of them lies more than ten times away
    from the usual 1e-3, whatever the other does.
    """
    medians = {name: value for name, value in _medians(update_ratio, min_values=1).items() if value > 0}
    if len(medians) < 2:
        return unknown("update_ratio was not logged per parameter group", "update_ratio/<group>")
    low, high = min(medians, key=lambda name: medians[name]), max(medians, key=lambda name: medians[name])
    ratio = min(medians[high] / medians[low], 1e100)
    text = f"update ratios run from {figure(medians[low], 2)} ({low}) to {figure(medians[high], 2)} ({high}), "
    text += f"{against(ratio, factor)}× (limit {factor:g}×)"
    found = (Evidence(text, "update_ratio", (), ratio, factor),)
    return measured(above(ratio, factor), found)


@measure(source="convergence O25; CS231n, Neural Networks 1; SageMaker Debugger, DeadRelu", min_points=2)
def units_die(
    dead_relu_frac: Groups,
    *,
    dead_share: float,
    growth: float = shared.FACTOR_SMALL,
    all_share: float = shared.SHARE_MOST,
) -> Answer:
    """Are more and more units dead?

    Yes when a layer ends with more than `dead_share` of its units dead (SageMaker Debugger's rule for a layer), at
    least `growth` times as many as in the first rows (the least of three), or `all_share` of them at least, whatever it
    began with. Labelled healthy runs end below 9%.
    """
    ends = {}
    for name, series in dead_relu_frac.items():
        steps, values = finite(series)
        if len(values) > 2:
            part = max(1, len(values) // 10)
            ends[name] = (median(values[-part:]), float(values[:3].min()), steps, values)
    if not ends:
        return unknown("dead_relu_frac has too few values", "dead_relu_frac")
    name = max(ends, key=lambda key: ends[key][0])
    end, begin, steps, values = ends[name]
    of = "" if name == UNGROUPED else f" in {name}"
    text = f"{against(end, dead_share, '.0%')} of the units{of} are dead at the end (limit {dead_share:.0%}), "
    text += f"{begin:.0%} at the beginning"
    metric = "dead_relu_frac" if name == UNGROUPED else f"dead_relu_frac/{name}"
    strength = min(above(end, dead_share), max(above(end, growth * begin), above(end, all_share)))
    onset = int(steps[np.argmax(values >= (begin + end) / 2)])
    found = (Evidence(text, metric, (int(steps[0]), int(steps[-1])), end, dead_share),)
    return measured(strength, found, onset_step=onset)


@measure(source="precision P15 and P16")
def keeps_growing(
    run: Run, *, metric: str = "logits_max", other: str = "", least: float, growth: float = shared.FACTOR
) -> Answer:
    """Do the logits keep growing, in any layer?

    Yes when the absolute value of a metric, or of an `other` one that shows the same, has a rising trend of block
    medians, ends above `growth` times its level at the beginning and above `least`: at 20, exp() of a logit spans nine
    decades, and at 50 a softmax has long since put all its weight on one key.
    """
    grown = []
    for name in filter(None, (metric, other)):
        whole = run.get(name)
        for group, series in (run.group(name) or ({"": whole} if whole else {})).items():
            if len(values := finite(series)[1]):
                begin, end, trend = ends_and_trend(np.abs(values), shared.LEVELS)
                strength = min(above(trend, shared.TREND_Z), above(end, growth * begin), above(end, least))
                steady = "steadily" if trend >= shared.TREND_Z else "without a steady trend"
                text = f"|{name}|{f' of {group}' if group else ''} goes from {figure(begin)} to {figure(end)}, {steady}"
                grown.append((strength, Evidence(text, name, (), end, max(growth * begin, least))))
    if not grown:
        return unknown(f"{metric} has no finite rows", metric)
    strength, evidence = max(grown, key=itemgetter(0))
    return measured(strength, (evidence,))
