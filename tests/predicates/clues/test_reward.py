"""What the clues on rewards, pairs and their learning rates see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.facts import FACTS
from stabtree.facts.registry import Facts
from stabtree.predicates.clues import CLUES
from stabtree.predicates.clues.registry import Clues, Moment
from tests.conftest import make_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.predicates.clues.registry import Seen

ROWS = 100
AT = np.arange(ROWS) / ROWS
TEXT = {"reward": AT, "frac_reward_zero_std": AT * 0, "completion_length": 200 + AT}
GAME = {"reward": 3000 * AT, "value_loss": 1 + AT, "approx_kl": 0.01 + 0 * AT, "entropy_loss": -1 - AT}


def seen(name: str, columns: Mapping[str, Any], onset: int | None = None, **config: Any) -> Seen | None:
    """What a clue shows of a run."""
    facts = Facts(make_run(dict(columns), **config), FACTS, {})
    return Clues(facts, Moment(onset, None), CLUES).get(name)


def value(name: str, columns: Mapping[str, Any], onset: int | None = None, **config: Any) -> float | str | None:
    """The value of a clue; None where the log can't show it."""
    found = seen(name, columns, onset, **config)
    return None if found is None else found.value


def test_a_policy_writes_text_or_makes_moves() -> None:
    """Lengths of answers are logged of text only; a bare reward leaves it open."""
    assert value("policy_writes", TEXT) == "text"
    assert value("policy_writes", GAME) == "moves"
    assert value("policy_writes", {"reward": AT}) is None


@pytest.mark.parametrize(
    ("columns", "lr", "times", "lower"),
    [
        (TEXT, 1e-3, 100, "1e-3 → 1e-5"),
        (TEXT, 1e-6, 1, "1e-6 → 3.33e-7"),
        (TEXT, 1e-7, 0.1, None),
        (GAME, 3e-3, 10, "0.003 → 0.0003"),
        (GAME, 3e-4, 1, "0.0003 → 0.0001"),
        ({"reward": AT}, 3e-4, None, "0.0003 → 0.0001"),
        ({"preference_accuracy": 0.5 + 0.3 * AT, "loss": 0.7 - AT / 5}, 5e-7, 1, "5e-7 → 1.67e-7"),
        ({"preference_accuracy": 0.5 + 0.3 * AT, "loss": 0.7 - AT / 5}, 0.05, 1e4, "0.05 → 5e-6"),
    ],
)
def test_the_rate_is_that_of_the_algorithm(
    columns: Mapping[str, Any], lr: float, times: float | None, lower: str | None
) -> None:
    """A rate above the usual ones falls to these, one among them by a third, and one below is not lowered."""
    assert value("rate_times_usual", columns, lr=lr) == (times if times is None else pytest.approx(times))
    found = seen("lower_rate", columns, lr=lr)
    assert (found and found.short.replace("0.001 ", "1e-3 ").split(" ", 1)[1].removeprefix("rate ")) == lower


def test_a_rate_that_is_too_low_is_raised_to_the_usual_ones() -> None:
    """And only such a one."""
    found = seen("higher_rate", GAME, lr=1e-6)
    assert found is not None
    assert found.short.endswith("1e-6 → 0.0001")
    assert seen("higher_rate", GAME, lr=3e-4) is None


@pytest.mark.parametrize(
    ("reward", "word"),
    [
        (AT * 0, "zero"),
        (np.minimum(AT * 2, 1), "top"),
        (np.where(AT < 0.5, 0.6, 0.0), "at once"),
        (np.clip(0.6 - AT, 0, 1), "open"),
        (AT, "open"),
    ],
)
def test_how_a_reward_ends(reward: Any, word: str) -> None:
    """At its top, at 0 all the time, at 0 from one row to the next, or in no such way."""
    assert value("reward_end", {**TEXT, "reward": reward}) == word


def test_the_size_of_a_return_is_that_before_the_trouble() -> None:
    """Of moves only: the reward of an answer is not scaled."""
    fallen = {**GAME, "reward": np.where(AT < 0.5, 300.0, -9000.0)}
    assert value("return_size", fallen, onset=50) == 300
    assert value("return_size", TEXT) is None


def test_a_critic_is_looked_at_where_it_had_grown_a_thousandfold() -> None:
    """One digit of a step, and of a level three times the first."""
    found = seen("critic_check", {**GAME, "value_loss": 300.0 * 10 ** (8 * AT)})
    assert found is not None
    assert found.short == "value_loss below 1,000 at step 40"
    assert seen("critic_check", {**GAME, "value_loss": 1 + AT}) is None


@pytest.mark.parametrize(
    ("trained", "held_out", "word"),
    [(0.9, 0.13, "opposite"), (0.2, 0.2, "both wrong"), (0.9, 0.8, "alike"), (0.9, 0.48, "alike")],
)
def test_training_pairs_and_held_out_pairs_are_compared(trained: float, held_out: float, word: str) -> None:
    """Overfitting sinks to one half; only a set that is swapped comes out far below."""
    pairs = {"preference_accuracy": trained + 0 * AT, "eval_preference_accuracy": held_out + 0 * AT}
    assert value("pair_sets", pairs) == word


def test_how_much_entropy_is_left() -> None:
    """Of what there was in the first row, with either sign."""
    assert value("entropy_left", {**GAME, "entropy_loss": -np.maximum(1 - 2 * AT, 0.1)}) == pytest.approx(0.1)
