"""The causes of a leaf: what the log says of each, and which of them are told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY, NO, POSSIBLE, UNKNOWN
from stabtree.diagnosis.missing import lacking
from stabtree.diagnosis.result import SILENT, STRONG, WEAK, CauseState, JudgedCause
from stabtree.diagnosis.timeline import leader
from stabtree.predicates import predicate_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stabtree.facts.registry import Facts, Param
    from stabtree.tree.model import Cause, Leaf

    Params = Callable[[Cause], Mapping[str, Param]]

_STATES = {
    UNKNOWN: CauseState.NOT_CHECKABLE,
    NO: CauseState.NOT_CONFIRMED,
    LIKELY: CauseState.LIKELY,
    POSSIBLE: CauseState.POSSIBLE,
}


def judged_causes(leaf: Leaf, facts: Facts, params: Params, onset_step: int | None = None) -> tuple[JudgedCause, ...]:
    """The causes of a leaf that a run may have, strongest first.

    Args:
        leaf: the leaf.
        facts: what is found in the run.
        params: the parameters of a cause's test.
        onset_step: where the trouble begins.
    """
    here = facts.get("circumstances")
    judged = [_judged(cause, facts, params) for cause in leaf.causes if here.fit(cause.holds) is not False]
    return by_strength(filter(_told_of, _by_movers(judged, facts, onset_step)))


def by_strength(causes: Iterable[JudgedCause], others: Iterable[JudgedCause] = ()) -> tuple[JudgedCause, ...]:
    """Causes, strongest first; beside one that is proved, which explains what makes others likely, these may be.

    Args:
        causes: the causes of a leaf.
        others: those of leaves that tell of the same event: what is likely for such a sign may be for the event, and
            stands behind what else is in its state.
    """
    own = list(causes)
    known = {item.cause.id for item in own}
    more = {item.cause.id: _at_most_possible(item) for item in others if item.cause.id not in known}
    judged = list(_without_consequences([*own, *more.values()]))
    if any(item.state is CauseState.CONFIRMED for item in judged):
        judged = [_at_most_possible(item) for item in judged]
    return tuple(sorted(judged, key=lambda item: _rank(item, from_other=item.cause.id in more)))


def _rank(judged: JudgedCause, *, from_other: bool) -> tuple[int, int, bool, bool]:
    """By its state; of those that may be, what needs something that is not known comes last."""
    unknown = judged.state is CauseState.POSSIBLE and bool(judged.reason)
    return _band(judged), list(CauseState).index(judged.state), unknown, from_other


def _without_consequences(judged: Sequence[JudgedCause]) -> Iterator[JudgedCause]:
    """The causes; what is seen only after one that is proved follows from it, as far as the log can tell."""
    proved = [since for item in judged if item.state is CauseState.CONFIRMED and (since := _since(item)) is not None]
    first = min(proved, default=None)
    for item in judged:
        since = _since(item)
        if first is not None and item.state in STRONG and since is not None and since > first:
            reason = f"what speaks for it, at step {since:,}, comes after another cause, at step {first:,}"
            yield replace(item, state=CauseState.NOT_CONFIRMED, evidence=(), reason=reason)
        else:
            yield item


def _since(judged: JudgedCause) -> int | None:
    """The first step at which what speaks for a cause was seen."""
    return min((step for item in judged.evidence for step in item.steps), default=None)


def _at_most_possible(judged: JudgedCause) -> JudgedCause:
    """A cause that is proved as it is, and a likely one as a possible one."""
    return replace(judged, state=CauseState.POSSIBLE) if judged.state is CauseState.LIKELY else judged


def _band(judged: JudgedCause) -> int:
    return next(place for place, band in enumerate((STRONG, WEAK, SILENT)) if judged.state in band)


def _judged(cause: Cause, facts: Facts, params: Params) -> JudgedCause:
    predicate = predicate_named(cause.test)
    open_ = facts.get("circumstances").unknown(cause.holds)
    lacks = f"not known: {open_}" if open_ else ""
    if predicate is None:
        return JudgedCause(cause, CauseState.POSSIBLE, reason=lacks)
    answer = predicate.ask(facts, params(cause))
    state = _STATES.get(answer.verdict, CauseState.CONFIRMED)
    if answer.verdict == NO and answer.contrary:
        state = CauseState.RULED_OUT
    if state is CauseState.CONFIRMED and not cause.proof:
        state = CauseState.LIKELY
    if lacks and state in STRONG:
        state = CauseState.POSSIBLE
    return JudgedCause(cause, state, answer.evidence, answer.reason or lacks, lacking(facts.run, answer.missing))


def _by_movers(causes: Sequence[JudgedCause], facts: Facts, onset_step: int | None) -> Iterator[JudgedCause]:
    """The causes by what moved first: the leader's is likely and the first, one whose series followed is not likely."""
    if onset_step is None or not any(item.cause.moves for item in causes):
        yield from (item for item in causes if item.cause.test or not item.cause.moves)
        return
    movers = facts.get("movers")
    first = leader(movers, onset_step)
    evidence = tuple(move.before(onset_step) for move in movers.by(onset_step) if move.metric == first)
    around = [(_group(move.metric), move.step <= onset_step) for move in movers.around(onset_step)]
    followed = {group for group, _ in around} - {group for group, before in around if before}
    leading = [item for item in causes if item.cause.moves and item.cause.moves == _group(first)]
    if any(item.cause.test and item.state in STRONG for item in leading):
        leading = [item for item in leading if item.cause.test]  # what it moved by is known
    for item in leading:
        raised = item.state is CauseState.POSSIBLE and not item.reason
        state = CauseState.LIKELY if raised else item.state
        yield replace(item, state=state, evidence=(*evidence, *item.evidence))
    for item in causes:
        if item not in leading and (item.cause.test or not item.cause.moves):
            yield _at_most_possible(item) if item.cause.moves in followed else item


def _group(metric: str) -> str:
    return metric.partition("/")[0]


def _told_of(judged: JudgedCause) -> bool:
    """Whether a cause is worth telling: a quiet one only where something speaks for it."""
    return not judged.cause.quiet or judged.state not in (*SILENT, CauseState.NOT_CHECKABLE)
