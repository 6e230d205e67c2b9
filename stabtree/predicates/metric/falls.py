"""Questions about a reward that ought to rise: is it constant, does it fall back, has it fallen through?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_MAD, blocks, kendall_z, median, running_medians
from stabtree.common.strength import above, below, weakest, whether
from stabtree.facts.curve.fall import FallLimits, fall_of
from stabtree.facts.registry import finite
from stabtree.predicates.metric.stays import GUIDE, not_asked
from stabtree.predicates.registry import Count, predicate
from stabtree.profile.onset import left_best

if TYPE_CHECKING:
    from stabtree.run import Run


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
    limits = FallLimits(share, factor)
    evidence, strength = (found.evidence(metric, limits),), found.strength(limits)
    left = left_best(at, -values, found.best_step, -found.best, -found.end)
    return measured(strength, evidence, onset_step=left.first_bad_step, last_good_step=left.last_good_step)


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


@predicate(source="exact: a constant reward ranks no action above another")
def never_varies(run: Run, *, metric: str = "reward", rows: Count = shared.ROWS_SHORT) -> Answer:
    """Does a metric have one value other than 0 in all rows, over `rows` rows or more?

    A 0 in all rows is asked about by itself: a policy that begins may well earn nothing for some steps.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    if len(values) < 2:
        return unknown(f"{metric} has {len(values):,} finite rows", metric)
    lowest, highest = float(values.min()), float(values.max())
    if highest > lowest:
        text = f"{metric} lies between {figure(lowest, 4)} and {figure(highest, 4)}"
        return measured(whether(False), (Evidence(text, metric, (int(at[0]), int(at[-1]))),))
    if not highest:
        return inapplicable(f"{metric} is 0 in all of its {len(values):,} rows, which is asked about by itself")
    text = f"{metric} is {figure(lowest, 6)} in all of its {len(values):,} rows"
    found = Evidence(text, metric, (int(at[0]), int(at[-1])), lowest)
    return measured(above(len(values), rows), (found,), onset_step=int(at[0]))


@predicate(source=f"{GUIDE}; Mann 1945, Kendall 1975")
def no_trend(
    run: Run,
    *,
    metric: str = "reward",
    falls: bool = False,
    rows: Count,
    trend_z: float = shared.TREND_Z,
    factor: float = shared.FACTOR,
    beside: str = "",
) -> Answer:
    """Does a metric that should rise never rise?

    Yes where the Mann-Kendall score of its block medians, over at least `rows` rows, stays below `trend_z`, and no
    level, of three neighbours, is more than `factor` times their scatter above the beginning. With `falls` the metric
    ought to fall.
    """
    refused = not_asked(run, metric, beside)
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
    strength = weakest(below(score, trend_z), below(gained, factor * scatter), above(len(values), rows))
    return measured(strength, (found,), onset_step=int(at[0]))
