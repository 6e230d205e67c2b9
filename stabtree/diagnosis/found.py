"""What one walk found by itself, before what other walks tell of the same event is put together with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.diagnosis.causes import judged_causes
from stabtree.diagnosis.events import Seen
from stabtree.diagnosis.fixes import Filling, advised, told_causes
from stabtree.diagnosis.restart import advise
from stabtree.diagnosis.result import Finding
from stabtree.diagnosis.timeline import precursors
from stabtree.facts.rate import Rate
from stabtree.predicates import predicate_named
from stabtree.tree.params import facts_behind

if TYPE_CHECKING:
    from stabtree.diagnosis.causes import Params
    from stabtree.diagnosis.visits import Visit
    from stabtree.facts.registry import Facts
    from stabtree.run import Run
    from stabtree.tree.model import Leaf


def found(run: Run, facts: Facts, params: Params, visits: tuple[Visit, ...], leaf: Leaf) -> Seen:
    """What a walk found, by itself: since when, by which cause, what to do, from where to restart.

    Args:
        run: the run.
        facts: what is found in it.
        params: the parameters of a cause's test.
        visits: the walk.
        leaf: where it ended.
    """
    told_by = [visit for visit in visits if visit.answer.verdict not in (NO, UNKNOWN)]
    # Later questions look closer: the last one that names an onset has it, and its last good step with it.
    last = next((visit for visit in reversed(told_by) if visit.answer.onset_step is not None), None)
    onset, good = (last.answer.onset_step, last.answer.last_good_step) if last else (None, None)
    asked = predicate_named(last.question.test) if last else None
    storm = any(visit.answer.storm for visit in told_by)
    judged = judged_causes(leaf, facts, params, onset)
    start = onset if leaf.restart else None
    known, rate = facts.get("checkpoints"), facts.get("rate")
    restart = advise(known, start, good, storm=storm, take=leaf.take) if start is not None else None
    filling = Filling(
        run,
        onset,
        good,
        most_lr=rate.bar if isinstance(rate, Rate) else math.inf,
        has_older=restart is None or restart.checkpoint_step is not None,
    )
    causes = told_causes(judged, filling)
    evidence = tuple(item for visit in told_by for item in visit.answer.evidence)
    # The number format is on the way to many leaves, and is the reason for the fixes of none.
    dated = next((visit.answer.evidence for visit in told_by if visit.answer.onset_step is not None), evidence)
    finding = Finding(
        leaf=leaf,
        section=visits[-1].question.section,
        onset_step=onset,
        last_good_step=good,
        evidence=evidence,
        causes=causes,
        advice=advised(leaf, causes, dated, filling),
        precursors=precursors(facts, start) if start is not None else (),
        restart=restart,
        unit=run.unit,
    )
    by_levels = asked is not None and "levels" in facts_behind(asked)
    return Seen(finding, storm, by_levels, filling, dated)
