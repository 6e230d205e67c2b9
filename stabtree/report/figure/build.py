"""The figure of a diagnosis: which series, over which steps, with what marked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.stats import quantiles
from stabtree.profile import profiles
from stabtree.report.figure.axis import LOG_RATIO
from stabtree.report.figure.model import Figure, Mark, Strip, column_of
from stabtree.report.model.events import by_group
from stabtree.report.model.quoted import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.run import Gap, Run, Series

MAX_STRIPS = 4
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
        """Return the column that each step falls into: int64 (steps,)."""
        return column_of(steps, self.first, self.last, self.columns)


def figure(diagnosis: Diagnosis, finding: Incident | None, columns: int) -> Figure | None:
    """Return the series that a diagnosis rests on over one axis of steps; None where there is nothing to draw.

    Args:
        diagnosis: what was found.
        finding: the finding that the report is of.
        columns: how many points wide.
    """
    chosen = chosen_series(diagnosis, finding)
    if not chosen:
        return None
    first = min(int(series.steps[0]) for series in chosen)
    last = max(int(series.steps[-1]) for series in chosen)
    if first == last:
        return None
    onset = None
    if finding:
        onset = finding.onset_step
    strips = _strips(diagnosis, chosen, Frame(first, last, columns, onset))
    marks = [mark for mark in _marks(diagnosis, finding) if first <= mark.step <= last]
    marks.sort(key=lambda mark: mark.step)
    return Figure(first, last, columns, tuple(strips), tuple(marks), diagnosis.run.unit)


def _strips(diagnosis: Diagnosis, chosen: list[Series], frame: Frame) -> Iterator[Strip]:
    """Yield each series as it is drawn, with its own gaps."""
    leader, moved = _leader(diagnosis), _moved(diagnosis)
    for series in chosen:
        gaps = [gap for gap in diagnosis.run.gaps if gap.metric == series.metric]
        strip = drawn_strip(series, frame, gaps=gaps, leads=series.metric == leader)
        yield replace(strip, moved=series.metric in moved or bool(strip.bad.any()))


def _moved(diagnosis: Diagnosis) -> set[str]:
    """Return the series in which something happened around the onset, or in which it was found."""
    found = {event.metric for event in diagnosis.timeline}
    for finding in diagnosis.findings[:1]:
        found |= {finding.metric, *(item.metric for item in finding.evidence)}
    return found


def _leader(diagnosis: Diagnosis) -> str:
    """Return the series that moved before the others; empty where there are none."""
    if len(by_group(diagnosis.timeline)) <= 1:  # alone it was before nothing
        return ""
    return next((event.metric for event in diagnosis.timeline if event.first), "")


def chosen_series(diagnosis: Diagnosis, finding: Incident | None) -> list[Series]:
    """Return the series that moved and those that the finding rests on, with the loss."""
    held = distinct(_held(diagnosis.run, _wanted(diagnosis, finding)))
    drawn = [series for series in held if _shows(series)]
    if not drawn:
        return []
    loss = [series for series in held if series.metric == "loss" and len(series) and not _shows(series)]
    return [*loss, *drawn][:MAX_STRIPS]


def _wanted(diagnosis: Diagnosis, finding: Incident | None) -> list[str]:
    """Return the names of the series to draw: the finding's own, what moved first, what moved then.

    The loss comes last where it is none of them: a loss that did not move shows nothing.
    """
    names = [name for name in _named(diagnosis, finding) if diagnosis.run.find(name)]
    if finding:
        names += [name for name in _tenfold(diagnosis.run) if name not in names]
    return [*names[: MAX_STRIPS - 1], "loss", *names]


def _named(diagnosis: Diagnosis, finding: Incident | None) -> dict[str, None]:
    """Return the series that the finding and the timeline name, in the order in which to draw them."""
    names: list[str] = []
    if finding:
        names += [item.metric for item in finding.evidence[:1]]
    names += [event.metric for event in diagnosis.timeline if event.first]
    if finding:
        names += [item.metric for item in finding.evidence]
    names += [event.metric for event in diagnosis.timeline]
    return dict.fromkeys(name for name in names if name != "batch_id")


def _tenfold(run: Run) -> list[str]:
    """Return the columns that nobody knows and that ended at ten times a level of theirs or a tenth, farthest first."""
    described = profiles(run)
    found = []
    for name in run.others:
        ratios = [abs(left.end / left.level) for left in described[name].departures if left.tenfold_step is not None]
        if ratios and described[name].shows_training:
            found.append((-max(max(ratio, 1 / max(ratio, 1e-300)) for ratio in ratios), name))
    return [name for _, name in sorted(found)]


def _held(run: Run, names: list[str]) -> list[Series]:
    """Return the series of these names that a run has; where it has none, those that are not finite."""
    held = [series for name in dict.fromkeys(names) if (series := run.find(name)) is not None]
    if held:
        return held
    return [series for series in run.series.values() if not np.isfinite(series.values).all()]


def _shows(series: Series) -> bool:
    """Whether there is something to see in a series by itself: a course, or a row that is not finite."""
    return len(series) > 1 or not np.isfinite(series.values).all()


def _marks(diagnosis: Diagnosis, finding: Incident | None) -> list[Mark]:
    found = [Mark(event.step, "first", f"{event.step:,}") for event in diagnosis.timeline if event.first]
    if finding and finding.restart and finding.restart.checkpoint_step is not None:
        step = finding.restart.checkpoint_step
        found.append(Mark(step, "restart", f"{step:,}"))
    if finding and finding.onset_step is not None:
        found.append(Mark(finding.onset_step, "onset", f"{finding.onset_step:,}"))
    return found


def drawn_strip(series: Series, frame: Frame, *, gaps: Sequence[Gap] = (), leads: bool = False) -> Strip:
    """Return a series as it is drawn into the columns of a frame.

    Args:
        series: the series.
        frame: the axis of steps.
        gaps: where it is missing.
        leads: whether it moved before all others.
    """
    good = np.isfinite(series.values)
    columns, values = frame.columns_of(series.steps), series.values[good]
    low, high, log = _axis(values, series.steps, frame.onset if good.all() else None)
    lows, highs = np.full(frame.columns, np.nan), np.full(frame.columns, np.nan)
    bottom, top = low, high
    if len(values):
        bounds = np.searchsorted(columns[good], np.arange(frame.columns + 1))
        filled = np.diff(bounds) > 0
        lows[filled] = np.minimum.reduceat(values, bounds[:-1][filled])
        highs[filled] = np.maximum.reduceat(values, bounds[:-1][filled])
        bottom, top = float(values.min()), float(values.max())
    after_gaps = np.searchsorted(series.steps, [gap.first_step for gap in gaps])
    bad = np.zeros(frame.columns, dtype=bool)
    bad[columns[~good]] = True
    return Strip(
        metric=series.metric,
        lows=lows,
        highs=highs,
        bad=bad,
        joined=_joined(~np.isnan(highs), columns, good, after_gaps),
        low=low,
        high=high,
        log=log,
        clipped=top if top > high else None,
        clipped_low=bottom if bottom < low else None,
        first=leads,
    )


def _joined(filled: Bools, columns: Ints, good: Bools, after_gaps: Ints) -> Bools:
    """Return whether the line goes on into each filled column: bool (columns,).

    It breaks behind a value that is not finite, and behind a gap.
    """
    joined = filled.copy()
    joined[columns[good & ~np.append(False, good[:-1])]] = False
    joined[columns[after_gaps[after_gaps < len(columns)]]] = False
    return joined


def _axis(values: Floats, steps: Ints, onset: int | None) -> tuple[float, float, bool]:
    """Return the ends of the axis, and whether it is logarithmic.

    The whole range where most of the series reach it. Where something began late in the run, its early fall does not
    flatten that.
    """
    if not len(values):
        return 0.0, 1.0, False
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > LOG_RATIO:
        return low, high, True
    usual, times = values, FAR
    if onset is not None and onset > steps[len(values) // EARLY]:
        usual, times = values[len(values) // EARLY :], ROOM
    inner_low, inner_high = quantiles(usual, *ROBUST)
    room = times * (inner_high - inner_low)
    if room > 0:
        low, high = max(low, inner_low - room), min(high, inner_high + room)
    return low, high, False
