"""What a finding comes to, below its title: whether a spike is over, and what to doubt of an overfitting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.diagnosis.walk import diagnose
from stabtree.report.model import Report
from stabtree.report.words import plainly
from stabtree.tree.load import load_trees
from tests.conftest import make_run
from tests.leaves.make import AT, noisy

TREES = load_trees()
FALLING = np.linspace(2.5, 0.1, 600) * noisy(1.0, 600, 0.01)
EVALS = np.arange(0, 600, 30)


def told(loss: np.ndarray, evals: np.ndarray | None = None, **config: Any) -> Report:
    """The report of a run with a loss in every row and an evaluation now and then."""
    run = make_run({"loss": loss}, **config)
    if evals is not None:
        run = replace(run, series={**run.series, **make_run({"eval_loss": evals}, steps=EVALS).series})
    return Report(diagnose(run, TREES))


def test_a_loss_that_ends_above_its_old_level_is_not_called_back() -> None:
    """The top of a spike is over; where the loss then stays above its level before, the line says where it ends."""
    loss = noisy(1.0, 600, 0.01) + np.where(AT >= 300, 9.0 * np.exp(-(AT - 300) / 8), 0.0) + np.where(AT > 360, 0.1, 0)
    run = make_run({"loss": loss})
    spiked = next(item for item in diagnose(run, TREES).findings if item.leaf.of == "Q2.3")
    assert plainly(run, spiked) == "The loss was 1 before, and ends at 1.1."


@pytest.mark.parametrize(
    ("evals", "said"),
    [
        (np.append(1.5, 1.9 + np.arange(19) / 10), "lowest at its very first evaluation"),
        (np.append([3.0, 2.5], 2.6 + np.arange(18) / 10), ""),
    ],
)
def test_the_lowest_eval_loss_is_doubted_where_it_says_little(evals: np.ndarray, said: str) -> None:
    """Then nothing calls its checkpoint the best of the run."""
    found = told(FALLING, evals)
    assert found.finding is not None
    assert found.finding.leaf.id == "overfitting"
    assert said in found.plainly
    assert bool(said) is bool(found.plainly)
    best = any(", where the run was at its best" in action.text for action in found.do_now)
    assert best is not bool(said)


def test_a_rise_that_is_over_is_no_rise_to_the_end() -> None:
    """The headline says where the loss came to rest, and that the quality rose meanwhile."""
    rng = np.random.default_rng(0)
    steps = np.arange(200)
    loss = np.interp(steps, [0, 8, 50, 200], [1.46, 1.13, 1.43, 1.43]) + rng.normal(0, 0.002, 200)
    accuracy = np.interp(steps, [0, 8, 50, 200], [0.60, 0.72, 0.79, 0.79])
    found = Report(diagnose(make_run({"loss": loss, "eval_quality": accuracy})))
    assert found.finding is not None
    assert found.finding.leaf.id == "slow-rise"
    assert "and stays there" in found.title
    assert found.meaning.startswith("The eval quality went from 0.6 to 0.79 in 200 rows.")
