"""Finding spikes: all excursions of a loss above its recent mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import interval
from stabtree.facts.registry import finite
from stabtree.facts.spikes.excursions import Excursion, Search, bounds, excursion
from stabtree.facts.spikes.rarity import in_a_row
from stabtree.facts.spikes.scores import scores, shifts
from stabtree.facts.spikes.short import find_short
from stabtree.facts.spikes.tails import Tail, upper_tail

if TYPE_CHECKING:
    from stabtree.common.lazy import Ints
    from stabtree.facts.spikes.params import SpikeSearchParams
    from stabtree.facts.spikes.scores import Scores
    from stabtree.run import Series


@remembered
def find(loss: Series, params: SpikeSearchParams, seams: tuple[int, ...] = ()) -> Search:
    """Search a loss series for spikes.

    A step is above when it is more than `sigma` standard deviations over the mean of the `window_steps`
    before it. With `chance` below 1 the deviation is that about the window's trend, and the step must be so
    high that the upper tail of the run's own scores makes fewer than `chance` such steps expected. Steps up to the
    recovery belong to one spike. Once found, the steps of a spike that healed are taken out of the windows
    after it, where they would hide the next one. A rise that runs straight into the NaN at which the run ends
    belongs to section 1 and is no spike, nor is one in the first rows after one of the `seams`, steps at which the
    run was resumed.
    """
    steps, values = finite(loss)
    if params.short(loss):
        return find_short(steps, values, params)
    rows = params.rows(loss)
    widened = rows != max(1, round(params.window_steps / interval(steps)))
    if len(values) < rows + 3:
        return Search((), rows, widened, 0, 0.0, 0, params.sigma)
    guarded = params.guarded
    first = params.first(steps, rows)
    scored = scores(loss, rows, first, guarded)
    # The tail is that of the first scan: with the spikes taken out, their own flanks would stand out in it.
    tail = upper_tail(scored.noise, rows)
    bar = min(max(params.sigma, tail.height(params.chance)), 1e300) if guarded else params.sigma
    scan = _scan(steps, scored, tail, bar, params)
    healed = [spike for spike in scan.spikes if spike.recovered_step is not None]
    if healed:
        scan = _scan(steps, _without(steps, scored, healed), tail, bar, params)
    if not np.isfinite(loss.values[-1]):
        last = int(steps[-1]) - params.window_steps
        scan = replace(scan, spikes=tuple(s for s in scan.spikes if s.recovered_step is not None or s.step < last))
    spikes = tuple(spike for spike in scan.spikes if not _at_seam(steps, spike.step, seams))
    return replace(scan, widened=widened, spikes=spikes)


def _at_seam(steps: Ints, step: int, seams: tuple[int, ...]) -> bool:
    """Return whether a step is among the first rows after a seam."""
    return any(
        0 <= int(np.searchsorted(steps, step)) - int(np.searchsorted(steps, seam)) < ROWS_SHORT for seam in seams
    )


def _without(steps: Ints, scored: Scores, healed: list[Excursion]) -> Scores:
    """Return the scores with each healed spike replaced by the rows before it, so that the scatter is the run's own."""
    level, rows = scored.values.copy(), scored.windows.rows
    for spike in healed:
        back = spike.recovered_step if spike.recovered_step is not None else spike.step
        start, end = (int(np.searchsorted(steps, step)) for step in (spike.step, back))
        level[start:end] = np.resize(level[start - rows : start], end - start)
    return scored.against(level)


def _scan(steps: Ints, scored: Scores, tail: Tail, bar: float, params: SpikeSearchParams) -> Search:
    """Find all excursions above `bar` and all shifts; healed are those whose median of `ROWS_SHORT` rows is back."""
    values, first, heights = scored.values, scored.first, scored.heights
    top, back_rows = int(np.argmax(heights)), ROWS_SHORT if params.guarded else 1
    found: list[Excursion] = []
    shifted = shifts(scored, params)
    # Twice in it does no harm, and `np.union1d` imports masked arrays.
    hits = np.sort(np.concatenate((np.flatnonzero(heights > bar), shifted.rows)))
    mean, spread = scored.at(hits)
    at = 0
    while at < len(hits):
        hit = int(hits[at])
        m, s, shift = float(mean[at]), float(spread[at]), shifted.at(hit)
        extent = bounds(values, hit + first, m + params.back_sigma * s, back_rows)
        expected = tail.expected(shift or float(heights[hit]))
        found.append(
            excursion(
                steps,
                values,
                extent,
                mean=m,
                sigma=s,
                height_sigma=(float(values[extent.peak]) - m) / s,
                expected=in_a_row(expected, len(heights), params) if shift else expected,
                shift_sigma=shift,
            )
        )
        at = int(np.searchsorted(hits, extent.end - first))
    highest = float(heights[top])
    return Search(
        tuple(found),
        scored.windows.rows,
        False,
        len(heights),
        highest,
        int(steps[first + top]),
        bar,
        tail.expected(highest),
    )
