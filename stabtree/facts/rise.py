"""Finding rises: the loss as levels, the shared eyes of section 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import Evidence
from stabtree.facts.registry import finite, per_series
from stabtree.run import Series
from stabtree.stats import BLOCK_SAMPLE, NORMAL_MAD, blocks, change_noise, kendall_z, span

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints

MOST_BLOCKS = 40  # Kendall's score is quadratic, and 40 levels show any shape that a person would see
ROWS_PER_BLOCK = 5  # least rows whose median is a level
ROWS_PER_SHORT_BLOCK = 2
LEAST_BLOCKS = 8  # fewer levels can't reach a score of 2.33 but by rising all along
# Measured on 2,000 simulated healthy runs (tests/whole/test_false_alarms.py): with these, one in 2,000 passes.
LOST_NOISE, LOST_SHARE = (
    5.0,
    3.75,
)  # ten times the scatter and 30% of the range; labelled healthy runs reach 1.4 and 11%
CLOSE_UP_Z = 1.0
CLEAR_NOISE, CLEAR_RISE = 3.0, 0.6  # six times the scatter, and by 5% of the lowest level
CLOSE_UP_NOISE = 2.0
MEDIAN_ERROR = 1.2533  # the standard error of a median over that of a mean, for normal rows


class Course(NamedTuple):
    """A stretch of the loss as block medians, from its lowest level to its end.

    `rise` is how far the end stands above the lowest level, `noise` the scatter between neighbouring
    blocks, `span` the range of the whole run's levels, `trend_z` the Mann-Kendall score from the low on,
    `steps` how many steps the stretch covers.
    """

    low_step: int
    low: float
    end: float
    rise: float
    noise: float
    span: float
    trend_z: float
    steps: int

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


class Bars(NamedTuple):
    """What a course must pass to count as rising, all at once."""

    trend_z: float
    noise_factor: float
    range_share: float

    def passed(self, found: Course) -> bool:
        """Whether a course rises."""
        return found.trend_z > self.trend_z and found.times > self.noise_factor and found.share > self.range_share

    def clear(self, found: Course) -> bool:
        """Whether a course rises so plainly that it counts though the whole run covers far more.

        A language model that falls from 11 to 2 and climbs by 0.5 has lost a twentieth of its range and all it learned
        in the last half. Labelled healthy runs with such a trend reach 4.9 times their scatter.
        """
        plain = found.trend_z > self.trend_z + CLOSE_UP_Z and found.times > CLEAR_NOISE * self.noise_factor
        return plain and found.rise > CLEAR_RISE * self.range_share * abs(found.low)

    def lost(self, found: Course) -> bool:
        """Whether a course ends so far above its low that it has lost ground, whatever the shape of the rise."""
        return found.times > LOST_NOISE * self.noise_factor and found.share > LOST_SHARE * self.range_share


USUAL_BARS = Bars(trend_z=2.33, noise_factor=2.0, range_share=0.08)
"""The defaults of Q4.1, for the questions after it that ask where the rise began."""


def turned(series: Series) -> Series:
    """The series upside down: a fall of it is a rise of this."""
    return Series(series.metric, series.steps, -series.values, series.origin)


MEDIAN_ERROR = 1.2533  # the standard error of a median of normal values over that of their mean
FALL_SHARE, FALL_NOISE = 0.5, 5.0  # a reward is that of a few answers, far noisier than a loss: half of all it covered


def fall(series: Series, window_steps: int) -> tuple[Course | None, bool]:
    """The course of a series upside down, and whether it has lost most of what it had gained.

    Its levels are medians of a few rows of answers drawn by chance, so the loss must stand out from the scatter of the
    rows as well: with 8 levels that of the levels alone is badly known.
    """
    found = next(iter(courses(turned(series), window_steps)), None)
    if found is None:
        return None, False
    _, values = finite(series)
    rows = len(values) // min(MOST_BLOCKS, len(values) // ROWS_PER_BLOCK)
    scatter = NORMAL_MAD * float(np.median(np.abs(np.diff(values)))) / 2**0.5
    level = MEDIAN_ERROR * scatter / rows**0.5
    return found, found.share > FALL_SHARE and found.rise > FALL_NOISE * max(found.noise, level)


def reward_holds(reward: Series, window_steps: int) -> Evidence | None:
    """What speaks for a run whose loss rises: a reward that does not fall to the end; None where it does fall."""
    course, lost = fall(reward, window_steps)
    if lost:
        return None
    if course is None:
        return Evidence("a reward is logged, and too short to fall", "reward", tuple(int(s) for s in reward.steps[-1:]))
    text = f"reward is best at {-course.low:.4g} around step {course.low_step:,} and ends at {-course.end:.4g}: "
    text += f"{course.share:.0%} of its range lost (a fall takes {FALL_SHARE:.0%})"
    return Evidence(text, "reward", (course.low_step,), course.share, FALL_SHARE)


def _course(steps: Ints, values: Floats, whole: float | None = None) -> Course | None:
    """The course of a stretch, None when it has too few rows for eight levels of five rows each.

    `whole` is the range of the whole run's levels, where the stretch is only a part of it.
    """
    count = min(MOST_BLOCKS, len(values) // ROWS_PER_BLOCK)
    if count < LEAST_BLOCKS:
        return None
    levels, starts = blocks(values, count)
    inner = np.median(np.lib.stride_tricks.sliding_window_view(levels, 3), axis=1)
    smooth = np.concatenate(([np.mean(levels[:2])], inner, [np.mean(levels[-2:])]))
    low = int(np.argmin(smooth))
    noise = max(change_noise(levels), _within(values[int(starts[0]) :].reshape(count, -1), levels))
    lowest = float(smooth[low])
    end = float(np.median(levels[-3:])) if low < count - 1 else lowest  # nothing has risen since a low that is the end
    covered = span(levels) if whole is None else whole
    low_step, length = int(steps[starts[low]]), int(steps[-1] - steps[0])
    trend = _trend(values[starts[low] :], levels[low:])
    return Course(low_step, lowest, end, end - lowest, noise, covered, trend, length)


def _within(rows: Floats, levels: Floats) -> float:
    """How well the rows of a block (blocks, size) know their median: all the noise where each block is one epoch."""
    some = rows[:, :: 1 + rows.shape[1] // BLOCK_SAMPLE]
    scatter = NORMAL_MAD * float(np.median(np.abs(some - levels[:, None])))
    return float(MEDIAN_ERROR * scatter / rows.shape[1] ** 0.5)


def _trend(values: Floats, levels: Floats) -> float:
    """The trend score of a stretch by its levels, by shorter ones where they are too few for any to be certain."""
    count = min(LEAST_BLOCKS * 2, len(values) // ROWS_PER_SHORT_BLOCK)
    if len(levels) < LEAST_BLOCKS <= count:
        levels, _ = blocks(values, count)
    return kendall_z(levels)


@per_series
def courses(loss: Series, window_steps: int) -> tuple[Course, ...]:
    """The courses of the whole run and of its last 2, 4, 8, ... times `window_steps` steps, longest first.

    The levels of a long run are long themselves: a rise over the last 200 of 20,000 steps is seen only close up.
    """
    steps, values = finite(loss)
    whole = _course(steps, values)
    if whole is None:
        return ()
    found = [whole]
    length = 2 * max(window_steps, 1)
    while length < whole.steps / 2:
        inside = int(np.searchsorted(steps, steps[-1] - length))
        part = _course(steps[inside:], values[inside:], whole.span)
        if part:
            found.insert(1, part)
        length *= 2
    return tuple(found)


def _from_start(loss: Series, whole: Course) -> Course:
    """The course from the very first rows: a run that jumps within its first level hides its low from the levels.

    Its noise is that of single rows, since five of them make the low.
    """
    steps, values = finite(loss)
    low = float(np.median(values[:ROWS_PER_BLOCK]))
    rise = whole.end - low
    if rise <= 0:
        return whole._replace(low=low, rise=rise)
    noise = change_noise(values)
    return Course(int(steps[0]), low, whole.end, rise, noise, max(whole.span, rise), whole.trend_z, whole.steps)


def rising(loss: Series, window_steps: int, bars: Bars) -> tuple[Course | None, Course | None]:
    """The course of the whole run, and the longest course that rises, None where none does.

    Close up the same bars are higher, since several stretches get a chance to pass them by luck: a run that
    doubles its length gets one more.
    """
    found = courses(loss, window_steps)
    close = Bars(bars.trend_z + CLOSE_UP_Z, CLOSE_UP_NOISE * bars.noise_factor, bars.range_share)
    rise = next((c for n, c in enumerate(found) if (close.passed(c) if n else bars.passed(c) or bars.lost(c))), None)
    rise = rise or next((c for c in found if bars.clear(c)), None)
    if rise is None and found:
        start = _from_start(loss, found[0])
        rise = start if bars.lost(start) else None
    return (found[0] if found else None), rise
