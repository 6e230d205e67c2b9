"""Where a series leaves its normal course and does not come back."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import median, medians_of_three, of_three, quantiles, row_medians, windows
from stabtree.facts.spikes.tails import Tail

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats

REFERENCE = 4  # no limit: blocks that a course is drawn through: the fewest whose line survives one that is off
SPANS = (1, 4)  # how many blocks ahead the course is drawn on
BEYOND = 100.0  # no limit: how far above all others, in powers of e, a value that is not finite is put
LARGEST = 1e300  # no limit: times its usual size: what is farther off is no farther off
TWO_SIDED_90 = 1.645  # no limit: standard deviations outside of which one normal value in ten lies


class Limits(NamedTuple):
    """What counts as having left the normal course.

    Attributes:
        chance: how many of a family of series may be named by chance.
        min_change: the noise, as a share of the value, that every series is taken to have at least.
        beyond_factor: how many times as far as ever before the end must be off.
        quiet_sigma: how many times the noise a row may be off and still be in the normal course.
        max_rows: the longest stretch before its end in which a departure is looked for.
        min_blocks: fewest earlier stretches of the same length that tell how far a course misses by nature.
        max_blocks: how many of them are looked at.
    """

    chance: float
    min_change: float
    beyond_factor: float
    quiet_sigma: float
    max_rows: int
    min_blocks: int
    max_blocks: int

    @property
    def reach(self) -> int:
        """The number of rows before the end that are looked at; earlier ones change nothing."""
        return (REFERENCE + self.max_blocks - 1 + 2 * SPANS[-1]) * self.max_rows


class Departure(NamedTuple):
    """A series off its course.

    Attributes:
        row: the first row from which it is off up to the end.
        level: what its course let expect there, on the scale of `even`.
        times: how many times the limit its farthest row is off.
    """

    row: int
    level: float
    times: float


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


def departure(scaled: Floats, limits: Limits, family: int, side: int = 0) -> Departure | None:
    """Find where the last rows of a series leave the course of those before and stay off it up to the end.

    Looked for at every length of two rows and more: the course is drawn through four blocks of that length, and off is
    a row farther from both its level and its trend than the earlier rows were from theirs. So growth that goes on
    is a normal course, and so is a trend that levels off. The earliest row of all lengths counts.

    Args:
        scaled: the rows up to the end, on the scale of `even`.
        limits: what counts.
        family: how many series are looked at.
        side: 1 where only a rise counts, -1 where only a fall does.
    """
    stretches = _stretches(len(scaled), limits)
    tried = sum(one.rows * one.blocks for one in stretches) * family
    found: dict[_Stretch, Departure] = {}
    earliest = len(scaled)
    for one in sorted(stretches, key=lambda one: -one.rows * one.blocks):
        # It would begin within the stretch: a shorter one finds nothing earlier.
        if len(scaled) - one.rows * one.blocks >= earliest:
            break
        item = _at(scaled, one, limits, tried, side)
        if item:
            found[one], earliest = item, min(earliest, item.row)
    of_each = (found[one] for one in stretches if one in found)
    return min(of_each, key=lambda item: (item.row, -item.times), default=None)


class _Stretch(NamedTuple):
    """A stretch before the end: so many blocks of so many rows, after a course drawn through blocks of that length."""

    rows: int
    blocks: int


@cache
def _stretches(count: int, limits: Limits) -> tuple[_Stretch, ...]:
    """Return the stretches to look at: of doubled lengths, and the longest that leaves enough earlier ones."""
    found = set()
    for blocks in SPANS:
        longest = min(count // (REFERENCE + limits.min_blocks - 1 + 2 * blocks), limits.max_rows // blocks)
        doubled = (1 << power for power in range(1, 40) if 1 << power <= longest)
        found |= {_Stretch(rows, blocks) for rows in (*doubled, longest) if rows > 1}
    return tuple(sorted(found))


def _at(scaled: Floats, stretch: _Stretch, limits: Limits, tried: int, side: int) -> Departure | None:
    rows, blocks = stretch
    if not _strays(scaled[len(scaled) - (REFERENCE + blocks) * rows :], rows):
        return None
    count = min(len(scaled) // rows, REFERENCE + limits.max_blocks - 1 + 2 * blocks)
    off, levels = _off_course(scaled[len(scaled) - count * rows :].reshape(count, rows), blocks)
    off = np.maximum(side * off, 0) if side else off
    last, earlier = off[-1], np.abs(off[:-blocks]).ravel()
    if not last[-1]:
        return None
    direction = math.copysign(1.0, float(last[-1]))
    at90, at99 = quantiles(earlier, 0.90, 0.99)
    noise = max(at90 / TWO_SIDED_90, limits.min_change)
    start = _start(last * direction, limits.quiet_sigma * noise)
    if not 0 < start < len(last):
        return None  # it is on its course, or it left that before this stretch: a longer one sees where
    own = at90 + (at99 - at90) / math.log(10) * math.log(max(0.1 * tried / limits.chance, 1.0))
    bar = max(own, noise * _normal_height(tried, limits.chance, len(off) - blocks))
    times = float(np.abs(last[start:]).max()) / bar
    if times <= 1 or not _unheard_of(off, blocks, start, limits.beyond_factor):
        return None
    return Departure(len(scaled) - len(last) + start, float(levels[-1]), times)


def _strays(scaled: Floats, rows: int) -> bool:
    """Return whether one of the last two rows is further off the first blocks' course than most of their rows.

    Most series do not, and no earlier stretch need be looked at.
    """
    size = REFERENCE * rows
    most = int(0.9 * size)
    medians: list[float] = row_medians(scaled[:size].reshape(REFERENCE, rows)).tolist()
    # A few numbers, and for each series many times: lists take a tenth of the time of arrays.
    slope = _middle([after - before for before, after in pairwise(medians)]) / rows
    level = _middle([median - slope * rows * (place + 0.5) for place, median in enumerate(medians)])
    own = np.abs(scaled[:size] - level - slope * (np.arange(size) + 0.5))
    drawn = slope * (len(scaled) - size)
    low, high = min(drawn, 0.0), max(drawn, 0.0)
    stays = [value - level - slope * size for value in scaled[-2:].tolist()]
    off = max(abs(one - min(max(one, low), high)) for one in stays)
    return bool(off > np.partition(own, most)[most])


def _middle(values: list[float]) -> float:
    """Return the median of a few numbers."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _unheard_of(off: Floats, blocks: int, start: int, factor: float) -> bool:
    """Return whether the end is farther off than the earlier rows ever were; three rows together, if it has three."""
    last, earlier = np.abs(off[-1, start:]), np.abs(off[:-blocks])
    if float(last.max()) > factor * float(earlier.max()):
        return True
    if len(last) < 3:
        return False
    together = of_three(earlier[:, :-2], earlier[:, 1:-1], earlier[:, 2:])
    return float(medians_of_three(last)[1:-1].max()) > factor * float(together.max())


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


@cache
def _normal_height(tried: int, chance: float, blocks: int) -> float:
    """Return how many times its noise a normal series, known by so few blocks, goes by chance."""
    return Tail(tried, 0.0, 1e-9, blocks).height(chance)
