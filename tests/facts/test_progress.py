"""Whether a run is shown to have got better: by its levels, by the few rows that it has, by its training loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.facts.progress import Learned
from tests.conftest import facts_of, falling, make_run, series

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = 60


def learned(evals: Sequence[float], *, loss: float = 1.0) -> Learned:
    """What is seen of a run whose training loss is that of `falling`, scaled around 4, with these evaluations."""
    run = make_run({"loss": 4 + loss * (falling(ROWS) - 4)})
    at = np.linspace(0, ROWS - 1, len(evals)).astype(int)
    found = facts_of(replace(run, series={**run.series, "eval_loss": series("eval_loss", evals, at)})).get("progress")
    assert isinstance(found, Learned)
    return found


def test_three_evaluations_that_fall_show_progress() -> None:
    """The level of three rows is the middle one at both ends: the rows are compared instead."""
    assert learned([6.9, 2.1, 1.9]).metric == "eval_loss"
    assert learned([6.9, 2.1, 1.9]).shown


@pytest.mark.parametrize("evals", [[2.0, 2.1, 2.05], [2.0, 2.0, 2.0], [2.0, 1.8, 1.9, 1.95]])
def test_too_few_evaluations_leave_it_to_the_training_loss(evals: list[float]) -> None:
    """They can't deny progress; without any, the rows themselves are quoted."""
    assert learned(evals)._replace(text="", brief="") == Learned("loss", shown=True, text="", brief="")
    denied = learned(evals, loss=0.0)
    assert not denied.shown
    assert denied.brief.startswith(f"eval_loss has {len(evals)} rows: 2")


def test_many_evaluations_that_do_not_fall_deny_progress() -> None:
    """Whatever the training loss does."""
    found = learned([2.0, 2.1, 1.9, 2.05, 1.95, 2.0, 2.1, 2.0])
    assert (found.metric, found.shown) == ("eval_loss", False)
    assert "over its last 3 rows" in found.brief
