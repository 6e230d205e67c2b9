"""The curve of a loss: its levels, falls and turns, and whether it rises at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import MOST, against, as_share, figure
from stabtree.common.lazy import np
from stabtree.common.passes import remembered, rows_before
from stabtree.common.shared import FACTOR, FACTOR_LARGE, FACTOR_SMALL, FARTHEST, SHARE_HALF, SHARE_SOME, TINY, above
from stabtree.common.stats import (
    BLOCK_SAMPLE,
    MEDIAN_ERROR,
    NORMAL_MAD,
    blocks,
    change_noise,
    kendall_z,
    median,
    medians_of_three,
    span,
    unsure,
)
from stabtree.measures.registry import Absent, Count, Unknown, finite, measure
from stabtree.profile.change import Change, left_course

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.measures.batches import Batches
    from stabtree.run import Series


FEWEST = 3  # levels of a whole log
LOST_SHARE = 0.3  # of all that the loss ever moved: from there on it has lost ground, whatever the shape of its rise


class Course(NamedTuple):
    """A stretch of the loss as block medians, from its lowest level to its end.

    `rise` is how far the end is above the lowest level, `noise` the scatter between neighbouring
    blocks, `span` the range of the whole run's levels, `trend_z` the Mann-Kendall score from the low on,
    `steps` how many steps the stretch covers, `rows` how many rows its low and its end are made of.
    """

    low_step: int
    low: float
    end: float
    rise: float
    noise: float
    span: float
    trend_z: float
    steps: int
    rows: int

    @property
    def share(self) -> float:
        """The rise as a share of the range that the loss covers in the whole run."""
        return min(self.rise / self.span, 1e300) if self.span > 0 else 0.0

    @property
    def times(self) -> float:
        """The rise in units of the scatter."""
        if self.noise > 0:
            return min(self.rise / self.noise, 1e300)
        return 1e300 if self.rise > 0 else 0.0


MAX_LEVELS = 40  # Kendall's score is quadratic, and 40 levels show any shape that a person would see
MIN_LEVELS = 8  # of a stretch; fewer than 8 can't reach a score of 2.33 but by rising all along


def level_count(rows: int) -> int:
    """Return how many levels so many rows give: medians of `ROWS_SHORT` rows or more, of fewer in a short log."""
    return min(MAX_LEVELS, rows // min(shared.ROWS_SHORT, max(rows // MIN_LEVELS, 1)))


def level_steps(series: Series) -> float:
    """Return how many steps of a series are one level, 0 where it has none."""
    steps, _ = finite(series)
    count = level_count(len(steps))
    return float(steps[-1] - steps[0]) / count if count else 0.0


def _course(steps: Ints, values: Floats, whole: float | None = None) -> Course | None:
    """Return the course of a stretch, None when it has too few rows for its levels.

    `whole` is the range of the whole run's levels, where the stretch is only a part of it.
    """
    count = level_count(len(values)) if whole is None else min(MAX_LEVELS, len(values) // shared.ROWS_SHORT)
    if count < (FEWEST if whole is None else MIN_LEVELS):
        return None
    levels, starts = blocks(values, count)
    smooth = medians_of_three(levels)
    low = int(np.argmin(smooth))
    # The error of a median of the rows of a block is all the noise where a block is one epoch.
    rows = values[int(starts[0]) :].reshape(count, -1)
    scatter = NORMAL_MAD * median(np.abs(rows[:, :: 1 + rows.shape[1] // BLOCK_SAMPLE] - levels[:, None]))
    noise = max(change_noise(levels), float(MEDIAN_ERROR * scatter / rows.shape[1] ** 0.5))
    lowest = float(smooth[low])
    end = median(levels[-3:]) if low < count - 1 else lowest  # nothing has risen since a low that is the end
    covered = span(levels) if whole is None else whole
    low_step, length = int(steps[starts[low]]), int(steps[-1] - steps[0])
    # The trend is that of the levels since the low, of shorter ones where they are too few for a certain one.
    since, size = levels[low:], 3 * (len(values) // count)
    count = min(MIN_LEVELS * 2, (len(values) - int(starts[low])) // 2)
    if len(since) < MIN_LEVELS <= count:
        since, _ = blocks(values[starts[low] :], count)
    return Course(low_step, lowest, end, end - lowest, noise, covered, kendall_z(since), length, size)


@remembered
def courses(loss: Series, window_steps: int) -> tuple[Course, ...]:
    """Return the courses of the whole run and of its last 2, 4, 8, ... times `window_steps` steps, longest first.

    The levels of a long run are long themselves: a rise over the last 200 of 20,000 steps is seen only close up.
    """
    steps, values = finite(loss)
    whole = _course(steps, values)
    if whole is None:
        return ()
    found = [whole]
    length = 2 * window_steps
    while length < whole.steps / 2:
        inside = int(np.searchsorted(steps, steps[-1] - length))
        part = _course(steps[inside:], values[inside:], whole.span)
        if part:
            found.insert(1, part)
        length *= 2
    return tuple(found)


class MetricFall(NamedTuple):
    """How far a series ends below its best level."""

    best: float  # its best level
    best_step: int  # where that is
    end: float  # its level at the end
    share: float  # what is lost, as a share of the range from its lowest level to its best
    times: float  # what is lost, in units of the scatter of levels; fewer levels make it smaller
    gained: float  # what it had gained above its first level, in units of the same scatter
    sunk: float  # how far it ends below its first level, in the same units

    def judged(self, metric: str, share: float, factor: float) -> tuple[float, Evidence]:
        """Return how far it is beyond both limits, a share of its range and a multiple of its scatter, in words."""
        course = f"{figure(self.best)} around step {self.best_step:,}, {figure(self.end)} at the end"
        text = f"{metric} ends at its best level, {figure(self.end)}"
        if self.share > 0:
            text = f"{metric} lost {against(self.share, share, '.0%')} of its range (limit {share:.0%}): {course}"
        if self.share >= share and self.times < factor:
            text += ", within its scatter"
        found = Evidence(text, metric, (self.best_step,), self.share, share)
        return min(above(self.share, share), above(self.times, factor)), found


def fall_of(series: Series) -> MetricFall | None:
    """Return how far a series has come down; None where it has too few rows for a scatter."""
    steps, values = finite(series)
    if len(values) < shared.ROWS_SHORT:
        return None
    levels, starts = blocks(values, len(values) // math.ceil(len(values) / shared.LEVELS))
    smooth = medians_of_three(levels)
    at = int(np.argmax(smooth))
    rows = len(values) // len(levels)
    best, end = float(smooth[at]), median(values[-max(min(3, len(values) // 3), rows) :])
    lost, lowest = best - end, min(end, float(smooth.min()), float(levels[0]))
    scatter = max(_scatter(np.diff(levels)), MEDIAN_ERROR * _scatter(np.diff(values)) / rows**0.5, 1e-300)
    # The scatter is itself known by so many levels only.
    times = min(max(lost, 0.0) / scatter / (1 + 4 / max(len(levels) - 1, 1)), 1e300)
    share, first = lost / (best - lowest) if best > lowest else 0.0, float(levels[0])
    gained, sunk = (best - first) / scatter, (first - end) / scatter
    return MetricFall(best, int(steps[starts[at]]), end, share, times, gained, sunk)


def _scatter(changes: Floats) -> float:
    """Return the standard deviation of values by the changes between neighbours, of which most may be 0."""
    around = np.abs(changes - median(changes))
    return (NORMAL_MAD * median(around) or MEDIAN_ERROR * float(np.mean(around))) / 2**0.5


class RiseLimits(NamedTuple):
    """What a course must exceed to count as rising."""

    trend_z: float  # Mann-Kendall score of the levels from the lowest one on
    noise_factor: float  # how many times the scatter between levels the end is above the lowest one
    range_share: float  # the same as a share of all that the loss ever moved

    def rises(self, found: Course, times: float = 1.0) -> float:
        """Return how strongly a course rises, with limits of the trend and the scatter so many times as high."""
        return min(
            above(found.trend_z, times * self.trend_z),
            above(found.times, times * self.noise_factor),
            above(found.share, self.range_share),
        )

    def clear(self, found: Course) -> float:
        """Return how plainly a course rises, so that it counts though the whole run covers far more.

        A language model that falls from 11 to 2 and climbs by 0.5 has lost a twentieth of its range and all it learned
        in the last half. Labelled healthy runs with such a trend reach 4.9 times their scatter.
        """
        return min(
            above(found.trend_z, FACTOR_SMALL * self.trend_z),
            above(found.times, FACTOR * self.noise_factor),
            above(found.rise, SHARE_SOME * abs(found.low)),
        )

    def lost(self, found: Course) -> float:
        """Return how far above its low a course ends: it has lost ground, whatever the shape of the rise.

        Labelled healthy runs reach 1.4 times their scatter and 11% of their range.
        """
        return min(above(found.times, FACTOR_LARGE), above(found.share, LOST_SHARE))


class Rise(NamedTuple):
    """A rise of the loss that lasts to its end."""

    low_step: int  # where the loss was lowest, its level there `low` and at the end `end`
    left: Change  # when it left its course
    low: float
    end: float
    last_step: int  # the last step of the loss
    course: Course | None  # the stretch of levels; None where `strict`
    limits: RiseLimits  # what it passed
    evidence: Evidence  # what was seen
    strength: float  # how far it passed them


@measure(min_points=2)
def rise(
    context: Context,
    loss: Series,
    batches: Batches | Unknown,
    reward: Series | None = None,
    *,
    window_steps: Count,
    strict: bool,
    range_share: float,
    earlier_share: float,
    trend_z: float = shared.TREND_Z,
    noise_factor: float = shared.NOISE_TIMES,
) -> Rise | Absent | Unknown:
    """Find the rise of the loss to its end; the parameters are those of `RiseLimits`.

    Looked at is the whole run, and with higher limits its last 2, 4, 8, ... times `window_steps`, without the steps at
    which a stuck loader fed one batch again and again. With `strict`, the document's own rule, every change of the last
    `window_steps` must be a rise. The loss of reinforcement learning is no learning signal (a TD loss grows with the
    values it predicts): where a reward is logged, a rise counts only if the reward has fallen as well; where the loss
    moves by nature without one, only if it ends a hundred times as high as it usually is. A rise must also exceed
    `earlier_share` of the largest rise that the run had before it within as many rows, and recovered from.
    """
    limits = RiseLimits(trend_z, noise_factor, range_share)
    if strict:
        return _strict(loss, window_steps, limits)
    if not isinstance(batches, Unknown):
        loss = batches.fresh(loss)
    last, at = int(loss.steps[-1]), courses(loss, window_steps)
    if not at:
        rows = int(np.isfinite(loss.values).sum())
        return Unknown(f"the loss has {rows:,} finite rows, {FEWEST} are needed to see a rise", ("loss",))
    strength, found = _rising(loss, at, limits)
    if strength < 0:
        return Absent((_level(at[0], limits, last),), strength)
    spared = _by_nature(context, loss, found, reward) or _as_before(loss, found, earlier_share)
    if spared:
        return spared
    left = left_course(*finite(loss), best_step=found.low_step)
    if left.at_once and left.first_bad_step == last:
        return Absent((_level(at[0], limits, last),), -TINY)  # no row divides the loss into a course and a rise
    low_step, found = found.low_step, found._replace(low_step=left.last_good_step)
    text = (
        f"the loss rises from {_levels(found)}, {as_share(found.share)}{' of' * (abs(found.share) <= MOST)} its range"
    )
    seen = (found.low_step, int(finite(loss)[0][-1]))
    evidence = Evidence(text, "loss", seen, found.trend_z, limits.trend_z, _stays(loss, found))
    return Rise(low_step, left, found.low, found.end, last, found, limits, evidence, strength)


def _by_nature(context: Context, loss: Series, found: Course, reward: Series | None) -> Absent | None:
    """Return why a rise of a loss that is no learning signal does not count; None where it does."""
    steps = (found.low_step, int(loss.steps[-1]))
    if reward is not None:
        last, fall = tuple(int(step) for step in reward.steps[-1:]), fall_of(reward)
        fallen, evidence = 0.0, Evidence("the logged reward has too few rows to see a fall", "reward", last)
        if fall is not None:
            fallen, evidence = fall.judged("reward", SHARE_HALF, FACTOR)
        text = f"the loss rises from {_levels(found)}, as it may while a reward is optimised"
        holds = fall is None or fallen < 0
        return Absent((Evidence(text, "loss", steps, found.trend_z), evidence), -FARTHEST) if holds else None
    if not context.restless or found.end > shared.FACTOR_HUGE * median(np.abs(finite(loss)[1])):
        return None
    text = f"{context.restless} may rise, here from {_levels(found)}; the limit is "
    text += f"{shared.FACTOR_HUGE:,.0f} times its median"
    return Absent((Evidence(text, "loss", steps, found.trend_z),), -FARTHEST)


def _as_before(loss: Series, found: Course, earlier_share: float) -> Absent | None:
    """Return why a rise is no larger than what the run did before within as many rows; None where it is."""
    steps, values = finite(loss)
    before, earlier = rows_before(steps, found.low_step), 0.0
    size = max(1, len(values) // max(1, level_count(len(values))))
    if before >= 3 * size:
        medians, _ = blocks(values[:before], before // size)
        reach = max(1, (len(values) - before) // size)
        earlier = max(float(medians[at : at + reach + 1].max() - medians[at]) for at in range(len(medians)))
    limit = earlier_share * earlier
    if found.rise > limit:
        return None
    text = f"the loss rises by {figure(found.rise)} to its end; before, it rose by {figure(earlier)} and came back"
    seen = (found.low_step, int(loss.steps[-1]))
    return Absent((Evidence(text, "loss", seen, found.rise, limit),), min(above(found.rise, limit), -TINY))


def _levels(found: Course) -> str:
    """Describe a course from its lowest level to its end."""
    return f"{figure(found.low, 4)} around step {found.low_step:,} to {figure(found.end, 4)} at the end"


def _stays(loss: Series, found: Course) -> str:
    """Describe a rise that was over long before the end; empty where it goes on in the last half of its rows."""
    steps, values = finite(loss)
    steps, values = steps[rows_before(steps, found.low_step) :], values[rows_before(steps, found.low_step) :]
    levels, starts = blocks(values, level_count(len(values)))
    below = np.flatnonzero(levels < found.end - SHARE_SOME * found.rise)
    since = int(below[-1]) + 1 if len(below) else 0
    if since > SHARE_HALF * len(levels):
        return ""
    by = f"{int(steps[starts[since]]):,}"
    return f"rose from {figure(found.low, 4)} to {figure(found.end, 4)} by step {by}, and stays there"


def _level(whole: Course, limits: RiseLimits, last: int) -> Evidence:
    text = f"the loss ends at its lowest level, {figure(whole.end, 4)}"
    if whole.share > 0:
        above_low = against(whole.share, limits.range_share, ".1%")
        text = f"the loss ends {above_low} of its range above its lowest level (limit {limits.range_share:.0%}): "
        text += f"from {_levels(whole)}"
    if whole.share >= limits.range_share:
        text += ", within its scatter" if whole.times < limits.noise_factor else ", without a steady trend"
    return Evidence(text, "loss", (whole.low_step, last), whole.trend_z, limits.trend_z)


def _strict(loss: Series, window_steps: int, limits: RiseLimits) -> Rise | Absent | Unknown:
    """Judge as the document states it: every change of the last `window_steps` is a rise."""
    steps, values = finite(loss)
    if steps[-1] - steps[0] < window_steps:
        reason = f"the loss spans {int(steps[-1] - steps[0]):,} steps, {window_steps} are needed"
        return Unknown(reason, ("loss",))
    inside = values[steps >= steps[-1] - window_steps]
    share = float(np.mean(np.diff(inside) > 0)) if len(inside) > 1 else 0.0
    start, last = int(steps[-1]) - window_steps, int(steps[-1])
    text = f"{against(share, 1.0, '.0%')} of the last {window_steps} steps' changes are rises; all of them are needed"
    evidence = Evidence(text, "loss", (start, last), share, 1.0)
    if len(inside) > 1 and share == 1.0:
        left, low, end = Change(start, start, start, at_once=False), float(inside[0]), float(inside[-1])
        return Rise(start, left, low, end, last, None, limits, evidence, 0.0)
    return Absent((evidence,))


def _rising(loss: Series, found: tuple[Course, ...], limits: RiseLimits) -> tuple[float, Course]:
    """Return the course that rises, the longest first, and how strongly; of none the one that comes nearest."""
    whole, (steps, values) = found[0], finite(loss)
    # A jump within the first level hides the low from the levels: that of the very first rows counts as well, and its
    # noise is that of single rows, since a few of them make the low.
    low = median(values[: shared.ROWS_SHORT])
    start = whole._replace(low=low, rise=whole.end - low, rows=shared.ROWS_SHORT)
    if start.rise > 0:
        begin, noise = int(steps[0]), change_noise(values)
        start = start._replace(low_step=begin, noise=noise, span=max(whole.span, start.rise))
    judged = [(max(limits.rises(whole), limits.lost(whole)), whole)]
    # The limits of a stretch are higher, as a longer run has more stretches.
    judged += [(limits.rises(part, FACTOR_SMALL), part) for part in found[1:]]
    judged += [(limits.clear(part), part) for part in found]
    judged.append((limits.lost(start), start))
    rising = (item for item in judged if item[0] >= 0)
    return next(rising, None) or max(judged, key=lambda item: item[0])


NORMAL_90 = 1.28  # no limit
"""A z that one normal value in ten exceeds: of ten bounds one is too high."""


class TurningPoint(NamedTuple):
    """The best level of a series, and what came after it. Values are as they were logged."""

    step: int  # the step of the best value on that level, which is `best`
    best: float  # that value
    level: float  # the best level
    last: float  # the last value
    after: int  # how many levels follow the one with the best value
    worse: float  # by how much the later ones are worse, by a line through them or by the median of their last third
    bound: float  # by how much they are worse at least, once their scatter is taken off


def turn_of(series: Series, *, falls: bool = True) -> TurningPoint | None:
    """Return where a series turned for the worse; None for fewer than three finite rows."""
    steps, values = finite(series)
    if len(values) < 3:
        return None
    sign = 1.0 if falls else -1.0
    values = sign * values
    size = max(1, len(values) // shared.LEVELS)
    levels, starts = blocks(values, len(values) // size)
    smooth = levels if len(levels) < shared.LEVELS // 2 else medians_of_three(levels)  # the lowest of many may be luck
    # The scatter of a level by second differences, which no trend affects.
    best, noise = int(np.argmin(smooth)), NORMAL_MAD * median(np.abs(np.diff(levels, 2))) / 6**0.5
    begin, end = int(starts[max(best - 1, 0)]), int(starts[min(best + 1, len(starts) - 1)]) + size
    at = begin + int(np.argmin(values[begin:end]))
    apart = np.flatnonzero(values[at:] != values[at])  # of equal rows in a row the last: it was still as good there
    at = at + int(apart[0]) - 1 if len(apart) else len(values) - 1
    level = float(smooth[best])
    worse, bound = _worse(levels[best:], level, noise)
    last, after = float(values[-1]), len(levels) - 1 - max(at - int(starts[0]), 0) // size
    return TurningPoint(int(steps[at]), sign * float(values[at]), sign * level, sign * last, after, worse, bound)


def leaves(series: Series, turn: TurningPoint, *, falls: bool = True) -> Change:
    """Return when a series left its best level: at its best row where nothing shows that it was later."""
    steps, values = finite(series)
    found = left_course(steps, values if falls else -values, best_step=turn.step)
    if found.first_bad_step > turn.step and rows_before(steps, found.first_bad_step) < len(steps) - 1:
        return found._replace(last_good_step=max(found.last_good_step, turn.step))
    return Change(turn.step, turn.step, turn.step, at_once=False)


def _worse(levels: Floats, level: float, noise: float) -> tuple[float, float]:
    """Return by how much the levels from the best one on have risen, and by how much at least.

    A line shows a rise that goes on, with few levels too; the median of the last third one that has ended.
    """
    later = levels[-max(1, len(levels) // 3) :]
    scatter = max(noise, float(later.std(ddof=1)) if len(later) > 2 else 0.0)
    step, z = median(later) - level, NORMAL_90 * unsure(len(levels) - 2, NORMAL_90)
    rises = [(step - z * scatter * (MEDIAN_ERROR**2 / len(later) + 1) ** 0.5, step)]
    if len(levels) > 2:
        rise, error = line(levels, noise)
        rises.append((rise - z * error, rise))
    bound, worse = max(rises)
    return worse, bound


def line(values: Floats, noise: float = 0.0) -> tuple[float, float]:
    """Return the rise of a straight line through at least three values from end to end, and its standard error.

    `noise` is the scatter of one value, where it is known to be larger than around that line.
    """
    offsets = np.arange(len(values)) - (len(values) - 1) / 2
    squares, away = float(offsets @ offsets), values - values.mean()
    slope = float(offsets @ away) / squares
    rest = away - slope * offsets
    scatter = max(noise, (float(rest @ rest) / (len(values) - 2)) ** 0.5)
    return slope * (len(values) - 1), scatter / squares**0.5 * (len(values) - 1)
