"""Which series left their levels first, and where the loss broke."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, last_sound_row, row_of, rows_before
from stabtree.common.shared import FACTOR_LARGE, FARTHEST, ROWS_LONG, ROWS_SHORT, SHARE_HALF
from stabtree.common.stats import (
    median,
    medians_of_three,
    of_three,
    quantiles,
    row_medians,
    stretches,
    true_at_end,
    windows,
)
from stabtree.measures.registry import Absent, Count, finite, measure
from stabtree.measures.scores import Tail
from stabtree.metrics.metric import Role
from stabtree.metrics.table import by_name, with_role
from stabtree.profile import Profile, far, profiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.run import Run, Series


REFERENCE = 4  # no limit: blocks that a course is drawn through: the fewest whose line survives one that is off
SPANS = (1, 4)  # how many blocks ahead the course is drawn on
BEYOND = 100.0  # no limit: how far above all others, in powers of e, a value that is not finite is put
LARGEST = 1e300  # no limit: times its usual size: what is farther off is no farther off
MIN_CHANGE = 0.01  # the noise, as a share of the value, that every series is taken to have at least
MAX_ROWS = 512  # the longest stretch before its end in which a departure is looked for
MIN_BLOCKS, MAX_BLOCKS = 8, 60  # the earlier stretches of the same length that tell how far a course misses by nature
AFTER_STEPS = 100  # how long after the trouble began a move still belongs to it
SCALE_FACTOR = 8.0  # how many times lower a loss scale must be to have done more than its usual search
TWO_SIDED_90 = 1.645  # no limit: standard deviations outside of which one normal value in ten lies


class Departure(NamedTuple):
    """A series off its course."""

    row: int  # the first row from which it is off up to the end
    level: float  # what its course let expect there, on the scale of `even`
    times: float  # how many times the limit its farthest row is off


def even(values: Floats) -> tuple[Floats, float]:
    """Return the values on a scale where equal ratios are equal distances, and the value of its unit; 0 for a log.

    Values that are all above 0 are taken by their logarithm, others by the inverse hyperbolic sine of what they are
    to their usual size. One that is not finite is put far above all.
    """
    known = np.isfinite(values)
    kept = values[known]
    if not len(kept):
        return np.full(len(values), BEYOND), 0.0
    if float(kept.min()) > 0:
        unit, scaled = 0.0, np.log(kept)
    else:
        unit = float(median(np.abs(kept))) or 1.0
        with np.errstate(over="ignore"):
            scaled = np.arcsinh(np.clip(kept / unit, -LARGEST, LARGEST))
    found = np.full(len(values), float(scaled.max()) + BEYOND)
    found[known] = scaled
    return found, unit


def uneven(value: float, unit: float) -> float:
    """Return a value on the scale of `even` as it was logged."""
    capped = min(max(value, -600.0), 600.0)
    return math.sinh(capped) * unit if unit else math.exp(capped)


def departure(scaled: Floats, family: int, side: int = 0) -> Departure | None:
    """Find where the last rows of a series leave the course of those before and stay off it up to the end.

    Looked for at every length of two rows and more: the course is drawn through four blocks of that length, and off is
    a row farther from both its level and its trend than the earlier rows were from theirs. So growth that goes on
    is a normal course, and so is a trend that levels off. The earliest row of all lengths counts.

    Args:
        scaled: the rows up to the end, on the scale of `even`.
        family: how many series are looked at.
        side: 1 where only a rise counts, -1 where only a fall does.
    """
    stretches = _stretches(len(scaled))
    tried = sum(rows * blocks for rows, blocks in stretches) * family
    found: dict[tuple[int, int], Departure] = {}
    earliest = len(scaled)
    for one in sorted(stretches, key=lambda one: -one[0] * one[1]):
        # It would begin within the stretch: a shorter one finds nothing earlier.
        if len(scaled) - one[0] * one[1] >= earliest:
            break
        item = _at(scaled, one, tried, side)
        if item:
            found[one], earliest = item, min(earliest, item.row)
    of_each = (found[one] for one in stretches if one in found)
    return min(of_each, key=lambda item: (item.row, -item.times), default=None)


@cache
def _stretches(count: int) -> tuple[tuple[int, int], ...]:
    """Return the stretches before the end to look at: so many blocks of so many rows, which follow others as long.

    They are of doubled lengths, and the longest that leaves enough earlier ones.
    """
    found = set()
    for blocks in SPANS:
        longest = min(count // (REFERENCE + MIN_BLOCKS - 1 + 2 * blocks), MAX_ROWS // blocks)
        doubled = (1 << power for power in range(1, 40) if 1 << power <= longest)
        found |= {(rows, blocks) for rows in (*doubled, longest) if rows > 1}
    return tuple(sorted(found))


def _at(scaled: Floats, stretch: tuple[int, int], tried: int, side: int) -> Departure | None:
    rows, blocks = stretch
    count = min(len(scaled) // rows, REFERENCE + MAX_BLOCKS - 1 + 2 * blocks)
    off, levels = _off_course(scaled[len(scaled) - count * rows :].reshape(count, rows), blocks)
    off = np.maximum(side * off, 0) if side else off
    last, earlier = off[-1], np.abs(off[:-blocks]).ravel()
    if not last[-1]:
        return None
    direction = math.copysign(1.0, float(last[-1]))
    at90, at99 = quantiles(earlier, 0.90, 0.99)
    noise = max(at90 / TWO_SIDED_90, MIN_CHANGE)
    start = _start(last * direction, shared.FACTOR * noise)
    if not 0 < start < len(last):
        return None  # it is on its course, or it left that before this stretch: a longer one sees where
    own = at90 + (at99 - at90) / math.log(10) * math.log(max(0.1 * tried / shared.SHARE_SOME, 1.0))
    bar = max(own, noise * Tail(tried, 0.0, 1e-9, len(off) - blocks).height(shared.SHARE_SOME))
    times = float(np.abs(last[start:]).max()) / bar
    if times <= 1:
        return None
    # The end must be farther off than the earlier rows ever were; three rows together, if it has three.
    late, before = np.abs(last[start:]), np.abs(off[:-blocks])
    most, ever = float(late.max()), float(before.max())
    if most <= shared.NOISE_TIMES * ever and len(late) > 2:
        most = float(medians_of_three(late)[1:-1].max())
        ever = float(of_three(before[:, :-2], before[:, 1:-1], before[:, 2:]).max())
    if most <= shared.NOISE_TIMES * ever:
        return None
    return Departure(len(scaled) - len(last) + start, float(levels[-1]), times)


def _off_course(table: Floats, blocks: int) -> tuple[Floats, Floats]:
    """Return how far each stretch's rows lie beyond the course of the blocks before it, and where that course ends."""
    rows = table.shape[1]
    ahead = windows(row_medians(table)[:-blocks], REFERENCE)
    slopes = of_three(*(ahead[:, 1:] - ahead[:, :-1]).T)
    ordered = np.sort(ahead - slopes[:, None] * (np.arange(REFERENCE) - REFERENCE + 0.5), axis=1)
    levels = (ordered[:, 1] + ordered[:, 2]) / 2
    drawn = slopes[:, None] * ((np.arange(rows * blocks) + 0.5) / rows)
    off = windows(table[REFERENCE:].ravel(), rows * blocks)[::rows] - levels[:, None]
    beyond: Floats = off - np.minimum(np.maximum(off, np.minimum(drawn, 0)), np.maximum(drawn, 0))
    return beyond, levels


def _start(off: Floats, quiet: float) -> int:
    """Return the first of two rows from which all are off; one that dips between two that are off does not end that."""
    out: Bools = off > quiet
    stays = out | (medians_of_three(off) > quiet) if len(off) > 2 else out
    wrong = np.flatnonzero(~stays)
    first = int(wrong[-1]) + 1 if len(wrong) else 0
    together = np.flatnonzero(out[first:] & np.append(out[first + 1 :], True))
    return first + int(together[0]) if len(together) else len(off)


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
    """A series that left its normal course and did not come back."""

    metric: str  # the series
    step: int  # the first logged step off its course
    text: str  # what it did, with its numbers
    times: float  # how many times the limit of a chance move it went off

    def before(self, onset_step: int) -> Evidence:
        """Return the move as evidence, with its lead over the onset."""
        lead = onset_step - self.step
        text = f"{self.metric} {self.text}, from step {self.step:,} on, {lead:,} step{'s' if lead != 1 else ''} before"
        return Evidence(text, self.metric, (self.step, onset_step), self.times, 1.0)


class Movers:
    """The series of a run, asked when each left its normal course."""

    def __init__(self, run: Run) -> None:
        aside = with_role(Role.LABEL, Role.CLOCK)  # these say nothing about learning
        self._series = [one for name, one in run.series.items() if name.partition("/")[0] not in aside and len(one)]
        self._run = run
        self._known: dict[int, dict[str, Move]] = {}

    def by(self, step: int) -> tuple[Move, ...]:
        """Return what had moved by a step and had not come back, in order."""
        return _in_order(self._moved(step))

    def around(self, onset_step: int) -> tuple[Move, ...]:
        """Return what had moved by a step and had not come back, and what moved right after it, in order."""
        by = self._moved(onset_step)
        others = (series for series in self._series if series.metric not in by)
        after = (self._move(series, onset_step + AFTER_STEPS) for series in others)
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
        found = (self._move(series, onset_step + AFTER_STEPS, len(self._run.others)) for series in changed)
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
        text = f"rises {figure(float(values[start]))} → {figure(float(values[-1]))}"
        return Move("lr", int(steps[start]), text, 1.0)

    def _moved(self, step: int) -> dict[str, Move]:
        if step not in self._known:
            moves = (self._move(series, step) for series in self._series)
            self._known[step] = {move.metric: move for move in moves if move}
        return self._known[step]

    def _move(self, series: Series, last_step: int, family: int = 0) -> Move | None:
        """Return how a series moved by a step, as one of so many that are looked at; 0 for all metrics."""
        end = int(np.searchsorted(series.steps, last_step, side="right"))
        # Earlier rows change nothing.
        reach = (REFERENCE + MAX_BLOCKS - 1 + 2 * SPANS[-1]) * MAX_ROWS
        rows = slice(max(0, end - reach), end)
        steps, values = series.steps[rows], series.values[rows]
        if not end:
            return None
        # Which way a metric goes in trouble: 1 up, -1 down, 0 where either may be one.
        name = series.metric.partition("/")[0]
        known = by_name().get(name)
        side = {"lower": 1, "higher": -1}.get(known.better if known else "", SIDES.get(name, 0))
        scaled, unit = even(values)
        dead, new = _dead_from(values)
        # Where it stopped being finite is one thing; whether it was on its course up to there is another.
        alive = scaled[:dead]
        left = departure(alive, family or len(self._series), side)
        if left is None and name == "lr":
            left = _risen(alive)
        if left is None:
            return Move(series.metric, int(steps[dead]), LOST, math.inf) if new else None
        if name == "loss_scale" and left.level - alive[-1] < math.log(SCALE_FACTOR):
            return None
        left = _jumped(alive, left)
        return Move(series.metric, int(steps[left.row]), _describe(name, steps, values, scaled, left, unit), left.times)


def _later(profile: Profile, step: int) -> Iterator[Move]:
    """Yield how a series left a level for good after a step, by its profile."""
    for left in profile.departures:
        if left.step > step and abs(left.times) > far(profile.rows) and abs(left.scatters) > WANDERED:
            text = f"{'rises' if left.times > 0 else 'falls'} {figure(left.level)} → {figure(left.end)}"
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


def _dead_from(values: Floats) -> tuple[int, bool]:
    """Return the row from which none is finite up to the end, and whether so long a stretch is new to the series."""
    bad = stretches(~np.isfinite(values))
    if not bad or bad[-1][1] != len(values):
        return len(values), False
    start = bad[-1][0]
    return start, start > 0 and all(stop - first < len(values) - start for first, stop in bad[:-1])


def _risen(scaled: Floats) -> Departure | None:
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
    way = float(scaled[-1] - scaled[row - 1]) / (MIN_CHANGE * MIN_RISE)
    return Departure(row, float(scaled[row - 1]), way) if row > MIN_BLOCKS and way > 1 else None


def _describe(name: str, steps: Ints, values: Floats, scaled: Floats, left: Departure, unit: float) -> str:
    """Describe what a series did from its first row off its course on."""
    finite = left.row + np.flatnonzero(np.isfinite(values[left.row :]))
    if not len(finite) or finite[0] > left.row:
        return LOST
    last = int(finite[-1])
    way, done = scaled[last] - left.level, scaled[left.row] - left.level
    at_once = min(abs(done), abs(scaled[left.row] - scaled[left.row - 1]))
    half = scaled[(left.row + last) // 2] - left.level
    ends = f"{figure(uneven(left.level, unit))} → {figure(float(values[last]))}"
    rises = way > 0
    if at_once >= AT_ONCE * abs(way):
        before = values[left.row - 1] if np.isfinite(values[left.row - 1]) else uneven(left.level, unit)
        text = f"{'jumps' if rises else 'drops'} {figure(float(before))} → {figure(float(values[last]))}"
    elif not unit and last - left.row >= 4 and STEADY[0] <= half / way <= STEADY[1] and name != "loss_scale":
        each = 100 * abs(math.expm1(float(way - done) / int(steps[last] - steps[left.row])))
        text = f"{'grows' if rises else 'shrinks'} {figure(each, 2)}% a step: {ends}"
    else:
        text = f"{'rises' if rises else 'falls'} {ends}"
    later = left.row + np.flatnonzero(~np.isfinite(values[left.row :]))
    return f"{text}, not finite at step {int(steps[later[0]]):,}" if len(later) else text


@measure()
def movers(run: Run) -> Movers:
    """Find when each series of a run left its normal course."""
    return Movers(run)


class Break(NamedTuple):
    """Where the loss died: the first value of the last storm of values that are not finite."""

    row: int  # its row, `step` its step, `value` the value there
    step: int
    value: float
    good_step: int | None  # the step of the last finite value before it, None where there is none
    rows: Ints  # all rows of the loss that are not finite (n,)
    healed: bool  # whether the run got over them, or ends in no more than it had got over before
    ends_finite: bool  # whether the last `recovered_rows` rows are all finite
    # Finite rows after which a run has come back; so many right before the break may already belong to the blow-up, not
    # to the usual state.
    recovered_rows: int

    def rise_before(self, series: Series) -> tuple[float, float] | None:
        """Return how many times its usual state a series reaches in its last rows before the break, and that state.

        The usual state is the median of ten times `recovered_rows` that end as many before the break, or of the first
        half where there are fewer; a slow explosion would be its own baseline otherwise. None without four finite rows.
        """
        steps, values = finite(series)
        values = values[: rows_before(steps, self.step)]
        if len(values) < 4:
            return None
        recent = min(self.recovered_rows, len(values) - len(values) // 2)
        usual = median(values[:-recent][-int(FACTOR_LARGE) * self.recovered_rows :])
        if usual <= 0:
            return None
        # One row of the last few may be a lucky one, but a series that is back in order did not explode.
        last = values[-ROWS_SHORT:].max() if values[-1] > usual else values[-1]
        return min(float(last) / usual, 1e300), usual


@measure()
def loss_break(loss: Series, *, recovered_rows: Count = ROWS_LONG) -> Break | Absent:
    """Find the last storm of losses that are not finite; the parameters are those of `Break`.

    Trainers that skip NaN steps show single ones; none of the labelled runs that died was finite for as long as
    `recovered_rows` after its first NaN. No verdict hangs on the last rows alone: a run that has come back from as many
    bad rows in a row as it ends with has skipped these too.
    """
    rows = broken_rows(loss)
    if not len(rows):
        text = f"all {len(loss):,} logged values of loss are finite"
        return Absent((Evidence(text, "loss", (), 0.0, 0.0),), -FARTHEST)
    bad, row = ~np.isfinite(loss.values), storm_start(rows, recovered_rows)
    step, value, good = int(loss.steps[row]), float(loss.values[row]), last_finite_before(loss, row)
    ends_finite = not bad[-recovered_rows:].any()
    return Break(row, step, value, good, rows, _healed(bad, recovered_rows), ends_finite, recovered_rows)


def suffers(loss: Series, grad_norm: Series) -> bool:
    """Return whether the last row has no finite gradient, and a loss farther above all others than their range."""
    ends = len(grad_norm) and loss.steps[-1] == grad_norm.steps[-1] and not np.isfinite(grad_norm.values[-1])
    values = finite(loss)[1]
    if not ends or len(values) < 3:
        return False
    highest = float(values[:-1].max())
    return bool(values[-1] > highest + max(highest - values[:-1].min(), shared.SHARE_SOME * abs(highest)))


def _healed(bad: Bools, recovered_rows: int) -> bool:
    """Return whether a run got over its bad rows: the last ones are long ago, or like earlier ones that it got over."""
    if bad.mean() >= SHARE_HALF or bad[-2 * recovered_rows :].mean() >= SHARE_HALF:
        return False
    if not bad[-recovered_rows:].any():
        return True
    groups = [end - start for start, end in stretches(bad)]
    at_end = true_at_end(bad)
    earlier = groups[:-1] if at_end else groups
    return len(earlier) > 1 and max(earlier) >= at_end


def storm_start(rows: Ints, recovered_rows: int) -> int:
    """Return the row at which the last group of bad rows begins; NaN steps skipped long before do not count."""
    breaks = np.flatnonzero(np.diff(rows) > recovered_rows)
    return int(rows[breaks[-1] + 1]) if len(breaks) else int(rows[0])


def last_finite_before(series: Series, index: int) -> int | None:
    """Return the step of the last finite value before a row."""
    good = last_sound_row(series, index)
    return int(series.steps[good]) if good >= 0 else None
