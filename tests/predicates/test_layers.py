"""Weights that do not move, updates of the wrong size, units that die."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES, falling, make_run

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis

TREES = load_trees()
FOLDER = FIXTURES / "convergence"


@cache
def of_fixture(name: str, memorises: str = "") -> Diagnosis:
    """The diagnosis of a fixture run, with a person's answer to O1 if there is one."""
    return diagnose(load_run(FOLDER / name), TREES, answers={"O1": memorises} if memorises else {})


def test_a_person_parts_a_weak_rate_from_a_broken_loop() -> None:
    """A loop that can't memorise one batch is broken; one that can is sound, and no proof of a rate too low."""
    assert of_fixture("flat-from-start", "yes").findings[0].leaf.id == "learns-one-batch"
    assert of_fixture("flat-from-start", "no").findings[0].leaf.id == "loop-broken"


def test_a_usual_update_ratio_rules_the_rate_out() -> None:
    """A loss that hardly falls under updates of the usual size is not the learning rate's fault."""
    causes = {cause.cause.id: cause.state for cause in of_fixture("slow-learning").findings[0].causes}
    assert causes["O7.low"] == "ruled out"


def test_the_smallest_update_is_one() -> None:
    """An update ratio below float32's rounding, yet not 0, comes from a rate that is far too low."""
    loss = 2.5 + np.random.default_rng(6).normal(0, 0.02, 600)
    for ratio, leaf in ((1e-8, "lr-too-low"), (0.0, "weights-still")):
        for columns in ({}, {"weight_norm": np.ones(600)}):
            run = make_run({"loss": loss, "update_ratio": np.full(600, ratio), **columns})
            assert diagnose(run, TREES).findings[0].leaf.id == leaf


def test_units_that_die_in_the_first_steps_have_died() -> None:
    """Compared is the first rows, not the first tenth of a long run; units that were dead from row 0 on are no news."""
    for begin, wanted in ((0.0, True), (0.8, False)):
        dead = np.full(1000, 0.8)
        dead[:3] = begin
        found = diagnose(make_run({"loss": falling(1000), "dead_relu_frac": dead}), TREES)
        assert ("dead-units" in [finding.leaf.id for finding in found.findings]) == wanted
