"""The rise of a loss, slow and to the end, which all of section 4 asks about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import against, figure, share_of
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import FACTOR, FACTOR_LARGE, FACTOR_SMALL, SHARE_HALF, SHARE_SOME
from stabtree.common.stats import blocks, change_noise, median
from stabtree.common.strength import FARTHEST, TINY, above, strongest, weakest
from stabtree.facts.curve.fall import FallLimits, fall_of
from stabtree.facts.curve.levels import FEWEST, Course, courses
from stabtree.facts.registry import Absent, Unknown, fact, finite

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.facts.batches import Batches
    from stabtree.facts.curve.levels import Levels
    from stabtree.run import Series


class RiseLimits(NamedTuple):
    """What a course must exceed to count as rising.

    Attributes:
        trend_z: Mann-Kendall score of the levels from the lowest one on.
        noise_factor: how many times the scatter between levels the end is above the lowest one.
        range_share: the same as a share of all that the loss ever moved.
        lost_share: from which share of that on a loss has lost ground whatever the shape of its rise.
    """

    trend_z: float
    noise_factor: float
    range_share: float
    lost_share: float

    def rises(self, found: Course, times: float = 1.0) -> float:
        """Return how strongly a course rises, with limits of the trend and the scatter so many times as high."""
        return weakest(
            above(found.trend_z, times * self.trend_z),
            above(found.times, times * self.noise_factor),
            above(found.share, self.range_share),
        )

    def close_up(self, found: Course) -> float:
        """Return the same of a stretch; the limits are higher, as a longer run has more stretches."""
        return self.rises(found, FACTOR_SMALL)

    def clear(self, found: Course) -> float:
        """Return how plainly a course rises, so that it counts though the whole run covers far more.

        A language model that falls from 11 to 2 and climbs by 0.5 has lost a twentieth of its range and all it learned
        in the last half. Labelled healthy runs with such a trend reach 4.9 times their scatter.
        """
        return weakest(
            above(found.trend_z, FACTOR_SMALL * self.trend_z),
            above(found.times, FACTOR * self.noise_factor),
            above(found.rise, SHARE_SOME * abs(found.low)),
        )

    def lost(self, found: Course) -> float:
        """Return how far above its low a course ends: it has lost ground, whatever the shape of the rise.

        Labelled healthy runs reach 1.4 times their scatter and 11% of their range.
        """
        return weakest(above(found.times, FACTOR_LARGE), above(found.share, self.lost_share))


class Rise(NamedTuple):
    """A rise of the loss that lasts to its end.

    Attributes:
        low_step: where the loss was lowest, its level there `low` and at the end `end`.
        last_step: the last step of the loss.
        course: the stretch of levels; None where `strict`.
        limits: what it passed.
        evidence: what was seen.
        strength: how far it passed them.
    """

    low_step: int
    low: float
    end: float
    last_step: int
    course: Course | None
    limits: RiseLimits
    evidence: Evidence
    strength: float


@fact(min_points=2)
def rise(
    context: Context,
    loss: Series,
    levels: Levels,
    batches: Batches | Unknown,
    reward: Series | None = None,
    *,
    strict: bool,
    range_share: float,
    lost_share: float,
    earlier_share: float,
    trend_z: float = shared.TREND_Z,
    noise_factor: float = shared.NOISE_TIMES,
    burst_factor: float = shared.FACTOR_HUGE,
) -> Rise | Absent | Unknown:
    """Find the rise of the loss to its end; the parameters are those of `RiseLimits`.

    Looked at is the whole run, and with higher limits its last 2, 4, 8, ... times `window_steps`, without the steps at
    which a stuck loader fed one batch again and again. With `strict`, the document's own rule, every change of the last
    `window_steps` must be a rise. The loss of reinforcement learning is no learning signal (a TD loss grows with the
    values it predicts): where a reward is logged, a rise counts only if the reward has fallen as well; where the loss
    moves by nature without one, only if it ends `burst_factor` times as high as it usually is. A rise must also exceed
    `earlier_share` of the largest rise that the run had before it within as many rows, and recovered from.
    """
    limits = RiseLimits(trend_z, noise_factor, range_share, lost_share)
    if strict:
        return _strict(loss, levels.window_steps, limits)
    if not isinstance(batches, Unknown):
        loss = batches.fresh(loss)
    last, at = int(loss.steps[-1]), courses(loss, levels)
    if not at:
        rows = int(np.isfinite(loss.values).sum())
        return Unknown(f"the loss has {rows:,} finite rows, {FEWEST} are needed to see a rise", ("loss",))
    strength, found = _rising(loss, at, limits, levels.rows)
    if strength < 0:
        return Absent((_level(at[0], limits, last),), strength)
    spared = _by_nature(context, loss, found, reward, burst_factor) or _as_before(loss, found, levels, earlier_share)
    if spared:
        return spared
    evidence = replace(_evidence(found, limits, int(finite(loss)[0][-1])), brief=_stays(loss, found, levels))
    return Rise(found.low_step, found.low, found.end, last, found, limits, evidence, strength)


def _by_nature(
    context: Context, loss: Series, found: Course, reward: Series | None, burst_factor: float
) -> Absent | None:
    """Return why a rise of a loss that is no learning signal does not count; None where it does."""
    steps = (found.low_step, int(loss.steps[-1]))
    if reward is not None:
        evidence = _reward_holds(reward)
        text = f"the loss rises from {_levels(found)}, as it may while a reward is optimised"
        return Absent((Evidence(text, "loss", steps, found.trend_z), evidence), -FARTHEST) if evidence else None
    if not context.restless or found.end > burst_factor * median(np.abs(finite(loss)[1])):
        return None
    text = f"{context.restless} may rise, here from {_levels(found)}; the limit is "
    return Absent((Evidence(f"{text}{burst_factor:,.0f} times its median", "loss", steps, found.trend_z),), -FARTHEST)


def _as_before(loss: Series, found: Course, levels: Levels, earlier_share: float) -> Absent | None:
    """Return why a rise is no larger than what the run did before; None where it is."""
    earlier = _earlier(loss, found, levels)
    if found.rise > earlier_share * earlier:
        return None
    text = f"the loss rises by {figure(found.rise)} to its end; before, it rose by {figure(earlier)} and came back"
    steps = (found.low_step, int(loss.steps[-1]))
    limit = earlier_share * earlier
    return Absent((Evidence(text, "loss", steps, found.rise, limit),), min(above(found.rise, limit), -TINY))


def _levels(found: Course) -> str:
    """Describe a course from its lowest level to its end."""
    return f"{figure(found.low, 4)} around step {found.low_step:,} to {figure(found.end, 4)} at the end"


def _evidence(found: Course, limits: RiseLimits, last: int) -> Evidence:
    text = f"the loss rises from {_levels(found)}, {share_of(found.share, 'its range')}"
    return Evidence(text, "loss", (found.low_step, last), found.trend_z, limits.trend_z)


def _stays(loss: Series, found: Course, into: Levels) -> str:
    """Describe a rise that was over long before the end; empty where it goes on in the last half of its rows."""
    steps, values = finite(loss)
    steps, values = steps[rows_before(steps, found.low_step) :], values[rows_before(steps, found.low_step) :]
    levels, starts = blocks(values, into.count(len(values)))
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
        return Rise(start, float(inside[0]), float(inside[-1]), last, None, limits, evidence, 0.0)
    return Absent((evidence,))


def _rising(loss: Series, found: tuple[Course, ...], limits: RiseLimits, rows: int) -> tuple[float, Course]:
    """Return the course that rises, the longest first, and how strongly; of none the one that comes nearest."""
    whole, start = found[0], _from_start(loss, found[0], rows)
    judged = [(strongest(limits.rises(whole), limits.lost(whole)), whole)]
    judged += [(limits.close_up(part), part) for part in found[1:]]
    judged += [(limits.clear(part), part) for part in found]
    judged.append((limits.lost(start), start))
    rising = (item for item in judged if item[0] >= 0)
    return next(rising, None) or max(judged, key=lambda item: item[0])


def _earlier(loss: Series, found: Course, levels: Levels) -> float:
    """Return the largest rise before a course within as many rows as it has; 0 with fewer than three levels."""
    steps, values = finite(loss)
    before = int(np.searchsorted(steps, found.low_step))
    size = max(1, len(values) // max(1, levels.count(len(values))))
    if before < 3 * size:
        return 0.0
    medians, _ = blocks(values[:before], before // size)
    reach = max(1, (len(values) - before) // size)
    return max(float(medians[at : at + reach + 1].max() - medians[at]) for at in range(len(medians)))


def _from_start(loss: Series, whole: Course, rows: int) -> Course:
    """Return the course from the very first rows: a jump within the first level hides the low from the levels.

    Its noise is that of single rows, since a few of them make the low.
    """
    steps, values = finite(loss)
    low = median(values[:rows])
    up = whole.end - low
    if up <= 0:
        return whole._replace(low=low, rise=up, rows=rows)
    noise = change_noise(values)
    return Course(int(steps[0]), low, whole.end, up, noise, max(whole.span, up), whole.trend_z, whole.steps, rows)


def _reward_holds(reward: Series) -> Evidence | None:
    """Return evidence that the reward does not fall to the end; None where it does fall."""
    fall = fall_of(reward)
    if fall is None:
        steps = tuple(int(step) for step in reward.steps[-1:])
        return Evidence("the logged reward has too few rows to see a fall", "reward", steps)
    return fall.evidence("reward", FallLimits()) if fall.strength(FallLimits()) < 0 else None
