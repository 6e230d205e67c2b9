"""Every leaf of every shipped tree has a run that ends there, and every edge is walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.model import Severity
from tests import corpus
from tests.leaves import EDGE, NEAR, RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis

TREE = corpus.trees()
LOGGED = [case for case in corpus.cases() if case.startswith("fixtures/") and not case.endswith("by the letter")]
FIXED = {case.rpartition("/")[2]: case for case in LOGGED if case.rpartition("/")[2] in TREE.leaves}
# A line that never ends a run is not asked whether the run has survived it.
NO_ANSWER = {(question.id, "survived") for question in TREE.questions.values() if question.params.get("ends") is False}
APPLIED = {"nan-structural": ("Q1.4",)}


def of_leaf(leaf: str) -> Diagnosis:
    """The diagnosis of the run of a leaf, for `nan-structural` after the fixes were applied."""
    if leaf in APPLIED:
        return diagnose(corpus.given(FIXED[leaf])[0], TREE, applied=APPLIED[leaf])
    return corpus.found(FIXED.get(leaf, f"leaves/RUNS {leaf}"))


def of_all() -> Iterator[Diagnosis]:
    """The diagnoses of all fixtures and of all made runs of the leaves."""
    yield from map(of_leaf, APPLIED)
    yield from (corpus.found(case) for case in (*LOGGED, *corpus.cases()) if case in LOGGED or "leaves/" in case)


def ends(found: Diagnosis) -> set[str]:
    """The leaves at which the walk of the path and those of the later sections end, and those of the findings."""
    last = [visits[-1] for visits in found.further]
    further = {visit.question.go.get(visit.answer.verdict) or visit.question.go.get(NO, "") for visit in last}
    return {found.end.id, *further, *(finding.leaf.id for finding in found.reached)}


def test_the_run_of_a_leaf_ends_there() -> None:
    """Each leaf has a fixture of its name or a made run, and not both; a new leaf without one is named here.

    It is a finding, with evidence, and decides the verdict unless a worse one does; an ok leaf ends its section.
    """
    assert set(TREE.leaves) == FIXED.keys() | RUNS.keys()
    assert not FIXED.keys() & RUNS.keys()
    for leaf in TREE.leaves.values():
        found = of_leaf(leaf.id)
        assert leaf.id in ends(found)
        if leaf.severity is Severity.OK:
            assert found.verdict in ("ok", "note"), leaf.id
            continue
        finding = next(finding for finding in found.reached if finding.leaf.id == leaf.id)
        assert finding.evidence, leaf.id
        if finding.leaf.severity is not Severity.NOTE:  # beside which the rest of a short log may not be judged
            assert Severity(found.verdict).rank >= finding.leaf.severity.rank, leaf.id


def test_a_leaf_is_reached_beyond_its_bars_alone() -> None:
    """An eighth beyond the bar of a name it is; an eighth inside of one bar, and beyond all others, it is not."""
    reached = [name for name in EDGE if name.partition(":")[0] in ends(corpus.found(f"leaves/EDGE {name}"))]
    assert reached == [*EDGE]
    assert not [name for name in NEAR if name.partition(":")[0] in ends(corpus.found(f"leaves/NEAR {name}"))]


def test_every_answer_is_given() -> None:
    """Each verdict for which a question has an edge is some run's answer."""
    given = set()
    for found in of_all():
        walks = (found.path, *found.further)
        given |= {(visit.question.id, visit.answer.verdict) for visits in walks for visit in visits}
    wanted = {(question.id, verdict) for question in TREE.questions.values() for verdict in question.go}
    assert {edge for edge in wanted - given if edge[1] != UNKNOWN} == NO_ANSWER
