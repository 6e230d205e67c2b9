"""What goes wrong beside a loss that falls: gradients that add up, schedules, overfitting, dead units."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import falling, make_run

TREES = load_trees()


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
