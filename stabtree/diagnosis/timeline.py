"""What happened around the onset of a finding, in order, what moved first, and the rows that show it."""

from __future__ import annotations

import math
import re
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.lazy import Later, np
from stabtree.common.passes import row_of
from stabtree.common.stats import median
from stabtree.common.text import counting
from stabtree.diagnosis.result import STRONG, Happening, QuotedRow
from stabtree.measures.movers import LOST
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.common.faults import Fault
    from stabtree.diagnosis.result import Incident, Shows
    from stabtree.measures.movers import Move, Movers
    from stabtree.measures.registry import Measured
    from stabtree.run import Run, Series

RATE_CAUSES = ("lr-too-high", "lr-too-low")
RATE = "lr"  # a schedule moves it, none of the other series
MAX_SERIES = 4  # of a quoted row
JUMP = 5.0  # times the usual step from row to row: what is farther off is to be seen in the rows
ROWS_OF_NOISE = 50
ROWS_OF_RISE = 3  # rows before one that may already belong to what went wrong
BY_STEP = attrgetter("step")
FOLLOWS = frozenset({"loss_scale", "update_ratio"})  # what the gradient, the rate and the weights make of these


def precursors(facts: Measured, onset_step: int | None) -> Sequence[Evidence]:
    """Return what had left its normal course before a step and had not come back, each with its lead."""
    if onset_step is None:
        return ()

    def made() -> tuple[Evidence, ...]:
        moves = (move for move in facts.sure("movers").by(onset_step) if move.step < onset_step)
        found = [move.before(onset_step) for move in moves if move.metric != "loss"]
        return tuple(replace(item, text=counting(item.text, facts.run.unit)) for item in found)

    return Later(lambda: facts.faults.attempt("fact", "movers", made, lambda _fault: ()))


def timeline(facts: Measured, finding: Incident) -> Later[Happening]:
    """Return the onset of a finding, what moved before and right after it, and what shows its causes, by step."""

    def made() -> tuple[Happening, ...]:
        if finding.onset_step is None:
            return ()
        events = _timeline(facts.sure("movers"), finding, finding.onset_step)
        return tuple(replace(event, unit=finding.unit, text=counting(event.text, finding.unit)) for event in events)

    def onset_alone(_fault: Fault | None) -> tuple[Happening, ...]:
        if finding.onset_step is None:
            return ()
        text = f"onset of: {finding.leaf.title}; an internal fault of stabtree hides what else moved"
        return (Happening(finding.onset_step, finding.metric, text, unit=finding.unit),)

    return Later(lambda: facts.faults.attempt("fact", "movers", made, onset_alone))


def _timeline(movers: Movers, finding: Incident, onset: int) -> tuple[Happening, ...]:
    moves: dict[str, Move] = {}
    for step in dict.fromkeys((finding.own_onset_step, onset)):
        if step is not None:
            moves |= {move.metric: move for move in (*movers.others_around(step), *movers.around(step))}
    events = [_date_loss(Happening(move.step, move.metric, move.text), movers, finding) for move in moves.values()]
    events.sort(key=BY_STEP)
    # The evidence of causes may reach back to where no course was yet known that a series could leave.
    earliest = {event.metric: event.step for event in reversed(events)}
    strong = [item for judged in finding.causes if judged.state in STRONG for item in judged.evidence]
    for item in strong:
        if item.metric and item.steps and item.steps[0] < min(earliest.get(item.metric, onset), onset):
            earliest[item.metric] = item.steps[0]
            events.append(_happening(item))
    events.sort(key=BY_STEP)
    earliest = {event.metric: event.step for event in reversed(events)}
    marked = _mark_first(events)
    rate = movers.rate(onset) if RATE not in earliest and _is_by_rate(finding) else None
    if rate is not None:
        # A schedule that goes on as it did has not left its course, and so was not the first to.
        marked = tuple(sorted([Happening(rate.step, rate.metric, rate.text), *marked], key=BY_STEP))
    shown = _onset(finding, onset, earliest)
    if shown is None:
        return marked
    # Before those of the same step; none that comes after it was the first to move.
    index = sum(event.step < onset for event in marked)
    later = [replace(event, first=event.first and event.step == onset) for event in marked[index:]]
    return (*marked[:index], shown, *later)


def _onset(finding: Incident, onset: int, earliest: Mapping[str, int]) -> Happening | None:
    """Return the onset as an entry of its own; None if a move of its series shows it."""
    seen = next((item for item in finding.evidence if item.metric and item.steps[:1] == (onset,)), None)
    if seen and earliest.get(seen.metric, onset + 1) > onset:
        return _happening(seen)
    begins = next((item for item in finding.parts if item.onset_step == onset), finding)
    if begins.metric in earliest:
        return None
    return Happening(onset, begins.metric, f"onset of: {begins.leaf.title}")


def _date_loss(event: Happening, movers: Movers, finding: Incident) -> Happening:
    """Move the loss of a series for good to the row at which the finding says that it broke."""
    if event.text != LOST:
        return event
    for item in finding.evidence:
        if item.metric != event.metric or len(item.steps) != 2:
            continue
        first, last = item.steps
        if first < event.step <= last and movers.lost(event.metric, first):
            return replace(event, step=first, text=f"{LOST}, for good from step {event.step:,} on")
    return event


def _happening(item: Evidence) -> Happening:
    """Turn evidence into an entry of the timeline, without its explanation."""
    return Happening(item.steps[0], item.metric, re.split(r"; | \(", item.text)[0])


def _is_by_rate(finding: Incident) -> bool:
    """Return whether the finding is a rate that rises, or the log shows that the rate is its cause."""
    for item in finding.evidence:
        at, limit = item.observed, item.threshold
        if item.metric == RATE and at is not None and limit is not None and at > limit:
            return True
    return any(item.cause.id in RATE_CAUSES for item in finding.causes if item.state in STRONG)


def _mark_first(events: Sequence[Happening]) -> tuple[Happening, ...]:
    """Mark the event, of those sorted by step, that was the first to move, if the log can tell; put it first."""
    earliest = [event for event in events if event.step == events[0].step]
    free = [event for event in earliest if event.metric.partition("/")[0] not in FOLLOWS]
    leading = [event for event in earliest if event.metric == RATE] or free or earliest
    if len(leading) != 1:
        return tuple(events)
    others = list(events)
    first = others.pop(others.index(leading[0]))
    return (replace(first, first=True), *others)


def quoted_rows(run: Run, item: Incident) -> tuple[QuotedRow, ...]:
    """Return the rows that show an incident, by step, each with what was logged there of the series that show it."""
    names = dict.fromkeys([item.metric, *(evidence.metric for evidence in item.evidence if evidence.metric)])
    shown = [series for name in names if (series := run.find(name)) is not None and len(series)]
    if not shown or item.onset_step is None:
        return ()
    series, steps = shown[0], shown[0].steps
    quoted: dict[int, Shows] = {}  # what comes first here names a step
    at = int(steps.searchsorted(item.onset_step))
    if at < len(steps):
        quoted[int(steps[at])] = "onset"
    good = last_good_row(series, item.onset_step - 1 if item.last_good_step is None else item.last_good_step)
    worst = worst_row(series, item.onset_step, good)
    if worst is not None:
        quoted.setdefault(int(steps[worst]), "worst")
    if good is not None:
        quoted.setdefault(int(steps[good]), "last good")
    quoted.setdefault(int(steps[-1]), "end")
    return tuple(QuotedRow(step, what, _values(shown[:MAX_SERIES], step)) for step, what in sorted(quoted.items()))


def last_good_row(series: Series, by_step: int) -> int | None:
    """Return the index of the last row up to a step by which all was well; None if the row is off its level itself."""
    at = int(series.steps.searchsorted(by_step, side="right")) - 1
    if at < 0 or _is_off(series, at, float(series.values[at])):
        return None
    return at


def worst_row(series: Series, onset_step: int, good: int | None) -> int | None:
    """Return the index of the worst row since an onset, the first that is not finite; None if none is off its level.

    Args:
        series: shows what went wrong.
        onset_step: the first bad step.
        good: the index of the last good row, where that is known.
    """
    at = int(series.steps.searchsorted(onset_step))
    values = series.values[at:]
    if not len(values):
        return None
    broken = np.flatnonzero(~np.isfinite(values))
    worst = at + int(broken[0] if len(broken) else np.argmax(bad_side(series) * values))
    if _is_off(series, at if good is None else min(good + 1, at), float(series.values[worst])):
        return worst
    return None


def bad_side(series: Series) -> int:
    """Return the sign of what is bad: 1 where higher values are worse, as those of a loss are, -1 where lower ones."""
    return -1 if describe_name(series.metric).better == "higher" else 1


def _is_off(series: Series, at: int, value: float) -> bool:
    """Return whether a value is not finite, or far on the bad side of the level of the rows before a row."""
    if not math.isfinite(value):
        return True
    sign = bad_side(series)
    before = sign * series.values[max(at - ROWS_OF_NOISE, 0) : max(at - ROWS_OF_RISE, 0)]
    if not np.isfinite(before).any():
        before = sign * series.values[: max(at, 1)]
    before = before[np.isfinite(before)]
    if not len(before):
        return False
    level = min(median(before[-shared.ROWS_SHORT :]), median(before))  # a slow change takes its own level with it
    margin = JUMP * median(np.abs(np.diff(before))) if len(before) > ROWS_OF_RISE else abs(level)
    return sign * value > level + margin


def _values(shown: list[Series], step: int) -> dict[str, float | None]:
    """Return what was logged at a step; None for what is not finite."""
    found = {series.metric: series.values[row_of(series.steps, step)] for series in shown}
    logged = {metric: float(values[0]) for metric, values in found.items() if len(values)}
    return {metric: value if math.isfinite(value) else None for metric, value in logged.items()}
