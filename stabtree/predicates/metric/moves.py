"""Questions about any one metric: does it shoot up, fall back, stay flat, reach its cap?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN, YES, Answer, Evidence, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_MAD, blocks, interval, kendall_z, median, row_medians
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.predicates.metric.stays import GUIDE, ends_of, not_asked, stays
from stabtree.predicates.registry import Count, predicate

EPISODES = re.compile(r"(?i)(^|[^a-z])ep(_|rew|isod)|return")
"""What a reward is called that is summed over an episode: ep_rew_mean, eprewmean, episodic_return, AverageReturn."""

if TYPE_CHECKING:
    from stabtree.facts.levels import Levels
    from stabtree.run import Run, Series


@predicate(source=f"{GUIDE}; key metrics for RL")
def shoots_up(run: Run, *, metric: str = "kl", factor: float, rows: Count, least: float, before_rows: Count) -> Answer:
    """Does a metric shoot up within a few rows?

    Yes where the median of `rows` neighbouring rows exceeds `factor` times that of the `before_rows` before them, and
    `least`: a multiple of next to nothing is nothing.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    if len(values) < rows + before_rows:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows + before_rows} are needed", metric)
    windows = np.lib.stride_tricks.sliding_window_view
    after, before = row_medians(windows(values, rows)[before_rows:]), row_medians(windows(values, before_rows)[:-rows])
    jumps = after / np.maximum(np.abs(before), least / factor)
    most = int(np.argmax(jumps))
    text = f"{metric} goes from a median of {before[most]:.3g} in {before_rows} rows to one of {after[most]:.3g} in "
    text += f"the {rows} from step {int(at[before_rows + most]):,} on (limit {factor:g}× and {least:g})"
    jump = min(float(jumps[most]), 1e300)
    found = Evidence(text, metric, (int(at[before_rows + most]),), jump, factor)
    if jump <= factor:
        return Answer(NO, (found,))
    first = before_rows + int(np.argmax(jumps > factor))
    return Answer(YES, (found,), onset_step=int(at[first]), last_good_step=int(at[first - 1]))


@predicate(source="stable-baselines3, RL tips")
def outgrows(run: Run, *, metric: str = "value_loss", factor: float, rows: Count, beside: str) -> Answer:
    """Does a metric grow by a large factor while another one does not rise?

    Yes where the median of its last tenth, `rows` rows at least, is more than `factor` times that of its first, and
    that of `beside` is no higher than at its own beginning. Where the one loss that is logged is that of a value
    function, it is asked of that.
    """
    if metric == "value_loss" and run.get(metric) is None:
        if run.setting("loss_kind") != "value":
            return Answer(NO, (Evidence("no value function's loss is logged", "loss"),))
        metric = "loss"
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    if run.get(beside) is None:
        return unknown(f"{beside} was not logged", beside)
    ends = [ends_of(finite(run.series[name])[1], rows) for name in (metric, beside)]
    if None in ends:
        return unknown(f"{metric} or {beside} has fewer than {2 * rows} finite rows", metric)
    (begin, end), (first, last) = (item for item in ends if item)
    at, values = finite(run.series[metric])
    text = f"{metric} goes from {begin:.3g} to {end:.3g} (limit {factor:g}×), {beside} from {first:.3g} to {last:.3g}; "
    text += "medians of a tenth of the rows"
    found = Evidence(text, metric, (int(at[0]), int(at[-1])), min(end / begin, 1e300) if begin > 0 else 0.0, factor)
    if begin <= 0 or end <= factor * begin or last > first:
        return Answer(NO, (found,))
    past = int(np.argmax(values > factor * begin))
    return Answer(YES, (found,), onset_step=int(at[past]), last_good_step=int(at[past - 1]) if past else None)


@predicate(source="stable-baselines3, PPO; public RL logs")
def dies_without_gain(
    run: Run, *, metric: str = "entropy_loss", level: float, share: float, rows: Count, steps: int, beside: str
) -> Answer:
    """Does a metric go to 0 while another one has not risen?

    As `stays_near_zero`, where the median of the last tenth of `beside` is no higher than that of its first: a policy
    that is sure of what earns most has no entropy left either.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    if run.get(beside) is None:
        return unknown(f"{beside} was not logged", beside)
    ends = ends_of(finite(run.series[beside])[1], rows)
    if ends is None:
        return unknown(f"{beside} has fewer than {2 * rows} finite rows", beside)
    bad = np.abs(finite(run.series[metric])[1]) <= level
    answer = stays(run, metric, bad, f"within {level:g} of 0", level=level, share=share, rows=rows, steps=steps)
    text = f"{beside} goes from {ends[0]:.3g} to {ends[1]:.3g}"
    evidence = (*answer.evidence, Evidence(text, beside, (), ends[1], ends[0]))
    if answer.verdict == UNKNOWN:
        return answer
    return replace(answer, evidence=evidence) if ends[1] <= ends[0] else Answer(NO, evidence)


@predicate(source="measured: rewards of public runs")
def falls_through(
    run: Run, *, metric: str = "reward", rows: Count, factor: float, before_rows: Count, min_share: float
) -> Answer:
    """Does a metric fall below all its earlier values in its last rows?

    Yes where each of its last `rows` rows is below the lowest of all rows before, `before_rows` at least, by more
    than `factor` times the range of these, and below their median by more than `min_share` of it: what has settled
    has next to no range.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    before_rows = max(before_rows, 2)
    if len(values) < rows + before_rows:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows + before_rows} are needed", metric)
    # The longest stretch at the end whose values are all below those before it.
    lowest, highest = np.minimum.accumulate(values)[:-1], np.maximum.accumulate(values)[:-1]
    last = np.maximum.accumulate(values[::-1])[::-1][1:]
    gap = np.where(highest > lowest, (lowest - last) / np.maximum(highest - lowest, 1e-300), -1e9)
    inside = gap[before_rows - 1 : len(values) - rows]
    row = before_rows + int(np.argmax(inside))
    below = max(-1e9, min(float(inside.max()), 1e9))
    text = f"the last {len(values) - row:,} rows of {metric} reach {last[row - 1]:.4g} at most; all before lie "
    text += f"between {lowest[row - 1]:.4g} and {highest[row - 1]:.4g}: {against(below, factor)}× that range below "
    text += f"(limit {factor:g}×)"
    found = (Evidence(text, metric, (int(at[row]), int(at[-1])), below, factor),)
    usual = float(median(values[:row]))
    if below <= factor or usual - float(last[row - 1]) <= min_share * abs(usual):
        return Answer(NO, found)
    return Answer(YES, found, onset_step=int(at[row]), last_good_step=int(at[row - 1]))


@predicate(source=f"{GUIDE}; Mann 1945, Kendall 1975")
def no_trend(
    run: Run,
    *,
    metric: str = "reward",
    falls: bool = False,
    rows: Count,
    trend_z: float,
    noise_factor: float,
    levels: Count,
    beside: str = "",
) -> Answer:
    """Does a metric that should rise never rise?

    Judged are `levels` block medians over at least `rows` rows: yes where their Mann-Kendall score stays below
    `trend_z` and no level, of three neighbours, is more than `noise_factor` times their scatter above the
    beginning. With `falls` the metric ought to fall.
    """
    refused = not_asked(run, metric, beside)
    if refused:
        return refused
    at, values = finite(run.series[metric])
    needed = max(rows, levels, 4)
    if len(values) < needed:
        return unknown(f"{metric} has {len(values):,} finite rows, {needed} are needed", metric)
    medians, _ = blocks(-values if falls else values, max(levels, 4))
    score, smooth = kendall_z(medians), row_medians(np.lib.stride_tricks.sliding_window_view(medians, 3))
    noise = NORMAL_MAD * median(np.abs(np.diff(medians))) / 2**0.5
    still = score < trend_z and float(smooth.max() - smooth[0]) <= noise_factor * noise
    begin, end = (float(level) * (-1 if falls else 1) for level in (smooth[0], smooth[-1]))
    text = f"{metric} goes from a level of {begin:.3g} to one of {end:.3g} over {len(values):,} rows: trend z "
    text += f"{-score if falls else score:.1f} ({'a fall needs less' if falls else 'a rise needs more'} than "
    text += f"{-trend_z if falls else trend_z:g})"
    found = Evidence(text, metric, (int(at[0]), int(at[-1])), score, trend_z)
    return Answer(YES if still else NO, (found,), onset_step=int(at[0]) if still else None)


@predicate(source=f"{GUIDE}; reward collapse in public GRPO logs")
def falls_back(run: Run, levels: Levels, *, metric: str = "reward", beside: str = "") -> Answer:
    """Does a metric end far below the best level that it had reached?

    Yes where it has lost more than `fall_share` of all that it ever covered and more than `fall_noise` times the
    scatter between neighbouring levels (block medians of `level_rows` rows and more). Where episodes are played it must
    have gained as many times that scatter before: such a policy begins with random weights, and what these earn by
    chance is nothing to go back to. What answers prompts was trained before, and so was what a log that begins late
    goes on with.
    """
    refused = not_asked(run, metric, beside)
    if refused:
        return refused
    series = run.series[metric]
    at, values = finite(series)
    course, lost = levels.fall(series)
    if course is None:
        return unknown(f"{metric} has {len(at):,} finite rows, {levels.min_levels} are needed to see a fall", metric)
    best, end = 0.0 - course.low, 0.0 - course.end
    text = f"{metric} is best at a level of {best:.3g} around step {course.low_step:,} and ends at one of {end:.3g} "
    text += (
        f"(levels of {course.rows:,} rows): {against(course.share, levels.fall_share, '.0%')} of its range lost (limit "
    )
    text += f"{levels.fall_share:.0%}), {against(min(course.times, 1e6), levels.fall_noise)}× the scatter "
    text += f"(limit {levels.fall_noise:g})"
    if not lost:
        return Answer(NO, (Evidence(text, metric, (course.low_step,), course.share, levels.fall_share),))
    began = median(values[: course.rows // 3])
    fresh = bool(EPISODES.search(series.origin)) and at[0] <= course.rows * interval(at)
    if fresh and best - began <= levels.fall_noise * course.noise:
        text += f"; but it began at {began:.3g}, so it had gained next to nothing before"
        return Answer(NO, (Evidence(text, metric, (course.low_step,)),))
    past = at[(at > course.low_step) & (values < (best + end) / 2)]
    onset = int(past[0]) if len(past) else course.low_step
    found = Evidence(text, metric, (course.low_step, onset), course.share, levels.fall_share)
    return Answer(YES, (found,), onset_step=onset, last_good_step=course.low_step)


@predicate(source=GUIDE, min_points=20)
def climbs_to_cap(
    run: Run,
    completion_length: Series,
    completion_length_max: Series | None = None,
    *,
    cap_share: float,
    growth: float,
    pinned_rows: Count,
) -> Answer:
    """Do the answers grow until they reach the longest allowed length?

    Yes where the mean length ends within `cap_share` of the cap and more than `growth` times above its beginning
    (medians of a tenth of the rows). The cap is `max_completion_length` of the configuration, else the length of the
    longest answer, where it is the same in at least `pinned_rows` rows.
    """
    at, values = finite(completion_length)
    cap = _cap(run, completion_length_max, pinned_rows)
    if cap is None:
        return unknown(
            "the cap is not known: max_completion_length is not set, and the longest answer varies",
            "max_completion_length",
        )
    part = max(3, len(values) // 10)
    begin, end = median(values[:part]), median(values[-part:])
    text = f"completion_length goes from {begin:.4g} to {end:.4g} tokens (medians of {part} rows), the cap is "
    text += f"{cap:.4g} (reached from "
    text += f"{cap_share * cap:.4g} on)"
    found = Evidence(text, "completion_length", (int(at[0]), int(at[-1])), end, cap_share * cap)
    if not (end >= cap_share * cap and end > growth * begin):
        return Answer(NO, (found,))
    past = at[values >= cap_share * cap]
    return Answer(YES, (found,), onset_step=int(past[0]), last_good_step=None)


def _cap(run: Run, longest: Series | None, pinned_rows: int) -> float | None:
    known = run.setting("max_completion_length")
    if isinstance(known, int | float) and known > 0:
        return float(known)
    if longest is None:
        return None
    _, values = finite(longest)
    top = float(values.max()) if len(values) else 0.0
    return top if top > 0 and int((values == top).sum()) >= pinned_rows else None
