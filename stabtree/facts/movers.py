"""Which series moved, and when: before the trouble, with it, or right after it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import row_of
from stabtree.common.stats import median, stretches
from stabtree.facts.departure import REFERENCE, Departure, Limits, departure, even, uneven
from stabtree.facts.registry import Count, fact
from stabtree.metrics.metric import Role
from stabtree.metrics.table import by_name, with_role
from stabtree.profile import Profile, far, profiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Run, Series

# Which way a series goes in trouble where none is better; a rate that falls follows its schedule.
SIDES = {"lr": 1, "loss_scale": -1}
STEADY = (0.3, 0.7)  # how far a steady growth has come at half of its rows
MIN_RISE = 10  # how many times the least change a rate without noise must rise by
DOUBLED = 2.0  # a rate that has risen by so much before the trouble may be its cause
LOST = "not finite"  # how a series is described that has no finite row from its first one off its course on
WANDERED = (
    40.0  # scatters of levels; a random walk of 64 blocks ranges over 18 of them, and hardly ever over twice that
)
MAX_OTHERS = 4  # no limit: columns that nobody knows beside the metrics: more would push these off the screen
AT_ONCE = 0.7  # the share of all its way that a jump makes in its first row


class Move(NamedTuple):
    """A series that left its normal course and did not come back.

    Attributes:
        metric: the series.
        step: the first logged step off its course.
        text: what it did, with its numbers.
        times: how many times the limit of a chance move it went off.
    """

    metric: str
    step: int
    text: str
    times: float

    def before(self, onset_step: int) -> Evidence:
        """Return the move as evidence, with its lead over the onset."""
        lead = onset_step - self.step
        text = f"{self.metric} {self.text}, from step {self.step:,} on, {lead:,} step{'s' if lead != 1 else ''} before"
        return Evidence(text, self.metric, (self.step, onset_step), self.times, 1.0)


class Movers:
    """The series of a run, asked when each left its normal course.

    Args:
        run: the run.
        limits: what counts as having left it.
        after_steps: how long after the trouble began a move still belongs to it.
        scale_factor: how many times lower a loss scale must be to have done more than its usual search.
    """

    def __init__(self, run: Run, limits: Limits, after_steps: int, scale_factor: float) -> None:
        aside = with_role(Role.LABEL, Role.CLOCK)  # these say nothing about learning
        self._series = [
            series for name, series in run.series.items() if name.partition("/")[0] not in aside and len(series)
        ]
        self._run = run
        self._bars, self._after, self._scale_factor = limits, after_steps, scale_factor
        self._known: dict[int, dict[str, Move]] = {}

    def by(self, step: int) -> tuple[Move, ...]:
        """Return what had moved by a step and had not come back, in order."""
        return _in_order(self._moved(step))

    def around(self, onset_step: int) -> tuple[Move, ...]:
        """Return what had moved by a step and had not come back, and what moved right after it, in order."""
        by = self._moved(onset_step)
        others = (series for series in self._series if series.metric not in by)
        after = (self._move(series, onset_step + self._after) for series in others)
        return _in_order(by | {move.metric: move for move in after if move})

    def others_around(self, onset_step: int) -> tuple[Move, ...]:
        """Return what moved by a step or right after it of the columns that nobody knows: the farthest few, in order.

        Only those are looked at whose profile has more than one level or rows that are not finite, and that are no
        clock, count or setting. What left its level for good later in the run followed from what happened at that step.
        """
        if not self._run.others:
            return ()
        described = profiles(self._run)
        changed = [
            series
            for name, series in self._run.others.items()
            if (len(described[name].segments) > 1 or described[name].nonfinite.count) and described[name].shows_training
        ]
        moves = {move.metric: move for series in changed for move in _later(described[series.metric], onset_step)}
        found = (self._move(series, onset_step + self._after, len(self._run.others)) for series in changed)
        moves |= {move.metric: move for move in found if move}
        farthest = sorted(moves.values(), key=lambda move: -move.times)[:MAX_OTHERS]
        return _in_order({move.metric: move for move in farthest})

    def lost(self, metric: str, step: int) -> bool:
        """Return whether the row of a series at a step is not finite."""
        series = next((series for series in self._series if series.metric == metric), None)
        return series is not None and bool((~np.isfinite(series.values[row_of(series.steps, step)])).any())

    def rate(self, onset_step: int) -> Move | None:
        """Return how the learning rate rose up to a step, if it had at least doubled by then and was still rising."""
        lr = next((series for series in self._series if series.metric == "lr"), None)
        if lr is None:
            return None
        end = int(np.searchsorted(lr.steps, onset_step, side="right"))
        steps, values = lr.steps[:end], lr.values[:end]
        changes = np.diff(values)
        if not np.isfinite(values).all() or not len(changes) or changes[-1] <= 0:
            return None
        start = int(np.append(-1, np.flatnonzero(changes <= 0))[-1]) + 1
        if values[-1] < DOUBLED * values[start]:
            return None
        text = f"rises {_figure(float(values[start]))} → {_figure(float(values[-1]))}"
        return Move("lr", int(steps[start]), text, 1.0)

    def _moved(self, step: int) -> dict[str, Move]:
        if step not in self._known:
            moves = (self._move(series, step) for series in self._series)
            self._known[step] = {move.metric: move for move in moves if move}
        return self._known[step]

    def _move(self, series: Series, last_step: int, family: int = 0) -> Move | None:
        """Return how a series moved by a step, as one of so many that are looked at; 0 for all metrics."""
        end = int(np.searchsorted(series.steps, last_step, side="right"))
        rows = slice(max(0, end - self._bars.reach), end)
        steps, values = series.steps[rows], series.values[rows]
        if not end:
            return None
        name = series.metric.partition("/")[0]
        side = _side(name)
        scaled, unit = even(values)
        dead, new = _dead_from(values)
        # Where it stopped being finite is one thing; whether it was on its course up to there is another.
        alive = scaled[:dead]
        left = departure(alive, self._bars, family or len(self._series), side)
        if left is None and name == "lr":
            left = _risen(alive, self._bars)
        if left is None:
            return Move(series.metric, int(steps[dead]), LOST, math.inf) if new else None
        if name == "loss_scale" and left.level - alive[-1] < math.log(self._scale_factor):
            return None
        left = _jumped(alive, left)
        return Move(series.metric, int(steps[left.row]), _describe(name, steps, values, scaled, left, unit), left.times)


def _later(profile: Profile, step: int) -> Iterator[Move]:
    """Yield how a series left a level for good after a step, by its profile."""
    for left in profile.departures:
        if left.step > step and abs(left.times) > far(profile.rows) and abs(left.scatters) > WANDERED:
            text = f"{'rises' if left.times > 0 else 'falls'} {_figure(left.level)} → {_figure(left.end)}"
            yield Move(profile.series.metric, left.step, text, abs(left.scatters) / WANDERED)


def _in_order(moves: Mapping[str, Move]) -> tuple[Move, ...]:
    return tuple(sorted(moves.values(), key=lambda move: (move.step, -move.times, move.metric)))


def _jumped(alive: Floats, left: Departure) -> Departure:
    """Move the departure to the row that makes most of the change, if no row before it is outside the usual range."""
    side = float(np.sign(alive[-1] - left.level))
    ways = side * np.diff(alive[left.row - 1 :])
    row = left.row + int(np.argmax(ways))
    early = side * alive[left.row : row]
    if not len(early) or float(ways.max()) < AT_ONCE * (side * float(alive[-1]) - median(early)):
        return left
    usual = side * alive[max(0, left.row - REFERENCE * max(len(early), REFERENCE)) : left.row]
    if early.max() > usual.max():
        return left
    return Departure(row, float(alive[row - 1]), left.times)


def _side(metric: str) -> int:
    """Return which way a metric goes in trouble: 1 up, -1 down, 0 where either may be one."""
    known = by_name().get(metric)
    if known and known.better:
        return 1 if known.better == "lower" else -1
    return SIDES.get(metric, 0)


def _dead_from(values: Floats) -> tuple[int, bool]:
    """Return the row from which none is finite up to the end, and whether so long a stretch is new to the series."""
    bad = stretches(~np.isfinite(values))
    if not bad or bad[-1][1] != len(values):
        return len(values), False
    start = bad[-1][0]
    return start, start > 0 and all(stop - first < len(values) - start for first, stop in bad[:-1])


def _risen(scaled: Floats, limits: Limits) -> Departure | None:
    """Find where a learning rate began to rise after it had held or fallen, however long ago: a schedule has no noise.

    A rise from the first rows on is a warm-up.
    """
    changes = np.diff(scaled)
    falls = np.flatnonzero(changes < 0)
    calm = int(falls[-1]) + 1 if len(falls) else 0
    rises = np.flatnonzero(changes[calm:] > 0)
    if not len(rises):
        return None
    row = calm + int(rises[0]) + 1
    way = float(scaled[-1] - scaled[row - 1]) / (limits.min_change * MIN_RISE)
    return Departure(row, float(scaled[row - 1]), way) if row > limits.min_blocks and way > 1 else None


def _describe(name: str, steps: Ints, values: Floats, scaled: Floats, left: Departure, unit: float) -> str:
    """Describe what a series did from its first row off its course on."""
    finite = left.row + np.flatnonzero(np.isfinite(values[left.row :]))
    if not len(finite) or finite[0] > left.row:
        return LOST
    last = int(finite[-1])
    way, done = scaled[last] - left.level, scaled[left.row] - left.level
    at_once = min(abs(done), abs(scaled[left.row] - scaled[left.row - 1]))
    half = scaled[(left.row + last) // 2] - left.level
    ends = f"{_figure(uneven(left.level, unit))} → {_figure(float(values[last]))}"
    rises = way > 0
    if at_once >= AT_ONCE * abs(way):
        before = values[left.row - 1] if np.isfinite(values[left.row - 1]) else uneven(left.level, unit)
        text = f"{'jumps' if rises else 'drops'} {_figure(float(before))} → {_figure(float(values[last]))}"
    elif not unit and last - left.row >= 4 and STEADY[0] <= half / way <= STEADY[1] and name != "loss_scale":
        each = 100 * abs(math.expm1(float(way - done) / int(steps[last] - steps[left.row])))
        text = f"{'grows' if rises else 'shrinks'} {figure(each, 2)}% a step: {ends}"
    else:
        text = f"{'rises' if rises else 'falls'} {ends}"
    later = left.row + np.flatnonzero(~np.isfinite(values[left.row :]))
    return f"{text}, not finite at step {int(steps[later[0]]):,}" if len(later) else text


def _figure(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{figure(value)}"


@fact()
def movers(
    run: Run,
    *,
    min_change: float,
    max_rows: Count,
    min_blocks: Count,
    max_blocks: Count,
    after_steps: int,
    scale_factor: float,
    chance: float = shared.SHARE_SOME,
    beyond_factor: float = shared.NOISE_TIMES,
    quiet_sigma: float = shared.FACTOR,
) -> Movers:
    """Find when each series of a run left its normal course; the parameters are those of `Limits` and `Movers`."""
    limits = Limits(chance, min_change, beyond_factor, quiet_sigma, max_rows, min_blocks, max_blocks)
    return Movers(run, limits, after_steps, scale_factor)
