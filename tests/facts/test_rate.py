"""Whether the learning rate is too high."""

from __future__ import annotations

import numpy as np

from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import make_run


def state(**columns: object) -> CauseState:
    """The state of a rate that is too high among the causes of a loss that is NaN from its first row on."""
    run = make_run({"loss": np.full(40, np.nan), **columns})
    found = diagnose(run, load_trees(run)).findings[0]
    return next(judged.state for judged in found.causes if judged.cause.id == "Q1.4.lr")


def test_a_rate_is_judged_by_its_own_value_where_no_loss_is_finite() -> None:
    """The rate that was logged speaks for itself; without one nothing does."""
    assert state(lr=np.linspace(0.45, 0.0, 40)) is CauseState.POSSIBLE
    assert state() is CauseState.NOT_CHECKABLE


def test_a_rate_below_the_limit_is_no_evidence_with_that_limit() -> None:
    """What is merely possible names what is known, not a bar that the rate stays under."""
    loss = 2.3 + np.random.default_rng(0).normal(0, 0.01, 600)
    run = make_run({"loss": loss, "lr": np.full(600, 0.0003)})
    found = diagnose(run, load_trees(run)).findings[0]
    judged = next(judged for judged in found.causes if judged.cause.test == "rate_too_high")
    assert judged.state is CauseState.POSSIBLE
    assert "far too high" not in " ".join(item.text for item in judged.evidence)
