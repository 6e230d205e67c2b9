"""Kinds of training, with the settings that their trainers write."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.whole.advice import columns as made

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from tests.whole.advice.columns import Columns


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of training.

    Attributes:
        columns: makes the columns of a healthy run.
        config: its settings, as its trainer spells them.
        every: steps between two rows.
        losses: the columns that break with the loss, the loss first.
        start: the loss of a model that has learned nothing.
        norm: the column of the gradient norm; empty where the trainer logs none.
        lr: that of the learning rate.
        held_out: that of the held-out loss.
        outcome: that of the reward or the quality, with its value for a model that has learned nothing.
        step: the column of the steps.
    """

    columns: Callable[[np.random.Generator], Columns]
    config: Mapping[str, Any]
    losses: tuple[str, ...]
    start: float
    every: int = 10
    norm: str = ""
    lr: str = "learning_rate"
    held_out: str = ""
    outcome: Mapping[str, float] = field(default_factory=dict)
    step: str = "step"


_LM = {"adam_epsilon": 1e-8, "max_grad_norm": 1.0, "max_steps": 3000, "bf16": True}
_TRAINER = {"output_dir": "out", "per_device_train_batch_size": 8, "gradient_accumulation_steps": 4, **_LM}
TIMESTEPS = "time/total_timesteps"
_CHANCE = {"val_acc": 0.1, "train_acc": 0.1}

KINDS: dict[str, Kind] = {
    "lm-pretraining": Kind(
        made.language(10.8, 3.2, 6e-4, 0.6),
        {"optimizer": {"name": "adamw", "lr": 6e-4, "weight_decay": 0.1}, "vocab_size": 50257, "dtype": "bf16"},
        ("loss",),
        math.log(50257),
        norm="grad_norm",
        held_out="eval_loss",
    ),
    "lm-finetune": Kind(
        made.language(1.9, 1.1, 1e-5, 1.5),
        {**_TRAINER, "learning_rate": 1e-5, "optim": "adamw_torch", "task_type": "causal_lm", "vocab_size": 32000},
        ("loss",),
        1.9,
        norm="grad_norm",
        held_out="eval_loss",
    ),
    "lora": Kind(
        made.language(1.9, 1.1, 2e-4, 0.8),
        {**_TRAINER, "learning_rate": 2e-4, "peft_type": "LORA", "lora_r": 16, "vocab_size": 32000},
        ("loss",),
        1.9,
        norm="grad_norm",
        held_out="eval_loss",
    ),
    "classification": Kind(
        made.classes,
        {"optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.01}, "num_classes": 10, "framework": "lightning"},
        ("train_loss",),
        math.log(10),
        norm="grad_norm",
        lr="lr-AdamW",
        held_out="val_loss",
        outcome=_CHANCE,
    ),
    "regression": Kind(
        made.numbers,
        {"optimizer": {"name": "adam", "lr": 1e-3}, "task": "regression", "framework": "lightning"},
        ("train_loss", "train_mae"),
        1.0,
        norm="grad_norm",
        lr="lr-Adam",
        held_out="val_loss",
        outcome={"val_mae": 0.8, "train_mae": 0.8},
    ),
    "detection": Kind(
        made.boxes,
        {"lr0": 0.01, "momentum": 0.937, "weight_decay": 5e-4, "epochs": 300, "optimizer": "SGD"},
        ("train/box_loss", "train/cls_loss", "train/dfl_loss"),
        3.5,
        every=1,
        lr="lr/pg0",
        held_out="val/box_loss",
        outcome={"metrics/mAP50(B)": 0.002, "metrics/mAP50-95(B)": 0.001},
        step="epoch",
    ),
    "segmentation": Kind(
        made.pixels,
        {"optimizer": {"name": "adamw", "lr": 3e-4}, "task": "segmentation"},
        ("train_loss", "dice_loss"),
        1.4,
        norm="grad_norm",
        lr="lr",
        held_out="val_loss",
        outcome={"val_dice": 0.05, "dice_loss": 0.95},
    ),
    "diffusion": Kind(
        made.noise,
        {"optimizer": {"name": "adamw", "lr": 1e-4}, "task": "diffusion"},
        ("diffusion_loss",),
        1.0,
        norm="grad_norm",
        lr="lr",
    ),
    "gan": Kind(
        made.adversaries,
        {"optimizer": {"name": "adam", "lr": 2e-4}, "task": "gan"},
        ("d_loss", "g_loss"),
        1.38,
        lr="",
        outcome={"fid": 300},
    ),
    "ctc": Kind(
        made.speech,
        {"optimizer": {"name": "adamw", "lr": 3e-4}, "task": "ctc"},
        ("ctc_loss",),
        9.0,
        norm="grad_norm",
        lr="lr",
        held_out="val_loss",
        outcome={"wer": 1.0},
    ),
    "contrastive": Kind(
        made.pairs,
        {"optimizer": {"name": "adamw", "lr": 5e-4}, "task": "contrastive", "batch_size": 256},
        ("contrastive_loss",),
        math.log(256),
        norm="grad_norm",
        lr="lr",
        outcome={"recall_at_1": 1 / 256},
    ),
    "dpo": Kind(
        made.preferences,
        {**_TRAINER, "learning_rate": 5e-7, "precompute_ref_log_probs": False, "beta": 0.1},
        ("loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "logps/chosen", "logps/rejected"),
        math.log(2),
        norm="grad_norm",
        held_out="eval_loss",
        outcome={
            "rewards/accuracies": 0.5,
            "rewards/margins": 0.0,
            "rewards/chosen": 0.0,
            "rewards/rejected": 0.0,
            "eval_rewards/accuracies": 0.5,
            "eval_rewards/margins": 0.0,
        },
    ),
    "reward-model": Kind(
        made.reward_model,
        {**_TRAINER, "learning_rate": 1e-5, "center_rewards_coefficient": 0.01},
        ("loss", "min_reward", "mean_reward", "max_reward", "margin"),
        math.log(2),
        norm="grad_norm",
        held_out="eval_loss",
        outcome={"accuracy": 0.5, "eval_accuracy": 0.5, "margin": 0.0, "min_reward": -0.1, "max_reward": 0.1},
    ),
    "grpo": Kind(
        made.answers,
        {**_TRAINER, "learning_rate": 1e-6, "num_generations": 8, "beta": 0.04, "max_completion_length": 512},
        ("loss",),
        0.01,
        norm="grad_norm",
        outcome={"reward": 0.1, "rewards/correct/mean": 0.1},
    ),
    "ppo": Kind(
        made.on_policy,
        {"algo": "ppo", "learning_rate": 3e-4, "n_steps": 2048, "gamma": 0.99},
        ("train/loss", "train/value_loss", "train/policy_gradient_loss", "train/entropy_loss", "train/approx_kl"),
        20,
        outcome={"rollout/ep_rew_mean": 20, "rollout/ep_len_mean": 20},
        step=TIMESTEPS,
        every=2048,
        lr="train/learning_rate",
    ),
    "sac": Kind(
        made.soft_actor,
        {"algo": "sac", "learning_rate": 3e-4, "buffer_size": 1_000_000, "gamma": 0.99},
        ("train/critic_loss", "train/actor_loss", "train/ent_coef_loss"),
        2,
        outcome={"rollout/ep_rew_mean": 10},
        step=TIMESTEPS,
        every=2048,
        lr="train/learning_rate",
    ),
    "dqn": Kind(
        made.deep_q,
        {"algo": "dqn", "learning_rate": 1e-4, "buffer_size": 1_000_000, "gamma": 0.99},
        ("train/loss",),
        0.4,
        outcome={"rollout/ep_rew_mean": 20, "rollout/ep_len_mean": 20},
        step=TIMESTEPS,
        every=2048,
        lr="train/learning_rate",
    ),
}
