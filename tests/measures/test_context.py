"""Who a run is: its trainer, task, phase, settings and outcome, and how each is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from stabtree.context.find import context_of, framework_of
from stabtree.context.model import (
    CONFIGURED,
    INFERRED,
    LOGGED,
    UNKNOWN,
)
from stabtree.loaders import load_run
from stabtree.run import ColumnUse, FileUse, Setting
from tests.conftest import make_run, series

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.context.model import Context
    from stabtree.run import Run


def run_of(columns: str, format_: str = "csv", rows: int = 1, **config: Any) -> Run:
    """Return a run with one file of these columns, separated by commas, and a configuration."""
    used = tuple(ColumnUse(name.strip(), None) for name in columns.split(","))
    return replace(make_run({"loss": [1.0]}, **config), sources=(FileUse("log", format_, rows, used),))


def known(columns: str, **config: Any) -> Context:
    """Return the context of such a run."""
    return context_of(run_of(columns, **config))


@pytest.mark.parametrize(
    ("metrics", "outcome", "better"),
    [
        ("loss eval_loss eval_quality reward", "reward", "higher"),
        ("loss eval_loss eval_quality", "eval_quality", "higher"),
        ("loss eval_loss grad_norm", "eval_loss", "lower"),
        ("loss lr", "loss", "lower"),
        ("lr", None, ""),
        ("loss eval_loss val_wer", "val_wer", "lower"),
        ("loss eval_loss preference_accuracy", "eval_loss", "lower"),
    ],
)
def test_the_outcome_is_the_reward_else_the_quality_else_a_loss(metrics: str, outcome: str | None, better: str) -> None:
    """Of any name that says so; a training loss only where nothing else says how well the run does."""
    found = context_of(make_run({name: [1.0, 2.0] for name in metrics.split()}))
    assert (found.outcome.value, found.better) == (outcome, better)


def test_a_guess_has_a_value_where_the_task_gives_one() -> None:
    """The logarithm of the classes; ln 2 of two answers; nothing where the task is not known."""
    loss = {"loss": [2.0, 1.0]}
    assert context_of(make_run(loss, n_classes=10)).chance.value == math.log(10)
    assert context_of(make_run(loss, task="dpo")).chance.value == math.log(2)
    assert context_of(make_run(loss)).chance.value is None


@pytest.mark.parametrize(
    ("config", "phase"),
    [
        ({"init_from": "scratch"}, "from scratch"),
        ({"init_from": "resume"}, "continued"),
        ({"init_from": "gpt2-xl"}, "fine-tune"),
        ({"init_from": "some/model", "adapter": "lora"}, "LoRA"),
        ({"init_from": "some/model", "lora_rank": 16}, "LoRA"),
        ({"adapter": "full"}, "fine-tune"),
        ({}, None),
    ],
)
def test_a_phase_is_configured(config: dict[str, object], phase: str | None) -> None:
    """An adapter says more than the model that it is put on."""
    assert known("step, loss", **config).phase.value == phase


@pytest.mark.parametrize(("first", "phase"), [(10.4, "from scratch"), (2.1, "fine-tune"), (7.0, None)])
def test_a_first_loss_shows_whether_the_model_was_trained_before(first: float, phase: str | None) -> None:
    """Near ln(vocabulary) it was not, far below it was; in between it is open."""
    run = make_run({"loss": np.linspace(first, 1.0, 50)}, vocab_size=32_000)
    assert context_of(run).phase.value == phase


def test_a_late_first_row_shows_no_phase_by_its_loss() -> None:
    """What lies below a guess after 500 steps may have been learned in them."""
    run = make_run({"loss": np.linspace(2.0, 1.0, 50)}, steps=500 * np.arange(1, 51), vocab_size=128)
    assert context_of(run).phase.value is None


def test_a_log_that_begins_late_goes_on_with_another() -> None:
    """The steps before it were trained, and logged elsewhere; not where a reward is logged while a buffer fills."""
    run = make_run({"loss": np.linspace(2.0, 1.0, 50)}, steps=5000 + 10 * np.arange(50))
    found = context_of(run).phase
    assert (found.value, found.why) == ("continued", "the log begins at step 5,000")
    reward = make_run({"reward": np.arange(50)}, steps=10 * np.arange(1, 51)).series
    assert context_of(replace(run, series={**run.series, **reward})).phase.value is None


@pytest.mark.parametrize(
    ("spelled", "name"),
    [("adamw_torch_fused", "adamw"), ("torch.optim.SGD", "sgd"), ("PAGED_ADAMW_8BIT", "adamw"), ("mine", None)],
)
def test_an_optimizer_goes_by_its_usual_name(spelled: str, name: str | None) -> None:
    """However it is spelled; one of somebody's own is not known."""
    assert context_of(make_run({"loss": [1.0]}, optimizer=spelled)).optimizer.value == name


def test_a_scaled_loss_is_that_of_fp16() -> None:
    """A scale above 1 is needed by fp16 alone; a constant 1 is how trainers print that there is none."""
    scaled = context_of(make_run({"loss": [1.0, 1.0], "loss_scale": [65536.0, 32768.0]})).precision
    assert (scaled.value, scaled.how) == ("fp16", INFERRED)
    assert context_of(make_run({"loss": [1.0], "loss_scale": [1.0]})).precision.how == UNKNOWN


def test_a_loss_of_bf16_numbers_alone_is_that_of_bf16() -> None:
    """They have 8 bits of mantissa; what is printed with two decimals may have as few by chance."""
    stored = [0.9453125, 0.97265625, 0.984375, 1.0, 1.015625, 0.99609375]
    found = context_of(make_run({"loss": stored})).precision
    assert (found.value, found.how) == ("bf16", INFERRED)
    assert context_of(make_run({"loss": [*stored, 0.98]})).precision.how == UNKNOWN
    assert context_of(make_run({"loss": [2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25]})).precision.how == UNKNOWN


def test_what_a_log_prints_is_logged_and_what_a_file_says_is_configured() -> None:
    """By where the setting was read."""
    run = replace(make_run({"loss": [1.0]}), sources=(FileUse("a/train.log", "text", 1),))
    printed = replace(run, config={"dtype": Setting("bf16", "a/train.log")})
    given = replace(run, config={"dtype": Setting("bf16", "args.json")})
    assert context_of(printed).precision.how == LOGGED
    assert context_of(given).precision.how == CONFIGURED


def test_the_peak_rate_is_the_highest_that_was_logged() -> None:
    """Else the one that is configured; what is not finite is no rate."""
    logged = make_run({"loss": [1.0, 1.0, 1.0], "lr": [1e-4, 3e-4, np.nan]}, lr=1e-3)
    assert context_of(logged).peak_lr.value == 3e-4
    assert context_of(make_run({"loss": [1.0]}, lr=1e-3)).peak_lr.value == 1e-3


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


@pytest.mark.parametrize(
    ("columns", "trainer"),
    [
        ("step, smpl, ep, loss, grdn, updt_s, data_s", "lerobot"),
        ("charts/episodic_return, charts/SPS, losses/approx_kl", "cleanrl"),
        ("EpRewMean, EpLenMean, TimestepsSoFar", "baselines"),
        ("iteration, total_loss, rank_data_time, lr", "detectron2"),
        ("step, loss, num_tokens, mean_token_accuracy", "trl"),
        ("step, train_loss, train_time, step_avg", "modded_nanogpt"),
        ("step, loss, lr, grad_norm", None),
    ],
)
def test_a_trainer_is_known_by_columns_that_no_other_writes(columns: str, trainer: str | None) -> None:
    """Columns that many have are no proof."""
    assert known(columns).framework.value == trainer


def test_the_log_comes_before_the_configuration_unless_that_is_more_special() -> None:
    """An engine may be all that is configured; what is built on a trainer writes the same log."""
    by_log = framework_of(run_of("loss, reward", "trainer_state", framework="deepspeed"))
    assert (by_log.value, by_log.how) == ("huggingface", LOGGED)
    special = framework_of(run_of("loss, grad_norm, learning_rate, epoch", framework="axolotl"))
    assert (special.value, special.how) == ("axolotl", CONFIGURED)
    assert framework_of(run_of("loss", framework="unheard-of")).value is None


@pytest.mark.parametrize(("logged", "trainer"), [((90, 10), "lightning"), ((100, 10), None)])
def test_rows_of_their_own_show_lightning_s_csv(logged: tuple[int, int], trainer: str | None) -> None:
    """It writes training and validation in rows of their own; others join them."""
    used = ColumnUse("train_loss", "loss", logged=logged[0]), ColumnUse("val_loss", "eval_loss", logged=logged[1])
    axes = ColumnUse("epoch", "epoch"), ColumnUse("step", "step", logged=100)
    run = replace(make_run({"loss": [1.0]}), sources=(FileUse("m.csv", "csv", 100, (*axes, *used)),))
    found = framework_of(run)
    assert found.value == trainer
    assert found.how in (INFERRED, "unknown")


ROWS = "".join(f"step {step}: loss {3 - step / 50:.4f}\n" for step in range(40))


@pytest.mark.parametrize(
    ("line", "part", "value"),
    [
        ("[08/30 15:01:16] detectron2 INFO: Environment info:", "framework", "detectron2"),
        ("Using 16bit Automatic Mixed Precision (AMP)", "precision", "fp16"),
        ("Using 16bit Automatic Mixed Precision (AMP)", "framework", "lightning"),
        ("Initializing a new model from scratch", "phase", "from scratch"),
        ("trainable params: 16,515,072 || all params: 4,024,452,608 || trainable%: 0.4104", "phase", "LoRA"),
        ("using fused AdamW: False", "optimizer", "adamw"),
    ],
)
def test_a_line_that_a_trainer_prints_is_evidence(tmp_path: Path, line: str, part: str, value: str) -> None:
    """It shows who prints it, and what it says."""
    file = tmp_path / "train.log"
    file.write_text(f"{line}\n{ROWS}", encoding="utf-8")
    found = getattr(context_of(load_run(str(file))), part)
    assert (found.value, found.how) == (value, LOGGED)


def test_arguments_go_on_after_a_dict(tmp_path: Path) -> None:
    """A call that is printed over many lines may hold a dict or a list."""
    file = tmp_path / "train.log"
    text = "TrainingArguments(\naccelerator_config={'split_batches': False},\nfp16=True,\noptim=adamw_torch,\n)\n"
    file.write_text(text + ROWS, encoding="utf-8")
    config = load_run(str(file)).config
    assert (config["dtype"].value, config["optimizer"].value) == ("fp16", "adamw_torch")


def test_code_that_a_log_holds_is_no_evidence(tmp_path: Path) -> None:
    """The source of a trainer has every line that it may print."""
    file = tmp_path / "train.log"
    file.write_text(f"import torch\nprint('Initializing a new model from scratch')\n{ROWS}", encoding="utf-8")
    assert "init_from" not in load_run(str(file)).config
