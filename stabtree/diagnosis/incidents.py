"""The incidents of a run: what each led to, which one explains its end, and from before which all restarts are."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.passes import rows_before
from stabtree.context.find import context_of
from stabtree.diagnosis.advice import decision, ranked_fixes, with_run_values
from stabtree.diagnosis.causes import judged_causes, weights_are_sound
from stabtree.diagnosis.events import clues_of, formatter_of, merge_events, restart_of
from stabtree.diagnosis.restart import FROM_THE_START, advise, seen_by
from stabtree.diagnosis.result import Incident, worst_first
from stabtree.diagnosis.timeline import precursors, quoted_rows, timeline
from stabtree.predicates import predicate_named
from stabtree.tree.model import Take
from stabtree.tree.params import facts_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.causes import Params
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.visits import Visit
    from stabtree.facts.checkpoints import Checkpoints
    from stabtree.facts.registry import Facts
    from stabtree.run import Run
    from stabtree.tree.model import Leaf

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


def build_incident(facts: Facts, params: Params, visits: tuple[Visit, ...], leaf: Leaf) -> Incident:
    """Return what a walk found: since when, by which cause, what to do, where to restart.

    Args:
        facts: the facts of the run.
        params: returns the parameters of a cause's test.
        visits: the walk.
        leaf: the leaf that it ended at.
    """
    found = _dated(facts.run, visits, leaf)
    found = replace(found, restart=restart_of(facts, found, leaf.take) if leaf.restart else None)
    clues = clues_of(facts, found)
    formatter = formatter_of(clues, found)
    causes = with_run_values(judged_causes(leaf, clues, params, found.onset_step), formatter)
    return replace(
        found,
        restart=None if weights_are_sound(causes, found.restart) else found.restart,
        causes=causes,
        advice=ranked_fixes(leaf, causes, found.reasons, formatter),
        decision=decision(leaf, causes, formatter),
        precursors=precursors(facts, found.onset_step if leaf.restart else None),
    )


def _dated(run: Run, visits: tuple[Visit, ...], leaf: Leaf) -> Incident:
    """Return an incident with what its walk saw and since when, before its causes are judged.

    Later questions look closer: the last one that names an onset has it, and its last good step with it. The number
    format is on the way to many leaves, and is the reason for the fixes of none.
    """
    positive = [visit for visit in visits if visit.answer.verdict not in (NO, UNKNOWN)]
    evidence = tuple(chain.from_iterable(visit.answer.evidence for visit in positive))
    onset, good, by_levels, reasons = None, None, False, evidence
    dated = [visit for visit in positive if visit.answer.onset_step is not None]
    if dated:
        first, last = dated[0], dated[-1]
        onset, good = last.answer.onset_step, last.answer.last_good_step
        by_levels, reasons = _is_by_levels(last), first.answer.evidence
    elif "end" in leaf.events and run.series:
        onset = good = run.last_step
    return Incident(
        leaf=leaf,
        section=visits[-1].question.section,
        onset_step=onset,
        last_good_step=_row_before(run, evidence, onset, good),
        evidence=evidence,
        reasons=reasons,
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


def _is_by_levels(visit: Visit) -> bool:
    """Return whether a visit dates the onset by a level of the loss and not by a row."""
    predicate = predicate_named(visit.question.test)
    return predicate is not None and "levels" in facts_behind(predicate)


def incidents_of(found: Iterable[Incident], facts: Facts) -> list[Incident]:
    """Return one incident for each event of a run, the one that its verdict rests on first.

    Args:
        found: what each walk found by itself.
        facts: the facts of the run.
    """
    known: Checkpoints = facts.sure("checkpoints")
    merged = [replace(item, open=_is_open(item, known)) for item in merge_events(found, facts)]
    merged = [_before_all_harm(item, merged, known) for item in merged]
    outcome = context_of(facts.run).outcome.value
    ordered = sorted(worst_first(merged), key=lambda item: _rank(item, outcome))
    return [described(item, facts) for item in _causes_first(ordered)]


def described(item: Incident, facts: Facts) -> Incident:
    """Return an incident with what moved around its onset, and the rows that show it."""
    return replace(item, departures=timeline(facts, item), rows=quoted_rows(facts.run, item))


def _rank(item: Incident, outcome: str | None) -> tuple[int, bool, bool]:
    """Return the sort key: of equally bad ones first what is open at the end, and of these what the run is for."""
    return -item.leaf.severity.rank, not item.open, item.metric != outcome or not item.is_alarm


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
    earlier = [item for item in others if _explains(item, first)]
    if not earlier:
        return list(ordered)
    cause = min(earlier, key=lambda item: (_group(item) in MEASURES, item.onset_step or 0))
    follows = tuple(item for item in ordered if item is not cause and _explains(cause, item))
    return [replace(cause, consequences=follows), *(item for item in ordered if item is not cause)]


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
    drives = "value" in cause.leaf.events or _group(cause) not in SYMPTOMS
    kinds = stops or (drives and "flat" not in cause.leaf.events)
    graver = cause.leaf.severity.rank >= other.leaf.severity.rank or _makes_reward_fall(cause, other)
    return kinds and "end" not in other.leaf.events and graver


def _makes_reward_fall(cause: Incident, other: Incident) -> bool:
    """Return whether an incident is of what a policy learns from or chooses, and another one of its reward's fall."""
    moves = not OF_POLICIES.isdisjoint(cause.leaf.events) or _group(cause) == "lr"
    return "reward-fall" in other.leaf.events and moves


def _group(item: Incident) -> str:
    return item.metric.partition("/")[0]


def _before_all_harm(item: Incident, incidents: Sequence[Incident], known: Checkpoints) -> Incident:
    """Replace a restart from inside an earlier incident by one from before it: the earliest that harmed the weights."""
    own = item.restart
    if own is None or own.nothing or own.take is Take.BEST:
        return item
    harmful = _harmful_before(own, item, [other for other in incidents if other is not item], known)
    if not harmful:
        return item
    first = min(harmful, key=_good_until)
    onset = first.onset_step or 0
    restart = advise(seen_by(known, first.metric, first.leaf.events), onset, first.last_good_step, storm=first.storm)
    if restart is not None and restart.nothing == FROM_THE_START:
        restart = replace(restart, nothing=f"{first.metric} is off its level from {first.unit} {onset:,} on")
    return replace(item, restart=restart)


def _harmful_before(own: Restart, item: Incident, others: Sequence[Incident], known: Checkpoints) -> list[Incident]:
    """Return the incidents that harmed the weights before the step that a restart goes back to, and did not heal."""
    goes_back_to, parts = own.before_step, item.parts
    if own.take is Take.NEWEST:
        goes_back_to, parts = known.last_step or own.before_step, ()
    lasting = [other for other in others if other.leaf.lasting]
    passing = [other for other in (*others, *parts) if not known.is_back(other.onset_step or 0, goes_back_to)]
    harmful = [other for other in (*lasting, *passing) if _harms(other, item) and _good_until(other) < goes_back_to]
    return [other for other in harmful if not _healed(other, goes_back_to, known)]


def _harms(other: Incident, item: Incident) -> bool:
    """Return whether another incident may have harmed the weights, or is of the same kind of event."""
    if not other.is_alarm or other.onset_step is None:
        return False
    harms = other.restart is not None and other.restart.take is Take.BEFORE
    return harms or any(set(part.leaf.events) & set(other.leaf.events) for part in item.parts)


def _healed(item: Incident, by: int, known: Checkpoints) -> bool:
    """Return whether the outcome became better than ever between an incident and a later step."""
    seen = seen_by(known, item.metric, item.leaf.events)
    return seen.better_after(item.onset_step or 0, _good_until(item), until=by) is not None


def _good_until(item: Incident) -> int:
    onset = item.onset_step or 0
    return onset if item.last_good_step is None else min(item.last_good_step, onset)
