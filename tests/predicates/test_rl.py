"""The trees for fine-tuning and reinforcement learning: every check says yes and no of some made run."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.predicates import PREDICATES
from stabtree.tree.load import load_trees
from tests.conftest import falling, make_run
from tests.leaves import diagnosed, grpo, sft
from tests.leaves.grpo import AT, HEALTHY, ROWS, noise

TREES = load_trees()
RUNS = {**sft.RUNS, **grpo.RUNS}
ASKED = [TREES.questions[section.entry] for section in TREES.sections if section.tree in ("sft", "grpo")]
CHECKS = {question.id: question.go["yes"] for question in ASKED}


def test_a_healthy_run_of_reinforcement_learning_is_ok() -> None:
    """Bursts of the loss of both signs, steps without a gradient and a noisy reward raise nothing."""
    found = diagnose(make_run(HEALTHY, vocab_size=150_000, dtype="bf16"), TREES)
    assert [finding.leaf.id for finding in found.findings] == []
    assert found.verdict == "ok"


@pytest.mark.parametrize(("id_", "leaf"), CHECKS.items())
def test_a_check_says_yes_of_its_fault_and_no_of_the_healthy_run(id_: str, leaf: str) -> None:
    """Its leaf is among the findings, with the onset and the evidence of its own metric."""
    question = TREES.questions[id_]
    assert PREDICATES[question.test].ask(make_run(HEALTHY, max_completion_length=1024), question.params).verdict == "no"
    found = {finding.section: finding for finding in diagnosed(RUNS[leaf], TREES).findings}
    assert found[id_].leaf.id == leaf
    assert found[id_].onset_step is not None
    assert found[id_].evidence


@pytest.mark.parametrize(("id_", "leaf"), CHECKS.items())
def test_a_few_rows_are_not_judged(id_: str, leaf: str) -> None:
    """Three rows decide none of the checks but those of what was never a number."""
    run = diagnosed(RUNS[leaf], TREES).run
    columns = {name: one.values[-3:] for name, one in run.series.items()}
    question = TREES.questions[id_]
    verdict = PREDICATES[question.test].ask(make_run(columns), question.params).verdict
    assert verdict in (("yes",) if id_ == "S3" else ("unknown", "no"))


def test_trouble_that_was_got_over_is_no_finding() -> None:
    """A reward that stood at 0 for 50 steps and an entropy above 1 at the start are how runs begin."""
    reward = np.where(AT < 0.15, 0.0, HEALTHY["reward"])
    entropy = np.where(AT < 0.15, 1.6, HEALTHY["entropy"])
    found = diagnose(make_run({**HEALTHY, "reward": reward, "entropy": entropy}), TREES)
    assert found.verdict == "ok"


def test_levels_of_reinforcement_learning_do_not_judge_other_runs() -> None:
    """An entropy of 2 beside a fine-tuning loss, or a kl of a variational model, is no finding."""
    columns = {
        "loss": falling(ROWS),
        "entropy": np.full(ROWS, 2.0),
        "kl": np.full(ROWS, 30.0),
        "grad_norm": 50 * np.exp(noise(0.3)),
    }
    assert diagnose(make_run(columns), TREES).verdict == "ok"


def test_a_kl_of_nan_is_not_judged() -> None:
    """Without a penalty there is no reference to be far from."""
    found = diagnose(make_run({**HEALTHY, "kl": np.full(ROWS, np.nan)}), TREES)
    assert found.verdict == "ok"


def test_the_cap_may_come_from_the_configuration() -> None:
    """A run that logs no longest answer may say the cap itself; without both nobody knows."""
    columns = {"reward": HEALTHY["reward"], "completion_length": np.minimum(200 + 900 * AT, 1000)}
    ask = PREDICATES["climbs_to_cap"].ask
    assert ask(make_run(columns, max_completion_length=1000), {}).verdict == "yes"
    assert ask(make_run(columns, max_completion_length=4000), {}).verdict == "no"
    assert ask(make_run(columns), {}).verdict == "unknown"


def test_a_loss_that_rises_beside_a_reward_that_rises_is_no_finding() -> None:
    """The TD loss of a run that learns grows by decades; without the reward the same loss is one."""
    loss = 0.2 * np.exp(7 * AT) * np.exp(noise(0.05))
    reward = 60 * AT + noise(3, 1)
    alone = diagnose(make_run({"loss": loss}), TREES)
    beside = diagnose(make_run({"loss": loss, "reward": reward}), TREES)
    assert (alone.verdict, beside.verdict) == ("warning", "ok")
    assert any(item.metric == "reward" for visit in beside.path for item in visit.answer.evidence)


def test_a_loss_that_rises_beside_a_reward_that_falls_is_one() -> None:
    """Once the reward is lost as well, the rise counts."""
    loss = 0.2 * np.exp(7 * AT) * np.exp(noise(0.05))
    reward = np.where(AT < 0.4, 100 * AT, 2.0) + noise(1, 1)
    found = diagnose(make_run({"loss": loss, "reward": reward}), TREES)
    assert {"slow-rise", "reward-collapse"} <= {finding.leaf.id for finding in found.findings}


@pytest.mark.parametrize("rows", [1, 5, 39])
def test_a_reward_too_short_to_fall_spares_the_loss(rows: int) -> None:
    """Where the reward can't be judged the loss is not judged either."""
    run = make_run({"loss": np.linspace(0.1, 9, ROWS) + noise(0.05)})
    short = make_run({"reward": HEALTHY["reward"][:rows]}, steps=np.linspace(0, ROWS - 1, rows).astype(int))
    both = type(run)("made", {**run.series, **short.series})
    assert PREDICATES["loss_rising"].ask(both, {}).verdict == "no"
    assert PREDICATES["settled"].ask(both, {}).verdict in ("flat", "falling")


def test_the_reward_says_whether_the_run_goes_on_learning() -> None:
    """Its rise in the second half counts in place of the loss's fall."""
    ask = PREDICATES["settled"].ask
    rising = make_run({"loss": noise(0.01), "reward": AT + noise(0.02, 1)})
    still = make_run({"loss": noise(0.01), "reward": np.minimum(AT, 0.3) + noise(0.003, 1)})
    assert (ask(rising, {}).verdict, ask(still, {}).verdict) == ("falling", "flat")


def test_a_metric_whose_fall_is_its_end_has_not_risen() -> None:
    """A reward that shoots up in its last rows has not fallen back, however far its last levels lie apart."""
    run = make_run({"reward": np.exp(9 * AT)})
    assert PREDICATES["falls_back"].ask(run, {}).verdict == "no"


def test_a_burst_of_a_loss_beside_a_reward_is_no_spike() -> None:
    """The same burst is one where no reward was logged."""
    loss = falling(600, 0.02)
    loss[400] += 8
    assert diagnose(make_run({"loss": loss})).verdict == "warning"
    found = diagnose(make_run({"loss": loss, "reward": np.linspace(0.1, 0.8, 600)}))
    assert not [finding for finding in found.findings if finding.leaf.id.startswith("spike")]
