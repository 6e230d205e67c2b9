"""The figure of a comparison: the bad run over the good ones, on one axis of steps."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.comparing.result import Axis
from stabtree.render.figure.build import Frame, drawn_strip
from stabtree.render.figure.model import Figure, Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.comparing.result import Comparison
    from stabtree.render.figure.model import Strip

MOST_STRIPS = 3


def overlay(comparison: Comparison, columns: int) -> Figure | None:
    """The series that part first, and the loss; None where there is nothing to draw.

    Args:
        comparison: what was found.
        columns: how many points wide.
    """
    names = _chosen(comparison)
    runs = (*comparison.good, comparison.bad)
    held = [run.series[name] for name in names for run in runs]
    first = min((int(series.steps[0]) for series in held), default=0)
    last = max((int(series.steps[-1]) for series in held), default=0)
    if first == last or comparison.by is Axis.TIME:  # no two runs have one clock
        return None
    parting = comparison.first
    frame = Frame(first, last, columns)
    strips = []
    for name in names:
        bad, *good = (drawn_strip(run.series[name], frame) for run in (comparison.bad, *comparison.good))
        leads = parting is not None and parting.metric == name
        strips.append(replace(_over(bad, _band(good)), first=leads))
    marks = (Mark(parting.step, "parting", f"{parting.step:,}"),) if parting else ()
    return Figure(first, last, columns, tuple(strips), marks, comparison.bad.unit)


def _chosen(comparison: Comparison) -> list[str]:
    names = ["loss", *(item.metric for item in comparison.partings), "grad_norm"]
    known = {*comparison.compared, *(item.metric for item in comparison.partings)} - {"batch_id"}
    return [name for name in dict.fromkeys(names) if name in known][:MOST_STRIPS]


def _band(strips: Sequence[Strip]) -> Strip:
    """All good runs as one: from the lowest to the highest in each column."""
    return replace(
        _widest(strips[0], strips),
        lows=reduce(np.fmin, [strip.lows for strip in strips]),
        highs=reduce(np.fmax, [strip.highs for strip in strips]),
        joined=reduce(np.logical_and, [strip.joined for strip in strips]),
    )


def _over(bad: Strip, good: Strip) -> Strip:
    """The bad run with the good ones behind it, both on the axis that holds both."""
    both = _widest(bad, (bad, good))
    return replace(both, behind=_widest(good, (bad, good)))


def _widest(strip: Strip, strips: Sequence[Strip]) -> Strip:
    """A strip on the axis that holds all of them."""
    low, high = min(one.low for one in strips), max(one.high for one in strips)
    return replace(
        strip,
        low=low,
        high=high,
        log=low > 0 and any(one.log for one in strips),
        clipped=strip.clipped if strip.clipped is not None and strip.clipped > high else None,
        clipped_low=strip.clipped_low if strip.clipped_low is not None and strip.clipped_low < low else None,
    )
