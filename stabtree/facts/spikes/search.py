"""Finding spikes: all excursions of a loss above its recent mean."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import Tail, interval, upper_tail
from stabtree.facts.registry import finite
from stabtree.facts.spikes.excursions import Excursion, Search, bounds, excursion
from stabtree.facts.spikes.rarity import in_a_row
from stabtree.facts.spikes.scores import scores, shifts
from stabtree.facts.spikes.short import find_short

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.facts.spikes.look import SpikeLook
    from stabtree.facts.spikes.scores import Scores
    from stabtree.run import Series


def find(loss: Series, look: SpikeLook, seams: tuple[int, ...] = ()) -> Search:
    """Search a loss series for spikes.

    A step is above when it stands more than `sigma` standard deviations over the mean of the `window_steps`
    before it. With `chance` below 1 the deviation is that about the window's trend, and the step must stand so
    high that the upper tail of the run's own scores makes fewer than `chance` such steps expected. Steps up to the
    recovery belong to one spike. Once found, the steps of a spike that healed are taken out of the windows
    after it, where they would hide the next one. A rise that runs straight into the NaN at which the run ends
    belongs to section 1 and is no spike, nor is one in the first rows after one of the `seams`, steps at which the
    run was resumed.
    """
    steps, values = finite(loss)
    if look.short(loss):
        return find_short(steps, values, look)
    rows = look.rows(loss)
    widened = rows != max(1, round(look.window_steps / interval(steps)))
    if len(values) < rows + 3:
        return Search((), rows, widened, 0, 0.0, 0, look.sigma)
    guarded = look.guarded
    first = look.first(steps, rows)
    scored = scores(values, values, rows, first, guarded)
    # The tail is that of the first look: with the spikes taken out, their own flanks would stand out in it.
    tail = upper_tail(scored.heights, rows)
    bar = min(max(look.sigma, tail.height(look.chance)), 1e300) if guarded else look.sigma
    scan = _scan(steps, values, scored, rows, tail, bar, look)
    healed = [spike for spike in scan.spikes if spike.recovered_step is not None]
    if healed:
        scored = scores(values, _without(steps, values, healed, rows), rows, first, guarded)
        scan = _scan(steps, values, scored, rows, tail, bar, look)
    if not np.isfinite(loss.values[-1]):
        last = int(steps[-1]) - look.window_steps
        scan = replace(scan, spikes=tuple(s for s in scan.spikes if s.recovered_step is not None or s.step < last))
    spikes = tuple(spike for spike in scan.spikes if not _at_seam(steps, spike.step, seams, look.seam_rows))
    return replace(scan, widened=widened, spikes=spikes)


def _at_seam(steps: Ints, step: int, seams: tuple[int, ...], rows: int) -> bool:
    """Whether a step is among the first rows after a seam."""
    return any(0 <= int(np.searchsorted(steps, step)) - int(np.searchsorted(steps, seam)) < rows for seam in seams)


def _without(steps: Ints, values: Floats, healed: list[Excursion], rows: int) -> Floats:
    """The values with every healed spike replaced by the rows before it, so that their scatter stays the run's own."""
    level = values.copy()
    for spike in healed:
        back = spike.recovered_step if spike.recovered_step is not None else spike.step
        start, end = (int(np.searchsorted(steps, step)) for step in (spike.step, back))
        level[start:end] = np.resize(level[start - rows : start], end - start)
    return level


def _scan(steps: Ints, values: Floats, scored: Scores, rows: int, tail: Tail, bar: float, look: SpikeLook) -> Search:
    """All excursions above `bar` and all shifts; the median of `back_rows` rows must be back for one to have healed."""
    first, mean, spread, heights = scored
    top, least = int(np.argmax(heights)), look.back_rows if look.guarded else 1
    found: list[Excursion] = []
    shifted = shifts(values, scored, rows, look)
    # Twice in it does no harm, and `np.union1d` imports masked arrays.
    hits = np.sort(np.concatenate((np.flatnonzero(heights > bar), shifted.rows)))
    at = 0
    while at < len(hits):
        hit = int(hits[at])
        m, s, shift = float(mean[hit]), float(spread[hit]), shifted.at(hit)
        place = bounds(values, hit + first, m + look.back_sigma * s, least)
        expected = tail.expected(shift or float(heights[hit]))
        found.append(
            excursion(
                steps,
                values,
                place,
                mean=m,
                sigma=s,
                height_sigma=(float(values[place.peak]) - m) / s,
                expected=in_a_row(expected, len(heights), look) if shift else expected,
                shift_sigma=shift,
            )
        )
        at = int(np.searchsorted(hits, place.end - first))
    return Search(tuple(found), rows, False, len(heights), float(heights[top]), int(steps[first + top]), bar)
