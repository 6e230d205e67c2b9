"""Clues on overfitting and schedules: what held-out data and the rate show, and where the log can't show it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.facts import facts_of
from stabtree.predicates.clues import CLUES
from stabtree.predicates.clues.registry import Clues, Moment, Seen
from stabtree.run import Series
from tests.conftest import make_run

if TYPE_CHECKING:
    from stabtree.run import Run

AT = np.arange(200)


def shown(name: str, run: Run, onset: int | None = None) -> Seen | None:
    """What a clue shows of a run."""
    return Clues(facts_of(run), Moment(onset, onset), CLUES).get(name)


def value(name: str, run: Run, onset: int | None = None) -> float | None:
    """The number that a clue shows."""
    found = shown(name, run, onset)
    return None if found is None or isinstance(found.value, str) else found.value


def held_out(best: float, accuracy: float) -> Run:
    """A training loss that falls to nothing, an eval loss with a minimum, and an accuracy."""
    evals = best + 0.01 * np.abs(AT - 50)
    evals[0] = 2.3
    run = make_run({"loss": 2.3 * np.exp(-AT / 20), "eval_loss": evals, "eval_quality": np.full(200, accuracy)})
    named = replace(run.series["eval_quality"], origin="val_accuracy")
    return replace(run, series={**run.series, "eval_quality": named})


def test_what_was_learned_before_the_eval_loss_rose_is_a_share_of_its_start() -> None:
    """A best value of 1.15 is half of 2.3; shuffled labels gain nothing."""
    assert abs((value("eval_gain", held_out(1.15, 0.8)) or 0) - 0.5) < 0.01
    assert (value("eval_gain", held_out(2.28, 0.1)) or 0) < 0.05


def test_few_errors_at_a_high_loss_cost_much_each() -> None:
    """2.6 nats at 95% right are 52 for each wrong answer; where all are right none can be worked out."""
    assert (value("cost_of_an_error", held_out(1.15, 0.95)) or 0) > 20
    assert (value("cost_of_an_error", held_out(1.15, 0.5)) or 99) < 20
    assert value("cost_of_an_error", held_out(1.15, 1.0)) is None


def test_a_rate_that_rises_in_equal_stairs_counts_epochs() -> None:
    """One every 40 steps; a smooth warm-up has none."""
    loss = 2.3 * np.exp(-AT / 20)
    assert value("warmup_stairs", make_run({"loss": loss, "lr": 1e-4 * (1 + AT // 40)})) == 40
    assert value("warmup_stairs", make_run({"loss": loss, "lr": 1e-4 * (1 + AT)})) == 0


def test_a_schedule_that_ends_early_says_which_share_of_the_run_it_left() -> None:
    """At step 50 of 200 it gave three quarters of the run a rate of 0."""
    run = make_run({"loss": 2.3 * np.exp(-AT / 20), "lr": 1e-3 * np.clip(1 - AT / 50, 0, 1)})
    assert abs((value("steps_at_zero", run) or 0) - 0.75) < 0.01
    assert value("schedule_ended", run) == 4.0
    assert value("steps_at_zero", make_run({"loss": AT + 1.0, "lr": np.full(200, 1e-3)})) is None


def test_a_rate_that_is_cut_off_was_not_ended_by_its_schedule() -> None:
    """It had its peak in the row before; one that decayed had next to nothing."""
    decayed, cut = (1e-3 * np.clip(1 - AT / 50, 0, 1), np.where(AT < 50, 2e-5 * (AT + 1), 0.0))
    values = [value("rate_cut", make_run({"loss": AT + 1.0, "lr": lr})) for lr in (decayed, cut)]
    assert values == [pytest.approx(0.02), 1.0]
    run = make_run({"loss": 2.3 * np.exp(-AT / 20), "lr": cut})
    assert value("schedule_ended", run) is None
    (finding,) = (item for item in diagnose(run).findings if item.leaf.id == "lr-zero")
    assert [cause.cause.id for cause in finding.causes if cause.state != "ruled out"] == ["O23.zero.reset"]
    assert finding.fixes[0].startswith("Find what sets the rate from step 50 on")


def test_a_leap_is_measured_from_the_highest_rate_before_it() -> None:
    """A rate that decayed to a tenth and leapt to twenty times its peak leapt by twenty."""
    lr = np.where(AT < 100, 1e-3 * np.exp(-AT / 40), 2e-2)
    assert abs((value("rate_leap", make_run({"loss": AT + 1.0, "lr": lr}), 100) or 0) - 20) < 0.1
    assert value("rate_leap", make_run({"loss": AT + 1.0, "lr": lr})) is None


def test_the_training_loss_is_quoted_as_it_was_logged() -> None:
    """The median of the rows after an edge is in no row of the log."""
    loss = np.array([105.9, 60, 52, 50, 48, 46, 45, 44, 43, 42, 41, 39.9])
    run = make_run({"loss": loss, "eval_loss": 58 + 6.0 * np.arange(12)})
    found = shown("training_since_best", run)
    assert found is not None
    assert found.short == "105.9 → 39.9"


def test_a_share_of_the_weights_names_its_steps() -> None:
    """Up to the onset it isn't that of the whole run."""
    run = make_run({"loss": np.linspace(3, 2, 200), "lr": np.full(200, 0.005)}, weight_decay=10)
    found = shown("decay_over_run", run, 50)
    assert found is not None
    assert found.short.endswith("of each weight in 50 steps")


def test_a_training_loss_that_rises_with_the_eval_loss_is_not_learned_by_heart() -> None:
    """Both rise as the rate warms up; where the training loss goes on falling the clue stays below 1."""
    steps = np.arange(1000)
    rows = np.isin(steps, (250, 500, 750, 999))
    held_out = np.where(rows, np.where(steps == 250, 0.2, 0.42), np.nan)
    for loss, over in ((np.where(steps > 250, 0.3, 0.15), 2.0), (np.where(steps > 250, 0.1, 0.2), 0.5)):
        run = make_run({"loss": loss})
        series = {**run.series, "eval_loss": Series("eval_loss", steps[rows], held_out[rows], "eval_loss")}
        run = replace(run, series=series)
        found = Clues(facts_of(run), Moment(None, None), CLUES).get("training_rises_too")
        assert found is not None
        assert found.value == pytest.approx(over)
