"""Every leaf of every shipped tree has a run that ends there, every edge is walked, every cause told and ruled out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from stabtree.answer import NO, UNKNOWN
from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.predicates import PREDICATES
from stabtree.tree.check import resolved
from stabtree.tree.load import load_trees
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES
from tests.leaves import MORE, NEAR, RUNS, diagnosed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.tree.model import Cause

TREE = load_trees()
FOLDERS = {path.parent.name: path.parent for path in FIXTURES.glob("*/*/manifest.json")}
FIXED = {leaf: folder for leaf, folder in FOLDERS.items() if leaf in TREE.leaves}
# A line that never ends a run is not asked whether the run has survived it.
NO_RUN = {f"{leaf}-survived" for leaf in ("scheduler-order", "overflow-lines", "amp-deprecated")}
NO_ANSWER = {(TREE.leaves[leaf].of, "survived") for leaf in NO_RUN}
# Where the updates are that small, O7 and O7.slow have sent the walk to `lr-too-low` before.
NEVER_TOLD = {"O7.lr", "O7.low"}
TOLD = (CauseState.CONFIRMED, CauseState.LIKELY)
APPLIED = {"nan-structural": ("Q1.4",)}
MADE = {**RUNS, **NEAR, **MORE}


@cache
def of_fixture(name: str) -> Diagnosis:
    """The diagnosis of a fixture run, for `nan-structural` after the fixes were applied."""
    return diagnose(load_run(FOLDERS[name]), TREE, applied=APPLIED.get(name, ()))


@cache
def of_made(name: str) -> Diagnosis:
    """The diagnosis of a made run."""
    return diagnosed(MADE[name], TREE)


def of_all() -> Iterator[Diagnosis]:
    """The diagnoses of all runs."""
    for name in FOLDERS:
        yield of_fixture(name)
    for name in MADE:
        yield of_made(name)


def ends(found: Diagnosis) -> set[str]:
    """The leaves at which the walk of the path and those of the later sections end, and those of the findings."""
    last = [visits[-1] for visits in found.further]
    further = {visit.question.go.get(visit.answer.verdict) or visit.question.go.get(NO, "") for visit in last}
    return {found.end.id, *further, *(finding.leaf.id for finding in found.findings)}


def test_every_leaf_has_one_run() -> None:
    """A fixture of its name or a made run, and not both; a new leaf without one is named here."""
    assert set(TREE.leaves) - NO_RUN == FIXED.keys() | RUNS.keys()
    assert not FIXED.keys() & RUNS.keys()


@pytest.mark.parametrize("leaf", sorted({*FIXED, *RUNS}))
def test_the_run_of_a_leaf_ends_there(leaf: str) -> None:
    """It is a finding, with evidence, and decides the verdict unless a worse one does; an ok leaf ends its section."""
    found = of_fixture(leaf) if leaf in FIXED else of_made(leaf)
    assert leaf in ends(found)
    if TREE.leaves[leaf].severity is Severity.OK:
        assert found.verdict in ("ok", "note")
        return
    finding = next(finding for finding in found.findings if finding.leaf.id == leaf)
    assert finding.evidence
    if finding.leaf.severity is not Severity.NOTE:  # beside which the rest of a short log may not be judged
        assert Severity(found.verdict).rank >= finding.leaf.severity.rank


@pytest.mark.parametrize("name", NEAR)
def test_a_run_that_lacks_one_thing_does_not_end_there(name: str) -> None:
    """An eighth inside of one bar, and beyond all others, the leaf is not reached."""
    assert name.partition(":")[0] not in ends(of_made(name))


def test_every_answer_is_given() -> None:
    """Each verdict for which a question has an edge is answered by some run."""
    given = {
        (visit.question.id, visit.answer.verdict)
        for found in of_all()
        for visits in (found.path, *found.further)
        for visit in visits
    }
    wanted = {(question.id, verdict) for question in TREE.questions.values() for verdict in question.go}
    assert {edge for edge in wanted - given if edge[1] != UNKNOWN} == NO_ANSWER


def judged(finding: Finding, cause: Cause, found: Diagnosis) -> CauseState | None:
    """What a cause of a finding came to; one that is not told where nothing speaks for it is asked again."""
    state = next((judged.state for judged in finding.causes if judged.cause.id == cause.id), None)
    if state is None and PREDICATES[cause.test].ask(found.run, resolved(TREE, cause)).verdict == NO:
        return CauseState.RULED_OUT
    return state


@cache
def states() -> dict[str, set[CauseState | None]]:
    """By cause with a test, all that it came to under the findings of all runs."""
    seen: dict[str, set[CauseState | None]] = {
        cause.id: set() for leaf in TREE.leaves.values() for cause in leaf.causes if cause.test
    }
    for found in of_all():
        for finding in found.findings:
            for cause in finding.leaf.causes:
                if cause.test:
                    seen[cause.id].add(judged(finding, cause, found))
    return seen


def test_every_cause_is_told_and_ruled_out() -> None:
    """Each cause with a test is confirmed or likely under some run's finding, and ruled out under another's."""
    assert {id_ for id_, found in states().items() if not found & set(TOLD)} == NEVER_TOLD
    assert {id_ for id_, found in states().items() if CauseState.RULED_OUT not in found} == set()
