"""The series that says how well a run does, and what a guess would get."""

from __future__ import annotations

import math

import pytest

from stabtree.context.find import context_of
from tests.conftest import make_run


@pytest.mark.parametrize(
    ("metrics", "outcome", "better"),
    [
        ("loss eval_loss eval_quality reward", "reward", "higher"),
        ("loss eval_loss eval_quality", "eval_quality", "higher"),
        ("loss eval_loss grad_norm", "eval_loss", "lower"),
        ("loss lr", "loss", "lower"),
        ("lr", None, ""),
        ("loss eval_loss val_wer", "val_wer", "lower"),
        ("loss eval_loss preference_accuracy", "eval_loss", "lower"),
    ],
)
def test_the_outcome_is_the_reward_else_the_quality_else_a_loss(metrics: str, outcome: str | None, better: str) -> None:
    """Of any name that says so; a training loss only where nothing else says how well the run does."""
    found = context_of(make_run({name: [1.0, 2.0] for name in metrics.split()}))
    assert (found.outcome.value, found.better) == (outcome, better)


def test_a_guess_has_a_value_where_the_task_gives_one() -> None:
    """The logarithm of the classes; ln 2 of two answers; nothing where the task is not known."""
    loss = {"loss": [2.0, 1.0]}
    assert context_of(make_run(loss, n_classes=10)).chance.value == math.log(10)
    assert context_of(make_run(loss, task="dpo")).chance.value == math.log(2)
    assert context_of(make_run(loss)).chance.value is None
