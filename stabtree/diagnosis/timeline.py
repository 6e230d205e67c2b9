"""What happened around the onset of a finding, in order, and what moved first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import Happening

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.answer import Evidence
    from stabtree.diagnosis.result import Finding
    from stabtree.facts.movers import Movers

SETS_ITSELF = "lr"  # a schedule moves it, none of the other series
FOLLOWS = frozenset({"loss_scale", "update_ratio"})  # what the gradient, the rate and the weights make of these


def precursors(movers: Movers, onset_step: int) -> tuple[Evidence, ...]:
    """What had left its normal course before a step and had not come back, each with its lead."""
    return tuple(
        move.before(onset_step) for move in movers.by(onset_step) if move.step < onset_step and move.metric != "loss"
    )


def timeline(movers: Movers, finding: Finding) -> tuple[Happening, ...]:
    """What moved before and right after the onset of a finding, and the onset itself."""
    onset = finding.onset_step
    if onset is None:
        return ()
    moves = [Happening(move.step, move.metric, move.text) for move in movers.around(onset)]
    begins = next((part for part in finding.parts if part.onset_step == onset), finding)
    trouble = begins.metric
    if any(move.metric == trouble for move in moves):
        return _with_first(moves)
    told = Happening(onset, trouble, f"onset of: {begins.leaf.title}")
    earlier = [move for move in moves if move.step < onset]
    later = [move for move in moves if move.step >= onset]
    return (*_with_first(earlier), told, *later)


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
