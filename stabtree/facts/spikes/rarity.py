"""How much of a spike the run's own noise explains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_99, quantiles, upper_tail
from stabtree.facts.registry import finite, per_series
from stabtree.facts.spikes.scores import scores

if TYPE_CHECKING:
    from stabtree.facts.spikes.excursions import Excursion
    from stabtree.facts.spikes.params import SpikeSearchParams
    from stabtree.run import Series


@per_series
def rarity(series: Series, step: int, params: SpikeSearchParams) -> float:
    """Return how many rows of the whole run the series' own noise puts as high as the highest around a step."""
    steps, values = finite(series)
    rows = params.rows(series)
    if len(values) < rows + 3:
        return float("inf")
    first = params.first(steps, rows)
    at = int(np.searchsorted(steps, step)) - first
    if not 0 <= at < len(values) - first:
        return float("inf")
    heights = scores(values, values, rows, first, True).heights
    near = heights[max(at - params.back_rows, 0) : at + params.back_rows]
    return upper_tail(heights, rows).expected(float(near.max()))


@per_series
def rarest(loss: Series, top: Excursion, params: SpikeSearchParams, alone: bool = False) -> float:
    """Return how many rows as high as the spike's highest chance allows, however heavy the tail of the run's noise.

    Of a shift, how many stretches as high; `alone` asks about the single row all the same.

    The more pessimistic of two tails: the exponential one of `Tail`, and a power law through the highest hundredth of
    the rows outside of the spike (Hill 1975). Runs of fewer than `tail_rows` rows have no hundredth to
    read it from: theirs goes through the 99th percentile, at least that of normal noise, with the exponent
    `tail_exponent`, the median of the labelled healthy runs.
    """
    steps, values = finite(loss)
    if params.short(loss):
        return top.expected
    rows = params.rows(loss)
    begin = params.first(steps, rows)
    heights = scores(values, values, rows, begin, True).heights
    first = int(np.searchsorted(steps, top.step)) - begin
    end = len(heights)
    if top.recovered_step is not None:
        end = max(int(np.searchsorted(steps, top.recovered_step)) - begin, first + 1)
    height = float(heights[first:end].max())
    others = np.delete(heights, slice(first, end))
    least, base, exponent = len(others) / 100, NORMAL_99, params.tail_exponent
    if len(others) >= max(params.tail_rows, 100):  # a hundredth of fewer is no row
        highest = np.sort(np.partition(others, -int(least) - 1)[-int(least) - 1 :])
        base = max(float(highest[0]), 1e-300)
        exponent = 1 / max(float(np.mean(np.log(np.maximum(highest[1:], base) / base))), 1e-3)
    elif len(others):
        base = max(quantiles(others, 0.99)[0], NORMAL_99)
    tail = upper_tail(heights, rows)

    def allowed(at: float) -> float:
        return max(tail.expected(at), float(least * (max(at, base) / base) ** -exponent))

    single = allowed(height)
    if alone or not top.shift_sigma:
        return single
    return min(single, in_a_row(allowed(top.shift_sigma), len(heights), params))


def in_a_row(single: float, rows: int, params: SpikeSearchParams) -> float:
    """Return how often `single` high rows of all fill the greater half of `shift_rows` in a row by chance."""
    half = (params.shift_rows + 1) // 2
    share = min(single / rows, 1.0)
    return float(rows * math.comb(params.shift_rows, half) * share**half)
