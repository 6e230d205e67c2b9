"""The trees for fine-tuning and reinforcement learning: every check says yes and no of some made run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_tree, load_trees
from tests.conftest import ask, ask_node, falling, make_run

TREES = load_trees()
CHECKS = {section.entry for name in ("sft", "grpo") for section in load_tree(name).sections}
ROWS = 400
AT = np.arange(ROWS) / ROWS
ONES = np.ones(ROWS)


def noise(width: float, seed: int = 0) -> Any:
    """Gaussian noise over the rows of a run."""
    return np.random.default_rng(seed).normal(0, width, ROWS)


HEALTHY: dict[str, Any] = {
    "loss": noise(0.02),
    "lr": 1e-6 * (1 - 0.9 * AT),
    "reward": 0.1 + 0.5 * AT + noise(0.06, 1),
    "reward_std": 0.3 + noise(0.03, 2),
    "frac_reward_zero_std": np.clip(0.3 + noise(0.15, 3), 0, 1),
    "grad_norm": np.where(np.arange(ROWS) % 17 == 3, 0.0, 0.2 * np.exp(noise(0.4, 4))),
    "entropy": 0.2 + 0.3 * np.exp(-4 * AT) + noise(0.02, 5),
    "kl": 0.1 * AT + np.abs(noise(0.01, 6)),
    "logp_diff": 0.02 + np.abs(noise(0.005, 7)),
    "importance_ratio_min": np.clip(0.3 + noise(0.08, 8), 0, 1),
    "clip_ratio": np.abs(0.02 + noise(0.01, 9)),
    "completion_length": 200 + 60 * AT + noise(12, 10),
    "completion_length_max": 480 + noise(15, 11),
    "clipped_ratio": np.clip(0.05 + noise(0.03, 12), 0, 1),
    "ebft_alignment": 0.3 + 0.3 * AT + noise(0.03, 13),
    "ebft_diversity": 0.05 + np.abs(noise(0.02, 14)),
    "cfm_loss": 8 - 5 * AT + noise(0.4, 15),
    "token_accuracy": 0.5 + 0.2 * AT,
    "eval_loss": 1.5 - 0.5 * AT + noise(0.01, 16),
}

# What differs from the healthy run; None takes a metric away.
FAULTS: dict[str, dict[str, Any]] = {
    "S1": {"loss": 3 + 2 * np.exp(-40 * AT) + noise(0.05), "reward": None},
    "S2": {"grad_norm": np.where(np.arange(ROWS) % 5 == 0, 300.0, 5.0)},
    "S3": {"eval_loss": ONES * np.nan},
    "G1": {"reward": ONES * 0},
    "G2": {"reward": np.where(AT < 0.5, 0.1 + AT, 0.02) + noise(0.02)},
    "G3": {"reward": 0.3 + noise(0.06)},
    "G4": {"reward_std": ONES * 0, "frac_reward_zero_std": None},
    "G5": {"frac_reward_zero_std": np.where(AT > 0.5, 1.0, 0.4)},
    "G6": {"grad_norm": np.where(np.arange(ROWS) % 3 == 0, 30.0, 0.5)},
    "G7": {"grad_norm": ONES * 0},
    "G8": {"entropy": 0.3 * np.exp(-12 * AT)},
    "G9": {"entropy": 1 + 2 * AT},
    "G10": {"kl": np.exp(8 * AT) / 100},
    "G11": {"logp_diff": 0.02 + 2 * AT},
    "G12": {"importance_ratio_min": ONES * 1e-5},
    "G13": {"clip_ratio": ONES * 0.45},
    "G14": {
        "completion_length": np.minimum(200 + 600 * AT, 512),
        "completion_length_max": np.where(AT < 0.1, 480.0, 512.0),
    },
    "G15": {"clipped_ratio": np.minimum(0.2 + AT, 0.97)},
    "G16": {"ebft_alignment": 0.5 + noise(0.03)},
    "G17": {"ebft_alignment": 0.1 + noise(0.02)},
    "G18": {"ebft_diversity": 0.1 + 2 * AT},
    "G19": {"cfm_loss": 10 + 20 * AT},
    "G20": {"cfm_loss": 8 + noise(0.4)},
}


def faulty(id_: str) -> Any:
    """The run of a fault: the healthy one, but for what `FAULTS` says."""
    columns = {**HEALTHY, **FAULTS[id_]}
    return make_run({name: values for name, values in columns.items() if values is not None})


def test_a_healthy_run_of_reinforcement_learning_is_ok() -> None:
    """Bursts of the loss of both signs, steps without a gradient and a noisy reward raise nothing."""
    found = diagnose(make_run(HEALTHY, vocab_size=150_000, dtype="bf16"), TREES)
    assert [finding.leaf.id for finding in found.findings] == []
    assert found.verdict == "ok"


def test_every_check_has_a_fault() -> None:
    """No check of the two trees goes untested."""
    assert set(FAULTS) == CHECKS


@pytest.mark.parametrize("id_", FAULTS)
def test_a_check_says_yes_of_its_fault_and_no_of_the_healthy_run(id_: str) -> None:
    """Its leaf is among the findings, with the onset and the evidence of its own metric."""
    question = TREES.questions[id_]
    assert ask_node(question, make_run(HEALTHY, max_completion_length=1024)).verdict == "no"
    found = {finding.section: finding for finding in diagnose(faulty(id_), TREES).findings}
    assert found[id_].leaf.id == question.go["yes"]
    assert found[id_].onset_step is not None
    assert found[id_].evidence


@pytest.mark.parametrize("id_", FAULTS)
def test_a_few_rows_are_not_judged(id_: str) -> None:
    """Three rows decide none of the checks but those of what was never a number."""
    columns = {name: values[-3:] for name, values in {**HEALTHY, **FAULTS[id_]}.items() if values is not None}
    question = TREES.questions[id_]
    verdict = ask_node(question, make_run(columns)).verdict
    assert verdict in (("yes",) if id_ == "S3" else ("unknown", "no"))


def test_trouble_that_was_got_over_is_no_finding() -> None:
    """A reward that stood at 0 for 50 steps and an entropy above 1 at the start are how runs begin."""
    reward = np.where(AT < 0.15, 0.0, HEALTHY["reward"])
    entropy = np.where(AT < 0.15, 1.6, HEALTHY["entropy"])
    found = diagnose(make_run({**HEALTHY, "reward": reward, "entropy": entropy}), TREES)
    assert found.verdict == "ok"


def test_levels_of_reinforcement_learning_do_not_judge_other_runs() -> None:
    """An entropy of 2 beside a fine-tuning loss, or a kl of a variational model, is no finding."""
    columns = {"loss": falling(ROWS), "entropy": 2 * ONES, "kl": 30 * ONES, "grad_norm": 50 * np.exp(noise(0.3))}
    assert diagnose(make_run(columns), TREES).verdict == "ok"


def test_a_kl_of_nan_is_not_judged() -> None:
    """Without a penalty there is no reference to be far from."""
    found = diagnose(make_run({**HEALTHY, "kl": ONES * np.nan}), TREES)
    assert found.verdict == "ok"


def test_the_cap_may_come_from_the_configuration() -> None:
    """A run that logs no longest answer may say the cap itself; without both nobody knows."""
    columns = {"reward": HEALTHY["reward"], "completion_length": np.minimum(200 + 900 * AT, 1000)}
    assert ask("climbs_to_cap", make_run(columns, max_completion_length=1000)).verdict == "yes"
    assert ask("climbs_to_cap", make_run(columns, max_completion_length=4000)).verdict == "no"
    assert ask("climbs_to_cap", make_run(columns)).verdict == "unknown"


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
    assert ask("loss_rising", both).verdict == "no"
    assert ask("settled", both).verdict in ("flat", "falling")


def test_the_reward_says_whether_the_run_goes_on_learning() -> None:
    """Its rise in the second half counts in place of the loss's fall."""
    rising = make_run({"loss": noise(0.01), "reward": AT + noise(0.02, 1)})
    still = make_run({"loss": noise(0.01), "reward": np.minimum(AT, 0.3) + noise(0.003, 1)})
    assert (ask("settled", rising).verdict, ask("settled", still).verdict) == ("falling", "flat")


def test_a_metric_whose_fall_is_its_end_has_not_risen() -> None:
    """A reward that shoots up in its last rows has not fallen back, however far its last levels lie apart."""
    run = make_run({"reward": np.exp(9 * AT)})
    assert ask("falls_back", run).verdict == "no"


def test_a_burst_of_a_loss_beside_a_reward_is_no_spike() -> None:
    """The same burst is one where no reward was logged."""
    loss = falling(600, 0.02)
    loss[400] += 8
    assert diagnose(make_run({"loss": loss})).verdict == "warning"
    found = diagnose(make_run({"loss": loss, "reward": np.linspace(0.1, 0.8, 600)}))
    assert not [finding for finding in found.findings if finding.leaf.id.startswith("spike")]
