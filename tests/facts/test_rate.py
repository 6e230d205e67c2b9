"""Whether the learning rate is too high."""

from __future__ import annotations

import numpy as np

from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.facts import facts_of
from stabtree.predicates import PREDICATES
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
    columns = {"loss": np.full(40, 2.3)}
    for settings, text in (({}, "no learning rate is known"), ({"lr": 0.0003}, "lr is at most 0.0003")):
        answer = PREDICATES["rate_too_high"].ask(facts_of(make_run(columns, **settings)), {})
        assert answer.verdict == "possible"
        assert answer.evidence[0].text.startswith(text)
        assert answer.evidence[0].threshold is None
