"""The tables of `check`: the settings that it knows, how files spell them, and in which sections a spelling counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stabtree.loaders import config
from stabtree.loaders.config import dtype_of, flag_of, number_of, positive_of, text_of
from stabtree.run import ConfigScalar

Reader = Callable[[Any], ConfigScalar]
_NAME = re.compile(r"[\w.-]+")


def word_of(value: Any) -> str:
    """Return a text in lower case, without the modules of a Python class or the class of an enum.

    Raises:
        ValueError: for anything but a text.

    >>> word_of("torch.optim.AdamW"), word_of("IntervalStrategy.STEPS")
    ('adamw', 'steps')
    """
    return text_of(value).strip(".").rsplit(".", 1)[-1].lower()


def strategy_of(value: Any) -> str:
    """Return when a trainer evaluates, saves or logs: `no`, `steps`, `epoch`, `best`.

    Raises:
        ValueError: for anything but a text.
    """
    if value is False:
        return "no"
    word = word_of(value)
    return {"never": "no", "none": "no", "epochs": "epoch", "step": "steps"}.get(word, word)


def names_of(value: Any) -> str:
    """Return a list of names, which may be written as a text, as one text; `none` if it is empty.

    Raises:
        ValueError: if it holds something else.
    """
    names = _NAME.findall(value) if isinstance(value, str) else value
    if not isinstance(names, list):
        raise ValueError("a list of names")
    return ", ".join(dict.fromkeys(map(word_of, names))) or "none"


def switch_of(value: Any) -> bool:
    """Return true or false, also for YAML 1.1's `yes`, `no`, `on` and `off`.

    Raises:
        ValueError: for anything else.
    """
    word = str(value).lower()
    return word in ("yes", "on") or (word not in ("no", "off") and flag_of(word))


_READERS: Mapping[str, Reader] = {
    "text": text_of,
    "word": word_of,
    "names": names_of,
    "strategy": strategy_of,
    "switch": switch_of,
    "number": number_of,
    "positive": positive_of,
    "dtype": dtype_of,
}
# A setting, how its value is read, other spellings, best first. `=` stands for what the header of a log reads it by,
# `+` for the spellings of that table, which are the first.
_SETTINGS = """
name                   =+        wandb_run_name wandb_name
task                   word+
init_from              =+
misspelled             text
dtype                  dtype     train_dtype compute_dtype amp_dtype
weights_dtype          dtype     model_dtype torch_dtype param_dtype params_dtype model_weights_dtype
                                 mixed_precision_param
mixed                  switch
precisions             =+
quantizations          text
optimizer_state_dtype  dtype     optim_state_dtype optimizer_states_dtype optimizer_dtype exp_avg_dtype
grad_reduce_dtype      dtype     reduce_dtype grad_reduction_dtype communication_data_type grad_comm_dtype
                                 mixed_precision_reduce
loss_scaling           word
loss_scale             number    static_loss_scale fp16_loss_scale
initial_loss_scale     number    init_loss_scale initial_scale init_scale fp16_init_scale native_amp_init_scale
min_loss_scale         number    minimum_loss_scale
scale_window           positive  loss_scale_window growth_interval fp16_scale_window native_amp_growth_interval
optimizer              word+
lr                     =+        lr_max
min_lr                 number    lr_min minimum_lr end_lr final_lr eta_min cosine_min_lr
lr_schedule            word+
schedule_steps         positive  lr_decay_iters lr_decay_steps lr_schedule_steps scheduler_steps
warmup_steps           =+        lr_warmup warmup_num_steps num_lr_warmup_steps
warmup_ratio           number    warmup_fraction warmup_proportion warmup_portion warmup_prop warmup_rate warmup_pct
                                 lr_warmup_fraction lr_warmup_ratio lr_warmup_steps_ratio
weight_decay           =+
beta1                  =+
beta2                  =+
epsilon                =+
grad_clip              =+        clip_grad_norm grad_norm_clip gradient_clip grad_clipping max_gradient_norm
                                 gradient_clip_value
grad_clip_by           word      gradient_clip_algorithm clip_grad_by
batch_size             positive  global_batch_size total_batch_size effective_batch_size train_batch_size
                                 global_train_batch_size
micro_batch_size       positive  per_device_train_batch_size train_micro_batch_size_per_gpu per_gpu_train_batch_size
                                 micro_batch device_batch_size batch_size_per_device per_device_batch_size
                                 local_batch_size micro_bsz device_train_microbatch_size
accumulation_steps     =+        grad_accum_steps accumulation gradient_accumulation accum_steps grad_acc_steps gas
                                 update_freq accumulative_counts batch_accumulation_per_replica
world_size             positive  num_gpus n_gpus num_processes nproc_per_node distributed_world_size
max_steps              =+        training_steps max_train_steps num_train_steps max_update max_duration num_iterations
epochs                 =+
log_interval           =+        log_every_steps
log_strategy           strategy  logging_strategy
log_filters_nan        switch    logging_nan_inf_filter
logs                   names     report_to loggers log_with
eval_strategy          strategy  evaluation_strategy
eval_every             =+        eval_every_n_steps run_val_every_n_steps validation_interval
checkpoint_every       =+        save_every_n_steps save_iters save_every_steps checkpointing_steps checkpoint_factor
save_strategy          strategy  save_policy
save_total_limit       =+        save_top_k keep_latest_k keep_last_n_checkpoints save_num_checkpoints_to_keep
early_stopping         positive  early_stopping_patience
held_out_share         number    val_set_size validation_split eval_split_ratio val_size
load_best              switch    load_best_model_at_end
push_to_hub            switch
adapter                word      finetuning_type peft_type
lora_rank              positive  lora_r lora_dim
lora_alpha             number
num_generations        positive
beta                   number    kl_beta pref_beta dpo_beta rl_beta kl_coef kl_coeff
temperature            number    sampling_temperature
clip_epsilon           number    clip_range cliprange clip_ratio
max_completion_length  =+
max_seq_length         positive  sequence_len cutoff_len max_length seq_len seq_length max_seq_len block_size
                                 sequence_length context_length
sample_packing         switch    packing packed neat_packing
train_on_inputs        switch    train_on_input train_on_prompt
gradient_checkpointing switch    enable_activation_checkpointing activation_checkpointing
seed                   =+        seed_everything global_seed
label_smoothing        number    label_smoothing_factor label_smoothing_epsilon
dropout                number    dropout_rate dropout_prob dropout_p
ddp_find_unused        switch    ddp_find_unused_parameters find_unused_parameters
n_classes              =+
vocab_size             =+
device                 =+
overlap_comm           =+
"""


def _settings() -> dict[str, tuple[Reader, tuple[str, ...]]]:
    settings: dict[str, tuple[Reader, tuple[str, ...]]] = {}
    for line in re.sub(r"\n +", " ", _SETTINGS.strip()).split("\n"):
        key, how, *words = line.split()
        header = config.KEYS.get(key)
        if how.endswith("+") and header:
            words = [*header[1].split(), *words]
        reader = header[0] if header and how == "=+" else _READERS[how.rstrip("+")]
        settings[key] = (reader, tuple(words))
    return settings


SETTINGS = _settings()
"""Canonical key -> what reads its value (a ValueError says what it must be), and other spellings, best first."""

# Canonical keys that say nothing outside of their section: `epsilon` is Adam's, a policy's clipping and a layer's.
_VAGUE = ("epsilon",)
SPELLINGS = {
    word: (key, rank)
    for key, (_, others) in SETTINGS.items()
    for rank, word in enumerate((key, *others))
    if word not in _VAGUE
}
"""Spelling -> its canonical key, and its rank: 0 is the best."""
_MIN_LOOSE = 7  # characters: shorter words are other people's as well


def squeezed(word: str) -> str:
    """Return a word without what people write either way: `max_epoch` and `maxEpochs` are the same.

    >>> squeezed("max_epoch") == squeezed("maxepochs")
    True
    """
    return word.replace("_", "").removesuffix("s")


LOOSE: dict[str, tuple[str, int]] = {}
"""The same by squeezed spelling, for files of no trainer that is known."""
for _word, (_key, _rank) in SPELLINGS.items():
    if len(_word) >= _MIN_LOOSE:
        LOOSE.setdefault(squeezed(_word), (_key, _rank + len(SPELLINGS)))

SCALERS = ("loss_scaling", "loss_scaler", "grad_scaler", "gradscaler", "amp_scaler", "scaler")
"""Words for the loss scaler itself, which is on or off."""


class SectionKind(NamedTuple):
    """What counts in the sections of one kind.

    Attributes:
        named: how such sections are called.
        shared: the settings whose usual spellings count there too; `*` for all.
        own: what means something else there than at the top -> canonical key.
    """

    named: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    own: Mapping[str, str] = {}


def _kind(named: str = "", shared: str = "", **own: str) -> SectionKind:
    words = {word: key for key, spelled in own.items() for word in spelled.split()}
    return SectionKind(tuple(named.split()), tuple(shared.split()), words)


_CLASS = "name type class class_name target class_path component algorithm"
_EVERY = "every interval steps every_n_steps frequency freq every_n_train_steps"
_TRAINING = """
    config args cfg hparams hyperparameters hyper_parameters training_args training_arguments trainer_args params
    settings trainer training train run experiment optimization common trl deepspeed ds_config deepspeed_config
    init_args lightning_module data_types recipe distributed_training optim_wrapper accelerator trainer_arguments
    clip_grad grad_clip algorithms gradient_clipping train_cfg actor_rollout_ref actor pl_trainer lightning_trainer
    trainer_kwargs training_hyperparams
"""
# What can be nothing else wherever it stands: no word that a model, a sampler or a policy has, too.
_UNMISTAKABLE = """
    lr min_lr lr_schedule schedule_steps warmup_steps warmup_ratio weight_decay beta1 beta2 grad_clip batch_size
    micro_batch_size accumulation_steps optimizer max_steps epochs log_interval eval_every checkpoint_every
    eval_strategy save_strategy save_total_limit load_best lora_rank lora_alpha num_generations log_strategy logs
"""
_STEPS = "t_max total_num_steps num_training_steps total_steps max_iters decay_steps max_steps total_num_update"

KINDS: Mapping[str, SectionKind] = {
    "top": _kind("", "*"),
    "training": _kind(
        _TRAINING, "*", max_steps="steps", grad_clip="max_norm clipping_threshold", grad_clip_by="clipping_type"
    ),
    "optimizer": _kind(
        "optimizer optim optimizer_factory optimizer_config optimizer_cfg optimizer_args",
        "lr weight_decay beta1 beta2 optimizer_state_dtype grad_clip warmup_steps warmup_ratio",
        optimizer=f"optimizer {_CLASS}",
        epsilon="eps epsilon adam_eps",
        lr="lr",
    ),
    "schedule": _kind(
        "scheduler lr_scheduler lr_schedule sched schedule lr_scheduler_config learning_rate_scheduler lr_config"
        " param_scheduler param_schedulers",
        "warmup_steps warmup_ratio min_lr lr_schedule schedule_steps",
        lr_schedule=f"{_CLASS} decay_type policy",
        schedule_steps=_STEPS,
        warmup_steps="warmup t_warmup",
        min_lr="warmup_end_lr min_decay_lr",
        lr="warmup_max_lr learning_rate",
    ),
    "fp16": _kind("fp16", "scale_window min_loss_scale", initial_loss_scale="init_scale"),
    "scaler": _kind(" ".join(SCALERS), "scale_window min_loss_scale", initial_loss_scale="init_scale"),
    "rollout": _kind("rollout", "temperature", num_generations="n"),
    "bf16": _kind("bf16"),
    "zero": _kind("zero_optimization", "overlap_comm"),
    "checkpoint": _kind(
        "checkpoint checkpointing ckpt checkpoints checkpointer",
        "checkpoint_every save_total_limit save_strategy",
        checkpoint_every=_EVERY,
    ),
    "logging": _kind("logging log metrics", "log_interval logs", log_interval=_EVERY),
    "evaluation": _kind("eval evaluation validation val", "eval_every eval_strategy", eval_every=_EVERY),
    "adapter": _kind(
        "lora peft adapter lora_config peft_config",
        "lora_rank lora_alpha lr weight_decay batch_size micro_batch_size epochs max_steps",
        lora_rank="r rank",
        lora_alpha="alpha",
    ),
    "model": _kind(
        "model module model_args",
        "lr weight_decay lora_rank lora_alpha weights_dtype optimizer max_seq_length dropout grad_clip batch_size"
        " micro_batch_size",
        weights_dtype="dtype precision",
    ),
    "data": _kind(
        "data dataset datamodule tokenizer train_dataloader dataloader data_config",
        "batch_size micro_batch_size max_seq_length sample_packing train_on_inputs",
    ),
    "any": _kind("", _UNMISTAKABLE),
}
"""Kinds of sections; `any` is one that no table names, `top` the file itself."""
_KIND_BY_NAME = {name: kind for kind, found in KINDS.items() for name in found.named}
INNER = ("params", "init_args", "kwargs", "args", "config")
"""Sections within one that hold more of the same: `optimizer: {type: Adam, params: {lr: ...}}`."""

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
_SUFFIX = re.compile(r"(?:_?config|_cfg|_?arguments|_?args|_params|_settings|_parameters|_kwargs)$")
_STAGES = ("sft", "grpo", "dpo", "ppo", "kto", "orpo", "cpo", "rloo", "reward")
_TRAININGS = ("seq2seqtraining", "training", "train")


def stage_of(word: str) -> str:
    """Return the stage of a training that a section is about; empty if it is about the training as a whole.

    >>> stage_of("dpo"), stage_of("SFTConfig".lower()), stage_of("training")
    ('dpo', 'sft', '')
    """
    stem = _SUFFIX.sub("", word)
    return stem if stem in _STAGES else ""


def section_kind(word: str) -> str:
    """Return the kind of a section by its name; empty if it is about something else than the training.

    >>> section_kind("optim"), section_kind("hp"), section_kind("discriminator"), section_kind("LoraConfig".lower())
    ('optimizer', 'any', '', 'adapter')
    """
    if word in _KIND_BY_NAME:
        return _KIND_BY_NAME[word]
    stem = _SUFFIX.sub("", word)
    if word not in _ELSEWHERE and stem in (*_STAGES, *_TRAININGS):
        return "training"
    return "" if {word, stem} & _ELSEWHERE else _KIND_BY_NAME.get(stem, "any")
