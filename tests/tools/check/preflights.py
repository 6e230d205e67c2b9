"""Configurations on both sides of every rule of `trees/preflight.yaml`: a good one, and what to change of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from stabtree.run import Run, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

GOOD: dict[str, Any] = {
    "framework": "axolotl",
    "task": "sft",
    "device": "NVIDIA A100",
    "seed": 1,
    "dtype": "bf16",
    "mixed": True,
    "weights_dtype": "fp32",
    "optimizer_state_dtype": "fp32",
    "grad_reduce_dtype": "fp32",
    "loss_scaling": "none",
    "optimizer": "adamw_torch",
    "epsilon": 1e-8,
    "beta1": 0.9,
    "beta2": 0.99,
    "lr": 2e-4,
    "lr_schedule": "cosine",
    "min_lr": 2e-5,
    "schedule_steps": 2000,
    "max_steps": 2000,
    "warmup_steps": 100,
    "weight_decay": 0.01,
    "grad_clip": 1.0,
    "grad_clip_by": "norm",
    "batch_size": 64,
    "micro_batch_size": 4,
    "accumulation_steps": 2,
    "world_size": 8,
    "epochs": 3,
    "eval_strategy": "steps",
    "eval_every": 100,
    "save_strategy": "steps",
    "checkpoint_every": 100,
    "save_total_limit": 4,
    "log_strategy": "steps",
    "log_interval": 1,
    "log_filters_nan": False,
    "logs": "wandb",
    "adapter": "lora",
    "lora_rank": 16,
    "dropout": 0.05,
    "train_on_inputs": False,
    "sample_packing": True,
}
"""A LoRA fine-tuning in which nothing is wrong, and every rule that applies can be judged."""

FULL = {"adapter": "full", "lr": 2e-5, "min_lr": 0.0, "lora_rank": None}
SHORT = {"warmup_steps": 15, "checkpoint_every": 50, "save_total_limit": 1, "eval_every": 50, "beta2": 0.95}
FP16 = {"dtype": "fp16", "loss_scaling": "dynamic"}
TUNED = {"adapter": None, "lora_rank": None}
PRETRAINED = FULL | {"task": "pretrain", "beta2": 0.95}
RL = {
    "task": "grpo",
    "num_generations": 16,
    "temperature": 0.9,
    "beta": 0.01,
    "clip_epsilon": 0.2,
    "lr": 1e-6,
    "min_lr": 0.0,
    "adapter": "full",
    "lora_rank": None,
    "eval_strategy": None,
    "eval_every": None,
}
"""What makes the good configuration one of reinforcement learning."""


class Sides(NamedTuple):
    """What is changed of the good configuration so that a rule finds something, and so that it just does not.

    Attributes:
        yes: what ends at the leaf.
        no: what stays inside of the same bar, an answer all the same.
        base: what both change.
    """

    yes: Mapping[str, Any]
    no: Mapping[str, Any]
    base: Mapping[str, Any] = {}


SIDES: dict[str, Sides] = {
    "fp16-unscaled": Sides({"loss_scaling": "none"}, {"loss_scaling": "dynamic"}, FP16),
    "fp16-scale-fixed": Sides({"loss_scaling": "static"}, {"loss_scaling": "dynamic"}, FP16),
    "fp16-weights": Sides({"mixed": False}, {"mixed": True}, FP16),
    "fp16-weights full": Sides({"weights_dtype": "fp16"}, {"weights_dtype": "fp32"}, FULL | FP16),
    "bf16-weights": Sides({"weights_dtype": "bf16"}, {"weights_dtype": "fp32"}, FULL),
    "optimizer-state-fp16": Sides({"optimizer_state_dtype": "fp16"}, {}),
    "optimizer-state-bf16": Sides({"optimizer_state_dtype": "bf16"}, {}),
    "epsilon-vanishes": Sides({"epsilon": 9e-8}, {"epsilon": 1e-7}, {"optimizer_state_dtype": "fp16"}),
    "epsilon-vanishes pure": Sides(
        {"epsilon": 1e-8}, {"epsilon": 1e-6}, FP16 | {"mixed": False, "optimizer_state_dtype": None}
    ),
    "scale-begins-low": Sides({"initial_loss_scale": 810.0}, {"initial_loss_scale": 830.0}, FP16),
    "scale-begins-low-outside": Sides({"initial_loss_scale": 7200.0}, {"initial_loss_scale": 9200.0}, FP16),
    "scale-never-grows": Sides({"scale_window": 2200}, {"scale_window": 1800}, FP16),
    "sum-in-fp16": Sides({"grad_reduce_dtype": "fp16"}, {"grad_reduce_dtype": "bf16"}),
    "scaler-idle": Sides({"loss_scaling": "dynamic"}, {}),
    "bf16-on-old-card": Sides({"device": "Tesla V100-SXM2-32GB"}, {"device": "NVIDIA RTX 4090"}),
    "warmup-outlasts-run": Sides({"warmup_steps": 1900}, {"warmup_steps": 1700}),
    "warmup-outlasts-run share": Sides({"warmup_ratio": 1.0}, {"warmup_ratio": 0.5}, {"warmup_steps": None}),
    "warmup-long": Sides({"warmup_steps": 220}, {"warmup_steps": 200}),
    "warmup-none": Sides({"warmup_steps": 0}, {"warmup_steps": 40}),
    "warmup-none-gentle": Sides({"lr": 9e-6}, {"lr": 9e-6, "warmup_steps": 20}, FULL | {"warmup_steps": 0}),
    "warmup-none share": Sides({"warmup_ratio": 0.0}, {"warmup_ratio": 0.03}, {"warmup_steps": 0}),
    "warmup-short": Sides({"warmup_steps": 18}, {"warmup_steps": 22}),
    "warmup-short long run": Sides(
        {"warmup_steps": 18}, {"warmup_steps": 22}, {"max_steps": 20_000, "schedule_steps": 20_000}
    ),
    "schedule-ends-early": Sides({"schedule_steps": 1750}, {"schedule_steps": 1950}, {"min_lr": 0.0}),
    "schedule-ends-early unsaid": Sides({"schedule_steps": 1750}, {"schedule_steps": 1950}, {"min_lr": None}),
    "schedule-ends-early far": Sides({"schedule_steps": 13}, {"schedule_steps": 1950}),
    "schedule-ends-early-above-zero": Sides({"schedule_steps": 1750}, {"schedule_steps": 1950}),
    "schedule-outlasts-run": Sides({"schedule_steps": 2300}, {"schedule_steps": 2050}),
    "rate-climbs": Sides({"min_lr": 2.2e-4}, {"min_lr": 1.8e-4}),
    "rate-zero": Sides({"lr": 0.0}, {"lr": 1e-4}, {"min_lr": 0.0}),
    "rate-zero below": Sides({"lr": -1e-4}, {"lr": 1e-4}, {"min_lr": None}),
    "rate-beyond-adam": Sides({"lr": 0.012}, {"lr": 0.009}, TUNED | {"task": None}),
    "rate-lora": Sides({"lr": 3.4e-3}, {"lr": 2.6e-3}),
    "rate-lora low": Sides({"lr": 0.9e-5}, {"lr": 1.1e-5}),
    "rate-lora-outside": Sides({"lr": 3.4e-4}, {"lr": 2.7e-4}),
    "rate-lora-outside low": Sides({"lr": 9e-5}, {"lr": 1.1e-4}),
    "rate-lora preference": Sides({"lr": 5e-6}, {"lr": 5e-6, "beta": 0.1, "task": None}),
    "rate-full": Sides({"lr": 5.6e-4}, {"lr": 4.4e-4}, FULL),
    "rate-full-outside": Sides({"lr": 5.6e-5}, {"lr": 4.4e-5}, FULL),
    "rate-finetuning": Sides({"lr": 3.4e-3}, {"lr": 2.6e-3}, TUNED),
    "rate-finetuning-outside": Sides({"lr": 3.4e-4}, {"lr": 2.7e-4}, TUNED),
    "rate-preference": Sides({"lr": 2.2e-4}, {"lr": 1.8e-4}, {"task": "dpo"}),
    "rate-preference-outside": Sides({"lr": 2.2e-5, "min_lr": 0.0}, {"lr": 1.8e-5, "min_lr": 0.0}, {"task": "dpo"}),
    "rate-rl": Sides({"lr": 2.2e-4}, {"lr": 1.8e-4}, RL),
    "rate-rl-outside": Sides({"lr": 2.2e-5}, {"lr": 1.8e-5}, RL),
    "rate-pretraining": Sides({"lr": 4.5e-6}, {"lr": 5.5e-6}, PRETRAINED),
    "rate-pretraining-outside": Sides({"lr": 5.5e-3}, {"lr": 4.5e-3}, PRETRAINED),
    "key-misspelled": Sides({"misspelled": "learning_rte: did you mean learning_rate?"}, {}),
    "optimizer-unknown": Sides({"optimizer": "adamww"}, {"optimizer": "my_own_one"}),
    "beta-impossible": Sides({"beta2": 1.0}, {"beta2": 0.99}),
    "best-mismatch": Sides({"save_strategy": "epoch"}, {"save_strategy": "steps"}, {"load_best": True}),
    "best-mismatch multiple": Sides({"checkpoint_every": 150}, {"checkpoint_every": 200}, {"load_best": True}),
    "decay-in-gradient": Sides({"optimizer": "adam"}, {"optimizer": "adam", "framework": "deepspeed"}),
    "decay-in-gradient none": Sides({"weight_decay": 0.01}, {"weight_decay": 0.0}, {"optimizer": "adam"}),
    "decay-high-lora": Sides({"weight_decay": 0.12}, {"weight_decay": 0.1}),
    "rate-absurd": Sides({"lr": 1.1}, {"lr": 0.9}, {"optimizer": "sgd"} | TUNED | {"task": None}),
    "dropout-extreme": Sides({"dropout": 0.9}, {"dropout": 0.7}),
    "decay-far-high": Sides({"weight_decay": 0.33}, {"weight_decay": 0.27}, FULL),
    "epsilon-large": Sides({"epsilon": 1.1e-3}, {"epsilon": 0.9e-3}),
    "betas-swapped": Sides({"beta1": 0.95}, {"beta1": 0.94}, {"beta2": 0.9}),
    "best-unknown": Sides({"load_best": True}, {"load_best": False}, {"eval_strategy": "no", "eval_every": None}),
    "early-stopping-blind": Sides({"held_out_share": 0.0}, {"held_out_share": 0.05}, {"early_stopping": 3}),
    "quantized-twice": Sides({"quantizations": "load_in_8bit+load_in_4bit"}, {"quantizations": "load_in_4bit"}),
    "schedule-unknown": Sides({"lr_schedule": "cosinus"}, {"lr_schedule": "cosine"}),
    "schedule-unknown own": Sides({"lr_schedule": "cosinus"}, {"lr_schedule": "my_own_decay"}),
    "schedule-unknown joined": Sides({"lr_schedule": "one cycel"}, {"lr_schedule": "one cycle"}),
    "precision-twice": Sides({"precisions": "fp16+bf16"}, {"precisions": "fp16"}, FP16),
    "second-moment-slow": Sides({"beta2": 0.9996}, {"beta2": 0.999}),
    "second-moment-slow-pretraining": Sides({"beta2": 0.999}, {"beta2": 0.95}, {"task": "pretrain"}),
    "no-clipping": Sides({"grad_clip": 0.0}, {"grad_clip": 0.5}),
    "clip-extreme": Sides({"grad_clip": 112.0}, {"grad_clip": 88.0}),
    "clip-extreme low": Sides({"grad_clip": 0.009}, {"grad_clip": 0.011}),
    "clip-extreme-outside": Sides({"grad_clip": 11.0}, {"grad_clip": 9.0}),
    "clip-extreme-outside low": Sides({"grad_clip": 0.09}, {"grad_clip": 0.11}),
    "batch-differs": Sides({"batch_size": 32}, {"world_size": 4, "batch_size": 32}),
    "eval-never": Sides({"eval_strategy": "no"}, {"eval_strategy": "epoch"}),
    "eval-never late": Sides({"eval_every": 2200}, {"eval_every": 1800}),
    "eval-never-once": Sides({"eval_strategy": "no", "epochs": 1}, {"eval_strategy": "epoch"}),
    "eval-never-once unsaid": Sides({"eval_strategy": "no"}, {"eval_strategy": "epoch"}, {"epochs": None}),
    "checkpoint-never": Sides({"save_strategy": "no"}, {"save_strategy": "epoch"}),
    "checkpoint-never late": Sides({"checkpoint_every": 2000}, {"checkpoint_every": 1750}),
    "checkpoint-never short": Sides(
        {"max_steps": 220, "schedule_steps": 220},
        {"max_steps": 200, "schedule_steps": 200},
        {"checkpoint_every": 500, "warmup_steps": 10},
    ),
    "checkpoints-far-apart": Sides({"checkpoint_every": 550}, {"checkpoint_every": 450}),
    "checkpoints-far-apart short": Sides(
        {"checkpoint_every": 220},
        {"checkpoint_every": 200},
        {"max_steps": 400, "schedule_steps": 400, "warmup_steps": 20},
    ),
    "no-clean-checkpoint-few": Sides({"save_total_limit": 2}, {"save_total_limit": 3}),
    "no-clean-checkpoint-few hub": Sides(
        {"save_total_limit": 1, "push_to_hub": True}, {"save_total_limit": 3, "push_to_hub": True}
    ),
    "no-clean-checkpoint one": Sides({"save_total_limit": 1}, {"load_best": True, "save_total_limit": 1}),
    "no-clean-checkpoint short": Sides(
        {"max_steps": 220, "schedule_steps": 220}, {"max_steps": 200, "schedule_steps": 200}, SHORT
    ),
    "no-clean-checkpoint epoch": Sides(
        {"save_total_limit": 1}, {"save_total_limit": None}, {"save_strategy": "epoch", "checkpoint_every": None}
    ),
    "log-too-little": Sides({"log_strategy": "no"}, {"log_strategy": "steps"}),
    "log-too-little late": Sides({"log_interval": 2200}, {"log_interval": 1800}),
    "log-too-little-few": Sides({"log_interval": 110}, {"log_interval": 90}),
    "log-too-rare": Sides({"log_interval": 56}, {"log_interval": 44}),
    "log-hides-nan": Sides({"log_filters_nan": True}, {}),
    "log-nowhere": Sides({"logs": "none"}, {"logs": "tensorboard, wandb"}),
    "lora-rank-unusual": Sides({"lora_rank": 512}, {"lora_rank": 256}),
    "lora-rank-unusual low": Sides({"lora_rank": 2}, {"lora_rank": 4}),
    "trains-on-prompts": Sides({"train_on_inputs": True}, {}),
    "fp8-padding": Sides({"sample_packing": False}, {"sample_packing": True}, {"dtype": "fp8"}),
    "group-of-one": Sides({"num_generations": 1}, {"num_generations": 2}, RL),
    "group-small": Sides({"num_generations": 4}, {"num_generations": 8}, RL),
    "groups-split": Sides({"num_generations": 24}, {"num_generations": 32}, RL),
    "sampling-greedy": Sides({"temperature": 0.0}, {"temperature": 0.1}, RL),
    "temperature-unusual": Sides({"temperature": 0.7}, {"temperature": 0.8}, RL),
    "temperature-unusual hot": Sides({"temperature": 1.1}, {"temperature": 1.0}, RL),
    "kl-free": Sides({"beta": 0.0}, {"beta": 0.001}, RL),
    "kl-dominates": Sides({"beta": 1.1}, {"beta": 0.9}, RL),
    "policy-clip-unusual": Sides({"clip_epsilon": 0.34}, {"clip_epsilon": 0.26}, RL),
}
"""By leaf, and what else there is to say of the bar, both sides of it."""


FILES: dict[str, dict[str, Any]] = {
    "best-mismatch": {
        "output_dir": "out",
        "per_device_train_batch_size": 8,
        "learning_rate": 2e-5,
        "load_best_model_at_end": True,
        "eval_strategy": "epoch",
        "save_strategy": "steps",
    },
    "no-clipping-unsaid": {
        "train_batch_size": 32,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}},
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 2},
    },
}
"""Files of a trainer, for the leaves that only a known one leads to."""


def planned(*changes: Mapping[str, Any], **more: Any) -> Run:
    """The good configuration with changes; None takes a setting away."""
    return of(_merged([GOOD, *changes, more]))


def of(values: Mapping[str, Any]) -> Run:
    """A configuration of these settings alone, each on a line of its own."""
    said = {key: value for key, value in values.items() if value is not None}
    settings = {key: Setting(value, f"run.yaml:{line}, {key}") for line, (key, value) in enumerate(said.items(), 1)}
    return Run("run", {}, settings)


def unsaid(run: Run, key: str) -> Run:
    """The same configuration with a setting that is the trainer's default."""
    return replace(run, config={**run.config, key: replace(run.config[key], source="default of Some Trainer")})


def _merged(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}
