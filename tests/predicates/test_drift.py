"""Silent divergence: rises, what rises with them, what spares a loss that rises, and when one has settled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.files import LogLine
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.run import Setting
from stabtree.tree.load import load_tree, load_trees
from tests.conftest import FIXTURES, ask, make_run
from tests.leaves.grpo import AT as SHARE
from tests.leaves.grpo import HEALTHY, noise
from tests.predicates.judged import AT, TREE, Case, check, loss

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats

TREES = load_trees()
ROWS = 400
NOISE = np.random.default_rng(1).normal(0, 0.01, ROWS)
SLOW = 2.3 - 0.2 * np.arange(ROWS) / ROWS + NOISE
FLAT = 2 + 1.5 * np.exp(-np.arange(ROWS) / 20) + NOISE
COSINE = 1e-3 * (1 + np.cos(np.pi * np.arange(ROWS) / (ROWS - 1))) / 2


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


@pytest.mark.parametrize("what", ["lr-rising", "weight-decay-low"])
def test_what_rose_before_the_loss_did_is_no_reason(what: str) -> None:
    """A warm-up that is over and weights that grew at first, within the window, don't explain a later rise."""
    steps = np.arange(190)
    noise = np.random.default_rng(2).normal(0, 0.02, 190)
    course = make_run({"loss": 2 + 2 * np.exp(-steps / 40) + noise + np.where(steps >= 150, 8, 0)})
    if what == "lr-rising":
        beside = make_run({"lr": 1e-3 * np.minimum(1, (steps + 1) / 60) * (1 - steps / 600)})
    else:
        beside = make_run({"weight_norm/a": np.array([1.0, 2.7])}, steps=steps[::100])
    found = diagnose(type(course)("made", {**course.series, **beside.series}), TREE)
    assert what not in [item.leaf.id for item in found.findings]
    assert found.verdict == "warning"


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


def test_a_first_row_far_above_the_rest_hides_no_fall() -> None:
    """A slow fall is small beside the leap of the first steps, and still a fall."""
    loss = np.concatenate([[25.0, 20.0, 9.0], SLOW[3:]])
    assert ask("settled", make_run({"loss": loss})).verdict == "falling"


def test_rows_are_left_out_by_their_steps() -> None:
    """The first ten steps are a fifth of the rows where each of them is logged, and later ones are not."""
    steps = np.concatenate([np.arange(10), np.arange(1, 41) * 100])
    loss = np.concatenate([np.linspace(25, 6, 10), SLOW[::10]])
    run = make_run({"loss": loss}, steps=steps)
    assert ask("settled", run).verdict == "falling"


@pytest.mark.parametrize(
    ("rates", "steps", "lines", "verdict"),
    [
        (np.full(ROWS, 1e-3), None, (), "flat"),
        (COSINE + 2e-4, None, (), "flat"),
        (COSINE, None, (), "finished"),
        (np.full(ROWS, 1e-3), ROWS, (), "finished"),
        (np.full(ROWS, 1e-3), 2 * ROWS, (), "flat"),
        (np.full(ROWS, 1e-3), None, (LogLine(500, "Training complete", at_end=True),), "finished"),
    ],
)
def test_a_run_at_its_end_is_finished(
    rates: Floats, steps: int | None, lines: tuple[LogLine, ...], verdict: str
) -> None:
    """By its schedule, its planned steps, or what the log says; nobody can stop it any more."""
    config = {"max_steps": Setting(steps, "test")} if steps else {}
    run = replace(make_run({"loss": FLAT, "lr": rates}), lines=lines, config=config)
    assert ask("settled", run).verdict == verdict
