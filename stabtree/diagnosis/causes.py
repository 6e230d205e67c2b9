"""The causes of a leaf: what the log says of each, and which of them are reported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import LIKELY, NO, POSSIBLE, UNKNOWN
from stabtree.context.conditions import Conditions
from stabtree.diagnosis.missing import lacking
from stabtree.diagnosis.result import SILENT, STRONG, WEAK, CauseState, JudgedCause
from stabtree.diagnosis.timeline import first_mover
from stabtree.predicates import predicate_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.common.faults import Fault
    from stabtree.facts.movers import Movers
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
    """Judge the causes that a leaf names and that this run may have; return them strongest first.

    Args:
        leaf: the leaf.
        facts: the facts of the run.
        params: returns the parameters of a cause's test.
        onset_step: the first step of the trouble.
    """
    here = _conditions(facts)
    judged = [_judged(cause, facts, params) for cause in leaf.causes if here.fit(cause.holds) is not False]

    def ordered() -> list[JudgedCause]:
        return _weighed_by_movers(judged, facts, onset_step)

    def unordered(_fault: Fault | None) -> list[JudgedCause]:
        return list(filter(_is_kept, judged))

    weighed = facts.faults.attempt("part", f"order of the causes of {leaf.id}", ordered, unordered)
    return by_strength(filter(_is_reported, weighed))


def _conditions(facts: Facts) -> Conditions:
    """Return what kind of run it is; nothing is known where that could not be found out."""
    found = facts.get("conditions")
    return found if isinstance(found, Conditions) else Conditions({})


def by_strength(causes: Iterable[JudgedCause], others: Iterable[JudgedCause] = ()) -> tuple[JudgedCause, ...]:
    """Sort causes, strongest first. Next to a confirmed cause, which explains the same evidence, none is likely.

    Args:
        causes: the causes of a leaf.
        others: the causes of other leaves that describe the same event. They are possible at most, and come after the
            leaf's own causes of the same state.
    """
    own = list(causes)
    known = {item.cause.id for item in own}
    more = {item.cause.id: _at_most_possible(item) for item in others if item.cause.id not in known}
    judged = list(_without_consequences([*own, *more.values()]))
    if any(item.state is CauseState.CONFIRMED for item in judged):
        judged = [_at_most_possible(item) for item in judged]
    return tuple(sorted(judged, key=lambda item: _rank(item, from_other=item.cause.id in more)))


def _rank(judged: JudgedCause, *, from_other: bool) -> tuple[int, int, bool, bool]:
    """Return the sort key: the state, then possible causes with unknown preconditions last."""
    unknown = judged.state is CauseState.POSSIBLE and bool(judged.reason)
    return _band(judged), list(CauseState).index(judged.state), unknown, from_other


def _without_consequences(judged: Sequence[JudgedCause]) -> Iterator[JudgedCause]:
    """Downgrade each cause whose evidence begins only after that of a confirmed one, and so follows from it."""
    confirmed = [_first_step(item) for item in judged if item.state is CauseState.CONFIRMED]
    first = min((step for step in confirmed if step is not None), default=None)
    for item in judged:
        since = _first_step(item)
        if first is not None and item.state in STRONG and since is not None and since > first:
            reason = f"what speaks for it, at step {since:,}, comes after another cause, at step {first:,}"
            yield replace(item, state=CauseState.NOT_CONFIRMED, evidence=(), reason=reason)
        else:
            yield item


def _first_step(judged: JudgedCause) -> int | None:
    """Return the first step of a cause's evidence; None without a step."""
    steps = [min(item.steps) for item in judged.evidence if item.steps]
    return min(steps, default=None)


def _at_most_possible(judged: JudgedCause) -> JudgedCause:
    """Downgrade LIKELY to POSSIBLE; return any other state, CONFIRMED too, as it is."""
    if judged.state is CauseState.LIKELY:
        return replace(judged, state=CauseState.POSSIBLE)
    return judged


def _band(judged: JudgedCause) -> int:
    return next(index for index, band in enumerate((STRONG, WEAK, SILENT)) if judged.state in band)


def _judged(cause: Cause, facts: Facts, params: Params) -> JudgedCause:
    predicate = predicate_named(cause.test)
    open_ = _conditions(facts).unknown(cause.holds)
    lacks = f"not known: {open_}" if open_ else ""
    if predicate is None:
        return JudgedCause(cause, CauseState.POSSIBLE, reason=lacks)
    answer = predicate.answer(facts, params(cause), "cause", cause.id)
    state = _STATES.get(answer.verdict, CauseState.CONFIRMED)
    if answer.verdict == NO and answer.contrary:
        state = CauseState.RULED_OUT
    if state is CauseState.CONFIRMED and not cause.proof:
        state = CauseState.LIKELY
    if lacks and state in STRONG:
        state = CauseState.POSSIBLE
    return JudgedCause(cause, state, answer.evidence, answer.reason or lacks, lacking(facts.run, answer.missing))


def _weighed_by_movers(causes: Sequence[JudgedCause], facts: Facts, onset_step: int | None) -> list[JudgedCause]:
    """Promote the causes of the series that moved first; demote those of series that moved after the onset.

    The promoted ones come first. A cause without a test is kept only if it explains the first mover.
    """
    others = list(filter(_is_kept, causes))
    if onset_step is None or not any(item.cause.moves for item in causes):
        return others
    movers = facts.sure("movers")
    metric = first_mover(movers, onset_step)
    leading = _explaining(causes, _group(metric))
    evidence = tuple(move.before(onset_step) for move in movers.by(onset_step) if move.metric == metric)
    late = _late_groups(movers, onset_step)
    promoted = [_promoted(item, evidence) for item in leading]
    return promoted + [_demoted(item, late) for item in others if item not in leading]


def _is_kept(judged: JudgedCause) -> bool:
    """Return whether a cause is kept whichever series moved first."""
    return bool(judged.cause.test) or not judged.cause.moves


def _explaining(causes: Sequence[JudgedCause], group: str) -> list[JudgedCause]:
    """Return the causes that move a group of series; only the tested ones where a test found something."""
    found = [item for item in causes if item.cause.moves and item.cause.moves == group]
    if any(item.cause.test and item.state in STRONG for item in found):
        return [item for item in found if item.cause.test]
    return found


def _promoted(judged: JudgedCause, evidence: tuple[Evidence, ...]) -> JudgedCause:
    """Add the evidence of the first mover, and make a possible cause likely unless a precondition is unknown."""
    state = judged.state
    if state is CauseState.POSSIBLE and not judged.reason:
        state = CauseState.LIKELY
    return replace(judged, state=state, evidence=(*evidence, *judged.evidence))


def _demoted(judged: JudgedCause, late: set[str]) -> JudgedCause:
    """Make a likely cause possible if its series moved late."""
    if judged.cause.moves in late:
        return _at_most_possible(judged)
    return judged


def _late_groups(movers: Movers, onset_step: int) -> set[str]:
    """Return the groups of series that moved, but none of them by the onset."""
    moves = movers.around(onset_step)
    early = {_group(move.metric) for move in moves if move.step <= onset_step}
    return {_group(move.metric) for move in moves} - early


def _group(metric: str) -> str:
    return metric.partition("/")[0]


def _is_reported(judged: JudgedCause) -> bool:
    """Return whether to report a cause: a quiet one only if something speaks for it."""
    return not judged.cause.quiet or judged.state not in (*SILENT, CauseState.NOT_CHECKABLE)
