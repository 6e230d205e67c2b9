"""What the clues on runs that do not learn see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree import diagnose
from stabtree.facts import facts_of
from stabtree.predicates.clues import CLUES
from stabtree.predicates.clues.registry import Clues, Moment
from stabtree.run import Series
from stabtree.tree.load import load_trees
from stabtree.tree.params import fact_params
from tests.conftest import make_run

if TYPE_CHECKING:
    from stabtree.run import Run

ROWS = 300
ONES = np.ones(ROWS)
NOISE = np.random.default_rng(0).normal(0, 0.01, ROWS)
TREES = load_trees()
FACT_PARAMS = fact_params(TREES)


def run_of(column: tuple[str, Any] | None = None, **columns: Any) -> Run:
    """A flat loss with other columns; one of them may have a name that no metric has."""
    config = {
        name: columns.pop(name)
        for name in ("lr", "optimizer", "task", "algorithm")
        if isinstance(columns.get(name), float | str)
    }
    run = make_run({"loss": 2.3 + NOISE, **columns}, **config)
    if column is None:
        return run
    name, values = column
    steps = run.series["loss"].steps
    return replace(run, others={name: Series(name, steps, np.broadcast_to(values, ROWS) * 1.0, name)})


def value(name: str, run: Run) -> float | str | None:
    """The value of a clue; None where the log can't show it."""
    found = Clues(facts_of(run, FACT_PARAMS), Moment(None, None), CLUES).get(name)
    return None if found is None else found.value


def test_weights_that_moved_are_known_by_what_they_change() -> None:
    """A gradient that keeps its level says nothing; neither does a held-out loss that differs a little."""
    assert value("weights_moved", run_of(grad_norm=ONES)) is None
    assert value("weights_moved", run_of(grad_norm=np.geomspace(100, 1, ROWS))) == "yes"
    fast = 7.0 * np.exp(50 * NOISE)
    assert value("weights_moved", run_of(("grad_norm_square", fast))) is None
    fast[:5] *= 40
    assert value("weights_moved", run_of(("grad_norm_square", fast))) == "yes"
    assert value("weights_moved", run_of(weight_norm=np.linspace(1, 2, ROWS))) == "yes"
    assert value("weights_moved", run_of(eval_loss=ONES * 2.302585093)) == "no"
    assert value("weights_moved", run_of(eval_loss=2.3 + NOISE)) is None


def test_gradients_flow_under_any_name() -> None:
    """A column that no metric names counts too."""
    assert value("gradients_flow", run_of(("grad_norm_square", ONES))) == "yes"
    assert value("gradients_flow", run_of(grad_norm=ONES * 0)) == "no"
    assert value("gradients_flow", run_of()) is None


def test_what_holds_a_run_back_is_named_where_the_log_shows_it() -> None:
    """Then no trial is asked for."""
    assert value("known_reason", run_of(("loss_bbox", 3900.0))) == "boxes"
    assert value("known_reason", run_of(("loss_bbox", 3.9))) is None
    assert value("known_reason", run_of(loss=ONES * 0)) == "zero"
    assert value("known_reason", run_of(lr=1.0, optimizer="adam")) == "rate"
    assert value("known_reason", run_of(loss=ONES * 1e27)) == "huge"
    ran_out = np.where(np.arange(ROWS) < 30, 1e-3, 1e-9)
    assert value("known_reason", make_run({"loss": 2.3 + NOISE, "lr": ran_out})) == "schedule"


def test_a_trial_is_asked_for_where_nothing_is_known() -> None:
    """Of a flat loss of unknown cause the first thing to do is to fit one batch."""
    flat = diagnose(run_of(task="classification"), TREES).findings[0]
    assert flat.leaf.id == "flat-from-start"
    assert flat.decision is not None
    assert "ONE batch" in flat.decision.ask
    boxes = diagnose(run_of(("loss_bbox", 3900.0)), TREES).findings[0]
    assert boxes.decision is None
    assert boxes.fixes[0].startswith("Convert the target boxes")


def test_an_error_beside_a_loss_of_zero_shows_rounding() -> None:
    """An error that came down and is not 0 says that the loss was printed with too few digits."""
    loss = np.where(np.arange(ROWS) < 1, 0.5, 0.0)
    run = replace(run_of(("mean_squared_error", np.geomspace(0.5, 1e-7, ROWS))), series=make_run({"loss": loss}).series)
    assert value("small_twin", run) is not None
    assert value("small_twin", run_of(("mean_squared_error", ONES))) is None
    assert value("train_accuracy", run_of(("train_acc", 100.0), loss=loss)) == 1
    assert value("train_accuracy", run_of(("val_acc", 100.0), loss=loss)) is None


def test_trials_stay_within_the_usual_rates() -> None:
    """A preference is never trained at 1e-4; the lower trial is never above the rate."""
    seen = Clues(
        facts_of(run_of(task="preference", algorithm="dpo", lr=5e-7), FACT_PARAMS), Moment(None, None), CLUES
    ).get("rates_to_try")
    assert seen is not None
    assert seen.short == "5e-6"
    assert value("rates_to_try", run_of()) is None
    assert value("rate_below_usual", run_of(task="preference", algorithm="dpo", lr=5e-7)) == 1
