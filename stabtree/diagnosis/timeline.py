"""What happened around the onset of a finding, in order, and what moved first."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.later import Later
from stabtree.common.text import counting
from stabtree.diagnosis.result import CauseState, Happening
from stabtree.facts.movers import LOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.result import Finding
    from stabtree.facts.movers import Movers
    from stabtree.facts.registry import Facts

SETS_ITSELF = "lr"  # a schedule moves it, none of the other series
FOLLOWS = frozenset({"loss_scale", "update_ratio"})  # what the gradient, the rate and the weights make of these


def precursors(facts: Facts, onset_step: int) -> Later[Evidence]:
    """What had left its normal course before a step and had not come back, each with its lead."""

    def made() -> tuple[Evidence, ...]:
        moves = (move for move in facts.get("movers").by(onset_step) if move.step < onset_step)
        found = [move.before(onset_step) for move in moves if move.metric != "loss"]
        return tuple(replace(item, text=counting(item.text, facts.run.unit)) for item in found)

    return Later(made)


def timeline(facts: Facts, finding: Finding) -> Later[Happening]:
    """What moved before and right after the onset of a finding, what shows its causes, and the onset itself."""

    def made() -> tuple[Happening, ...]:
        events = _timeline(facts.get("movers"), finding)
        return tuple(replace(event, unit=finding.unit, text=counting(event.text, finding.unit)) for event in events)

    return Later(made)


def _timeline(movers: Movers, finding: Finding) -> tuple[Happening, ...]:
    onset = finding.onset_step
    if onset is None:
        return ()
    own = finding.own_onset_step  # the event may have begun long before what it is told as
    moves = {move.metric: move for at in (own, onset) if at is not None for move in movers.around(at)}
    events = [_dated(Happening(move.step, move.metric, move.text), movers, finding) for move in moves.values()]
    events.sort(key=lambda event: event.step)
    earliest = {event.metric: event.step for event in reversed(events)}
    for item in _shown(finding):
        # What shows a cause may reach back to where no course was yet known that a series could leave.
        if item.metric and item.steps and item.steps[0] < min(earliest.get(item.metric, onset), onset):
            earliest[item.metric] = item.steps[0]
            events.append(_told(item))
    marked = _with_first(sorted(events, key=lambda event: event.step))
    rate = movers.rate(onset) if _by_rate(finding) and SETS_ITSELF not in earliest else None
    if rate is not None:
        # A schedule that goes on as it did has not left its course, and so was not the first to.
        marked = (Happening(rate.step, rate.metric, rate.text), *marked)
        marked = tuple(sorted(marked, key=lambda event: event.step))
    seen = next((item for item in finding.evidence if item.metric and item.steps[:1] == (onset,)), None)
    if seen and earliest.get(seen.metric, onset + 1) > onset:
        return _placed(marked, _told(seen))
    begins = next((item for item in finding.parts if item.onset_step == onset), finding)
    if begins.metric in earliest:
        return marked
    return _placed(marked, Happening(onset, begins.metric, f"onset of: {begins.leaf.title}"))


def _dated(event: Happening, movers: Movers, finding: Finding) -> Happening:
    """What was lost for good, from the row on at which the finding says that it broke."""
    if event.text != LOST:
        return event
    broke = (
        item.steps[0]
        for item in finding.evidence
        if item.metric == event.metric
        and len(item.steps) == 2
        and item.steps[0] < event.step <= item.steps[1]
        and movers.lost(event.metric, item.steps[0])
    )
    first = next(broke, None)
    return event if first is None else replace(event, step=first, text=f"{LOST}, for good from step {event.step:,} on")


def _told(item: Evidence) -> Happening:
    """What was seen, without what explains it."""
    return Happening(item.steps[0], item.metric, re.split(r"; | \(", item.text)[0])


def _placed(events: Sequence[Happening], event: Happening) -> tuple[Happening, ...]:
    """Events by step with one more, before those of the same step; none that comes after it was first."""
    place = sum(other.step < event.step for other in events)
    later = [replace(other, first=False) if other.step > event.step else other for other in events[place:]]
    return (*events[:place], event, *later)


def _by_rate(finding: Finding) -> bool:
    """Whether a rate that rises is what was found, or the rate is a cause that the log shows."""
    seen = (item for item in finding.evidence if item.metric == SETS_ITSELF and item.threshold is not None)
    if any(item.observed is not None and item.observed > (item.threshold or 0.0) for item in seen):
        return True
    shown = (item.cause for item in finding.causes if item.state in (CauseState.CONFIRMED, CauseState.LIKELY))
    return any("learning rate" in cause.text for cause in shown)


def _shown(finding: Finding) -> Iterator[Evidence]:
    """What the log shows of the causes that it proves or makes likely."""
    for judged in finding.causes:
        if judged.state in (CauseState.CONFIRMED, CauseState.LIKELY):
            yield from judged.evidence


def leader(movers: Movers, onset_step: int) -> str:
    """The series that moved before a step, and before all others; empty where the log can't tell."""
    moves = [Happening(move.step, move.metric, move.text) for move in movers.by(onset_step) if move.step < onset_step]
    return next((event.metric for event in _with_first(moves) if event.first), "") if moves else ""


def _with_first(events: Sequence[Happening]) -> tuple[Happening, ...]:
    """Events by step, marked the one that moved first where the log can tell."""
    earliest = [event for event in events if event.step == events[0].step]
    leading = [event for event in earliest if event.metric == SETS_ITSELF]
    leading = leading or [event for event in earliest if event.metric.partition("/")[0] not in FOLLOWS] or earliest
    if len(leading) != 1:
        return tuple(events)
    marked = replace(leading[0], first=True)
    return (marked, *(event for event in events if event is not leading[0]))
