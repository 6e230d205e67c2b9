"""The convergence tree: every leaf has a real run that shows it, every answer is given, healthy runs stay quiet."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_tree, load_trees
from stabtree.tree.model import Severity
from tests.conftest import FIXTURES, falling, make_run

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


@pytest.mark.parametrize("interval", [1, 10])
def test_gradients_that_add_up_are_known_however_soon_they_level_off(interval: int) -> None:
    """A sum leaves the level of its first batch at once; a noisy norm that grows as much is none."""
    at = np.arange(0, 2000, interval)
    noise = np.exp(np.random.default_rng(7).normal(0, 0.2, len(at)))
    loss = falling(len(at))
    for norm, wanted in ((np.minimum(1 + at, 60 + 0.01 * at), True), (np.linspace(1, 60, len(at)) * noise, False)):
        found = diagnose(make_run({"loss": loss, "grad_norm": norm}, steps=at), TREES)
        assert ("gradients-add-up" in [finding.leaf.id for finding in found.findings]) == wanted


def test_a_weight_decay_that_blows_up_the_gradients_does_not_add_them_up() -> None:
    """A norm that grows smoothly, beside a loss that is smoother still, is no sum of batches."""
    at = np.arange(2000)
    noise = np.random.default_rng(8).normal(0, 1, (2, len(at)))
    columns = {"loss": 1 + 3 * np.exp(-at / 400 + 0.001 * noise[0]), "grad_norm": np.exp(at / 500 + 0.02 * noise[1])}
    found = diagnose(make_run(columns), TREES)
    assert "gradients-add-up" not in [finding.leaf.id for finding in found.findings]


@pytest.mark.parametrize(("low", "wanted"), [(1.64, True), (1.55, False), (2.1, False)])
def test_a_softmax_taken_twice_can_t_leave_its_bounds(low: float, wanted: bool) -> None:
    """With 12 classes the floor is 1.619: a loss that rests below it, or far above, has another reason."""
    at = np.arange(1000)
    loss = np.log(12) + (low - np.log(12)) * (1 - np.exp(-at / 60)) + 0.01 * np.sin(at * 1.7)
    found = diagnose(make_run({"loss": loss}, n_classes=12), TREES)
    assert ("double-softmax" in [finding.leaf.id for finding in found.findings]) == wanted


def test_a_schedule_at_its_floor_in_mid_run_was_stepped_too_often() -> None:
    """A cosine that rests at 10% of its peak from a quarter of the plan on; a milestone schedule may."""
    at = np.arange(1000)
    lr = 1e-3 * (0.1 + 0.45 * (1 + np.cos(np.pi * np.minimum(at / 250, 1))))
    for schedule, leaf in (("cosine", True), ("multistep", False)):
        run = make_run({"loss": falling(1000), "lr": lr}, lr_schedule=schedule, max_steps=1000, warmup_steps=0)
        assert ("lr-ends-early" in [finding.leaf.id for finding in diagnose(run, TREES).findings]) == leaf


def test_overfitting_shows_though_the_training_loss_is_at_its_bottom() -> None:
    """A training loss of nearly 0 that rises a little is no reason to doubt; one that rises with the eval loss is."""
    at = np.arange(1000)
    eval_loss = 1.1 + 1.5 * np.exp(-at / 50) + np.clip(at - 300, 0, None) / 1000
    for floor, wanted in ((0.005, True), (1.0, False)):
        rise = 0.001 if wanted else 0.6
        loss = floor + 2.5 * np.exp(-at / 50) + rise * np.clip(at - 300, 0, None) / 1000
        found = diagnose(make_run({"loss": loss, "eval_loss": eval_loss}), TREES)
        assert ("overfitting" in [finding.leaf.id for finding in found.findings]) == wanted


def test_what_has_not_learned_does_not_overfit() -> None:
    """Eval and training loss jump about far above their beginning: the one ends high by chance."""
    noise = np.random.default_rng(9).normal(0, 3, (2, 1000))
    loss, eval_loss = 30 + noise[0], 28 + noise[1] + 20 * (np.arange(1000) > 500)
    loss[0] = 2.5
    found = diagnose(make_run({"loss": loss, "eval_loss": eval_loss}), TREES)
    assert "overfitting" not in [finding.leaf.id for finding in found.findings]


def test_units_that_die_in_the_first_steps_have_died() -> None:
    """Compared is the first rows, not the first tenth of a long run; units that were dead from row 0 on are no news."""
    for begin, wanted in ((0.0, True), (0.9, False)):
        dead = np.full(1000, 0.9)
        dead[:3] = begin
        found = diagnose(make_run({"loss": falling(1000), "dead_relu_frac": dead}), TREES)
        assert ("dead-units" in [finding.leaf.id for finding in found.findings]) == wanted
