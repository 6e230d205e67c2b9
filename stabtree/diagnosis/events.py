"""One event is one incident: merges what several leaves found of it, and says from when on it was bad."""

from __future__ import annotations

import math
from itertools import chain, compress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.context.conditions import Conditions
from stabtree.diagnosis.advice import decision, leaf_fixes, ranked_fixes
from stabtree.diagnosis.causes import by_strength, weights_are_sound
from stabtree.diagnosis.fixes import FixFormatter
from stabtree.diagnosis.restart import advise, seen_by
from stabtree.diagnosis.timeline import precursors
from stabtree.facts.rate import Rate
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Clues, Moment
from stabtree.profile.onset import left_level
from stabtree.tree.model import Severity, Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Incident
    from stabtree.facts.movers import Move
    from stabtree.facts.registry import Facts


HARMED = ("grad_norm", "update_ratio", "weight_norm")  # where these moved first, the weights were no longer sound


class Beginning(NamedTuple):
    """When an event began."""

    onset_step: int | None
    last_good_step: int | None


def merge_events(found: Iterable[Incident], facts: Facts) -> list[Incident]:
    """Merge what was found of the same event; return one incident for each event, worst first.

    Two are of one event if their leaves share a kind of it, and both last to the end of the log, or both begin
    at the same time (within one level of the loss, or with no row between them that could separate them), or both
    name the highest row of the loss.

    Args:
        found: what each walk found; of equally bad ones the first gives the event its leaf.
        facts: the facts of the run.
    """
    groups: list[list[Incident]] = []
    for item in sorted(found, key=lambda item: -item.leaf.severity.rank):
        same = [any(_is_one_event(item, other, facts) for other in group) for group in groups]
        merged = [*chain.from_iterable(compress(groups, same)), item]
        apart = [group for group, joins in zip(groups, same, strict=True) if not joins]
        apart.insert(same.index(True) if any(same) else len(apart), merged)
        groups = apart
    return [_merge(group, facts) for group in groups]


def _is_one_event(one: Incident, other: Incident, facts: Facts) -> bool:
    if not set(one.leaf.events) & set(other.leaf.events):
        return False
    if one.leaf.lasting and other.leaf.lasting:
        return True
    if _holds_peak(one, facts) and _holds_peak(other, facts):
        return True
    return not (one.by_levels or other.by_levels) and _begin_together(one, other, facts)


def _holds_peak(item: Incident, facts: Facts) -> bool:
    """Return whether the highest row of the loss is what was found, or is part of a rise that no earlier row shows."""
    loss, onset = facts.run.get("loss"), item.onset_step
    if loss is None or onset is None:
        return False
    steps, values = finite(loss)
    peak = int(steps[np.argmax(values)]) if len(steps) else onset - 1
    if item.leaf.lasting and "rise" in item.leaf.events:
        return onset <= peak
    return any(evidence.metric == "loss" and peak in evidence.steps[1:2] for evidence in item.evidence)


def _begin_together(one: Incident, other: Incident, facts: Facts) -> bool:
    """Return whether two onsets are within one level of the loss, or no row of a series that shows them is between."""
    if one.onset_step is None or other.onset_step is None:
        return False
    early, late = sorted((one.onset_step, other.onset_step))
    loss = facts.run.get("loss")
    if loss is not None and late - early <= facts.sure("levels").length(loss):
        return True
    for incident in (one, other):
        series = facts.run.get(incident.metric)
        if series is not None and not ((series.steps > early) & (series.steps < late)).any():
            return True
    return False


def _merge(group: Sequence[Incident], facts: Facts) -> Incident:
    """Merge what was found of one event: the leaf of the first, the interval of all, and the evidence of all."""
    head, *others = group
    begins = _beginning(group, facts)
    if not others and begins == (head.onset_step, head.last_good_step):
        return head
    whole = replace(
        head,
        onset_step=begins.onset_step,
        last_good_step=begins.last_good_step,
        evidence=tuple(dict.fromkeys(chain.from_iterable(item.evidence for item in group))),
        storm=any(item.storm for item in group),
        seen_as=tuple(_dated(item, begins) for item in group),
    )
    whole = replace(whole, restart=_restart(whole, facts))
    grave = _as_grave(head, others)
    causes = by_strength(head.causes, chain.from_iterable(item.causes for item in grave))
    more = chain.from_iterable(
        leaf_fixes(item.leaf, item.reasons, formatter_of(clues_of(facts, item), item)) for item in grave
    )
    formatter = formatter_of(clues_of(facts, whole), whole)
    start = whole.onset_step if any(item.leaf.restart for item in group) else None
    return replace(
        whole,
        restart=None if weights_are_sound(causes, whole.restart) else whole.restart,
        causes=causes,
        advice=ranked_fixes(head.leaf, causes, head.reasons, formatter, more),
        decision=decision(head.leaf, causes, formatter),
        precursors=precursors(facts, start),
    )


def _dated(item: Incident, event: Beginning) -> Incident:
    """Return a part of an event with the event's own dates, where it was dated by the coarser levels of the loss."""
    if not item.by_levels:
        return item
    return replace(item, onset_step=event.onset_step, last_good_step=event.last_good_step)


def _as_grave(head: Incident, others: Sequence[Incident]) -> list[Incident]:
    """Return the others but the notes of a failure: their "nothing to do" is not to be read under it."""
    min_rank = min(Severity.WARNING.rank, head.leaf.severity.rank)
    return [item for item in others if item.leaf.severity.rank >= min_rank]


def _restart(whole: Incident, facts: Facts) -> Restart | None:
    """Return the restart from before a whole event: one of its leaves asks for it, the first of all if it does."""
    takes = {item.leaf.take for item in whole.seen_as if item.restart}
    if not takes:
        return None
    take = takes.pop() if len(takes) == 1 else Take.BEFORE
    return restart_of(facts, whole, take)


def _beginning(group: Sequence[Incident], facts: Facts) -> Beginning:
    """Return when an event began: when the loss left its level where it rose for good, or what else was found first.

    A rise is sure to be there by the first row that is known to be bad, or by its end; how far it goes back is seen in
    the loss.
    """
    rises = [item for item in group if _rises(item)]
    known = [item for item in group if item.onset_step is not None]
    sure = [item for item in known if item is group[0] or not _may_pass(item)] or known
    dated = [_own(item) for item in sure if _dates(item, group[0])]
    if rises:
        dated.append(_left(rises, sure, facts))
    first = _earliest(dated or [_own(group[0])])
    if first.last_good_step is None:
        return first
    coarse = [_own(item) for item in sure if _spans(item, first, facts)]
    goods = [item.last_good_step for item in dated if item.last_good_step is not None and item not in coarse]
    return Beginning(first.onset_step, min(goods))


def _earliest(dated: Sequence[Beginning]) -> Beginning:
    """Return the earliest beginning; of equal ones the one with the latest good step."""
    return min(dated, key=lambda item: (item.onset_step or 0, -(item.last_good_step or 0)))


def _dates(item: Incident, head: Incident) -> bool:
    """Return whether an incident's own dates count: a rise is dated by its level, and the best row is no onset."""
    return not _rises(item) and (item is head or not item.turns)


def _spans(item: Incident, event: Beginning, facts: Facts) -> bool:
    """Return whether an event began between two rows of the series of an incident, which then say no more of it."""
    good, onset, series = item.last_good_step, item.onset_step, facts.run.get(item.metric)
    if good is None or onset is None or event.onset_step is None or series is None or _own(item) == event:
        return False
    between = (series.steps > good) & (series.steps < onset)
    return good < event.onset_step <= onset and not between.any()


def _own(item: Incident) -> Beginning:
    return Beginning(item.onset_step, item.last_good_step)


def _rises(item: Incident) -> bool:
    """Return whether an incident is a rise of the loss that went on, whose first rows may be hidden in its noise."""
    return "rise" in item.leaf.events and item.leaf.restart and item.leaf.take in (Take.BEFORE, Take.LOW)


def _may_pass(item: Incident) -> bool:
    """Return whether an incident may be dated by a row that the rise only passes: a leaf that knows has a restart."""
    return "rise" in item.leaf.events and not item.leaf.restart


def _left(rises: Sequence[Incident], sure: Iterable[Incident], facts: Facts) -> Beginning:
    """Return when the loss left its level: at its turn where it only rises slowly."""
    first = min(rises, key=lambda item: item.onset_step or 0)
    in_loss = [item for item in sure if item.metric == "loss" and not item.by_levels]
    exact = [item.onset_step for item in in_loss if item.onset_step is not None]
    loss = facts.run.get("loss")
    if loss is None or not len(loss):
        return _own(first)
    steps, values = finite(loss)
    found = left_level(steps, values, min(exact, default=int(steps[-1])))
    if found is None:
        return _own(first)
    if not exact:
        goods = (found.last_good_step, first.last_good_step, first.onset_step)
        return Beginning(first.onset_step, min(good for good in goods if good is not None))
    moved = [move.step - 1 for move in facts.sure("movers").by(found.first_bad_step) if _group(move) in HARMED]
    return Beginning(found.first_bad_step, min([found.last_good_step, *moved]))


def _group(move: Move) -> str:
    return move.metric.partition("/")[0]


def restart_of(facts: Facts, found: Incident, take: Take) -> Restart | None:
    """Return where to restart; None where nothing is to be gone back for, or where that can't be found out."""
    onset = found.onset_step
    if onset is None:
        return None
    if take is Take.BEST and not found.turns and found.last_good_step is not None:
        onset = found.last_good_step

    def advice() -> Restart | None:
        known = seen_by(facts.sure("checkpoints"), found.metric, found.leaf.events)
        if "end" in found.leaf.events and known.steps_unknown:
            return None  # whoever starts it again knows that it goes on from the newest checkpoint
        return advise(known, onset, found.last_good_step, storm=found.storm, take=take)

    return facts.faults.attempt("part", f"restart of {found.leaf.id}", advice, lambda _fault: None)


def formatter_of(clues: Clues, found: Incident) -> FixFormatter:
    """Return what fills in the fixes of an incident."""
    facts = clues.facts
    rate, conditions = facts.get("rate"), facts.get("conditions")
    max_lr = rate.bar if isinstance(rate, Rate) else math.inf
    here = conditions if isinstance(conditions, Conditions) else Conditions({})
    return FixFormatter(clues, here, max_lr, found.restart is None or found.restart.has_older)


def clues_of(facts: Facts, found: Incident) -> Clues:
    """Return the clues of an incident."""
    from stabtree.predicates.clues import CLUES

    return Clues(facts, Moment(found.onset_step, found.last_good_step, found.metric, found.unit), CLUES)
