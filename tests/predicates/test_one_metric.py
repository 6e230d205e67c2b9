"""Levels of fine-tuning and reinforcement learning: every check says yes and no of some made run."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import ask, ask_node, falling, make_run
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
    assert ask_node(question, make_run(HEALTHY, max_completion_length=1024)).verdict == "no"
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
    assert ask("climbs_to_cap", make_run(columns, max_completion_length=1000)).verdict == "yes"
    assert ask("climbs_to_cap", make_run(columns, max_completion_length=4000)).verdict == "no"
    assert ask("climbs_to_cap", make_run(columns)).verdict == "unknown"


def test_a_metric_whose_fall_is_its_end_has_not_risen() -> None:
    """A reward that shoots up in its last rows has not fallen back, however far its last levels lie apart."""
    run = make_run({"reward": np.exp(9 * AT)})
    assert ask("falls_back", run).verdict == "no"


@pytest.mark.parametrize("rows", [12, 31, 120, ROWS])
def test_a_reward_that_ends_below_its_start_has_collapsed_whatever_it_had_gained(rows: int) -> None:
    """Nothing was gained before; a policy that earns less than an untrained one is no better for it."""
    sinks = -90 - 100 * np.arange(rows) / rows + noise(4, 3)[:rows]
    assert ask("falls_back", make_run({"reward": sinks})).verdict == "yes"


def test_fewer_rows_make_the_same_fall_weaker() -> None:
    """A bound widens as rows get fewer, down to a no."""
    strengths = [
        ask("falls_back", make_run({"reward": -90 - 40 * np.arange(n) / n + noise(4, 3)[:n]})).strength or 0.0
        for n in (6, 12, 60)
    ]
    assert strengths == sorted(strengths)
    assert strengths[0] < 0 < strengths[-1]


def test_an_exploding_value_loss_is_a_finding_though_the_reward_rises_a_little() -> None:
    """Only returns that grow as well explain larger errors."""
    grows = 400 * 10 ** (6 * AT)
    for reward, wanted in ((-110 + 3 * AT + noise(3), "yes"), (1 + 999 * AT, "no"), (0.1 + AT, "yes")):
        run = make_run({"reward": reward, "value_loss": grows})
        assert ask("outgrows", run, beside="reward").verdict == wanted


def test_a_constant_reward_is_one_at_any_value_from_five_rows_on() -> None:
    """A limit that every episode reaches teaches as little as a 0."""
    assert [ask("never_varies", make_run({"reward": np.full(n, -200.0)})).verdict for n in (4, 5)] == ["no", "yes"]


def test_a_reward_of_0_gets_the_steps_of_its_own_question() -> None:
    """A policy may earn nothing at first: seven rows of 0 are no finding, a hundred are one."""
    short, long = (make_run({"reward": np.zeros(n), "loss": np.linspace(2, 1, n)}) for n in (7, 100))
    assert not diagnose(short, load_trees(short)).reached[0].leaf.severity.is_alarm
    assert diagnose(long, load_trees(long)).reached[0].leaf.id == "reward-zero"


def test_pairs_that_are_swapped_on_one_side_only_are_found_there() -> None:
    """Training prefers what is chosen there; the held-out pairs, of which half would be right by chance, disagree."""
    held_out = np.array([0.16, 0.11, 0.15, 0.14, 0.13, 0.13])
    run = make_run({"preference_accuracy": np.linspace(0.6, 0.9, 6), "eval_preference_accuracy": held_out})
    found = ask("prefers_rejected", run, level=0.45)
    assert (found.verdict, found.evidence[0].metric) == ("yes", "eval_preference_accuracy")


def test_a_reward_that_collapses_is_dated_between_two_rows() -> None:
    """Its best level lies long before, and it was as good up to the collapse."""
    at = np.arange(400)
    rng = np.random.default_rng(0)
    reward = np.where(at < 300, 100.0, -100.0) + rng.normal(0, 3, 400) + np.where((at > 40) & (at < 80), 3.0, 0.0)
    answer = ask("falls_back", make_run({"reward": reward}), metric="reward")
    assert answer.verdict == "yes"
    assert (answer.last_good_step, answer.onset_step) == (299, 300)


def test_a_discriminator_has_won_since_nearly_all_of_its_rows_show_it() -> None:
    """A single row above the limit near the end does not make it a new event."""
    loss = np.where(np.arange(400) < 100, 0.6, 1e-4)
    loss[390] = 0.3
    answer = ask("discriminator_wins", make_run({"d_loss": loss, "loss": loss}, loss_kind="adversarial"))
    assert answer.verdict == "yes"
    assert (answer.last_good_step, answer.onset_step) == (99, 100)
