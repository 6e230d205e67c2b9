"""What moved first: made runs whose leader is known, and healthy noise in which nothing leads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from tests.conftest import facts_of, make_run
from tests.facts.chains import CHAINS, ROWS, healthy, layers, made

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run
    from tests.facts.chains import Columns

SEEDS = 6
LED = [name for name, chain in CHAINS.items() if chain.leader != "loss"]
WIDE_SEEDS = 2  # a run of hundreds of columns takes a second


def first_of(diagnosis: Diagnosis) -> str | None:
    """The series that a diagnosis names first, None where it names none."""
    return next((event.metric for event in diagnosis.timeline if event.first), None)


def named(name: str) -> Counter[str | None]:
    """What is named first in the runs of a chain, by seed."""
    wide = any("layers" in key for key in made(name, 0).series)
    return Counter(first_of(diagnose(made(name, seed))) for seed in range(WIDE_SEEDS if wide else SEEDS))


@pytest.fixture(scope="module")
def firsts() -> dict[str, Counter[str | None]]:
    """What is named first in every chain."""
    return {name: named(name) for name in CHAINS}


def test_there_are_chains_enough() -> None:
    """At least twenty chains are known, some of them with nothing before the loss."""
    assert len(LED) >= 20
    assert len(CHAINS) - len(LED) >= 5


def test_the_true_leader_is_named_first(firsts: dict[str, Counter[str | None]]) -> None:
    """Of the runs whose leader was logged nine in ten name it, and every chain does in most of its runs."""
    right = sum(firsts[name][CHAINS[name].leader] for name in LED)
    assert right >= 0.9 * sum(firsts[name].total() for name in LED)
    assert not [name for name in LED if firsts[name][CHAINS[name].leader] < 0.5 * firsts[name].total()]


def test_what_does_not_lead_is_not_named_first(firsts: dict[str, Counter[str | None]]) -> None:
    """In at most one run in twenty a series is named first that did not lead."""
    wrong = sum(firsts[name].total() - firsts[name][None] - firsts[name][CHAINS[name].leader] for name in CHAINS)
    assert wrong <= 0.05 * sum(found.total() for found in firsts.values())


def test_nothing_moves_in_healthy_noise() -> None:
    """Of 200 columns, some without memory, some with it, some wandering, none is named in 24 runs of 25 or more."""
    alarms = 0
    for seed in range(25):
        random = np.random.default_rng(100 + seed)
        run = make_run(healthy(random) | layers(random, "update_ratio"))
        moved = facts_of(run).get("movers").by(int(random.integers(100, ROWS)))
        alarms += bool(moved)
    assert alarms <= 1


def with_others(columns: Columns, others: Columns) -> Run:
    """A run with these metrics and these columns that nobody knows."""
    return replace(make_run(columns), others=make_run(others).series)


def test_no_column_that_nobody_knows_moves_by_chance() -> None:
    """Nor do 200 of them, in 24 runs of 25 or more, neither by a step nor later on."""
    alarms = 0
    for seed in range(25):
        random = np.random.default_rng(200 + seed)
        run = with_others(healthy(random), layers(random, "own"))
        alarms += bool(facts_of(run).get("movers").others_around(int(random.integers(100, ROWS))))
    assert alarms <= 1


def test_a_column_that_nobody_knows_is_an_event() -> None:
    """A score that collapses before the loss breaks, one that falls after it; a counter and noise are none."""
    rows = 1500
    random = np.random.default_rng(7)
    at = np.arange(rows)
    columns = healthy(random, rows)
    columns["loss"][700:] += 9.0
    others = {
        "disc_score": 0.7 * np.exp(random.normal(0, 0.05, rows)) / np.where(at < 690, 1, 20),
        "own_map": 0.5 + random.normal(0, 0.01, rows) - 0.4 * (at >= 920),
        "samples_seen": 64.0 * at,
        "own_noise": random.normal(0, 1, rows),
    }
    events = diagnose(with_others(columns, others)).timeline
    found = {event.metric: (event.step, event.text) for event in events}
    assert found["disc_score"][0] == 690
    assert found["own_map"][1].startswith("falls 0.5")
    assert abs(found["own_map"][0] - 920) <= 2
    assert not found.keys() & {"samples_seen", "own_noise"}


def test_a_column_that_nobody_knows_confirms_no_cause() -> None:
    """Causes are weighed by metrics alone: the same ones are found, in the same order, whatever is logged beside."""
    plain = made("weights_blow_up", 0)
    beside = replace(plain, others=make_run({"own": np.where(np.arange(ROWS) < 600, 1.0, 50.0)}).series)
    causes = [
        [(judged.cause.text, judged.state) for judged in diagnose(run).findings[0].causes] for run in (plain, beside)
    ]
    assert causes[0] == causes[1]


def test_growth_is_told_by_its_rate() -> None:
    """Weights that grow 18% a step are said to, from the step at which they began."""
    events = diagnose(made("weights_blow_up", 0)).timeline
    assert (events[0].step, events[0].metric, events[0].first) == (632, "weight_norm/blocks", True)
    assert events[0].text.startswith("grows 18% a step: ")
    assert [event.metric for event in events[1:]] == ["grad_norm", "loss_scale", "loss"]
    assert events[-1].text == "not finite"


@pytest.mark.parametrize("name", ["bad_data", "one_bad_batch", "nan_from_nowhere"])
def test_a_tie_with_the_loss_names_nothing(name: str) -> None:
    """Where the gradient moves in the row of the loss, the log can't tell which was first."""
    events = diagnose(made(name, 1)).timeline
    assert {event.step for event in events} == {700}
    assert not any(event.first for event in events)


def test_a_rate_that_follows_its_schedule_does_not_move() -> None:
    """A warm-up, a decay and a step down are a schedule; a rise after a decay is none."""
    at = np.arange(ROWS)
    rates = {
        "warm-up": 1e-3 * (at + 1) / ROWS,
        "decay": 1e-3 * (0.51 + 0.49 * np.cos(np.pi * at / ROWS)),
        "steps down": np.where(at < 400, 1e-3, 1e-4),
        "rises again": 1e-3 * np.where(at < 500, 1 - at / 600, 1 / 6 + (at - 499) / 300),
    }
    moved = {name: facts_of(make_run({"lr": rate})).get("movers").by(700) for name, rate in rates.items()}
    assert [name for name, moves in moved.items() if moves] == ["rises again"]
    assert moved["rises again"][0].step == 500


def test_a_loss_scale_that_searches_does_not_move() -> None:
    """Two halvings are a scaler at work, three in a row are not."""
    found = []
    for times in (2, 3):
        scale = 65536 / 2.0 ** np.clip((np.arange(ROWS) - 650) // 10, 0, times)
        found.append([move.step for move in facts_of(make_run({"loss_scale": scale})).get("movers").by(700)])
    assert found == [[], [660]]


def test_a_series_that_came_back_did_not_move() -> None:
    """A gradient that was high for thirty steps and is back before the loss breaks is no part of it."""
    norm = np.exp(np.random.default_rng(0).normal(0, 0.2, ROWS))
    norm[640:670] *= 20
    movers = facts_of(make_run({"grad_norm": norm})).get("movers")
    assert [move.step for move in movers.by(665)] == [640]
    assert not movers.by(690)


def test_values_that_are_not_finite_are_told_from_their_first_row() -> None:
    """A norm that overflows up to the end is told so; one that did for as long before is no news."""
    norm = np.ones(ROWS)
    norm[690:] = np.inf
    once = facts_of(make_run({"grad_norm": norm})).get("movers").by(700)
    assert [(move.step, move.text) for move in once] == [(690, "not finite")]
    norm[100:120] = np.inf
    assert not facts_of(make_run({"grad_norm": norm})).get("movers").by(700)


def test_clocks_do_not_move() -> None:
    """What tells nothing of learning is not asked."""
    slow = np.where(np.arange(ROWS) < 600, 1.0, 50.0)
    assert not facts_of(make_run({"step_time": slow, "throughput": 1 / slow})).get("movers").by(700)


def test_what_moves_long_after_the_onset_does_not_belong_to_it() -> None:
    """Of two layers that grow after the loss has broken, the one that does within 100 steps is told beside it."""
    at, random = np.arange(ROWS), np.random.default_rng(0)
    columns = healthy(random)
    for name, start in (("early", 380), ("late", 430)):
        columns[f"weight_norm/{name}"] = 14 * np.exp(random.normal(0, 0.001, ROWS) + np.clip(at - start, 0, 60) / 10)
    moved = {move.metric for move in facts_of(make_run(columns)).get("movers").around(300)}
    assert "weight_norm/early" in moved
    assert "weight_norm/late" not in moved


def test_what_one_row_makes_begins_at_that_row() -> None:
    """Rows in the usual range are not the beginning of a jump, however low those before them were."""
    noise = np.random.default_rng(2).normal(0, 0.5, 400)
    loss = 0.02 * np.exp(noise)
    loss[292:295] = 3e-4
    loss[300:] = 1200.0
    grad_norm = np.exp(noise[::-1] / 2)
    grad_norm[300:] = 1300.0
    run = make_run({"loss": loss, "grad_norm": grad_norm})
    told = {move.metric: move for move in facts_of(run).get("movers").around(300)}
    assert {move.step for move in told.values()} == {300}
    assert told["loss"].text == f"jumps {loss[299]:.3g} → 1,200"
    assert told["grad_norm"].text == f"jumps {grad_norm[299]:.3g} → 1,300"


def test_what_grew_before_its_last_leap_begins_where_it_grew() -> None:
    """A leap that ends a growth is no reason to pass over the growth."""
    norm = 14.0 * np.exp(np.random.default_rng(2).normal(0, 0.001, 400))
    norm[280:300] *= 1.01 ** np.arange(1, 21)
    norm[300:] = 1e6
    run = make_run({"loss": np.full(400, 1.0), "weight_norm/blocks": norm})
    (move,) = facts_of(run).get("movers").by(300)
    assert move.step < 290
