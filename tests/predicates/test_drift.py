"""Silent divergence: rises, what rises with them, and what spares a loss that rises."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_tree, load_trees
from tests.conftest import FIXTURES, ask, make_run
from tests.leaves.grpo import AT as SHARE
from tests.leaves.grpo import HEALTHY, noise
from tests.predicates.judged import AT, TREE, Case, check, loss

TREES = load_trees()


CASES: dict[str, Case] = {
    "a rise over the last tenth": ({"loss": loss(rise=(900, 1.0))}, {}, "slow-rise"),
    "a jump within the first level": ({"loss": np.where(AT < 5, loss(), 1e6 + loss())}, {}, "slow-rise"),
    "a rise that levels off high": (
        {"loss": loss() + np.clip((AT - 200) / 60, 0, 1) * 8},
        {},
        "slow-rise",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)


def test_weight_norms_logged_too_rarely_are_unknown() -> None:
    """Norms logged every 500 steps can't show a change within 200."""
    steps = np.arange(0, 10_000, 10)
    run = make_run({"loss": loss(rise=(600, 2.0))}, steps=steps)
    sparse = make_run({"weight_norm/a": np.geomspace(10, 100, 20)}, steps=steps[::50])
    both = type(run)("made", {**run.series, **sparse.series})
    answers = {visit.question.id: visit.answer.verdict for visit in diagnose(both, TREE).path}
    assert answers["Q4.3"] == "unknown"


def test_a_loss_that_rises_beside_a_reward_that_rises_is_no_finding() -> None:
    """The TD loss of a run that learns grows by decades; without the reward the same loss is one."""
    loss = 0.2 * np.exp(7 * SHARE) * np.exp(noise(0.05))
    reward = 60 * SHARE + noise(3, 1)
    alone = diagnose(make_run({"loss": loss}), TREES)
    beside = diagnose(make_run({"loss": loss, "reward": reward}), TREES)
    assert (alone.verdict, beside.verdict) == ("warning", "ok")
    assert any(item.metric == "reward" for visit in beside.path for item in visit.answer.evidence)


def test_a_loss_that_rises_beside_a_reward_that_falls_is_one() -> None:
    """Once the reward is lost as well, the rise counts."""
    loss = 0.2 * np.exp(7 * SHARE) * np.exp(noise(0.05))
    reward = np.where(SHARE < 0.4, 100 * SHARE, 2.0) + noise(1, 1)
    found = diagnose(make_run({"loss": loss, "reward": reward}), TREES)
    assert {"slow-rise", "reward-collapse"} <= {finding.leaf.id for finding in found.findings}


@pytest.mark.parametrize("rows", [1, 5, 39])
def test_a_reward_too_short_to_fall_spares_the_loss(rows: int) -> None:
    """Where the reward can't be judged the loss is not judged either."""
    run = make_run({"loss": np.linspace(0.1, 9, len(SHARE)) + noise(0.05)})
    short = make_run({"reward": HEALTHY["reward"][:rows]}, steps=np.linspace(0, len(SHARE) - 1, rows).astype(int))
    both = type(run)("made", {**run.series, **short.series})
    assert ask("loss_rising", both).verdict == "no"
    assert ask("settled", both).verdict == "unknown"


def test_a_policy_loss_that_has_settled_is_no_finding() -> None:
    """It says nothing of whether the run still learns; the reward does."""
    found = diagnose(make_run({"loss": noise(0.01), "reward": SHARE + noise(0.02, 1)}), TREES)
    assert (found.verdict, found.findings) == ("ok", ())


@pytest.mark.parametrize(("end", "verdict"), [(16.0, "no"), (16.08, "up"), (4.0, "no"), (3.99, "down")])
def test_weights_that_double_or_halve_exactly_are_no_more_than_that(end: float, verdict: str) -> None:
    """More than twice, or less than half, within the window counts, by the letter."""
    values = np.concatenate((np.full(400, 8.0), np.linspace(8.0, end, 201)))
    run = make_run({"loss": np.linspace(1, 2, 601), "weight_norm/a": values})
    found = diagnose(run, TREE, literal=True)
    assert next(visit.answer.verdict for visit in found.path if visit.question.id == "Q4.3") == verdict


@pytest.mark.parametrize("factor", [0.0, 1e-300, 0.5])
def test_a_factor_below_one_counts_every_change_in_its_direction(factor: float) -> None:
    """Weights that shrink are told to shrink, however small a change is asked for, and nothing is divided by zero."""
    run = load_run(FIXTURES / "phase19" / "weight-decay-high")
    found = diagnose(run, load_tree("phase19"), overrides={"Q4.3": {"factor": factor}})
    assert found.findings[0].leaf.id == "weight-decay-high"
