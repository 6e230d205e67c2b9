"""The fixture runs of the convergence tree show what their names say."""

from __future__ import annotations

import math

import pytest

from tests.whole.test_fixtures_generate import NAMES, Column, bad, column, mean

UNTRAINED = math.log(12)


def fixture(name: str, metric: str = "loss") -> Column:
    return column(f"convergence/{name}", metric)


def ends(series: Column, rows: int = 50) -> float:
    return mean(series, max(series) - rows + 1, max(series) + 1)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("convergence/")])
def test_nothing_crashes(name: str) -> None:
    """Every loss of this tree is finite throughout."""
    assert not bad(column(name, "loss"))


@pytest.mark.parametrize("name", ["flat-from-start", "weights-still", "no-gradient", "lr-too-low"])
def test_flat_runs_stay_at_chance(name: str) -> None:
    """The loss ends within 3% of where it began, near ln(12)."""
    loss = fixture(name)
    assert ends(loss) == pytest.approx(mean(loss, 0, 50), rel=0.03)
    assert ends(loss) == pytest.approx(UNTRAINED, rel=0.1)


def test_weights_stay_where_the_optimizer_holds_a_copy() -> None:
    """There is a gradient at every step, and no group's norm ever changes."""
    assert min(fixture("weights-still", "grad_norm").values()) > 0.5
    for group in ("embed", "blocks", "head"):
        assert len(set(fixture("weights-still", f"weight_norm/{group}").values())) == 1


def test_a_detached_loss_has_no_gradient() -> None:
    """Exactly 0, at every step."""
    assert set(fixture("no-gradient", "grad_norm").values()) == {0.0}


def test_updates_are_of_the_size_that_is_named() -> None:
    """Decades below a thousandth, about it, or more than a hundredth."""
    median = {
        name: sorted(fixture(name, "update_ratio").values())[len(fixture(name)) // 2]
        for name in ("lr-too-low", "lr-too-low-slow", "slow-learning", "healthy", "updates-too-large")
    }
    assert 0 < median["lr-too-low"] < median["lr-too-low-slow"] < 1e-4
    assert 3e-4 < median["slow-learning"] < 3e-3
    assert 3e-4 < median["healthy"] < 1e-2 < median["updates-too-large"]


@pytest.mark.parametrize("name", ["updates-too-large", "worse-than-start"])
def test_a_rate_too_high_leaves_the_loss_above_chance(name: str) -> None:
    """From the first quarter on no fifty rows come down to an untrained model's loss."""
    loss = fixture(name)
    assert loss[0] == pytest.approx(UNTRAINED, rel=0.1)
    assert all(mean(loss, s, s + 50) > 1.2 * UNTRAINED for s in range(100, max(loss) - 50, 50))


def test_slow_learning_learns_how_frequent_the_classes_are() -> None:
    """Labels that belong to other inputs leave the loss at ln(12), not below."""
    assert ends(fixture("slow-learning"), 200) == pytest.approx(UNTRAINED, rel=0.01)


def test_double_softmax_stays_within_its_bounds() -> None:
    """It begins at ln(12) and rests on ln(1 + 11/e), without one row below."""
    loss, floor = fixture("double-softmax"), math.log(1 + 11 / math.e)
    assert loss[0] == pytest.approx(UNTRAINED, rel=0.01)
    assert floor <= min(loss.values())
    assert ends(loss) == pytest.approx(floor, rel=0.02)


def test_schedules_stand_still_or_end_early() -> None:
    """The one keeps its rate to the last digit after the warm-up, the other has none left in the second third."""
    frozen, early = fixture("lr-frozen", "lr"), fixture("lr-ends-early", "lr")
    assert len({rate for step, rate in frozen.items() if step >= 40}) == 1
    assert max(rate for step, rate in early.items() if step >= 800 // 3) == 0 < early[100]


def test_overfitting_turns() -> None:
    """The eval loss falls, turns and rises, while the training loss goes to nearly 0."""
    loss, eval_loss = fixture("overfitting"), fixture("overfitting", "eval_loss")
    turn = min(eval_loss, key=lambda step: eval_loss[step])
    assert 40 < turn < 300
    assert eval_loss[0] > 1.2 * eval_loss[turn]
    assert eval_loss[max(eval_loss)] > 1.3 * eval_loss[turn]
    assert ends(loss) < 0.05


def test_units_die_and_stay_dead() -> None:
    """None at the beginning, most of a layer soon after; few in the healthy ReLU run."""
    dead = fixture("dead-units", "dead_relu_frac/block1")
    assert dead[0] == 0
    assert min(share for step, share in dead.items() if step >= 100) > 0.6
    assert max(fixture("healthy", "dead_relu_frac/block1").values()) < 0.1


def test_gradients_add_up_smoothly() -> None:
    """Each norm is within 5% of the one before once ten batches are in, and the last is fifty times the first."""
    norm = fixture("gradients-add-up", "grad_norm")
    assert all(norm[s] == pytest.approx(norm[s - 1], rel=0.05) for s in range(30, 500))
    assert norm[499] > 50 * norm[0]


def test_the_eval_loss_breaks_alone() -> None:
    """Finite up to step 250, infinite from 300 on, while the training loss goes on falling."""
    loss, eval_loss = fixture("eval-nonfinite"), fixture("eval-nonfinite", "eval_loss")
    assert bad(eval_loss) == [300, 350, 400, 450]
    assert ends(loss) < mean(loss, 250, 300)
