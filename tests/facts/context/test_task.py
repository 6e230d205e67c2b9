"""What a run trains, by its columns and its configuration."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.context.find import context_of
from stabtree.context.model import INFERRED, TASKS, UNKNOWN
from stabtree.context.signs import SIGNS, SIGNS_OF_REWARDS, WORDS
from tests.conftest import make_run, series
from tests.facts.context import known, run_of


@pytest.mark.parametrize(
    ("columns", "task", "algorithm"),
    [
        ("step, loss, num_tokens, mean_token_accuracy", "language-model", None),
        ("step, loss, rewards/chosen, rewards/rejected, logps/chosen", "preference", "dpo"),
        ("step, loss, kl, logps/chosen, logps/rejected", "preference", "kto"),
        ("step, loss, reward, completions/mean_length, accuracy", "grpo", "grpo"),
        ("rollout/ep_rew_mean, train/approx_kl, train/clip_fraction", "on-policy-rl", "ppo"),
        ("train/actor_loss, train/critic_loss, train/ent_coef", "off-policy-rl", "sac"),
        ("Episode, Total Reward, Epsilon", "off-policy-rl", None),
        ("AverageReturn, ExplainedVariance, MeanKL, Perplexity", "on-policy-rl", None),
        ("epoch, Loss D, Loss G", "gan", None),
        ("epoch, train/loss_simple, train/loss_vlb", "diffusion", None),
        ("epoch, loss_ctc, loss_att, acc", "ctc", None),
        ("step, loss, contrastive_loss", "contrastive", None),
        ("epoch, mIoU, mAcc", "segmentation", None),
        ("train/box_loss, metrics/mAP50(B)", "detection", None),
        ("loss_ce, loss_bbox, loss_giou, class_error", "detection", None),
        ("loss_mask, loss_dice, bbox/AP, segm/AP", "segmentation", None),
        ("epoch, Acc@1, loss", "classification", None),
        ("epoch, TrainLoss, ValSpearman", "regression", None),
    ],
)
def test_a_task_is_known_by_its_columns(columns: str, task: str, algorithm: str | None) -> None:
    """What only one kind of training logs shows it, however the names are spelled."""
    found = known(columns)
    assert (found.task.value, found.algorithm.value) == (task, algorithm)
    assert found.task.how == INFERRED


@pytest.mark.parametrize("columns", ["step, loss, lr, grad_norm", "epoch, accuracy, mse", "loss, goal_accuracy"])
def test_columns_that_many_log_show_no_task(columns: str) -> None:
    """A bare loss may be anything, and so may a log that speaks for two tasks."""
    assert known(columns).task.how == UNKNOWN


@pytest.mark.parametrize(
    ("config", "task", "algorithm"),
    [
        ({"task": "CAUSAL_LM"}, "language-model", None),
        ({"task": "dpo"}, "preference", "dpo"),
        ({"algorithm": "TD3"}, "off-policy-rl", "td3"),
        ({"vocab_size": 32_000}, "language-model", None),
        ({"n_classes": 10}, "classification", None),
        ({"task": "cola"}, None, None),
    ],
)
def test_a_task_is_known_by_the_configuration(
    config: dict[str, object], task: str | None, algorithm: str | None
) -> None:
    """By its words, or by what one guess is among; a word that names no task says nothing."""
    found = known("step, loss", **config)
    assert (found.task.value, found.algorithm.value) == (task, algorithm)


def test_what_learns_from_rewards_is_configured_as_a_language_model() -> None:
    """PEFT calls every such model CAUSAL_LM; the columns say what is done with it."""
    assert known("reward, frac_reward_zero_std", task="CAUSAL_LM").task.value == "grpo"
    assert known("loss, accuracy", task="CAUSAL_LM").task.value == "language-model"


def test_an_accuracy_below_0_is_none() -> None:
    """Some call an R² so."""
    run = run_of("epoch, loss, val_acc")
    below = replace(series("eval_quality", [-1.6, 0.6]), origin="val_acc")
    assert context_of(replace(run, series={**run.series, "eval_quality": below})).task.value is None


def test_a_trainer_of_one_task_shows_it() -> None:
    """Where neither columns nor settings do."""
    assert known("iter, loss, mfu").task.value == "language-model"


def test_the_loss_of_what_learns_from_rewards_need_not_fall() -> None:
    """By its columns, even if no reward is among them."""
    assert known("approx_kl, clipfrac").restless == "the loss of reinforcement learning"
    assert known("step, loss").restless == ""


def test_the_loss_against_a_moving_teacher_need_not_fall() -> None:
    """By the name of the method, or by the rate of the average that the teacher is; a temperature is none."""
    assert known("step, loss, teacher_momentum").restless.startswith("the teacher")
    run = make_run({"loss": np.ones(50), "train/tau": np.linspace(0.99, 1, 50)})
    assert context_of(run).restless.startswith("the teacher")
    assert context_of(make_run({"loss": np.ones(50), "tau": np.linspace(1, 0.5, 50)})).restless == ""


def test_signs_and_words_name_tasks() -> None:
    """That are known to the rest."""
    assert {sign.task for sign in (*SIGNS_OF_REWARDS, *SIGNS)} <= {*TASKS}
    assert {task for _, task, _ in WORDS} <= {*TASKS}
