"""The configuration of a run: which keys are known, how they may be spelled, what their values may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.metrics.table import normalize
from stabtree.run import PRECISIONS, REDUCED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.metrics.names import Names
    from stabtree.run import ConfigScalar

_DTYPE_SPELLINGS = {
    "fp16": "fp16 float16 half f16 16 16_mixed 16_true amp_fp16",
    "bf16": "bf16 bfloat16 bfloat b16 bf16_mixed bf16_true amp_bf16",
    "fp32": "fp32 float32 float f32 32 32_true single full tf32 no",
    "fp8": "fp8 float8 f8 8 fp8_mixed fp8_e4m3 fp8_e5m2 float8_e4m3fn float8_e5m2 amp_fp8 transformer_engine",
}


def dtype(value: object) -> str:
    """The canonical name of a training precision.

    Raises:
        StabtreeError: where it is none that is known.

    >>> dtype("torch.bfloat16"), dtype("16-mixed"), dtype(32)
    ('bf16', 'fp16', 'fp32')
    """
    word = normalize(str(value)).removeprefix("torch_").removeprefix("jnp_").removeprefix("precision_")
    for name, spellings in _DTYPE_SPELLINGS.items():
        if word in spellings.split():
            return name
    raise StabtreeError(
        f"{clean(value, 40)!r} is not a precision that stabtree knows",
        where="--dtype",
        hint=f"one of {', '.join(PRECISIONS)}",
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not clean(value):
        raise ValueError("a text")
    return clean(value, 80)


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number):
        raise ValueError("a number")
    return number


def _count(value: Any, least: int = 0) -> int:
    number = _number(value)
    if number != int(number) or not least <= number < 2**53:
        raise ValueError("a positive whole number" if least else "a whole number")
    return int(number)


def _positive(value: Any) -> int:
    return _count(value, 1)


def _steps(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError("a list of steps")
    return tuple(sorted({_count(step) for step in value}))


def _dtype(value: Any) -> str:
    if not isinstance(value, str | int):
        raise ValueError("a precision")
    try:
        return dtype(value)
    except StabtreeError:
        raise ValueError("one of " + ", ".join(PRECISIONS)) from None


def _flag(value: Any) -> bool:
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError("true or false")
    return word == "true"


# Canonical key -> (what reads its value, other spellings, best first).
KEYS: Mapping[str, tuple[Callable[[Any], ConfigScalar], str]] = {
    "name": (_text, "run_name run_id experiment experiment_name display_name"),
    "dtype": (
        _dtype,
        "precision mixed_precision torch_dtype compute_dtype train_dtype amp_dtype param_dtype",
    ),
    "optimizer": (_text, "optim optimizer_name optimizer_type opt"),
    "lr": (_number, "learning_rate peak_lr max_lr base_lr initial_lr"),
    "lr_schedule": (_text, "lr_scheduler lr_scheduler_type scheduler schedule lr_decay_style"),
    "lr_milestones": (_steps, "milestones lr_decay_steps lr_steps decay_milestones"),
    "warmup_steps": (
        _count,
        "warmup lr_warmup_steps num_warmup_steps warmup_iters lr_warmup_iters warmup_updates",
    ),
    "weight_decay": (_number, "wd"),
    "batch_size": (
        _positive,
        "global_batch_size train_batch_size total_batch_size per_device_train_batch_size",
    ),
    "max_steps": (
        _positive,
        "total_steps num_steps train_steps max_iters train_iters num_training_steps max_updates",
    ),
    "epochs": (_number, "num_epochs max_epochs num_train_epochs total_epochs n_epochs"),
    "grad_clip": (
        _number,
        "clip_grad max_grad_norm grad_clip_norm gradient_clip_val gradient_clipping clip_norm",
    ),
    "log_interval": (_positive, "log_every logging_steps log_every_n_steps log_freq log_steps"),
    "log_reduce": (_text, "log_reduction loss_reduce log_aggregation"),
    "eval_every": (_positive, "eval_interval eval_steps val_check_interval val_every eval_freq"),
    "checkpoint_every": (
        _positive,
        (
            "checkpoint_interval save_every save_steps save_interval ckpt_every ckpt_interval"
            " checkpoint_steps every_n_train_steps save_freq checkpoint_freq"
        ),
    ),
    "save_strategy": (_text, "save_policy"),
    "always_save_checkpoint": (_flag, ""),
    "save_total_limit": (_positive, "keep_checkpoints max_to_keep keep_last"),
    "checkpoints": (_steps, "checkpoint_steps_list saved_steps checkpoint_list"),
    "n_classes": (_positive, "num_classes classes num_labels n_labels"),
    "vocab_size": (_positive, "vocab n_vocab padded_vocab_size"),
    "accumulation_steps": (
        _positive,
        "gradient_accumulation_steps grad_accum grad_accumulation accumulate_grad_batches",
    ),
    "max_completion_length": (
        _positive,
        "max_response_length max_new_tokens generate_max_len max_tokens_per_completion",
    ),
    "task": (_text, "task_type task_name"),
    "device": (lambda value: _text(str(value)), "gpu_name device_name"),
    "overlap_comm": (_flag, "zero_overlap_comm"),
    "seed": (_count, "random_seed"),
}
_PLACE = {
    spelling: (key, place) for key, (_, others) in KEYS.items() for place, spelling in enumerate((key, *others.split()))
}
# Objects that hold configuration of their own: `optimizer: {name, lr}`, `lr_schedule: {name, warmup}`.
_NAMED = ("optimizer", "lr_schedule")
_INSIDE = {
    **dict.fromkeys(("name", "type", "class", "class_name")),
    "warmup": "warmup_steps",
    "milestones": "lr_milestones",
}
WRAPPERS = (
    "config",
    "args",
    "hparams",
    "hyperparameters",
    "hyper_parameters",
    "training_args",
    "params",
    "settings",
    "ds_config",
    "deepspeed_config",
    "zero_optimization",
)
_KIND_KEYS = ("type", "event", "kind", "_type", "record")
_KINDS = frozenset((*WRAPPERS, "header", "meta", "metadata", "manifest", "run", "start", "run_start", "train_begin"))


def read_config(values: Mapping[str, Any]) -> tuple[dict[str, ConfigScalar], list[str]]:
    """The known settings among `values`, and a note for each whose value is of the wrong kind.

    Unknown keys are ignored, null means not set, and of two spellings of a setting the better one counts.
    """
    best: dict[str, tuple[int, Any]] = {}
    for key, place, value in _spelled(values):
        if value is not None and (key not in best or place < best[key][0]):
            best[key] = place, value
    config: dict[str, ConfigScalar] = {}
    notes = []
    for key, (_, value) in best.items():
        try:
            config[key] = KEYS[key][0](value)
        except (ValueError, OverflowError) as error:
            notes.append(f"The configuration's {key} is {clean(value, 40)!r}, not {clean(error, 60)}: ignored.")
    mixed = _mixed(best["dtype"][1]) if config.get("dtype") == "fp16" else None
    return (config if mixed is None else {**config, "mixed": mixed}), notes


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a trainer's settings that `read_config` reads, as they are spelled."""
    return {
        spelling: value for spelling, value in values.items() if value is not None and [*_spelled({spelling: value})]
    }


def _mixed(precision: object) -> bool | None:
    """Whether fp16 is that of mixed precision, with weights in fp32, or of the weights, too; None where it is open."""
    words = normalize(str(precision)).split("_")
    if "true" in words:
        return False
    return True if {"mixed", "amp"}.intersection(words) else None


_WEIGHTS = "weights_dtype"
# The heads whose loss is a cross-entropy over the vocabulary.
_LANGUAGE_HEADS = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration")


def of_model(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the configuration of a model tells of its training: what its loss is over, and the precision of its weights.

    The latter is that of the run only where no trainer's flag says otherwise: mixed precision has weights in fp32.
    """
    found: dict[str, Any] = {}
    heads = values.get("architectures")
    head = str(heads[0]) if isinstance(heads, list) and heads else ""
    labels = values.get("id2label")
    if not head or head.endswith(_LANGUAGE_HEADS):
        found["vocab_size"] = values.get("vocab_size")
    elif head.endswith("Classification") and isinstance(labels, Mapping) and len(labels) > 1:
        found["n_classes"] = (
            len(labels) if values.get("problem_type") in (None, "single_label_classification") else None
        )
    found[_WEIGHTS] = values.get("dtype") or values.get("torch_dtype")
    return found


def _spelled(values: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, int, Any]]:
    """(canonical key, rank of the spelling, value), nested objects included."""
    for spelling, value in values.items():
        word = normalize(str(spelling))
        key, place = _PLACE.get(word, (None, 0))
        place += 10 * depth
        if isinstance(value, Mapping):
            if depth < 3 and (key in _NAMED or word in WRAPPERS):
                yield from _nested(key, place, value, depth)
        elif word == "mixed_precision" and str(value).lower() in REDUCED:
            yield "dtype", place, f"amp_{value}"
        elif key:
            yield key, place, value
        elif word in REDUCED and value is True:
            yield "dtype", 20 + place, f"amp_{word}"
        elif word == _WEIGHTS:
            yield "dtype", 40 + place, value


def _nested(key: str | None, place: int, inner: Mapping[str, Any], depth: int) -> Iterator[tuple[str, int, Any]]:
    rest = {}
    for spelling, value in inner.items():
        word = normalize(str(spelling))
        if key in _NAMED and word in _INSIDE:
            yield _INSIDE[word] or str(key), place, value
        else:
            rest[spelling] = value
    yield from _spelled(rest, depth + 1)


def config_row(row: Mapping[str, Any], names: Names) -> tuple[dict[str, ConfigScalar], list[str]] | None:
    """The configuration that a row of a log holds instead of metrics; None for a row of metrics."""
    if not may_be_config(tuple(row), names):
        return None
    kind = next((row[key] for key in _KIND_KEYS if isinstance(row.get(key), str)), "")
    if any(_is_loss(key, names) for key in row):
        return read_config(row) if normalize(kind) in _KINDS - {"run"} else None
    wrapped = any(isinstance(row.get(key), dict) for key in WRAPPERS)
    return read_config(row) if wrapped or normalize(kind) in _KINDS or _only_settings(tuple(row), names) else None


# A log of a million rows has a handful of different sets of keys.
@lru_cache(maxsize=64)
def may_be_config(keys: tuple[str, ...], names: Names) -> bool:
    """Whether a row with these keys can be one of configuration, which its values then decide."""
    if any(names.counts(key) for key in keys):
        return False
    return bool({normalize(key) for key in keys} & {*_KIND_KEYS, *WRAPPERS}) or _only_settings(keys, names)


def _only_settings(keys: tuple[str, ...], names: Names) -> bool:
    """Whether a row without a step names settings that no row of metrics would."""
    if any(names.counts(key) or _is_loss(key, names) for key in keys):
        return False
    words = {normalize(key) for key in keys}
    settings = {_PLACE[word][0] for word in words & _PLACE.keys()}
    return bool(settings & {"dtype", "optimizer", "checkpoint_every", "name"})


def _is_loss(key: str, names: Names) -> bool:
    return names.role(key) in ("loss", "eval_loss")
