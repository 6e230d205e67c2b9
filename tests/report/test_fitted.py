"""What `explain` says of the limits that were fitted, and that these are what a walk uses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stabtree.report.trees.fitted import fitted_texts
from stabtree.tree import calibration
from stabtree.tree.calibration import Calibrations, Fit, use, with_limits
from stabtree.tree.load import load_tree
from stabtree.tree.params import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def known() -> Iterator[None]:
    """Use calibrations of one question that was fitted, and of one that was not."""
    unseen = {"right": (0.9, 0.8, 0.95)}
    fitted = Fit(2.0, limit={"dead_share": 0.4}, positives=27, repositories=14, unseen=unseen)
    use(Calibrations(0.75, 0.3, 2.0, {"O25": fitted, "Q2.1": Fit(1.5, "spike", positives=3, repositories=2)}))
    yield
    calibration._USED.clear()


@pytest.mark.usefixtures("known")
def test_explain_says_what_a_limit_rests_on() -> None:
    """A fitted one names its failures and what it is worth elsewhere, another one that it was not fitted."""
    fitted, right = fitted_texts("O25")
    assert "fitted to 27 failures (14 sources)" in fitted
    assert "75% at it" in fitted
    assert right == "on repositories left out of the fit 90% of such alarms are right (95%: 80% to 95%)"
    (shared,) = fitted_texts("Q2.1")
    assert "only 3 failures" in shared
    assert "shared by spike" in shared
    assert not list(fitted_texts("O1"))


@pytest.mark.usefixtures("known")
def test_a_fitted_limit_replaces_the_one_that_the_tree_states() -> None:
    """Whether it is among the plain parameters or among those of a guard."""
    tree = load_tree("convergence")
    question = tree.questions["O25"]
    assert resolved(with_limits(tree), with_limits(tree).questions["O25"])["dead_share"] == 0.4
    guard = replace(question, params={}, advanced={**question.params, **question.advanced})
    moved = with_limits(replace(tree, questions={**tree.questions, "O25": guard}))
    assert resolved(moved, moved.questions["O25"])["dead_share"] == 0.4
