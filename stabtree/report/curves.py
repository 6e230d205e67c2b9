"""The curves of a page as JSON: what its script draws, where every row can be read out and enlarged."""

from __future__ import annotations

import json
import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from stabtree.common.lazy import np
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.report.plot import Figure
    from stabtree.run import Gap, Run, Series

MAX_POINTS = 4000  # of all charts together: the page stays below 250 kB
MARGIN = 0.15  # of the stretch that is shown enlarged, left free on both sides
WIDE = 0.8  # of the run: what covers more of it is not worth enlarging
MAX_NAME = 80  # characters
ANCHORS = ("onset", "restart", "doubt")  # what stays in the picture when it is enlarged, with the first event


def curves(figure: Figure, run: Run, good: Run | None = None) -> str:
    """Return a figure as JSON that may stand in a page: its marks, and the rows of each series.

    Of a long series a row stays if it is the lowest or the highest of its stretch, or not finite: half of those that
    stay are spread over the whole run, half over the part that `near` names.

    Args:
        figure: what is drawn without a script.
        run: the run that it shows.
        good: a healthy run to be drawn behind it.
    """
    near = enlarged(figure)
    drawn = [series for strip in figure.strips if (series := run.find(strip.metric))]
    behind = [good.find(strip.metric) if good and strip.behind else None for strip in figure.strips]
    most = MAX_POINTS // (len(drawn) + sum(series is not None for series in behind))
    strips = []
    for strip, series, other in zip(figure.strips, drawn, behind, strict=True):
        gaps = [gap for gap in run.gaps if gap.metric == series.metric]
        item: dict[str, Any] = {name: getattr(strip, name) for name in ("log", "tall", "first")}
        item |= {"key": strip.metric, "name": clean(strip.metric, MAX_NAME), "ends": [strip.low, strip.high]}
        item["rows"] = _rows(series, near, most, gaps)
        if other is not None:
            item["good"] = _rows(other, near, most, ())
        strips.append(item)
    marks = [asdict(mark) for mark in figure.marks]
    found = {"unit": figure.unit, "whole": [figure.first_step, figure.last_step], "near": near, "marks": marks}
    found |= {"strips": strips, "good": clean(good.name, MAX_NAME) if good and any(behind) else ""}
    # No text in it ends the script.
    return json.dumps(found, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("##", "#\\u0023")


def enlarged(figure: Figure) -> list[float]:
    """Return the part of the run to look at closely: what moved first, the onset and the restart; empty without one."""
    steps = [mark.step for mark in figure.marks if mark.kind in ANCHORS]
    steps += [mark.step for mark in figure.marks if mark.kind == "event" and mark.label == "1"]
    if not any(mark.kind == "onset" for mark in figure.marks):
        return []
    low, high = min(steps), max(steps)
    margin = max(MARGIN * (high - low), 5)
    near = [max(low - margin, figure.first_step), min(high + 2 * margin, figure.last_step)]
    if near[1] - near[0] > WIDE * (figure.last_step - figure.first_step):
        return []
    return near


def _rows(series: Series, near: Sequence[float], most: int, gaps: Sequence[Gap]) -> list[list[float | None]]:
    """Return the steps and the values of a series; the value is None where it is not finite, and in a gap."""
    steps, values = series.steps, series.values
    kept = np.arange(len(steps))
    if len(steps) > most:
        kept = _extremes(values, 0, len(values), most // 2 if near else most)
    if len(steps) > most and near:
        begin, end = np.searchsorted(steps, near[0]), np.searchsorted(steps, near[1], side="right")
        kept = np.union1d(kept, _extremes(values, int(begin), int(end), most // 2))
    logged = zip(steps[kept].tolist(), map(_short, values[kept].tolist()), strict=True)
    points = sorted([*logged, *((gap.first_step, None) for gap in gaps)], key=itemgetter(0))
    return [[step for step, _ in points], [value for _, value in points]]


def _short(value: float) -> float | None:
    """Return a value in the digits that a chart shows, None if it is not finite; rounding may overflow the largest."""
    found = (number for number in (float(f"{value:.5g}"), value) if math.isfinite(number))
    return next(found, None)


def _extremes(values: Floats, begin: int, end: int, most: int) -> Ints:
    """Return the rows from `begin` to `end` that show the course of a series: int64, at most about `most`."""
    if end - begin <= most:
        return np.arange(begin, end)
    part = values[begin:end]
    starts = np.linspace(0, len(part), most // 2, endpoint=False).astype(np.int64)
    stretch = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(part))))
    finite = np.isfinite(part)
    found = []
    for extreme, least in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        wanted = extreme.reduceat(np.where(finite, part, least), starts)[stretch]
        at = np.flatnonzero(finite & (part == wanted))
        found.append(at[np.unique(stretch[at], return_index=True)[1]])
    lost = np.flatnonzero(~finite)
    found.append(lost[np.unique(stretch[lost], return_index=True)[1]])
    rows: Ints = np.unique(np.concatenate(found)) + begin
    return rows
