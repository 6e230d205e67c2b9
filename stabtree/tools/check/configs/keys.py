"""The settings that `check` knows: canonical key, what reads its value, how configurations spell it and where.

Wider than the settings of a log's header (`loaders.config.KEYS`), which this table takes over. In which sections a
spelling counts stands in `sections.py`: `lr` means the same at the top and under `optimizer`, `name` does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from stabtree.loaders import config
from stabtree.loaders.config import dtype_of, flag_of, number_of, positive_of, text_of
from stabtree.run import ConfigScalar

_NAME_IN = re.compile(r"[\w.-]+")
Reader = Callable[[Any], ConfigScalar]


def word_of(value: Any) -> str:
    """A text in lower case, an enum's class and a Python class's modules left out.

    Raises:
        ValueError: where it is no text.

    >>> word_of("torch.optim.AdamW"), word_of("IntervalStrategy.STEPS")
    ('adamw', 'steps')
    """
    return text_of(value).strip(".").rsplit(".", 1)[-1].lower()


def strategy_of(value: Any) -> str:
    """When a trainer evaluates, saves or logs: `no`, `steps`, `epoch`, `best`.

    Raises:
        ValueError: where it is no text.
    """
    if value is False:
        return "no"
    word = word_of(value)
    return {"never": "no", "none": "no", "epochs": "epoch", "step": "steps"}.get(word, word)


def names_of(value: Any) -> str:
    """A list of names as one text, `none` where it is empty.

    Raises:
        ValueError: where it holds something else.
    """
    # a list may be written as a text
    if isinstance(value, str):
        names = _NAME_IN.findall(value)
    else:
        names = value
    if not isinstance(names, list):
        raise ValueError("a list of names")
    return ", ".join(dict.fromkeys(word_of(name) for name in names)) or "none"


def optional_flag(value: Any) -> bool:
    """True or false, in YAML 1.1's words too.

    Raises:
        ValueError: where it is neither.
    """
    word = str(value).lower()
    return word in ("yes", "on") or (word not in ("no", "off") and flag_of(word))


def _same(key: str, more: str = "") -> tuple[Reader, str]:
    """A setting that the header of a log may hold too, under the same names and some more."""
    reader, spellings = config.KEYS[key]
    return reader, f"{spellings} {more}"


# Canonical key -> (what reads its value, other spellings, best first).
KEYS: Mapping[str, tuple[Reader, str]] = {
    "name": _same("name", "wandb_run_name wandb_name"),
    "task": (word_of, "task_type task_name"),
    "init_from": _same("init_from"),
    "misspelled": (text_of, ""),
    "dtype": (dtype_of, "train_dtype compute_dtype amp_dtype"),
    "weights_dtype": (
        dtype_of,
        "model_dtype torch_dtype param_dtype params_dtype model_weights_dtype mixed_precision_param",
    ),
    "mixed": (optional_flag, ""),
    "precisions": _same("precisions"),
    "quantizations": (text_of, ""),
    "optimizer_state_dtype": (dtype_of, "optim_state_dtype optimizer_states_dtype optimizer_dtype exp_avg_dtype"),
    "grad_reduce_dtype": (
        dtype_of,
        "reduce_dtype grad_reduction_dtype communication_data_type grad_comm_dtype mixed_precision_reduce",
    ),
    "loss_scaling": (word_of, ""),
    "loss_scale": (number_of, "static_loss_scale fp16_loss_scale"),
    "initial_loss_scale": (number_of, "init_loss_scale initial_scale init_scale fp16_init_scale native_amp_init_scale"),
    "min_loss_scale": (number_of, "minimum_loss_scale"),
    "scale_window": (positive_of, "loss_scale_window growth_interval fp16_scale_window native_amp_growth_interval"),
    "optimizer": (word_of, config.KEYS["optimizer"][1]),
    "lr": _same("lr", "lr_max"),
    "min_lr": (number_of, "lr_min minimum_lr end_lr final_lr eta_min cosine_min_lr"),
    "lr_schedule": (word_of, config.KEYS["lr_schedule"][1]),
    "schedule_steps": (positive_of, "lr_decay_iters lr_decay_steps lr_schedule_steps scheduler_steps"),
    "warmup_steps": _same("warmup_steps", "lr_warmup warmup_num_steps num_lr_warmup_steps"),
    "warmup_ratio": (
        number_of,
        (
            "warmup_fraction warmup_proportion warmup_portion warmup_prop warmup_rate warmup_pct lr_warmup_fraction"
            " lr_warmup_ratio lr_warmup_steps_ratio"
        ),
    ),
    "weight_decay": _same("weight_decay"),
    "beta1": _same("beta1"),
    "beta2": _same("beta2"),
    "epsilon": _same("epsilon"),
    "grad_clip": _same(
        "grad_clip", "clip_grad_norm grad_norm_clip gradient_clip grad_clipping max_gradient_norm gradient_clip_value"
    ),
    "grad_clip_by": (word_of, "gradient_clip_algorithm clip_grad_by"),
    "batch_size": (
        positive_of,
        "global_batch_size total_batch_size effective_batch_size train_batch_size global_train_batch_size",
    ),
    "micro_batch_size": (
        positive_of,
        (
            "per_device_train_batch_size train_micro_batch_size_per_gpu per_gpu_train_batch_size micro_batch"
            " device_batch_size batch_size_per_device per_device_batch_size local_batch_size micro_bsz"
            " device_train_microbatch_size"
        ),
    ),
    "accumulation_steps": _same(
        "accumulation_steps",
        (
            "grad_accum_steps accumulation gradient_accumulation accum_steps grad_acc_steps gas update_freq"
            " accumulative_counts batch_accumulation_per_replica"
        ),
    ),
    "world_size": (positive_of, "num_gpus n_gpus num_processes nproc_per_node distributed_world_size"),
    "max_steps": _same(
        "max_steps", "training_steps max_train_steps num_train_steps max_update max_duration num_iterations"
    ),
    "epochs": _same("epochs"),
    "log_interval": _same("log_interval", "log_every_steps"),
    "log_strategy": (strategy_of, "logging_strategy"),
    "log_filters_nan": (optional_flag, "logging_nan_inf_filter"),
    "logs": (names_of, "report_to loggers log_with"),
    "eval_strategy": (strategy_of, "evaluation_strategy"),
    "eval_every": _same("eval_every", "eval_every_n_steps run_val_every_n_steps validation_interval"),
    "checkpoint_every": _same(
        "checkpoint_every", "save_every_n_steps save_iters save_every_steps checkpointing_steps checkpoint_factor"
    ),
    "save_strategy": (strategy_of, "save_policy"),
    "save_total_limit": _same(
        "save_total_limit", "save_top_k keep_latest_k keep_last_n_checkpoints save_num_checkpoints_to_keep"
    ),
    "early_stopping": (positive_of, "early_stopping_patience"),
    "held_out_share": (number_of, "val_set_size validation_split eval_split_ratio val_size"),
    "load_best": (optional_flag, "load_best_model_at_end"),
    "push_to_hub": (optional_flag, ""),
    "adapter": (word_of, "finetuning_type peft_type"),
    "lora_rank": (positive_of, "lora_r lora_dim"),
    "lora_alpha": (number_of, ""),
    "num_generations": (positive_of, ""),
    "beta": (number_of, "kl_beta pref_beta dpo_beta rl_beta kl_coef kl_coeff"),
    "temperature": (number_of, "sampling_temperature"),
    "clip_epsilon": (number_of, "clip_range cliprange clip_ratio"),
    "max_completion_length": _same("max_completion_length"),
    "max_seq_length": (
        positive_of,
        "sequence_len cutoff_len max_length seq_len seq_length max_seq_len block_size sequence_length context_length",
    ),
    "sample_packing": (optional_flag, "packing packed neat_packing"),
    "train_on_inputs": (optional_flag, "train_on_input train_on_prompt"),
    "gradient_checkpointing": (optional_flag, "enable_activation_checkpointing activation_checkpointing"),
    "seed": _same("seed", "seed_everything global_seed"),
    "label_smoothing": (number_of, "label_smoothing_factor label_smoothing_epsilon"),
    "dropout": (number_of, "dropout_rate dropout_prob dropout_p"),
    "ddp_find_unused": (optional_flag, "ddp_find_unused_parameters find_unused_parameters"),
    "n_classes": _same("n_classes"),
    "vocab_size": _same("vocab_size"),
    "device": _same("device"),
    "overlap_comm": _same("overlap_comm"),
}
# Names that say nothing where no section does: `epsilon` is Adam's, a policy's clipping and a layer's.
_VAGUE = ("epsilon",)
_LONG = 7  # shorter words are others' as well


def _places() -> Mapping[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for key, (_, others) in KEYS.items():
        for place, spelling in enumerate((key, *others.split())):
            if spelling not in _VAGUE:
                found[spelling] = (key, place)
    return found


PLACE = _places()


def squeezed(word: str) -> str:
    """Return a word without what people write either way: `max_epoch` and `maxEpochs` are the same.

    >>> squeezed("max_epoch") == squeezed("maxepochs")
    True
    """
    return word.replace("_", "").removesuffix("s")


def _loose() -> Mapping[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for spelling, (key, place) in PLACE.items():
        if len(spelling) >= _LONG:
            found.setdefault(squeezed(spelling), (key, place + len(PLACE)))
    return found


# Squeezed spelling -> (canonical key, its rank), for files of no trainer that is known.
LOOSE = _loose()
