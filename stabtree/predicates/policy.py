"""Metrics that fall, never vary or shrink away, as those of a policy and its rewards do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_MAD, blocks, kendall_z, median, running_medians, true_at_end
from stabtree.common.strength import above, below, weakest, whether
from stabtree.facts.curve import fall_of
from stabtree.facts.registry import finite
from stabtree.predicates.metric import GUIDE, ends_of, not_asked
from stabtree.predicates.registry import Count, predicate
from stabtree.profile.build import left_best

if TYPE_CHECKING:
    from stabtree.run import Run, Series


GUESS = 0.5  # no limit: the accuracy of a guess between two answers


def _no_gain(run: Run, beside: str) -> tuple[float, Evidence] | None:
    """Return how surely a reward ends no higher than it began; None where it is not logged or too short."""
    if run.get(beside) is None:
        return None
    ends = ends_of(finite(run.series[beside])[1], shared.ROWS_SHORT)
    if ends is None:
        return None
    found = Evidence(f"{beside} goes from {figure(ends[0])} to {figure(ends[1])}", beside, (), ends[1], ends[0])
    return whether(ends[1] <= ends[0]), found


@predicate(source="public preference-tuning and RL logs")
def shrinks_away(run: Run, *, metric: str = "entropy", factor: float = shared.FACTOR_LARGE, beside: str) -> Answer:
    """Does a metric end at a small part of what it began with, while another one has not risen?

    Yes where its first level is more than `factor` times its last, and `beside`, where logged, ends no higher than it
    began. What begins at or below 0 is a differential entropy, of which no multiple means anything.
    """
    return _changes(run, metric, factor, beside, up=False)


@predicate(source="public preference-tuning and RL logs")
def multiplies(
    run: Run, *, metric: str = "entropy", factor: float = shared.FACTOR, min_level: float, beside: str
) -> Answer:
    """Does a metric end at a multiple of what it began with, and of `min_level`, while another one has not risen?"""
    return _changes(run, metric, factor, beside, up=True, min_level=min_level)


def _changes(run: Run, metric: str, factor: float, beside: str, *, up: bool, min_level: float = 0.0) -> Answer:
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if size < 1 or (begin := median(values[:size])) <= 0 or float(values.min()) < 0:
        return unknown(f"{metric} has too few finite rows above 0", metric)
    end = median(values[-size:])
    strength = above(end, factor * begin) if up else below(end, begin / factor)
    limit = max(factor * begin, min_level) if up else begin / factor
    text = f"{metric} goes from {figure(begin)} to {figure(end)} (limit {figure(limit)})"
    found = [Evidence(text, metric, (int(at[0]), int(at[-1])), end, limit)]
    conditions = [strength, above(end, min_level)]
    gained = _no_gain(run, beside)
    if gained is not None:
        conditions.append(gained[0])
        found.append(gained[1])
    past = np.flatnonzero(values < limit if not up else values > limit)
    first = int(past[0]) if len(past) else 0
    before = int(at[first - 1]) if first else None
    return measured(weakest(*conditions), tuple(found), onset_step=int(at[first]), last_good_step=before)


@predicate(source="https://huggingface.co/docs/trl/dpo_trainer")
def prefers_rejected(
    preference_accuracy: Series | None = None,
    eval_preference_accuracy: Series | None = None,
    *,
    level: float,
) -> Answer:
    """Does the model prefer the rejected answers, in training or on held-out pairs?

    Yes where the accuracy of pairs stays below `level`, by more than its scatter: overfitting sinks to one half, which
    a guess has, and no further.
    """
    answers = [
        _below_guess(series, level) for series in (eval_preference_accuracy, preference_accuracy) if series is not None
    ]
    known = [answer for answer in answers if answer.strength is not None]
    if not known:
        return answers[0] if answers else unknown("no accuracy of pairs was logged", "preference_accuracy")
    found = max(known, key=lambda answer: answer.strength or 0.0)
    opposite = len(known) > 1 and min(answer.strength or 0.0 for answer in known) < 0
    brief = "Training pairs and held-out pairs teach opposite preferences" if opposite else ""
    first, *others = found.evidence
    brief = brief or "The model prefers the rejected answers"
    both = (part for answer in known if opposite and answer is not found for part in answer.evidence)
    return replace(found, evidence=(replace(first, brief=brief), *others, *both))


def _below_guess(series: Series, level: float) -> Answer:
    at, values = finite(series)
    rows = values[-shared.ROWS_LONG :]
    if len(rows) < 2:
        return unknown(f"{series.metric} has {len(rows)} finite rows", series.metric)
    scatter = NORMAL_MAD * median(np.abs(rows - median(rows)))
    highest = median(rows) + shared.NOISE_TIMES * scatter / len(rows) ** 0.5
    text = (
        f"{series.metric} is {figure(median(rows))} in its last {len(rows)} rows, at most {figure(highest)} with their "
    )
    text += f"scatter (limit {level:g}); a guess has {GUESS:g}"
    found = Evidence(text, series.metric, (int(at[-len(rows)]), int(at[-1])), highest, level)
    onset = len(values) - max(true_at_end(values < GUESS), 1)
    strength = weakest(above(GUESS - highest, GUESS - level), above(len(rows), shared.ROWS_SHORT))
    return measured(strength, (found,), onset_step=int(at[onset]))


@predicate(source=f"{GUIDE}; reward collapse in public logs")
def falls_back(
    run: Run,
    *,
    metric: str = "reward",
    share: float = shared.SHARE_HALF,
    factor: float = shared.FACTOR,
) -> Answer:
    """Does a metric end far below the best level that it had reached?

    Yes where it has lost more than `share` of all that it covered, and that is more than `factor` times the scatter of
    its levels. It need not have gained anything before: a policy that ends worse than it began is no better than one
    that forgets.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    found = fall_of(run.series[metric])
    if found is None and len(values) > 1 and values[-1] >= values[0]:
        text = f"{metric} goes from {figure(values[0])} to {figure(values[-1])}"
        return measured(whether(False), (Evidence(text, metric, (int(at[0]), int(at[-1]))),))
    if found is None:
        return unknown(f"{metric} has too few finite rows to see a fall", metric)
    strength, evidence = found.judged(metric, share, factor)
    left = left_best(at, -values, found.best_step, -found.best, -found.end)
    return measured(strength, (evidence,), onset_step=left.first_bad_step, last_good_step=left.last_good_step)


@predicate(source="measured: rewards of public runs")
def falls_through(
    run: Run,
    *,
    metric: str = "reward",
    rows: Count = 3,
    before_rows: Count = shared.ROWS_LONG,
    share: float = shared.SHARE_HALF,
) -> Answer:
    """Does a metric fall below all its earlier values in its last rows?

    Yes where each of its last `rows` rows is below the lowest of all rows before, by more than the range of these, and
    below their median by more than `share` of it: what has settled has next to no range. With fewer than `before_rows`
    rows before, the range has to be exceeded by as much more.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    if len(values) < rows + 2:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows + 2} are needed", metric)
    # The longest stretch at the end whose values are all below those before it.
    lowest, highest = np.minimum.accumulate(values)[:-1], np.maximum.accumulate(values)[:-1]
    last = np.maximum.accumulate(values[::-1])[::-1][1:]
    known = np.minimum(np.arange(1, len(values)) / before_rows, 1.0)
    gap = np.where(highest > lowest, known * (lowest - last) / np.maximum(highest - lowest, 1e-300), -1e9)
    inside = gap[1 : len(values) - rows]
    row = 2 + int(np.argmax(inside))
    ranges = max(-1e9, min(float(inside.max()), 1e9))
    before = f"between {figure(lowest[row - 1], 4)} and {figure(highest[row - 1], 4)}"
    text = f"the last {len(values) - row:,} rows of {metric} are all below {figure(last[row - 1], 4)}, "
    text += f"{against(ranges, 1.0)}× the earlier range lower (limit 1×); before, it lay {before}"
    found = (Evidence(text, metric, (int(at[row]), int(at[-1])), ranges, 1.0),)
    usual = float(median(values[:row]))
    strength = weakest(above(ranges, 1.0), above(usual - float(last[row - 1]), share * abs(usual)))
    return measured(strength, found, onset_step=int(at[row]), last_good_step=int(at[row - 1]))


@predicate(source=f"{GUIDE}; Mann 1945, Kendall 1975")
def no_trend(
    run: Run,
    *,
    metric: str = "reward",
    falls: bool = False,
    rows: Count,
    trend_z: float = shared.TREND_Z,
) -> Answer:
    """Does a metric that should rise never rise?

    Yes where the Mann-Kendall score of its block medians, over at least `rows` rows, stays below `trend_z`, and no
    level, of three neighbours, is more than three times their scatter above the beginning. With `falls` the metric
    ought to fall.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    if len(values) < shared.ROWS_SHORT:
        return unknown(f"{metric} has {len(values):,} finite rows, {rows} are needed", metric)
    medians, _ = blocks(-values if falls else values, len(values) // math.ceil(len(values) / shared.LEVELS))
    score, smooth = kendall_z(medians), running_medians(medians, 3)
    scatter = NORMAL_MAD * median(np.abs(np.diff(medians))) / 2**0.5
    gained = float(smooth.max() - smooth[0])
    begin, end = (float(level) * (-1 if falls else 1) for level in (smooth[0], smooth[-1]))
    trend = "steadily" if score >= trend_z else f"without a steady {'fall' if falls else 'rise'}"
    text = f"{metric} goes from {figure(begin)} to {figure(end)} over {len(values):,} rows, {trend}"
    found = Evidence(text, metric, (int(at[0]), int(at[-1])), score, trend_z)
    strength = weakest(below(score, trend_z), below(gained, shared.FACTOR * scatter), above(len(values), rows))
    return measured(strength, (found,), onset_step=int(at[0]))
