"""The knobs of training as each framework of `facts.circumstances` spells them: one table for all fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Knob -> spelling by framework, "" for all others. Where the configuration knows it, the knob is called as there.
# Hugging Face's spellings are TRL's, too.
_HF = ("huggingface", "llamafactory")


def _alike(spelling: str, *frameworks: str, **others: str) -> dict[str, str]:
    return {**dict.fromkeys(frameworks, spelling), **others}


KNOBS: Mapping[str, Mapping[str, str]] = {
    "lr": {
        "": "lr",
        **_alike("learning_rate", *_HF, "axolotl", "nanogpt", "keras", "sb3"),
        "ultralytics": "lr0",
        "deepspeed": "optimizer.params.lr",
        "megatron": "--lr",
    },
    "warmup_steps": {
        "": "warmup_steps",
        **_alike("warmup_steps", *_HF, "axolotl"),
        "keras": "CosineDecay(warmup_steps)",
        "ultralytics": "warmup_epochs",
        "nanogpt": "warmup_iters",
        "deepspeed": "scheduler.params.warmup_num_steps",
        "megatron": "--lr-warmup-iters",
    },
    "grad_clip": {
        "": "max_grad_norm",
        **_alike("max_grad_norm", *_HF, "axolotl", "sb3"),
        "lightning": "gradient_clip_val",
        "deepspeed": "gradient_clipping",
        "megatron": "--clip-grad",
        "nanogpt": "grad_clip",
        "keras": "global_clipnorm",
    },
    "weight_decay": {
        "": "weight_decay",
        **_alike("weight_decay", *_HF, "axolotl", "nanogpt", "keras", "ultralytics"),
        "sb3": "policy_kwargs: optimizer_kwargs: weight_decay",
        "deepspeed": "optimizer.params.weight_decay",
        "megatron": "--weight-decay",
    },
    "batch_size": {
        "": "batch_size",
        **_alike("per_device_train_batch_size", *_HF),
        **_alike("batch_size", "nanogpt", "keras", "sb3", "lightning"),
        "axolotl": "micro_batch_size",
        "deepspeed": "train_batch_size",
        "megatron": "--global-batch-size",
        "ultralytics": "batch",
    },
    "micro_batch_size": {
        "": "",
        **_alike("per_device_train_batch_size", *_HF),
        **_alike("batch_size", "nanogpt", "keras", "sb3", "lightning"),
        "axolotl": "micro_batch_size",
        "deepspeed": "train_micro_batch_size_per_gpu",
        "megatron": "--micro-batch-size",
        "ultralytics": "batch",
    },
    "accumulation_steps": {
        "": "gradient_accumulation_steps",
        **_alike("gradient_accumulation_steps", *_HF, "axolotl", "deepspeed", "nanogpt", "keras"),
        "lightning": "accumulate_grad_batches",
    },
    "adam_eps": {
        "": "eps",
        **_alike("adam_epsilon", *_HF, "axolotl"),
        "lightning": "eps",
        "deepspeed": "optimizer.params.eps",
        "megatron": "--adam-eps",
        "keras": "epsilon",
        "sb3": "policy_kwargs: optimizer_kwargs: eps",
    },
    "label_smoothing": {"": "label_smoothing", **_alike("label_smoothing_factor", *_HF, "axolotl")},
    "checkpoint_every": {
        "": "checkpoint_every",
        **_alike("save_steps", *_HF, "axolotl"),
        "lightning": "ModelCheckpoint(every_n_train_steps)",
        "megatron": "--save-interval",
        "nanogpt": "eval_interval",
        "keras": "ModelCheckpoint(save_freq)",
        "ultralytics": "save_period",
        "sb3": "CheckpointCallback(save_freq)",
    },
    "save_total_limit": {
        "": "",
        **_alike("save_total_limit", *_HF, "axolotl"),
        "lightning": "ModelCheckpoint(save_top_k)",
    },
    "dtype=bf16": {
        "": "",
        "huggingface": "bf16=True",
        **_alike("bf16: true", "llamafactory", "axolotl"),
        "lightning": 'precision="bf16-mixed"',
        "deepspeed": '"bf16": {"enabled": true}',
        "megatron": "--bf16",
        "nanogpt": "dtype = 'bfloat16'",
        "keras": 'keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    },
    "nan_filter=on": {
        "": "",
        "huggingface": "logging_nan_inf_filter=True",
        **_alike("logging_nan_inf_filter: true", "llamafactory", "axolotl"),
    },
    "loss_scale=dynamic": {
        "": 'torch.amp.GradScaler("cuda"), with scaler.step(optimizer) and scaler.update() in every step',
        "huggingface": "fp16=True",
        **_alike("fp16: true", "llamafactory", "axolotl"),
        "lightning": 'precision="16-mixed"',
        "deepspeed": "fp16.loss_scale: 0",
        "megatron": "leave --loss-scale out",
        "nanogpt": "dtype = 'float16'",
        "keras": 'keras.mixed_precision.set_global_policy("mixed_float16")',
    },
}
