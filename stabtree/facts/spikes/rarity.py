"""How much of a spike the run's own noise explains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import NORMAL_99, quantiles
from stabtree.facts.registry import finite
from stabtree.facts.spikes.scores import scores
from stabtree.facts.spikes.tails import upper_tail

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.facts.spikes.excursions import Excursion
    from stabtree.facts.spikes.params import SpikeSearchParams
    from stabtree.run import Series


@remembered
def rarity(series: Series, step: int, params: SpikeSearchParams, apart: bool = True) -> float:
    """Return how many rows of the whole run the series' own noise puts as high as the highest around a step.

    Args:
        series: the series.
        step: the step.
        params: how spikes are searched for.
        apart: whether many spikes of the series are no noise of its own.
    """
    steps, values = finite(series)
    rows = params.rows(series)
    if len(values) < rows + 3:
        return float("inf")
    first = params.first(steps, rows)
    at = int(np.searchsorted(steps, step)) - first
    if not 0 <= at < len(values) - first:
        return float("inf")
    scored = scores(series, rows, first, True, apart)
    near = scored.heights[max(at - ROWS_SHORT, 0) : at + ROWS_SHORT]
    return upper_tail(scored.noise, rows).expected(float(near.max()))


@remembered
def rarest(loss: Series, top: Excursion, params: SpikeSearchParams) -> float:
    """Return how many rows as high as the spike's highest chance allows, however heavy the tail of the run's noise.

    Of a shift, how many stretches as high. The more pessimistic of two tails: the exponential one of `Tail`, and a
    power law through the highest hundredth of the rows outside of the spike (Hill 1975); where that is no more than two
    rows, through the normal 99th percentile with the exponent `tail_exponent`, the median of the labelled healthy runs.
    """
    steps, _ = finite(loss)
    if params.short(loss):
        return top.expected
    rows = params.rows(loss)
    begin = params.first(steps, rows)
    scored = scores(loss, rows, begin, True)
    heights = scored.heights
    first = int(np.searchsorted(steps, top.step)) - begin
    end = len(heights)
    if top.recovered_step is not None:
        end = max(int(np.searchsorted(steps, top.recovered_step)) - begin, first + 1)
    height = float(heights[first:end].max())
    many = len(scored.noise) < len(heights)
    others = scored.noise if many else np.delete(heights, slice(first, end))
    base, exponent = _power_law(others, params.tail_exponent)
    tail = upper_tail(scored.noise, rows)

    def allowed(at: float) -> float:
        return max(tail.expected(at), float(len(others) / 100 * (max(at, base) / base) ** -exponent))

    single = allowed(height)
    if not top.shift_sigma:
        return single
    return min(single, in_a_row(allowed(top.shift_sigma), len(heights), params))


def _power_law(heights: Floats, usual: float) -> tuple[float, float]:
    """Return the height that a hundredth of the rows exceeds, and the exponent of the power law beyond it."""
    count = len(heights) // 100
    if count < 3:
        own = quantiles(heights, 0.99)[0] if len(heights) else NORMAL_99
        return max(own, NORMAL_99), usual
    highest = np.partition(heights, -count - 1)[-count - 1 :]
    # A loss that falls has no row far above the mean before it: below one sigma there is no tail to read.
    base = max(float(highest.min()), 1.0)
    spread = float(np.log(np.maximum(highest, base) / base).sum()) / count
    return base, 1 / max(spread, 1e-3)


def in_a_row(single: float, rows: int, params: SpikeSearchParams) -> float:
    """Return how often `single` high rows of all fill the greater half of `level_rows` in a row by chance."""
    half = (params.level_rows + 1) // 2
    share = min(single / rows, 1.0)
    return float(rows * math.comb(params.level_rows, half) * share**half)
