"""What one walk found by itself, before the findings of other walks on the same event are merged into it."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.diagnosis.causes import judged_causes
from stabtree.diagnosis.events import FindingWithContext
from stabtree.diagnosis.fixes import FixFormatter, ranked_fixes, with_run_values
from stabtree.diagnosis.restart import advise
from stabtree.diagnosis.result import Finding
from stabtree.diagnosis.timeline import precursors
from stabtree.facts.rate import Rate
from stabtree.predicates import predicate_named
from stabtree.tree.params import facts_behind

if TYPE_CHECKING:
    from stabtree.diagnosis.causes import Params
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.visits import Visit
    from stabtree.facts.registry import Facts
    from stabtree.tree.model import Leaf


def build_finding(facts: Facts, params: Params, visits: tuple[Visit, ...], leaf: Leaf) -> FindingWithContext:
    """Return what a walk found: since when, by which cause, what to do, where to restart.

    Args:
        facts: the facts of the run.
        params: returns the parameters of a cause's test.
        visits: the walk.
        leaf: the leaf that it ended at.
    """
    positive = [visit for visit in visits if visit.answer.verdict not in (NO, UNKNOWN)]
    evidence = tuple(chain.from_iterable(visit.answer.evidence for visit in positive))
    # Later questions look closer: the last one that names an onset has it, and its last good step with it.
    # The number format is on the way to many leaves, and is the reason for the fixes of none.
    onset, good, by_levels, reasons = None, None, False, evidence
    dated = [visit for visit in positive if visit.answer.onset_step is not None]
    if dated:
        first, last = dated[0], dated[-1]
        onset, good = last.answer.onset_step, last.answer.last_good_step
        by_levels, reasons = _is_by_levels(last), first.answer.evidence
    storm = any(visit.answer.storm for visit in positive)
    start = onset if leaf.restart else None
    restart = None if start is None else _restart(facts, leaf, start, good, storm=storm)
    has_older = restart is None or restart.checkpoint_step is not None
    formatter = FixFormatter(facts.run, onset, good, _max_lr(facts), has_older)
    causes = with_run_values(judged_causes(leaf, facts, params, onset), formatter)
    finding = Finding(
        leaf=leaf,
        section=visits[-1].question.section,
        onset_step=onset,
        last_good_step=good,
        evidence=evidence,
        causes=causes,
        advice=ranked_fixes(leaf, causes, reasons, formatter),
        precursors=precursors(facts, start),
        restart=restart,
        unit=facts.run.unit,
    )
    return FindingWithContext(finding, storm, by_levels, formatter, reasons)


def _restart(facts: Facts, leaf: Leaf, start: int, good: int | None, *, storm: bool) -> Restart | None:
    """Return where to restart; None where that can't be found out."""

    def advice() -> Restart | None:
        return advise(facts.sure("checkpoints"), start, good, storm=storm, take=leaf.take)

    return facts.faults.attempt("part", f"restart of {leaf.id}", advice, lambda _fault: None)


def _max_lr(facts: Facts) -> float:
    rate = facts.get("rate")
    return rate.bar if isinstance(rate, Rate) else math.inf


def _is_by_levels(visit: Visit) -> bool:
    """Return whether a visit dates the onset by a level of the loss and not by a row."""
    predicate = predicate_named(visit.question.test)
    return predicate is not None and "levels" in facts_behind(predicate)
