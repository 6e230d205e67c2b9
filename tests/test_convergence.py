"""The convergence tree: every leaf has a real run that shows it, every answer is given, healthy runs stay quiet."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.answer import UNKNOWN
from stabtree.loaders import load_run
from stabtree.tree import Severity
from stabtree.treefile import load_tree, load_trees
from stabtree.walk import diagnose
from tests.conftest import FIXTURES, falling, make_run

if TYPE_CHECKING:
    from stabtree.diagnosis import Diagnosis
    from stabtree.run import Run

TREES = load_trees()
TREE = load_tree("convergence")
FOLDER = FIXTURES / "convergence"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
WELL = [leaf.id for leaf in TREE.leaves.values() if leaf.severity is Severity.OK]
FOUND = [leaf.id for leaf in TREE.leaves.values() if leaf.severity is not Severity.OK]
ANSWERED = {"loop-broken": ("flat-from-start", "no")}
HEALTHY = [*sorted((FIXTURES / "healthy").iterdir()), FIXTURES / "phase19" / "healthy", FOLDER / "healthy"]


@cache
def of_fixture(name: str, memorises: str = "") -> Diagnosis:
    """The diagnosis of a fixture run, with a person's answer to O1 if there is one."""
    return diagnose(load_run(FOLDER / name), TREES, answers={"O1": memorises} if memorises else {})


def of_leaf(leaf: str) -> Diagnosis:
    """The diagnosis of the run that shows a leaf."""
    return of_fixture(*ANSWERED.get(leaf, (leaf,)))


@pytest.mark.parametrize("leaf", FOUND)
def test_the_fixture_of_a_leaf_shows_it(leaf: str) -> None:
    """Every leaf has a run, made by a real training, with that finding and none that is worse."""
    found = of_leaf(leaf)
    shown = {finding.leaf.id: finding for finding in found.findings}
    assert leaf in shown
    assert shown[leaf].evidence
    assert found.verdict == TREE.leaves[leaf].severity


def test_the_healthy_fixture_ends_in_every_leaf_that_is_ok() -> None:
    """Each section of the tree finds nothing in a sound run that logs all it asks for."""
    ends = {visits[-1].question.go[visits[-1].answer.verdict] for visits in of_fixture("healthy").further}
    assert set(WELL) <= ends


@pytest.mark.parametrize("folder", HEALTHY, ids=lambda path: path.name)
def test_healthy_fixtures_raise_no_alarm(folder: object) -> None:
    """Both trees together leave them ok, or with a note."""
    assert diagnose(load_run(str(folder)), TREES).verdict in ("ok", "note")


def test_every_answer_of_every_question_is_given() -> None:
    """No edge of the tree is untested: each verdict that has an edge is answered by a fixture or a made run."""
    given: dict[str, set[str]] = {id_: set() for id_ in TREE.questions}
    found = [of_fixture(name) for name in NAMES] + [of_fixture("flat-from-start", word) for word in ("yes", "no")]
    found += [diagnose(run, TREES) for run in (_flat_under_usual_updates(), _slow_under_large_updates())]
    for visit in (visit for one in found for visits in (one.path, *one.further) for visit in visits):
        given.setdefault(visit.question.id, set()).add(visit.answer.verdict)
    for question in TREE.questions.values():
        wanted = set(question.go) - {UNKNOWN}
        assert wanted <= given[question.id], f"{question.id} never answered {wanted - given[question.id]}"


def _flat_under_usual_updates() -> Run:
    loss = 2.5 + np.random.default_rng(5).normal(0, 0.05, 600)
    return make_run({"loss": loss, "update_ratio": np.full(600, 1e-3)})


def _slow_under_large_updates() -> Run:
    return make_run({"loss": 2.5 + 0.03 * falling(600), "update_ratio": np.full(600, 0.05)})


def test_a_person_parts_a_weak_rate_from_a_broken_loop() -> None:
    """A loop that memorises one batch is sound, so the rate is to blame; one that can't is not."""
    assert of_fixture("flat-from-start", "yes").findings[0].leaf.id == "lr-too-low"
    assert of_fixture("flat-from-start", "no").findings[0].leaf.id == "loop-broken"


def test_a_usual_update_ratio_rules_the_rate_out() -> None:
    """A loss that hardly falls under updates of the usual size is not the learning rate's fault."""
    causes = {cause.cause.id: cause.state for cause in of_fixture("slow-learning").findings[0].causes}
    assert causes["O7.low"] == "ruled out"


def test_the_smallest_update_is_one() -> None:
    """An update ratio below float32's rounding, yet not 0, comes from a rate that is far too low."""
    loss = 2.5 + np.random.default_rng(6).normal(0, 0.05, 600)
    for ratio, leaf in ((1e-8, "lr-too-low"), (0.0, "weights-still")):
        run = make_run({"loss": loss, "update_ratio": np.full(600, ratio)})
        assert diagnose(run, TREES).findings[0].leaf.id == leaf
