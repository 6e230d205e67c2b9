"""The convergence tree: every leaf has a real run that shows it, and healthy runs stay quiet."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_tree, load_trees
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

TREES = load_trees()
TREE = load_tree("convergence")
FOLDER = FIXTURES / "convergence"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
WELL = [leaf.id for leaf in TREE.leaves.values() if leaf.severity is Severity.OK]
ANSWERED = {"loop-broken": ("flat-from-start", "no")}
# The other leaves are reached by answers of a person and by made runs: tests/leaves.
FOUND = [id_ for id_ in TREE.leaves if id_ in {*NAMES, *ANSWERED} - {"healthy"}]
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
    last = [visits[-1] for visits in of_fixture("healthy").further]
    ends = {visit.question.go.get(visit.answer.verdict, visit.question.go.get("no")) for visit in last}
    assert set(WELL) <= ends


@pytest.mark.parametrize("folder", HEALTHY, ids=lambda path: path.name)
def test_healthy_fixtures_raise_no_alarm(folder: object) -> None:
    """Both trees together leave them ok, or with a note."""
    assert diagnose(load_run(str(folder)), TREES).verdict in ("ok", "note")
