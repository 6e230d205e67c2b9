"""Every leaf of every shipped tree has a run that ends there, every edge is walked, every cause told and ruled out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN
from stabtree.diagnosis.result import SILENT, STRONG, CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_trees
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES
from tests.leaves import EDGE, MORE, NEAR, NOT_TOLD, RUNS, TOLD, diagnosed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Tree


def outspoken(tree: Tree) -> Tree:
    """The tree, with every cause told under a finding, also where nothing speaks for it."""
    causes = {leaf.id: tuple(replace(cause, quiet=False) for cause in leaf.causes) for leaf in tree.leaves.values()}
    return replace(tree, leaves={id_: replace(leaf, causes=causes[id_]) for id_, leaf in tree.leaves.items()})


TREE = outspoken(load_trees())
FOLDERS = {path.parent.name: path.parent for path in FIXTURES.glob("*/*/manifest.json")}
FIXED = {leaf: folder for leaf, folder in FOLDERS.items() if leaf in TREE.leaves}
# A line that never ends a run is not asked whether the run has survived it.
NO_ANSWER = {(question.id, "survived") for question in TREE.questions.values() if question.params.get("ends") is False}
# Where the updates are that small, O7 and O7.slow have sent the walk to `lr-too-low` before.
NEVER_TOLD = {"O7.lr", "O7.low", "O1.one.low"}
# A setting or a column alone makes nothing likely.
GUESSES = {"setting_is", "is_logged"}
APPLIED = {"nan-structural": ("Q1.4",)}
MADE = {"RUNS": RUNS, "EDGE": EDGE, "NEAR": NEAR, "TOLD": TOLD, "NOT_TOLD": NOT_TOLD, "MORE": MORE}


@cache
def of_fixture(name: str) -> Diagnosis:
    """The diagnosis of a fixture run, for `nan-structural` after the fixes were applied."""
    return diagnose(load_run(FOLDERS[name]), TREE, applied=APPLIED.get(name, ()))


@cache
def of_made(kind: str, name: str) -> Diagnosis:
    """The diagnosis of a made run."""
    return diagnosed(MADE[kind][name], TREE)


def of_all() -> Iterator[Diagnosis]:
    """The diagnoses of all runs."""
    for name in FOLDERS:
        yield of_fixture(name)
    for kind, makers in MADE.items():
        for name in makers:
            yield of_made(kind, name)


def ends(found: Diagnosis) -> set[str]:
    """The leaves at which the walk of the path and those of the later sections end, and those of the findings."""
    last = [visits[-1] for visits in found.further]
    further = {visit.question.go.get(visit.answer.verdict) or visit.question.go.get(NO, "") for visit in last}
    return {found.end.id, *further, *(finding.leaf.id for finding in found.reached)}


def test_every_leaf_has_one_run() -> None:
    """A fixture of its name or a made run, and not both; a new leaf without one is named here."""
    assert set(TREE.leaves) == FIXED.keys() | RUNS.keys()
    assert not FIXED.keys() & RUNS.keys()


@pytest.mark.parametrize("leaf", sorted({*FIXED, *RUNS}))
def test_the_run_of_a_leaf_ends_there(leaf: str) -> None:
    """It is a finding, with evidence, and decides the verdict unless a worse one does; an ok leaf ends its section."""
    found = of_fixture(leaf) if leaf in FIXED else of_made("RUNS", leaf)
    assert leaf in ends(found)
    if TREE.leaves[leaf].severity is Severity.OK:
        assert found.verdict in ("ok", "note")
        return
    finding = next(finding for finding in found.reached if finding.leaf.id == leaf)
    assert finding.evidence
    if finding.leaf.severity is not Severity.NOTE:  # beside which the rest of a short log may not be judged
        assert Severity(found.verdict).rank >= finding.leaf.severity.rank


@pytest.mark.parametrize("name", EDGE)
def test_a_run_beyond_a_bar_ends_there(name: str) -> None:
    """An eighth beyond the bar that its name tells, the leaf is reached."""
    assert name.partition(":")[0] in ends(of_made("EDGE", name))


@pytest.mark.parametrize("name", NEAR)
def test_a_run_that_lacks_one_thing_does_not_end_there(name: str) -> None:
    """An eighth inside of one bar, and beyond all others, the leaf is not reached."""
    assert name.partition(":")[0] not in ends(of_made("NEAR", name))


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


def states(found: Diagnosis) -> Iterator[tuple[str, CauseState]]:
    """What each cause with a test came to under each finding; a guess at its best counts as likely.

    So does what its test found where another cause leaves the same trace: then neither is likely.
    """
    for finding in (part for item in found.findings for part in item.parts):
        for judged in finding.causes:
            guess = judged.state is CauseState.POSSIBLE and (judged.cause.test in GUESSES or judged.odds > 1)
            if judged.cause.test:
                yield judged.cause.id, CauseState.LIKELY if guess else judged.state


@pytest.mark.parametrize("name", TOLD)
def test_a_cause_is_told(name: str) -> None:
    """It is confirmed or likely under a finding."""
    came_to = {state for id_, state in states(of_made("TOLD", name)) if id_ == name.partition(":")[0]}
    assert came_to & set(STRONG)


@pytest.mark.parametrize("name", NOT_TOLD)
def test_a_cause_is_ruled_out(name: str) -> None:
    """Under a finding that may have it, an eighth inside of a bar, it is looked for and not found."""
    came_to = {state for id_, state in states(of_made("NOT_TOLD", name)) if id_ == name.partition(":")[0]}
    assert came_to
    assert came_to <= set(SILENT)


def test_every_cause_is_told_and_ruled_out() -> None:
    """Each cause with a test is told under some run's finding, and not found under another's."""
    causes = {cause.id for leaf in TREE.leaves.values() for cause in leaf.causes if cause.test}
    seen = {pair for found in of_all() for pair in states(found)}
    assert causes - {id_ for id_, state in seen if state in STRONG} == NEVER_TOLD
    quiet = {cause.id for leaf in TREE.leaves.values() for cause in leaf.causes if cause.quiet}  # then they go untold
    assert causes - quiet - {id_ for id_, state in seen if state in SILENT} == set()
