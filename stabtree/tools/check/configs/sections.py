"""Which spellings count in which sections of a configuration, and what some sections call otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.tools.check.configs.precision import SCALERS

if TYPE_CHECKING:
    from collections.abc import Mapping

# Kinds of sections -> what is spelled otherwise in them than at the top; `*` asks the table of the top, too.
_NAME = "name type class class_name target class_path component algorithm"
_EVERY = "every interval steps every_n_steps frequency freq every_n_train_steps"


def _spelled(**keys: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, words in keys.items():
        found |= dict.fromkeys(words.split(), key)
    return found


LOCAL: Mapping[str, Mapping[str, str]] = {
    "top": {},
    "training": _spelled(max_steps="steps", grad_clip="max_norm clipping_threshold", grad_clip_by="clipping_type"),
    "optimizer": _spelled(optimizer=f"optimizer {_NAME}", epsilon="eps epsilon adam_eps", lr="lr"),
    "schedule": _spelled(
        lr_schedule=f"{_NAME} decay_type policy",
        schedule_steps="t_max total_num_steps num_training_steps total_steps max_iters decay_steps max_steps"
        " total_num_update",
        warmup_steps="warmup t_warmup",
        min_lr="warmup_end_lr min_decay_lr",
        lr="warmup_max_lr learning_rate",
    ),
    "fp16": _spelled(initial_loss_scale="init_scale"),
    "scaler": _spelled(initial_loss_scale="init_scale"),
    "rollout": _spelled(num_generations="n"),
    "bf16": {},
    "zero": {},
    "checkpoint": _spelled(checkpoint_every=_EVERY),
    "logging": _spelled(log_interval=_EVERY),
    "evaluation": _spelled(eval_every=_EVERY),
    "adapter": _spelled(lora_rank="r rank", lora_alpha="alpha"),
    "model": _spelled(weights_dtype="dtype precision"),
    "data": _spelled(),
    "any": {},
}
# What of the top's table counts in a section too; nothing where it is not named, all where it is `*`.
ALSO: Mapping[str, tuple[str, ...]] = {
    "top": ("*",),
    "training": ("*",),
    "optimizer": (
        "lr",
        "weight_decay",
        "beta1",
        "beta2",
        "optimizer_state_dtype",
        "grad_clip",
        "warmup_steps",
        "warmup_ratio",
    ),
    "schedule": ("warmup_steps", "warmup_ratio", "min_lr", "lr_schedule", "schedule_steps"),
    "fp16": ("scale_window", "min_loss_scale"),
    "scaler": ("scale_window", "min_loss_scale"),
    "rollout": ("temperature",),
    "bf16": (),
    "zero": ("overlap_comm",),
    "checkpoint": ("checkpoint_every", "save_total_limit", "save_strategy"),
    "logging": ("log_interval", "logs"),
    "evaluation": ("eval_every", "eval_strategy"),
    "adapter": (
        *("lora_rank", "lora_alpha", "lr", "weight_decay", "batch_size", "micro_batch_size", "epochs", "max_steps"),
    ),
    "model": (
        *(
            "lr",
            "weight_decay",
            "lora_rank",
            "lora_alpha",
            "weights_dtype",
            "optimizer",
            "max_seq_length",
            "dropout",
            "grad_clip",
        ),
        *("batch_size", "micro_batch_size"),
    ),
    "data": ("batch_size", "micro_batch_size", "max_seq_length", "sample_packing", "train_on_inputs"),
    # What can be nothing else wherever it stands: no word that a model, a sampler or a policy has, too.
    "any": (
        *("lr", "min_lr", "lr_schedule", "schedule_steps", "warmup_steps", "warmup_ratio", "weight_decay"),
        *("beta1", "beta2", "grad_clip", "batch_size", "micro_batch_size", "accumulation_steps", "optimizer"),
        *("max_steps", "epochs", "log_interval", "eval_every", "checkpoint_every", "eval_strategy", "save_strategy"),
        *("save_total_limit", "load_best", "lora_rank", "lora_alpha", "num_generations", "log_strategy", "logs"),
    ),
}
SECTIONS = _spelled(
    training=(
        "config args cfg hparams hyperparameters hyper_parameters training_args training_arguments trainer_args"
        " params settings trainer training train run experiment optimization common trl deepspeed ds_config"
        " deepspeed_config init_args lightning_module data_types recipe distributed_training"
        " optim_wrapper accelerator trainer_arguments clip_grad grad_clip algorithms gradient_clipping"
        " train_cfg actor_rollout_ref actor pl_trainer lightning_trainer trainer_kwargs training_hyperparams"
    ),
    optimizer="optimizer optim optimizer_factory optimizer_config optimizer_cfg optimizer_args",
    schedule="scheduler lr_scheduler lr_schedule sched schedule lr_scheduler_config learning_rate_scheduler lr_config"
    " param_scheduler param_schedulers",
    fp16="fp16",
    scaler=" ".join(SCALERS),
    rollout="rollout",
    bf16="bf16",
    zero="zero_optimization",
    checkpoint="checkpoint checkpointing ckpt checkpoints checkpointer",
    logging="logging log metrics",
    evaluation="eval evaluation validation val",
    adapter="lora peft adapter lora_config peft_config",
    model="model module model_args",
    data="data dataset datamodule tokenizer train_dataloader dataloader data_config",
)
# Sections within one that hold more of the same: `optimizer: {type: Adam, params: {lr: ...}}`.
INNER = ("params", "init_args", "kwargs", "args", "config")

# Sections that are settings of something else: another model, a tool, a service, a search over settings.
_NOT_OURS = """
    discriminator critic reward reward_model reward_manager ref teacher ema profiler profiling wandb hydra env
    env_vars environment generation generation_config gen sampling inference vllm test predict callback callbacks
    logger sweep search tune parameter_grid param_grid grid grid_search search_space sweep_config
    hyperparameter_grid hyperparameter_search augmentation transforms transform vision encoder decoder text_config
    vision_config backbone head tokenizer_config export deploy paths defaults launcher slurm resources scene camera
    renderer visualization callbacks_config model_config ppo_critic curriculum noise server client default_hooks
    custom_hooks quantization embedding value_head finetune_head autotuning flops_profiler comms_logger
"""
_ELSEWHERE = frozenset(_NOT_OURS.split())
_SUFFIXES = (
    "_config",
    "config",
    "_cfg",
    "_arguments",
    "arguments",
    "_args",
    "args",
    "_params",
    "_settings",
    "_parameters",
    "_kwargs",
)
_TRAINERS = (
    "sft",
    "grpo",
    "dpo",
    "ppo",
    "kto",
    "orpo",
    "cpo",
    "rloo",
    "reward",
    "seq2seqtraining",
    "training",
    "train",
)


def stage_of(word: str) -> str:
    """Return the stage of a training that a section is about; empty where it is about the training as a whole.

    >>> stage_of("dpo"), stage_of("SFTConfig".lower()), stage_of("training")
    ('dpo', 'sft', '')
    """
    stem = _stem(word)
    return "" if stem not in _TRAINERS or stem.endswith(("training", "train")) else stem


def _stem(word: str) -> str:
    return next((word.removesuffix(end) for end in _SUFFIXES if word.endswith(end)), word)


def section_kind(word: str) -> str:
    """Return the kind of a section by its name: `any` for one that no table knows, empty where it is of something else.

    >>> section_kind("optim"), section_kind("hp"), section_kind("discriminator"), section_kind("LoraConfig".lower())
    ('optimizer', 'any', '', 'adapter')
    """
    if word in SECTIONS:
        return SECTIONS[word]
    if word in _ELSEWHERE:
        return ""
    stem = _stem(word)
    if stem in _TRAINERS:
        return "training"
    return SECTIONS.get(stem, "" if stem in _ELSEWHERE else "any")
