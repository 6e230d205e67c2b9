"""Where a series left its course upwards for good: a change point, with its interval."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import ROWS_LONG
from stabtree.common.stats import blocks, change_noise, median, medians_of_three

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints

MAX_POINTS = 240  # no limit: a change is placed within half a per cent of the rows, closer with each look
MIN_POINTS = 5  # no limit: a course and a rise have two parameters each
CLIPPED = 5.0  # no limit: scatters between neighbours; a row that is farther off is a spike
INTERVAL = 8.0  # no limit: about 2.8 standard deviations of one fitted parameter, squared
COARSE = 40  # no limit: levels that show whether a rise came back
LOOKS = 5  # no limit: how often the rows around a change are looked at more closely
RISEN = 3.0  # no limit: errors of a mean: levels that end lower hold no rise
SOME_RISE = 0.15  # no limit: of the whole: a smaller rise before a jump does not belong to it
EARLIER = 12.0  # no limit: of the score: an earlier change explains the rows so much better than none
ENDS = 12  # no limit: how many means a stretch is divided into
STRAIGHT_RISE = 0.2  # no limit: of a whole rise: its beginning, which is nearly straight
PLAIN_RISE = 12.0  # no limit: scatters: a rise that can be placed


class Change(NamedTuple):
    """Where a series left its course.

    Attributes:
        last_good_step: the last step that was surely still on its course.
        first_bad_step: the first step off its course, by the best fit.
        last_step: the last step at which it can have left.
        at_once: whether it left within one row.
    """

    last_good_step: int
    first_bad_step: int
    last_step: int
    at_once: bool


class _Fit(NamedTuple):
    score: float  # BIC, lower is better
    place: int  # the first point off the course
    first: int  # the first and the last place that fit nearly as well
    last: int
    at_once: bool


def change_point(steps: Ints, values: Floats) -> Change | None:
    """Return where a series left its course upwards up to its end; None where no rise explains the rows better.

    A course is a level or a fall, what follows a straight or a bent rise or another level: the fit that explains the
    rows best with the fewest parameters divides them. A long rise bends, so the rows around its beginning are looked
    at again, each time more closely. Checked on made curves of known onset in the tests, with `ruptures` as reference.

    Args:
        steps: int64 (n,).
        values: float64 (n,), finite; the rise is to be theirs, up to the last one.
    """
    begin, end = _last_course(values), len(values)
    found: _Look | None = None
    for _ in range(LOOKS):
        look = _look(values, begin, end)
        if look is None:
            break
        found = look
        if found.fit.at_once or found.end - found.begin > 0.8 * (end - begin):
            break
        begin, end = found.begin, found.end
    if found is None:
        return None
    fit, first, size = found.fit, found.row, found.size
    if fit.at_once and size > 1:
        first = _row_of_jump(values, max(0, first - size), min(len(values), first + 2 * size))
    earliest, latest = first - (fit.place - fit.first) * size, first + (fit.last - fit.place) * size
    good = first - 1 if fit.at_once else min(first - 1, earliest)
    last = max(first, min(len(values) - 1, latest))
    return Change(int(steps[max(good, 0)]), int(steps[first]), int(steps[last]), fit.at_once)


class _Look(NamedTuple):
    fit: _Fit
    row: int  # that of the change
    size: int  # the rows of one point
    begin: int  # the rows to look at more closely
    end: int


def _look(values: Floats, begin: int, end: int) -> _Look | None:
    """Divide rows `begin` to `end` once; None where no rise explains them better, or they don't end above its place."""
    rows = end - begin
    if rows < MIN_POINTS:
        return None
    size = -(-rows // MAX_POINTS)
    levels, starts = blocks(values[begin:end], rows // size)
    levels = _unspiked(levels)
    fit = _fit(levels)
    if fit is None or fit.score > _plain(levels) - EARLIER:
        return None
    fit = _earliest(levels, fit)
    # A fall may bend as none of the courses does.
    if median(levels[-3:]) <= median(levels[max(0, fit.place - 3) : max(fit.place, 1)]):
        return None
    row = begin + int(starts[0]) + fit.place * size
    before, after = _nearly_straight(levels, fit.place)
    return _Look(fit, row, size, max(begin, row - before * size), min(end, row + after * size))


def _at_once(values: Floats) -> bool:
    """Return whether the rows right before the last one are less than half as far above their lowest."""
    if len(values) < MIN_POINTS:
        return True
    low = float(medians_of_three(values[:-1]).min())
    return median(values[-4:-1]) <= low + (float(values[-1]) - low) / 2


def _last_course(values: Floats) -> int:
    """Return the first row after the last rise that the series came back from."""
    size = max(1, len(values) // COARSE)
    if len(values) < MIN_POINTS * size:
        return 0
    levels, starts = blocks(values, len(values) // size)
    smooth = medians_of_three(levels)
    lowest, rise = float(smooth.min()), float(smooth[-1] - smooth.min())
    if rise < PLAIN_RISE * change_noise(levels):
        return 0
    low = int(np.flatnonzero(smooth <= lowest + rise / 4)[-1])
    high = np.flatnonzero(smooth[:low] > lowest + rise / 2)
    return int(starts[int(high[-1]) + 1]) if len(high) else 0


def left_course(steps: Ints, values: Floats, *, by_step: int | None = None, best_step: int | None = None) -> Change:
    """Return where a series left its course upwards, up to a step by which it had; at that step where nothing shows it.

    Args:
        steps: int64 (n,), at least one.
        values: float64 (n,), finite.
        by_step: a step at which it is off its course; the last one when not given.
        best_step: a step at which it was at its lowest: the change is looked for among as many rows before as after it.
    """
    end = len(steps) if by_step is None else max(1, rows_upto(steps, by_step))
    begin = 0
    if best_step is not None:
        best = rows_before(steps, best_step)
        begin = max(0, best - max(end - best, ROWS_LONG))
    at_once = by_step is not None and _at_once(values[begin:end])
    found = None if at_once else change_point(steps[begin:end], values[begin:end])
    if found is None:
        first = int(steps[end - 1])
        return Change(int(steps[max(end - 2, 0)]), first, first, at_once=True)
    return found


def _earliest(levels: Floats, fit: _Fit) -> _Fit:
    """Return the first of several changes upwards, each found among the levels before the one after it."""
    while _rises(before := levels[: fit.place], levels[fit.place :] if fit.at_once else before):
        earlier = _fit(before)
        if earlier is None or earlier.place >= fit.place or earlier.score > _plain(before) - EARLIER:
            break
        fit = earlier
    return fit


def _rises(levels: Floats, later: Floats) -> bool:
    """Return whether levels end above their lowest by more than they scatter, and by a part of what follows a jump."""
    size = max(3, len(levels) // ENDS)
    if len(levels) < 2 * size:
        return False
    sums = np.cumsum(np.append(0.0, levels))
    means = (sums[size:] - sums[:-size]) / size
    # The lowest of many means is lower than their level by so many errors.
    errors = RISEN + math.sqrt(2 * math.log(len(levels) / size))
    rise, low = float(means[-1] - means.min()), float(means.min())
    return rise > max(errors * change_noise(levels) / math.sqrt(size), SOME_RISE * (median(later[-3:]) - low))


def _plain(values: Floats) -> float:
    """Return the score of the best course without a rise."""
    _, extra, along, rest = _on_courses(values)
    return float(_scores((rest * rest).sum(axis=1), values, 1 + extra)[along >= 0].min())


def _scores(squares: Floats, values: Floats, parameters: Ints) -> Floats:
    """Return the Bayesian information criterion of fits, (k,), that leave so many squares with so many parameters."""
    count, floor = len(values), max(EXACT * float(values @ values), 1e-300)
    scores: Floats = count * np.log(np.maximum(squares, floor) / count) + parameters * math.log(count)
    return scores


def _nearly_straight(levels: Floats, place: int) -> tuple[int, int]:
    """Return how many points before a change and from it on are nearly on straight lines."""
    smooth = medians_of_three(levels)
    noise = PLAIN_RISE * change_noise(levels[: max(place, MIN_POINTS)])
    level = median(levels[max(0, place - MIN_POINTS) : max(place, 1)])
    rise = max(float(smooth[-1]) - level, 0.0)
    above = np.flatnonzero(smooth[place:] > level + max(min(STRAIGHT_RISE * rise, (noise * rise) ** 0.5), noise))
    after = max(int(above[0]) if len(above) else len(levels) - place, 2 * MIN_POINTS)
    above = np.flatnonzero(smooth[:place] > level + noise)
    return max(min(place - int(above[-1]) if len(above) else place, 2 * after), 2 * MIN_POINTS), after


def _unspiked(levels: Floats) -> Floats:
    """Return levels with single ones that stand far off both neighbours brought back to them; the last one stays."""
    smooth = medians_of_three(levels)
    off = np.abs(levels - smooth) > CLIPPED * change_noise(levels)
    off[-1] = False
    return np.where(off, smooth, levels)


def _fit(values: Floats) -> _Fit | None:
    """Return the best division of levels, (m,), into a course and a rise; None where nothing rises."""
    count, found = len(values), []
    falls, extra, along_falls, rests = _on_courses(values)
    whole, floor = (rests * rests).sum(axis=1), max(EXACT * float(values @ values), 1e-300)
    for kind in range(len(BENDS)):
        shape, sums, squares = (part[-count:] for part in _shapes(kind))
        shape = shape[:, -count:]
        shared, along = shape @ falls.T, shape @ rests.T  # (m, courses): a rise from each place on, after each course
        own = squares - sums * sums / count - shared * shared
        slope = np.divide(along, own, out=np.zeros_like(own), where=own > 1e-6 * squares)
        # A course that rises by itself leaves nothing to be found.
        usable = (slope > 0) & (along_falls - slope * shared >= 0)
        left = np.where(usable, np.maximum(whole - slope * along, floor), math.inf)
        parameters = 3 + extra + (kind not in (0, STEP))
        scores = _scores(left.min(axis=0), values, parameters)
        course = int(scores.argmin())
        left = left[:, course]
        place = int(left.argmin())
        if left[place] == math.inf:
            continue
        near = np.flatnonzero(left <= left[place] * (1 + INTERVAL / max(count - int(parameters[course]), 1)))
        turn = 0
        if extra[course] and kind != STEP:  # a fall goes on until the rise outweighs it
            fall = along_falls[course] - slope[place, course] * shared[place, course]
            turn = int((fall * falls[course] + slope[place, course] * shape[place])[place:].argmin())
        first, last = min(int(near[0]) + turn, place + turn), min(int(near[-1]) + turn, count - 1)
        score = round(float(scores[course]), DIGITS)
        found.append(_Fit(score, min(place + turn + (kind != STEP), count - 1), first, last, kind == STEP))
    return min(found, default=None)


EXACT = 1e-12  # no limit: of the squares: what leaves less is as good as exact
DIGITS = 6  # no limit: of a score; beyond them rounding decides: a last row off its course is a rise as well as a jump
DECAYS = (0.02, 0.04, 0.08, 0.16, 0.32)  # no limit: of all rows: how fast a fall flattens out
STEP = 3  # the place of a jump among the shapes
BENDS = (1.0, 1.5, 2.0, 0.0)  # no limit: powers of the rows since a change; the last is a jump


def _on_courses(values: Floats) -> tuple[Floats, Ints, Floats, Floats]:
    """Fit levels, (m,), by courses: a level, and a level with each of some falls, which are at right angles to it.

    Return the falls, zeros for none, the further parameters of each, how far the levels go along it, and what is left.
    """
    x = np.arange(len(values), dtype=np.float64)
    falls = np.stack([0 * x, -x, *np.exp(-x / (np.array(DECAYS)[:, None] * len(x)))])
    falls -= falls.mean(axis=1, keepdims=True)
    falls /= np.maximum(np.linalg.norm(falls, axis=1, keepdims=True), 1e-300)
    about = values - values.mean()
    along = falls @ about
    return falls, np.minimum(np.arange(len(falls)), 2), along, about - along[:, None] * falls


@lru_cache(maxsize=8)
def _shapes(kind: int) -> tuple[Floats, Floats, Floats]:
    """Return shapes of a rise, (n, n), each row from another place on, their sums and squares; of fewer the last."""
    x = np.arange(MAX_POINTS, dtype=np.float64)
    since = x[None] - x[:, None]
    shape = (since >= 0) * np.maximum(since / MAX_POINTS, 0.0) ** BENDS[kind]
    return shape, shape.sum(axis=1, keepdims=True), (shape * shape).sum(axis=1, keepdims=True)


def _row_of_jump(values: Floats, first: int, last: int) -> int:
    """Return the row that divides rows `first` to `last` best into two levels."""
    part = values[first:last]
    sums = np.cumsum(part)[:-1]
    before = np.arange(1, len(part))
    gain = (sums / before - (sums[-1] + part[-1] - sums) / (len(part) - before)) ** 2 * before * (len(part) - before)
    return first + 1 + int(gain.argmax()) if len(gain) else first
