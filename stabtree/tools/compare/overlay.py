"""The figure of a comparison: the bad run over the good ones, on one axis of steps."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.report.plot import Figure, Frame, Mark, drawn_strip
from stabtree.tools.compare.result import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.report.plot import Strip
    from stabtree.tools.compare.result import Comparison

MAX_STRIPS = 3


def overlay(comparison: Comparison, columns: int, max_strips: int = MAX_STRIPS) -> Figure | None:
    """Return the figure of the loss and the series that part first; None if there is nothing to draw.

    Args:
        comparison: the comparison.
        columns: how many points wide.
        max_strips: how many series.
    """
    names = _chosen(comparison)[:max_strips]
    runs = (comparison.bad, *comparison.good)
    series = [run.series[name] for name, run in product(names, runs)]
    first = min((int(one.steps[0]) for one in series), default=0)
    last = max((int(one.steps[-1]) for one in series), default=0)
    if first == last or comparison.by is Axis.TIME:  # no two runs have the same clock
        return None
    frame = Frame(first, last, columns)
    strips = []
    for name in names:
        bad, *good = (drawn_strip(run.series[name], frame) for run in runs)
        leads = comparison.first is not None and comparison.first.metric == name
        strips.append(replace(_over(bad, _band(good)), first=leads))
    marks = tuple(Mark(item.step, "parting", f"{item.step:,}") for item in comparison.partings[:1])
    return Figure(first, last, columns, tuple(strips), marks, comparison.bad.unit)


def _chosen(comparison: Comparison) -> list[str]:
    names = ["loss", *(item.metric for item in comparison.partings), "grad_norm"]
    known = {*comparison.compared, *(item.metric for item in comparison.partings)} - {"batch_id"}
    return [name for name in dict.fromkeys(names) if name in known]


def _band(strips: Sequence[Strip]) -> Strip:
    """Return all good runs as one strip, from the lowest to the highest in each column."""
    return replace(
        _widest(strips[0], strips),
        lows=reduce(np.fmin, [strip.lows for strip in strips]),
        highs=reduce(np.fmax, [strip.highs for strip in strips]),
        joined=reduce(np.logical_and, [strip.joined for strip in strips]),
    )


def _over(bad: Strip, good: Strip) -> Strip:
    """Return the bad run with the good ones behind it, on one axis that fits both."""
    both = _widest(bad, (bad, good))
    return replace(both, behind=_widest(good, (bad, good)))


def _widest(strip: Strip, strips: Sequence[Strip]) -> Strip:
    """Return a strip on an axis that fits all of them."""
    low, high = min(one.low for one in strips), max(one.high for one in strips)
    log = low > 0 and any(one.log for one in strips)
    clipped, clipped_low = strip.clipped, strip.clipped_low
    if clipped is not None and clipped <= high:
        clipped = None
    if clipped_low is not None and clipped_low >= low:
        clipped_low = None
    return replace(strip, low=low, high=high, log=log, clipped=clipped, clipped_low=clipped_low)
