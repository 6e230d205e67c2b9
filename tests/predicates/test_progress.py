"""Losses that get on, that never hold, and that leave the eval loss behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.run import Series
from stabtree.tree.load import load_trees
from tests.conftest import ask, falling, make_run
from tests.leaves.make import with_rerun
from tests.leaves.precision import never_held

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run

TREES = load_trees()
AT = np.arange(1000)


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


def test_the_level_of_a_loss_says_nothing_by_itself() -> None:
    """A constant that is added to the loss turns no healthy run into one that learns slowly, and hides no flat one."""
    rng = np.random.default_rng(3)
    flat, fell = 2.3 + rng.normal(0, 0.03, 600), falling(600)
    for added in (-10.0, 0.0, 10.0, 1000.0):
        assert leaves(make_run({"loss": flat + added})) >= {"flat-from-start"}
        assert not leaves(make_run({"loss": fell + added})) & {"flat-from-start", "slow-learning", "worse-than-start"}


def test_a_loss_that_hardly_falls_is_told_in_any_unit() -> None:
    """A squared error may begin far below a guess between classes: what it hardly loses is hardly learned."""
    loss = 2.4 + 0.03 * falling(600) + np.random.default_rng(5).normal(0, 0.01, 600)
    for unit in (1.0, 1e-3, 1e-6):
        assert "slow-learning" in leaves(make_run({"loss": unit * loss}))


def test_a_loss_of_nothing_but_zeros_is_flat() -> None:
    """All labels masked: no share of 0 can be taken, and none is needed."""
    assert "flat-from-start" in leaves(make_run({"loss": np.zeros(600)}))


def test_a_loss_that_begins_below_zero_is_flat_within_its_own_scatter() -> None:
    """A Dice loss that never leaves its first level has learned nothing; one that falls far has, whatever its share."""
    scatter = np.random.default_rng(5).normal(0, 0.004, 400)
    assert "flat-from-start" in leaves(make_run({"loss": scatter - 0.067}))
    learned = -0.067 - 0.7 * (1 - np.exp(-np.arange(400) / 60))
    assert not leaves(make_run({"loss": scatter + learned})) & {"flat-from-start", "slow-learning"}


def test_one_row_of_an_attempt_before_is_not_where_a_resumed_run_begins() -> None:
    """A log that goes on at step 13,000, one row of an earlier attempt above it, is not called flat from its start."""
    run = make_run({"loss": np.append(9.5, 2.3 + np.random.default_rng(6).normal(0, 0.03, 600))})
    series = Series("loss", np.append(1, 13_000 + np.arange(600)), run.series["loss"].values, "")
    assert "flat-from-start" in leaves(run)
    assert "flat-from-start" not in leaves(replace(run, series={"loss": series}))


def leaves(run: Run) -> set[str]:
    """What is found in a run."""
    return {finding.leaf.id for finding in diagnose(run, TREES).findings}


def test_a_run_that_never_holds_needs_another_rate_to_tell() -> None:
    """P17 is confirmed by a rerun at another learning rate, ruled out by one that holds, else not checkable."""

    def state(found: Diagnosis) -> CauseState:
        return next(c.state for f in found.findings for c in f.causes if c.cause.id == "P17.init")

    assert state(diagnose(never_held(1e-3), TREES)) is CauseState.NOT_CHECKABLE
    assert state(diagnose(with_rerun(never_held(1e-3), never_held(1e-4)), TREES)) is CauseState.CONFIRMED
    found = diagnose(with_rerun(never_held(1e-3), make_run({"loss": falling(1000)}, lr=1e-4)), TREES)
    assert state(found) is CauseState.RULED_OUT
    too_short = make_run({"loss": falling(200)}, lr=1e-4)
    assert state(diagnose(with_rerun(never_held(1e-3), too_short), TREES)) is CauseState.NOT_CHECKABLE


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_a_rise_from_below_zero_is_told_in_nats(level: float) -> None:
    """A share of a level below 0 means nothing; above it the share is told."""
    evals = level + np.where(AT < 200, -0.5, 9.5 * (AT / 1000) - 0.5)
    found = ask("overfits", make_run({"loss": level + 1 - 3 * AT / 1000, "eval_loss": evals}))
    assert ("nats higher" in found.evidence[0].text) is (level == 0.0)
    assert ("% higher" in found.evidence[0].text) is (level > 0)


def test_an_eval_loss_alone_shows_overfitting() -> None:
    """Where no training loss is logged, a lasting rise over enough evaluations is likely overfitting."""
    rising = np.where(AT < 200, 2.0 - AT / 400, 1.5 + (AT - 200) / 1000)
    found = ask("overfits", make_run({"eval_loss": rising}))
    assert found.verdict == "yes"
    assert "no training loss is logged" in found.evidence[1].text
    assert ask("overfits", make_run({"eval_loss": 2.0 - AT / 1000})).verdict == "no"


def test_the_beginning_is_said_as_it_was_read() -> None:
    """The level is the median of the first rows; a first row that lies far from it is named."""
    values = 2.3 + 0.01 * np.sin(AT * 1.7)
    odd = np.where(AT == 0, 6.15, values)
    plain, named = (ask("leaves_start", make_run({"loss": loss})).evidence[0].text for loss in (values, odd))
    assert "(the median of 10 rows)" in plain
    assert "(the median of 10 rows, the first at 6.15)" in named


def test_few_rows_that_fall_all_along_are_not_at_chance() -> None:
    """Fifteen epochs near ln(2) say nothing of a trend; thirty that stand there do, thirty that fall do not."""
    still = np.log(2) + np.random.default_rng(7).normal(0, 2e-4, 30)
    falls = np.log(2) - 1e-4 * np.arange(30)
    assert ask("stands_at_chance", epochs(falls[:15])).verdict == "unknown"
    assert ask("stands_at_chance", epochs(falls)).verdict == "no"
    assert ask("stands_at_chance", epochs(still)).verdict == "yes"


def epochs(loss: Floats) -> Run:
    """A run of fifty steps between two rows."""
    run = make_run({"loss": loss})
    return replace(run, series={"loss": Series("loss", 50 * np.arange(len(loss)), loss, "")})
