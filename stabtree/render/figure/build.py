"""The figure of a diagnosis: which series, over which steps, with what marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.render.figure.model import Figure, Mark, Strip
from stabtree.stats import quantiles

if TYPE_CHECKING:
    from stabtree._lazy import Bools, Floats, Ints
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.run import Run, Series

MOST_STRIPS = 4
LOG_RATIO = 30.0  # a series that spans more than this is drawn on a log axis
ROBUST = (0.005, 0.995)  # what lies within is always on the axis
FAR = 3.0  # how many times that range an end may reach beyond it


def figure(diagnosis: Diagnosis, finding: Finding | None, columns: int) -> Figure | None:
    """The series that a diagnosis rests on over one axis of steps; None where there is nothing to draw.

    Args:
        diagnosis: what was found.
        finding: the finding that the report is of.
        columns: how many points wide.
    """
    chosen = _chosen(diagnosis, finding)
    if not chosen:
        return None
    first = min(int(series.steps[0]) for series in chosen)
    last = max(*(int(series.steps[-1]) for series in chosen), first + 1)
    leader = next((event.metric for event in diagnosis.timeline if event.first), "")
    strips = tuple(_strip(series, first, last, columns, leader == series.metric) for series in chosen)
    marks = sorted((m for m in _marks(finding) if first <= m.step <= last), key=lambda mark: mark.step)
    return Figure(first, last, columns, strips, tuple(marks))


def _chosen(diagnosis: Diagnosis, finding: Finding | None) -> list[Series]:
    """The loss, what moved first, and what the finding rests on."""
    run: Run = diagnosis.run
    names = ["loss"]
    names += [event.metric for event in diagnosis.timeline if event.first]
    names += [item.metric for item in finding.evidence if item.metric != "batch_id"] if finding else []
    names += [event.metric for event in diagnosis.timeline]
    known = [name for name in dict.fromkeys(names) if name in run.series and len(run.series[name]) > 1]
    return [run.series[name] for name in known[:MOST_STRIPS]]


def _marks(finding: Finding | None) -> list[Mark]:
    found = []
    if finding and finding.onset_step is not None:
        found.append(Mark(finding.onset_step, "onset", f"{finding.onset_step:,}"))
    if finding and finding.restart and finding.restart.checkpoint_step is not None:
        step = finding.restart.checkpoint_step
        found.append(Mark(step, "restart", f"{step:,}"))
    return found


def _strip(series: Series, first: int, last: int, columns: int, leads: bool) -> Strip:
    places = column_of(series.steps, first, last, columns)
    good = np.isfinite(series.values)
    lows, highs = np.full(columns, np.nan), np.full(columns, np.nan)
    np.fmin.at(lows, places[good], series.values[good])
    np.fmax.at(highs, places[good], series.values[good])
    bad = np.zeros(columns, dtype=bool)
    bad[places[~good]] = True
    low, high, log = _axis(series.values[good])
    bottom, top = (float(np.nanmin(lows)), float(np.nanmax(highs))) if good.any() else (low, high)
    return Strip(
        metric=series.metric,
        lows=lows,
        highs=highs,
        bad=bad,
        joined=_joined(places, good, columns),
        low=low,
        high=high,
        log=log,
        clipped=top if top > high else None,
        clipped_low=bottom if bottom < low else None,
        first=leads,
    )


def column_of(steps: Ints, first: int, last: int, columns: int) -> Ints:
    """The column that each step falls into."""
    share = (steps - first).astype(np.float64) / max(last - first, 1)
    found: Ints = np.clip((share * columns).astype(np.int64), 0, columns - 1)
    return found


def _joined(places: Ints, good: Bools, columns: int) -> Bools:
    """Whether the line goes on into each column that holds a value: nothing not finite lies before it."""
    joined = np.zeros(columns, dtype=bool)
    rows = np.flatnonzero(good)
    if len(rows):
        after_gap = np.append(False, np.diff(rows) > 1)
        starts = places[rows[after_gap]]
        joined[places[rows]] = True
        joined[starts] = False
        joined[places[rows[0]]] = False
    return joined


def _axis(values: Floats) -> tuple[float, float, bool]:
    """The ends of the axis, and whether it is logarithmic: the whole range where most of the series reach it."""
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > LOG_RATIO:
        return low, high, True
    inner_low, inner_high = quantiles(values, *ROBUST)
    room = FAR * (inner_high - inner_low)
    if room > 0:
        low, high = max(low, inner_low - room), min(high, inner_high + room)
    return low, high, False
