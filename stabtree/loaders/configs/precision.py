"""What one value of a configuration says of precision, which every trainer spells in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.loaders.config import dtype
from stabtree.loaders.configs.framework import HOSTED
from stabtree.metrics.table import normalize
from stabtree.run import REDUCED, ConfigScalar

if TYPE_CHECKING:
    from collections.abc import Mapping

# Trainers that scale the loss of fp16 by themselves, unless a static scale is set.
SCALING = (*HOSTED, "lightning", "deepspeed", "megatron", "nanogpt", "accelerate", "nemo", "fairseq", "composer")
# Words for the scaler itself, on or off.
SCALERS = ("loss_scaling", "loss_scaler", "grad_scaler", "gradscaler", "amp_scaler", "scaler")
# Flags of training without autocast: weights and gradients are of that precision.
_PURE = {"bfloat16": "bf16", "float16": "fp16", "pure_bf16": "bf16"}
_MODES = ("precision", "mixed_precision", "amp", "amp_dtype", "amp_level")
_FULL = ("32", "32_true", "fp32", "float32")
_ON = ("true", "full", "yes", "on", "1")
_OFF = ("no", "false", "off", "none")
# Trainers whose `dtype` is that of autocast, and those whose `dtype` is that of all that there is.
_AUTOCAST, _WHOLE = ("nanogpt",), ("torchtune",)


def precision_told(word: str, kind: str, value: Any, framework: str) -> Mapping[str, ConfigScalar]:
    """The settings of precision that one value tells: canonical key -> value; empty where it is none of precision.

    Args:
        word: its key, normalised.
        kind: the kind of section that it stands in.
        value: the value.
        framework: the trainer that the file is for.
    """
    said = normalize(str(value))
    if kind in REDUCED:
        return _in_section(word, kind, value)
    if kind not in ("top", "training"):
        return {}
    if word.removeprefix("use_") in SCALERS or (word == "loss_scale" and isinstance(value, str)):
        return _scaler(said, value)
    if word in _MODES:
        return _mode(word, said, framework)
    return _dtype(said, framework) if word == "dtype" else _flag(word, said, framework)


def _flag(word: str, said: str, framework: str) -> Mapping[str, ConfigScalar]:
    """`bf16: true` and its like."""
    if said not in _ON:
        return {}
    return _mixed(word, framework) if word in REDUCED else _pure(_PURE[word]) if word in _PURE else {}


def _in_section(word: str, name: str, value: Any) -> Mapping[str, ConfigScalar]:
    """DeepSpeed's `fp16: {enabled: true, loss_scale: 0, initial_scale_power: 16}` and its like for bf16."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if word in ("enabled", "enable") and value is True:
        return _mixed(name, "deepspeed")
    if word == "loss_scale" and number is not None and number >= 0:
        return {"loss_scaling": "static", "loss_scale": number} if number else {"loss_scaling": "dynamic"}
    if word == "initial_scale_power" and number is not None and 0 <= number < 128:
        return {"initial_loss_scale": 2.0**number}
    if word in (f"{name}_master_weights_and_grads", f"{name}_master_weights_and_gradients") and value is True:
        return {"weights_dtype": name}
    if word == f"{name}_optimizer_states" and value is True:
        return {"optimizer_state_dtype": name}
    return {}


def _scaler(said: str, value: Any) -> Mapping[str, ConfigScalar]:
    """`loss_scaling: none`, `use_grad_scaler: false`, `loss_scale: dynamic`, `loss_scaling: 128`."""
    if said in _OFF or said == "disabled":
        return {"loss_scaling": "none"}
    if said in ("dynamic", "auto", "enabled", *_ON):
        return {"loss_scaling": "dynamic"}
    fixed = isinstance(value, int | float) and value > 0
    return {"loss_scaling": "static", "loss_scale": value} if fixed else {}


def _mixed(name: str, framework: str) -> Mapping[str, ConfigScalar]:
    scaled = name == "fp16" and framework in SCALING
    return {"dtype": name, "mixed": True, **({"loss_scaling": "dynamic"} if scaled else {})}


def _pure(name: str) -> Mapping[str, ConfigScalar]:
    scaling = {"loss_scaling": "none"} if name == "fp16" else {}
    return {"dtype": name, "mixed": False, "weights_dtype": name, **scaling}


def _mode(word: str, said: str, framework: str) -> Mapping[str, ConfigScalar]:
    """`precision: 16-mixed`, `mixed_precision: bf16`, `amp: true`."""
    if said in (*_OFF, *_ON, *_FULL):
        return {"mixed": said in _ON, **({"dtype": "fp32"} if said in _FULL else {})}
    name = _known(said)
    if not name:
        return {}
    if said.endswith("_true"):
        return _pure(name)
    sure = said.endswith("_mixed") or word != "precision" or framework in ("lightning", "nemo")
    return _mixed(name, framework) if sure else {"dtype": name}


def _dtype(said: str, framework: str) -> Mapping[str, ConfigScalar]:
    name = _known(said)
    if framework in HOSTED:
        return {"weights_dtype": name} if name else {}
    if name not in REDUCED:
        return {"dtype": name} if name else {}
    if framework in _AUTOCAST:
        return _mixed(name, framework)
    if framework in _WHOLE:
        return _pure(name)
    return {"dtype": name}


def _known(said: str) -> str:
    try:
        return dtype(said)
    except StabtreeError:
        return ""
