"""The figure of a diagnosis: which series, over which steps, with what marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import quantiles
from stabtree.render.figure.model import Figure, Mark, Strip, column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.run import Gap, Run, Series

MOST_STRIPS = 4
LOG_RATIO = 30.0  # a series that spans more than this is drawn on a log axis
ROBUST = (0.005, 0.995)  # what lies within is always on the axis
FAR = 3.0  # how many times that range an end may reach beyond it
ROOM = 0.5  # the same where something began later than the first of so many parts of the rows
EARLY = 5


@dataclass(frozen=True, slots=True)
class Frame:
    """The axis of steps, cut into columns, and where on it the trouble began."""

    first: int
    last: int
    columns: int
    onset: int | None = None

    def columns_of(self, steps: Ints) -> Ints:
        """The column that each step falls into."""
        return column_of(steps, self.first, self.last, self.columns)


def figure(diagnosis: Diagnosis, finding: Finding | None, columns: int) -> Figure | None:
    """The series that a diagnosis rests on over one axis of steps; None where there is nothing to draw.

    Args:
        diagnosis: what was found.
        finding: the finding that the report is of.
        columns: how many points wide.
    """
    chosen = chosen_series(diagnosis, finding)
    first = min((int(series.steps[0]) for series in chosen), default=0)
    last = max((int(series.steps[-1]) for series in chosen), default=0)
    if first == last:
        return None
    leader = next((event.metric for event in diagnosis.timeline if event.first), "")
    if len({event.metric.partition("/")[0] for event in diagnosis.timeline}) < 2:
        leader = ""  # alone it was before nothing
    frame = Frame(first, last, columns, finding.onset_step if finding else None)
    gaps = diagnosis.run.gaps
    strips = tuple(
        drawn_strip(
            series, frame, gaps=[gap for gap in gaps if gap.metric == series.metric], leads=leader == series.metric
        )
        for series in chosen
    )
    marks = sorted((m for m in _marks(diagnosis, finding) if first <= m.step <= last), key=lambda mark: mark.step)
    return Figure(first, last, columns, strips, tuple(marks), diagnosis.run.unit)


def chosen_series(diagnosis: Diagnosis, finding: Finding | None) -> list[Series]:
    """The loss, what moved first, and what the finding rests on."""
    run: Run = diagnosis.run
    names = ["loss"]
    names += [event.metric for event in diagnosis.timeline if event.first]
    names += [item.metric for item in finding.evidence if item.metric != "batch_id"] if finding else []
    names += [event.metric for event in diagnosis.timeline]
    held = [run.series[name] for name in dict.fromkeys(names) if name in run.series]
    held = held or [series for series in run.series.values() if not np.isfinite(series.values).all()]
    drawn = [series for series in held if _shows(series)]
    loss = [series for series in held if series.metric == "loss" and len(series) and drawn and not _shows(series)]
    return [*loss, *drawn][:MOST_STRIPS]


def _shows(series: Series) -> bool:
    """Whether there is something to see in a series by itself: a course, or a row that is not finite."""
    return len(series) > 1 or not np.isfinite(series.values).all()


def _marks(diagnosis: Diagnosis, finding: Finding | None) -> list[Mark]:
    found = [Mark(event.step, "first", f"{event.step:,}") for event in diagnosis.timeline if event.first]
    if finding and finding.restart and finding.restart.checkpoint_step is not None:
        step = finding.restart.checkpoint_step
        found.append(Mark(step, "restart", f"{step:,}"))
    if finding and finding.onset_step is not None:
        found.append(Mark(finding.onset_step, "onset", f"{finding.onset_step:,}"))
    return found


def drawn_strip(series: Series, frame: Frame, *, gaps: Sequence[Gap] = (), leads: bool = False) -> Strip:
    """A series as it is drawn into the columns of a frame.

    Args:
        series: the series.
        frame: the axis of steps.
        gaps: where it is missing.
        leads: whether it moved before all others.
    """
    good = np.isfinite(series.values)
    places, values = frame.columns_of(series.steps), series.values[good]
    low, high, log = _axis(values, series.steps, frame.onset if good.all() else None)
    lows, highs = np.full(frame.columns, np.nan), np.full(frame.columns, np.nan)
    bottom, top = low, high
    if len(values):
        bounds = np.searchsorted(places[good], np.arange(frame.columns + 1))
        filled = np.diff(bounds) > 0
        lows[filled] = np.minimum.reduceat(values, bounds[:-1][filled])
        highs[filled] = np.maximum.reduceat(values, bounds[:-1][filled])
        bottom, top = float(values.min()), float(values.max())
    bad = np.zeros(frame.columns, dtype=bool)
    bad[places[~good]] = True
    return Strip(
        metric=series.metric,
        lows=lows,
        highs=highs,
        bad=bad,
        joined=_joined(~np.isnan(highs), places, good, np.searchsorted(series.steps, [gap.first_step for gap in gaps])),
        low=low,
        high=high,
        log=log,
        clipped=top if top > high else None,
        clipped_low=bottom if bottom < low else None,
        first=leads,
    )


def _joined(filled: Bools, places: Ints, good: Bools, after_gaps: Ints) -> Bools:
    """Whether the line goes on into each filled column: nothing not finite, and no gap, lies before it."""
    joined = filled.copy()
    joined[places[good & ~np.append(False, good[:-1])]] = False
    joined[places[after_gaps[after_gaps < len(places)]]] = False
    return joined


def _axis(values: Floats, steps: Ints, onset: int | None) -> tuple[float, float, bool]:
    """The ends of the axis, and whether it is logarithmic.

    The whole range where most of the series reach it. Where something began late in the run, its early fall does not
    flatten that.
    """
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > LOG_RATIO:
        return low, high, True
    settled = values[len(values) // EARLY :]
    late = onset is not None and onset > steps[len(values) // EARLY]
    inner_low, inner_high = quantiles(settled if late else values, *ROBUST)
    room = (ROOM if late else FAR) * (inner_high - inner_low)
    if room > 0:
        low, high = max(low, inner_low - room), min(high, inner_high + room)
    return low, high, False
