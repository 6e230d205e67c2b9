"""Runs that do not learn."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES, make_run

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

TREES = load_trees()
FOLDER = FIXTURES / "convergence"


@cache
def of_fixture(name: str, memorises: str = "") -> Diagnosis:
    """The diagnosis of a fixture run, with a person's answer to O1 if there is one."""
    return diagnose(load_run(FOLDER / name), TREES, answers={"O1": memorises} if memorises else {})


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
        for columns in ({}, {"weight_norm": np.ones(600)}):
            run = make_run({"loss": loss, "update_ratio": np.full(600, ratio), **columns})
            assert diagnose(run, TREES).findings[0].leaf.id == leaf


@pytest.mark.parametrize(("low", "wanted"), [(1.64, True), (1.55, False), (2.1, False)])
def test_a_softmax_taken_twice_can_t_leave_its_bounds(low: float, wanted: bool) -> None:
    """With 12 classes the floor is 1.619: a loss that rests below it, or far above, has another reason."""
    at = np.arange(1000)
    loss = np.log(12) + (low - np.log(12)) * (1 - np.exp(-at / 60)) + 0.01 * np.sin(at * 1.7)
    found = diagnose(make_run({"loss": loss}, n_classes=12), TREES)
    assert ("double-softmax" in [finding.leaf.id for finding in found.findings]) == wanted
