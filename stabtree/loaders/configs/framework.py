"""Which trainer a configuration is for, known by keys that no other has, and what it spells in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stabtree.metrics.table import normalize

# All words of one set must be there, `a.b` inside another; the first that fits counts.
_MARKS: tuple[tuple[str, str], ...] = (
    ("axolotl", "base_model sequence_len"),
    ("axolotl", "base_model micro_batch_size"),
    ("axolotl", "base_model datasets"),
    ("llamafactory", "finetuning_type"),
    ("llamafactory", "stage template"),
    ("llamafactory", "stage cutoff_len"),
    ("torchtune", "checkpointer.component"),
    ("torchtune", "optimizer.component"),
    ("torchtune", "model.component"),
    ("torchtitan", "training.local_batch_size"),
    ("torchtitan", "training.seq_len optimizer"),
    ("huggingface", "log_history global_step"),
    ("trl", "num_generations"),
    ("trl", "precompute_ref_log_probs"),
    ("trl", "dataset_text_field"),
    ("trl", "completion_only_loss"),
    ("trl", "model_name_or_path use_peft"),
    ("trl", "model_name_or_path dataset_name learning_rate"),
    ("huggingface", "per_device_train_batch_size"),
    ("huggingface", "gradient_accumulation_steps output_dir"),
    ("huggingface", "logging_nan_inf_filter"),
    ("verl", "actor_rollout_ref"),
    ("nemo", "exp_manager trainer"),
    ("megatron", "tensor_model_parallel_size"),
    ("megatron", "lr_decay_style train_iters"),
    ("deepspeed", "zero_optimization"),
    ("deepspeed", "train_micro_batch_size_per_gpu"),
    ("deepspeed", "train_batch_size fp16"),
    ("deepspeed", "optimizer.params scheduler.params"),
    ("accelerate", "compute_environment"),
    ("accelerate", "distributed_type mixed_precision"),
    ("lightning", "trainer.precision"),
    ("lightning", "trainer.accelerator"),
    ("lightning", "trainer.max_epochs"),
    ("lightning", "trainer.gradient_clip_val"),
    ("lightning", "trainer.max_steps model.class_path"),
    ("fairseq", "common optimization.max_update"),
    ("fairseq", "common optimization.update_freq"),
    ("composer", "max_duration global_train_batch_size"),
    ("composer", "max_duration device_train_microbatch_size"),
    ("mmengine", "optim_wrapper"),
    ("nanogpt", "learning_rate decay_lr"),
    ("nanogpt", "block_size learning_rate"),
    ("nanogpt", "wandb_log"),
    ("nanogpt", "init_from"),
)
# Trainers whose steps are made by the one of Hugging Face.
HOSTED = ("huggingface", "trl", "axolotl", "llamafactory")
# What a word means to a trainer, where that is another thing than to all others; "" for nothing that is known.
OWN: Mapping[str, Mapping[str, str]] = {
    "axolotl": {"rl": "task"},
    "megatron": {"params_dtype": "", "num_classes": ""},  # its optimizer keeps weights in fp32; the rest is for images
    "deepspeed": {"steps_per_print": "log_interval"},
    "torchtune": {"batch_size": "micro_batch_size"},
    "nanogpt": {"batch_size": "micro_batch_size"},
    "lightning": {"batch_size": "micro_batch_size"},
    "verl": {"test_freq": "eval_every"},
    "fairseq": {"batch_size": "micro_batch_size"},
    "mmengine": {"batch_size": "micro_batch_size"},
    # W&B keeps the trainer's arguments and the model's configuration, how it generates and all, in one object.
    "huggingface": {"train_batch_size": "micro_batch_size", "max_length": "", "seq_length": "", "temperature": ""},
    "trl": {"train_batch_size": "micro_batch_size", "epsilon": "clip_epsilon"},
}


def framework_in(values: Mapping[str, Any]) -> str:
    """The trainer that a configuration is for; empty where nothing tells."""
    words = set(_words(values))
    return next((name for name, marks in _MARKS if words.issuperset(marks.split())), "")


def _words(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        yield (word := plain_word(key))
        if isinstance(value, Mapping):
            yield from (f"{word}.{plain_word(inner)}" for inner in value)


def plain_word(key: object) -> str:
    """A key as it is compared: `_target_` and `Target` are `target`."""
    return normalize(str(key)).strip("_")
