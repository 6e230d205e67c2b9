"""Findings of one event merged into incidents, what each led to, and which one explains the end."""

from __future__ import annotations

from itertools import chain, compress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import SHARE_HALF, SHARE_SOME
from stabtree.context.find import context_of
from stabtree.diagnosis.act import actions, log_next
from stabtree.diagnosis.restart import FROM_THE_START, LEARNED_NOTHING, UNTRAINED, advise, seen_by
from stabtree.diagnosis.result import STRONG, CauseState, Incident, worst_first
from stabtree.diagnosis.timeline import precursors, quoted_rows, timeline
from stabtree.diagnosis.weigh import Observations, judged, weigh
from stabtree.measures import measure_named
from stabtree.measures.curve import level_steps
from stabtree.measures.observed import Moment
from stabtree.measures.registry import finite
from stabtree.profile.change import left_course
from stabtree.tree.model import Take
from stabtree.tree.params import facts_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.common.answer import Answer, Evidence
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Visit
    from stabtree.measures.checkpoints import Checkpoints
    from stabtree.measures.registry import Measured
    from stabtree.run import Run
    from stabtree.tree.model import Leaf

HARMED = ("grad_norm", "update_ratio", "weight_norm")  # where these moved first, the weights were no longer sound
NOTHING_LEARNED = frozenset(("flat", "zero"))  # no limit
LASTING = NOTHING_LEARNED | {"rise"}  # no limit: states that a model is in from some row on

Beginning = tuple[int | None, int | None]
"""When an event began: its onset step, and the last good step."""


def merge_events(found: Iterable[Incident], facts: Measured) -> list[Incident]:
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


def _is_one_event(one: Incident, other: Incident, facts: Measured) -> bool:
    if not set(one.leaf.events) & set(other.leaf.events):
        return False
    if one.leaf.lasting and other.leaf.lasting:
        return True
    if _holds_peak(one, facts) and _holds_peak(other, facts):
        return True
    return not (one.by_levels or other.by_levels) and _begin_together(one, other, facts)


def _holds_peak(item: Incident, facts: Measured) -> bool:
    """Return whether the highest row of the loss is what was found, or is part of a rise that no earlier row shows."""
    loss, onset = facts.run.get("loss"), item.onset_step
    if loss is None or onset is None:
        return False
    steps, values = finite(loss)
    peak = int(steps[np.argmax(values)]) if len(steps) else onset - 1
    if item.leaf.lasting and "rise" in item.leaf.events:
        return onset <= peak
    return any(evidence.metric == "loss" and peak in evidence.steps[1:2] for evidence in item.evidence)


def _begin_together(one: Incident, other: Incident, facts: Measured) -> bool:
    """Return whether two onsets are within one level of the loss, or no row of a series that shows them is between."""
    if one.onset_step is None or other.onset_step is None:
        return False
    early, late = sorted((one.onset_step, other.onset_step))
    loss = facts.run.get("loss")
    if loss is not None and late - early <= level_steps(loss):
        return True
    for incident in (one, other):
        series = facts.run.get(incident.metric)
        if series is not None and not ((series.steps > early) & (series.steps < late)).any():
            return True
    return False


def _merge(group: Sequence[Incident], facts: Measured) -> Incident:
    """Merge what was found of one event: the leaf of the first, the interval of all, and the evidence of all."""
    head, *others = group
    onset, good = begins = _beginning(group, facts)
    if not others and begins == (head.onset_step, head.last_good_step):
        return head
    whole = replace(
        head,
        onset_step=onset,
        last_good_step=good,
        evidence=tuple(dict.fromkeys(chain.from_iterable(item.evidence for item in group))),
        storm=any(item.storm for item in group),
        # The event's own dates replace those of a part that was dated by the coarser levels of the loss.
        seen_as=tuple(
            replace(item, onset_step=onset, last_good_step=good) if item.by_levels else item for item in group
        ),
    )
    takes = {item.leaf.take for item in whole.seen_as if item.restart}
    take = takes.pop() if len(takes) == 1 else Take.BEFORE
    restart = None
    if any(item.restart for item in whole.seen_as):
        restart = restart_of(facts, whole, take)
    start = whole.onset_step if any(item.leaf.restart for item in group) else None
    return replace(whole, restart=restart, precursors=precursors(facts, start))


def advised(item: Incident, facts: Measured, answers: Mapping[str, Answer]) -> Incident:
    """Return an incident with its causes, what to do about them, and what would tell them apart."""
    observed = Observations(facts.at(Moment(item.onset_step, item.last_good_step, item.metric, item.unit)), answers)
    # A finding of which only its own document knows what to do has no causes to weigh.
    alone = item.leaf.kind == "other" and item.leaf.fix
    weighed = () if alone else weigh(item.leaf.kind, observed)
    causes = judged(weighed)
    first = causes[0] if causes else None
    sound = first is not None and first.cause.sound and first.state in STRONG
    doubted = item.restart is not None and item.restart.nothing in (UNTRAINED, LEARNED_NOTHING)
    if sound or (doubted and first is not None and first.cause.sound):
        item = replace(item, restart=None)
    return replace(
        item,
        causes=causes,
        undecided=first is not None and first.state is CauseState.POSSIBLE,
        actions=actions(item, weighed, observed),
        log_next=log_next(weighed, facts.run),
    )


def _beginning(group: Sequence[Incident], facts: Measured) -> Beginning:
    """Return when an event began: when the loss left its level where it rose for good, or what else was found first.

    A rise is sure to be there by the first row that is known to be bad, or by its end; how far it goes back is seen in
    the loss.
    """
    head, rises = group[0], [item for item in group if _rises(item)]
    known = [item for item in group if item.onset_step is not None]
    # The row that others name may be one that the rise only passes: a leaf that knows has a restart.
    passing = [item for item in known if item is not head and "rise" in item.leaf.events and not item.leaf.restart]
    sure = [item for item in known if item not in passing] or known
    # A rise is dated by its level, and the best row is no onset.
    dated = [_own(item) for item in sure if not _rises(item) and (item is head or not item.turns)]
    if rises:
        dated.append(_left(rises, sure, facts))
    # Of the earliest the one with the latest good step.
    first = min(dated or [_own(head)], key=lambda begins: (begins[0] or 0, -(begins[1] or 0)))
    if first[1] is None:
        return first
    coarse = [_own(item) for item in sure if _spans(item, first, facts)]
    return first[0], min(good for begins in dated if (good := begins[1]) is not None and begins not in coarse)


def _spans(item: Incident, event: Beginning, facts: Measured) -> bool:
    """Return whether an event began between two rows of the series of an incident, which then say no more of it."""
    good, onset, series = item.last_good_step, item.onset_step, facts.run.get(item.metric)
    if good is None or onset is None or event[0] is None or series is None or _own(item) == event:
        return False
    between = (series.steps > good) & (series.steps < onset)
    return good < event[0] <= onset and not between.any()


def _own(item: Incident) -> Beginning:
    return item.onset_step, item.last_good_step


def _rises(item: Incident) -> bool:
    """Return whether an incident is a rise of the loss that went on, whose first rows may be hidden in its noise."""
    return "rise" in item.leaf.events and item.leaf.restart and item.leaf.take in (Take.BEFORE, Take.LOW)


def _left(rises: Sequence[Incident], sure: Iterable[Incident], facts: Measured) -> Beginning:
    """Return when the loss left its level: at its turn where it only rises slowly."""
    first = min(rises, key=lambda item: item.onset_step or 0)
    in_loss = [item for item in sure if item.metric == "loss" and not item.by_levels]
    exact = [item.onset_step for item in in_loss if item.onset_step is not None]
    loss = facts.run.get("loss")
    if loss is None or not len(loss):
        return _own(first)
    steps, values = finite(loss)
    found = left_course(steps, values, by_step=min(exact, default=None))
    if not exact:
        goods = (found.last_good_step, first.last_good_step, first.onset_step)
        return first.onset_step, min(good for good in goods if good is not None)
    moved = [move.step - 1 for move in facts.sure("movers").by(found.first_bad_step) if _group(move.metric) in HARMED]
    return found.first_bad_step, min([found.last_good_step, *moved])


def _group(metric: str) -> str:
    return metric.partition("/")[0]


def restart_of(facts: Measured, found: Incident, take: Take) -> Restart | None:
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


# These show that something is wrong, and never why.
SYMPTOMS = frozenset(
    (
        *("loss", "eval_loss", "reward", "eval_quality", "grad_norm", "loss_scale", "update_ratio"),
        *("throughput", "step_time", "wall_time"),
    )
)
# What makes a reward fall: its fall is the consequence, however grave.
OF_POLICIES = frozenset(("policy", "reference", "value", "length", "reward"))
# How far a policy has gone: any cause moves them, so they name an incident only where nothing else does.
MEASURES = frozenset(("kl", "approx_kl", "clip_ratio"))


def build_incident(facts: Measured, visits: tuple[Visit, ...], leaf: Leaf) -> Incident:
    """Return what a walk found: since when, and where to restart.

    Args:
        facts: the facts of the run.
        visits: the walk.
        leaf: the leaf that it ended at.
    """
    found = _dated(facts.run, visits, leaf)
    start = found.onset_step if leaf.restart else None
    restart = restart_of(facts, found, leaf.take) if leaf.restart else None
    return replace(found, restart=restart, precursors=precursors(facts, start))


def _dated(run: Run, visits: tuple[Visit, ...], leaf: Leaf) -> Incident:
    """Return an incident with what its walk saw and since when.

    Later questions look closer: the last one that names an onset has it, and its last good step with it.
    """
    positive = [visit for visit in visits if visit.answer.verdict not in (NO, UNKNOWN)]
    evidence = tuple(chain.from_iterable(visit.answer.evidence for visit in positive))
    onset, good, by_levels = None, None, False
    dated = [visit for visit in positive if visit.answer.onset_step is not None]
    if dated:
        last = dated[-1]
        onset, good = last.answer.onset_step, last.answer.last_good_step
        measure = measure_named(last.question.test)  # a level of the loss is no row
        by_levels = measure is not None and "rise" in facts_behind(measure)
    elif "end" in leaf.events and run.series:
        onset = good = run.last_step
    return Incident(
        leaf=leaf,
        section=visits[-1].question.section,
        onset_step=onset,
        last_good_step=_row_before(run, evidence, onset, good),
        evidence=evidence,
        storm=any(visit.answer.storm for visit in positive),
        by_levels=by_levels,
        turns=bool(dated) and onset is not None and onset == good,
        unit=run.unit,
    )


def _row_before(run: Run, evidence: Sequence[Evidence], onset: int | None, good: int | None) -> int | None:
    """Return the last good step: where the onset is a turn, which is sound itself, the row before it."""
    if onset is None or good is None or good < onset:
        return good
    series = run.find(next((item.metric for item in evidence if item.metric), "loss"))
    if series is None:
        return None
    before = series.steps[: rows_before(series.steps, onset)]
    return int(before[-1]) if len(before) else None


def incidents_of(found: Iterable[Incident], facts: Measured, answers: Mapping[str, Answer]) -> list[Incident]:
    """Return one incident for each event of a run, the one that its verdict rests on first.

    Args:
        found: what each walk found by itself.
        facts: the facts of the run.
        answers: the answers of the walks, by question.
    """
    known: Checkpoints = facts.sure("checkpoints")
    merged = [replace(item, open=_is_open(item, known)) for item in merge_events(found, facts)]
    merged = [replace(item, share=_share(item, facts.run)) for item in merged]
    merged = [_before_all_harm(item, merged, known) for item in merged]
    outcome = context_of(facts.run).outcome.value
    # Of equally bad ones first what is open at the end, of these what the run is for, then what covers most of it.
    ordered = sorted(
        worst_first(merged),
        key=lambda item: (
            -item.leaf.severity.rank,
            not item.open,
            item.metric != outcome or not item.is_alarm,
            -round(item.share, 1) if item.is_alarm else 0.0,
        ),
    )
    return [described(advised(item, facts, answers), facts) for item in _causes_first(ordered)]


def _share(item: Incident, run: Run) -> float:
    """Return which share of the run an incident covers that lasts to its end; 0 of one that is over or has no onset."""
    first, last = run.first_step, run.last_step
    if not item.open or item.onset_step is None or first is None or last is None or last <= first:
        return 0.0
    return min(max((last - item.onset_step) / (last - first), 0.0), 1.0)


def described(item: Incident, facts: Measured) -> Incident:
    """Return an incident with what moved around its onset, and the rows that show it."""
    return replace(item, departures=timeline(facts, item), rows=quoted_rows(facts.run, item))


def _is_open(item: Incident, known: Checkpoints) -> bool:
    """Return whether an incident lasts to the end of the log; what a loss came back from is over."""
    if item.leaf.lasting or item.metric != "loss" or item.leaf.take is Take.BEST or item.onset_step is None:
        return True
    return item.restart is not None and not known.is_over(item.onset_step - 1)


def _causes_first(ordered: Sequence[Incident]) -> list[Incident]:
    """Return the incidents, the first one behind the earliest that explains it: that one has it as a consequence."""
    if not ordered:
        return []
    first, *others = ordered
    earlier = [item for item in others if _explains(item, first) or _covers(item, first)]
    if not earlier:
        return list(ordered)
    cause = min(earlier, key=lambda item: (_group(item.metric) in MEASURES, item.onset_step or 0))
    follows = tuple(item for item in ordered if item is not cause and _explains(cause, item))
    return [replace(cause, consequences=follows), *(item for item in ordered if item is not cause)]


def _covers(item: Incident, late: Incident) -> bool:
    """Return whether the loss was flat or too high for most of a run of which something graver covers only the end.

    A crash comes second only to a run that learned nothing.
    """
    states = NOTHING_LEARNED if "end" in late.leaf.events else LASTING
    state = item.is_alarm and item.leaf.lasting and not states.isdisjoint(item.leaf.events)
    return state and item.share >= SHARE_HALF and late.share < SHARE_SOME


def _explains(cause: Incident, other: Incident) -> bool:
    """Return whether an incident is an open one of something that drives training, and began before another one.

    What merely does not move drives nothing, and what is less grave is no headline above what it may have led to. A
    gradient that is not finite explains weights that have not moved since: no step can be taken along it. Where that
    ended the program, the line of the error comes last: the steps before it were skipped for the same reason.
    """
    if cause.onset_step is None or other.onset_step is None or not _drives(cause, other):
        return False
    stops = "nan" in cause.leaf.events and "flat" in other.leaf.events
    if stops and "end" in cause.leaf.events:
        return True
    since = other.onset_step
    # The last good row of a reward that fell is its best one, and may lie far before the fall.
    if other.last_good_step is not None and not _makes_reward_fall(cause, other):
        since = min(other.last_good_step + 1, since)
    return cause.onset_step < since + stops


def _drives(cause: Incident, other: Incident) -> bool:
    """Return whether an incident is of a kind that can have led to another one, whenever either began."""
    if not (cause.is_alarm and cause.open and other.is_alarm):
        return False
    stops = "nan" in cause.leaf.events and "flat" in other.leaf.events
    # The loss of a critic is what the policy learns from, so it is no mere symptom.
    drives = "value" in cause.leaf.events or _group(cause.metric) not in SYMPTOMS
    kinds = stops or (drives and "flat" not in cause.leaf.events)
    graver = cause.leaf.severity.rank >= other.leaf.severity.rank or _makes_reward_fall(cause, other)
    return kinds and "end" not in other.leaf.events and graver


def _makes_reward_fall(cause: Incident, other: Incident) -> bool:
    """Return whether an incident is of what a policy learns from or chooses, and another one of its reward's fall."""
    moves = not OF_POLICIES.isdisjoint(cause.leaf.events) or _group(cause.metric) == "lr"
    return "reward-fall" in other.leaf.events and moves


def _before_all_harm(item: Incident, incidents: Sequence[Incident], known: Checkpoints) -> Incident:
    """Replace a restart from inside an earlier incident by one from before it: the earliest that harmed the weights."""
    own = item.restart
    if own is None or own.nothing or own.take is Take.BEST:
        return item
    goes_back_to, parts = own.before_step, item.parts
    if own.take is Take.NEWEST:
        goes_back_to, parts = known.last_step or own.before_step, ()
    others = [other for other in incidents if other is not item]
    lasting = [other for other in others if other.leaf.lasting]
    passing = [other for other in (*others, *parts) if not known.is_back(other.onset_step or 0, goes_back_to)]
    harmful = [other for other in (*lasting, *passing) if _harms(other, item, goes_back_to, known)]
    if not harmful:
        return item
    first = min(harmful, key=_good_until)
    onset = first.onset_step or 0
    restart = advise(seen_by(known, first.metric, first.leaf.events), onset, first.last_good_step, storm=first.storm)
    if restart is not None and restart.nothing == FROM_THE_START:
        restart = replace(restart, nothing=f"{first.metric} is off its level from {first.unit} {onset:,} on")
    return replace(item, restart=restart)


def _harms(other: Incident, item: Incident, by: int, known: Checkpoints) -> bool:
    """Return whether another incident, of the same kind of event or one that harms weights, did not heal by a step."""
    good = _good_until(other)
    if not other.is_alarm or other.onset_step is None or good >= by:
        return False
    harms = other.restart is not None and other.restart.take is Take.BEFORE
    if not harms and not any(set(part.leaf.events) & set(other.leaf.events) for part in item.parts):
        return False
    # The outcome became better than ever where it healed.
    return seen_by(known, other.metric, other.leaf.events).better_after(other.onset_step, good, until=by) is None


def _good_until(item: Incident) -> int:
    onset = item.onset_step or 0
    return onset if item.last_good_step is None else min(item.last_good_step, onset)
