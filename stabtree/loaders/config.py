"""The configuration of a run: which keys are known, how they may be spelled, what their values may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.frameworks.recognise import WEIGHTS_DTYPE, of_config
from stabtree.metrics.table import normalize
from stabtree.run import PRECISIONS, REDUCED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.run import ConfigScalar

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1  # limits that are none
_DTYPE_SPELLINGS = {
    "fp16": "fp16 float16 half f16 16 16_mixed 16_true amp_fp16",
    "bf16": "bf16 bfloat16 bfloat b16 bf16_mixed bf16_true amp_bf16",
    "fp32": "fp32 float32 float f32 32 32_true single full tf32 no",
    "fp8": "fp8 float8 f8 8 fp8_mixed fp8_e4m3 fp8_e5m2 float8_e4m3fn float8_e5m2 amp_fp8 transformer_engine",
}


def dtype(value: object) -> str:
    """Return the canonical name of a training precision.

    Raises:
        StabtreeError: where it is none that is known.

    >>> dtype("torch.bfloat16"), dtype("16-mixed"), dtype(32)
    ('bf16', 'fp16', 'fp32')
    """
    word = normalize(str(value)).removeprefix("torch_").removeprefix("jnp_").removeprefix("precision_")
    for name, spellings in _DTYPE_SPELLINGS.items():
        if word in spellings.split():
            return name
    problem = f"{clean(value, 40)!r} is not a precision that stabtree knows"
    raise StabtreeError(problem, where="--dtype", hint=f"one of {', '.join(PRECISIONS)}")


def text_of(value: Any) -> str:
    """Return a text that is not empty; this and the readers below raise a ValueError that says what was expected."""
    if not isinstance(value, str) or not clean(value):
        raise ValueError("a text")
    return clean(value, 80)


def number_of(value: Any) -> float:
    """Return a finite number."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("a number")
    return number


def count_of(value: Any, min_count: int = 0) -> int:
    """Return a whole number of at least `min_count`."""
    number = number_of(value)
    if number == int(number) and min_count <= number < 2**53:
        return int(number)
    if min_count:
        raise ValueError("a positive whole number")
    raise ValueError("a whole number")


def positive_of(value: Any) -> int:
    """Return a whole number above 0."""
    return count_of(value, 1)


def steps_of(value: Any) -> tuple[int, ...]:
    """Return a list of steps, sorted."""
    if not isinstance(value, list):
        raise ValueError("a list of steps")
    return tuple(sorted({count_of(step) for step in value}))


def dtype_of(value: Any) -> str:
    """Return a precision, by its canonical name."""
    if not isinstance(value, str | int):
        raise ValueError("a precision")
    try:
        return dtype(value)
    except StabtreeError:
        raise ValueError("one of " + ", ".join(PRECISIONS)) from None


def flag_of(value: Any) -> bool:
    """Return true or false."""
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError("true or false")
    return word == "true"


# Canonical key -> (what reads its value, other spellings, best first).
KEYS: Mapping[str, tuple[Callable[[Any], ConfigScalar], str]] = {
    "name": (text_of, "run_name run_id experiment experiment_name display_name"),
    "dtype": (dtype_of, "precision mixed_precision compute_dtype train_dtype amp_dtype param_dtype"),
    "optimizer": (text_of, "optim optimizer_name optimizer_type opt"),
    "lr": (number_of, "learning_rate peak_lr max_lr base_lr initial_lr init_lr"),
    "lr_schedule": (text_of, "lr_scheduler lr_scheduler_type scheduler schedule lr_decay_style"),
    "lr_milestones": (steps_of, "milestones lr_decay_steps lr_steps decay_milestones"),
    "warmup_steps": (count_of, "warmup lr_warmup_steps num_warmup_steps warmup_iters lr_warmup_iters warmup_updates"),
    "weight_decay": (number_of, "wd adam_weight_decay"),
    "beta1": (number_of, "adam_beta1 adam_beta_1"),
    "beta2": (number_of, "adam_beta2 adam_beta_2"),
    "epsilon": (number_of, "adam_epsilon adam_eps optimizer_eps"),
    "precisions": (text_of, ""),
    "batch_size": (positive_of, "global_batch_size train_batch_size total_batch_size per_device_train_batch_size"),
    "max_steps": (
        positive_of,
        "total_steps num_steps train_steps max_iters train_iters num_training_steps max_updates",
    ),
    "epochs": (number_of, "num_epochs max_epochs num_train_epochs total_epochs n_epochs"),
    "grad_clip": (number_of, "clip_grad max_grad_norm grad_clip_norm gradient_clip_val gradient_clipping clip_norm"),
    "log_interval": (positive_of, "log_every logging_steps log_every_n_steps log_freq log_steps"),
    "log_reduce": (text_of, "log_reduction loss_reduce log_aggregation"),
    "eval_every": (positive_of, "eval_interval eval_steps val_check_interval val_every eval_freq"),
    "checkpoint_every": (
        positive_of,
        (
            "checkpoint_interval save_every save_steps save_interval ckpt_every ckpt_interval checkpoint_steps"
            " every_n_train_steps save_freq checkpoint_freq"
        ),
    ),
    "save_strategy": (text_of, "save_policy"),
    "always_save_checkpoint": (flag_of, ""),
    "save_total_limit": (positive_of, "keep_checkpoints max_to_keep keep_last"),
    "checkpoints": (steps_of, "checkpoint_steps_list saved_steps checkpoint_list"),
    "n_classes": (positive_of, "num_classes classes num_labels n_labels"),
    "vocab_size": (positive_of, "vocab n_vocab padded_vocab_size"),
    "accumulation_steps": (
        positive_of,
        "gradient_accumulation_steps grad_accum grad_accumulation accumulate_grad_batches",
    ),
    "max_completion_length": (
        positive_of,
        "max_response_length max_new_tokens generate_max_len max_tokens_per_completion",
    ),
    "task": (text_of, "task_type task_name"),
    "algorithm": (text_of, "algo rl_algorithm adv_estimator algorithm_name"),
    "adapter": (text_of, "finetuning_type peft_type tuner_type train_type"),
    "lora_rank": (positive_of, "lora_r"),
    "init_from": (text_of, "base_model_name_or_path model_name_or_path base_model pretrained_model_name_or_path"),
    "framework": (text_of, ""),
    "device": (lambda value: text_of(str(value)), "gpu_name device_name"),
    "overlap_comm": (flag_of, "zero_overlap_comm"),
    "seed": (count_of, "random_seed"),
    "world_size": (positive_of, ""),
    "trainable_share": (number_of, ""),
}
# Spelling -> (canonical key, its rank among the spellings, 0 best).
_SPELLINGS: dict[str, tuple[str, int]] = {}
for _key, (_, _others) in KEYS.items():
    _SPELLINGS.update({spelling: (_key, rank) for rank, spelling in enumerate((_key, *_others.split()))})
# Objects that hold configuration of their own: `optimizer: {name, lr}`, `lr_schedule: {name, warmup}`.
_NAMED = ("optimizer", "lr_schedule")
_INSIDE = {
    **dict.fromkeys(("name", "type", "class", "class_name")),
    "warmup": "warmup_steps",
    "milestones": "lr_milestones",
    "eps": "epsilon",
}
# The precision of the weights is that of the run only where nothing says what the trainer computes in.
WEIGHTS = (WEIGHTS_DTYPE, "torch_dtype")
_BETAS = ("betas", "adam_betas", "opt_betas")
WRAPPERS = (
    *("config", "args", "hparams", "hyperparameters", "hyper_parameters", "training_args", "params", "settings"),
    *("ds_config", "deepspeed_config", "zero_optimization"),
    *("peft_config", "default"),  # PEFT names its first adapter so
)


def read_config(values: Mapping[str, Any]) -> tuple[dict[str, ConfigScalar], list[str]]:
    """Return the known settings among `values`, and a note for each whose value is of the wrong kind.

    Unknown keys are ignored, null and the largest integers mean not set, and of two spellings the better one counts.
    """
    best: dict[str, tuple[int, Any]] = {}
    for key, rank, value in _known(values):
        unlimited = isinstance(value, int | float) and (value == MAX_INT32 or MAX_INT64 <= value < math.inf)
        if value is not None and not unlimited and (key not in best or rank < best[key][0]):
            best[key] = rank, value
    config: dict[str, ConfigScalar] = {}
    notes = []
    for key, (_, value) in best.items():
        try:
            config[key] = KEYS[key][0](value)
        except (ValueError, OverflowError) as error:
            notes.append(f"The configuration's {key} is {clean(value, 40)!r}, not {clean(error, 60)}: ignored.")
    if config.get("dtype") == "fp16":
        words = normalize(str(best["dtype"][1])).split("_")
        if "true" in words or "mixed" in words or "amp" in words:  # with weights in fp32, or in fp16 too
            config["mixed"] = "true" not in words
    if trainer := of_config(values):
        config.setdefault("framework", trainer)
    return config, notes


def canonical_key(spelling: str) -> str:
    """Return the key that a spelling stands for; empty where it is none."""
    return _SPELLINGS.get(normalize(spelling), ("", 0))[0]


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a trainer's settings that `read_config` reads, as they are spelled."""
    return {key: value for key, value in values.items() if value is not None and any(_known({key: value}))}


def _known(values: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, int, Any]]:
    """Yield (canonical key, rank of the spelling, value), those in nested objects included."""
    flags = [word for word in ("fp16", "bf16") if values.get(word) is True]
    if len(flags) > 1:
        yield "precisions", 10 * depth, "+".join(flags)
    # A model's own settings, which W&B keeps beside those of the trainer.
    weights = (*WEIGHTS, "dtype") if "transformers_version" in values else WEIGHTS
    for spelling, value in values.items():
        word = normalize(str(spelling))
        key, rank = _SPELLINGS.get(word, ("", 0))
        if word in weights:
            yield "dtype", 40 + 10 * depth, value
        elif isinstance(value, Mapping):
            if depth < 3 and (key in _NAMED or word in WRAPPERS):
                inside = {inner: normalize(str(inner)) if key in _NAMED else "" for inner in value}
                for inner in (inner for inner in value if inside[inner] in _INSIDE):
                    yield _INSIDE[inside[inner]] or key, rank + 10 * depth, value[inner]
                yield from _known({inner: value[inner] for inner in value if inside[inner] not in _INSIDE}, depth + 1)
        elif word == "mixed_precision" and str(value).lower() in REDUCED:
            yield "dtype", rank + 10 * depth, f"amp_{value}"
        elif key:
            yield key, rank + 10 * depth, value
        elif word in REDUCED and value is True:
            yield "dtype", 20 + 10 * depth, f"amp_{word}"
        elif word in _BETAS and isinstance(value, list | tuple):
            yield from ((f"beta{place}", 10 * depth, beta) for place, beta in enumerate(value[:2], 1))
