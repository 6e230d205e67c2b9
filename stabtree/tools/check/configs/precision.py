"""What one value of a configuration says of precision, which every trainer spells in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stabtree.common.errors import StabtreeError
from stabtree.frameworks.load import framework as framework_called
from stabtree.loaders.config import dtype
from stabtree.metrics.table import normalize
from stabtree.run import REDUCED, ConfigScalar

# Flags of which a run can have one only, by the setting that names those that are on.
EXCLUSIVE = {"precisions": ("fp16", "bf16"), "quantizations": ("load_in_8bit", "load_in_4bit")}
# Words for the scaler itself, on or off.
SCALERS = ("loss_scaling", "loss_scaler", "grad_scaler", "gradscaler", "amp_scaler", "scaler")
# Flags of training without autocast: weights and gradients are of that precision.
_PURE = {"bfloat16": "bf16", "float16": "fp16", "pure_bf16": "bf16"}
MODES = ("precision", "mixed_precision", "amp", "amp_dtype", "amp_level")
_FULL = ("32", "32_true", "fp32", "float32")
_ON = ("true", "full", "yes", "on", "1")
_OFF = ("no", "false", "off", "none")


def precision_told(word: str, kind: str, value: Any, framework: str) -> Mapping[str, ConfigScalar]:
    """Return the settings of precision in one value: canonical key -> value; empty where it is none of precision.

    Args:
        word: its key, normalised.
        kind: the kind of section that it stands in.
        value: the value.
        framework: the trainer that the file is for.
    """
    said = normalize(str(value))
    if kind in REDUCED:
        return _in_section(word, kind, value)
    if kind == "any":
        return _any(word, said, framework)
    if kind not in ("top", "training"):
        return {}
    if word.removeprefix("use_") in SCALERS or (word == "loss_scale" and isinstance(value, str)):
        return _scaler(said, value)
    if word in MODES:
        return _mode(word, said, framework)
    if word == "dtype":
        return _dtype(said, framework)
    return _flag(word, said, framework)


def _any(word: str, said: str, framework: str) -> Mapping[str, ConfigScalar]:
    """Return what a section of any name says: by words that no model and no sampler has, too."""
    if word == "mixed_precision":
        return _mode(word, said, framework)
    return _flag(word, said, framework)


def switched_on(values: Mapping[str, Any], flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return those flags that a configuration switches on: `bf16: true`, `fp16: {enabled: true}`."""
    return tuple(name for name in flags if _is_on(values.get(name)))


def _is_on(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("enabled") is True
    return value is True


def _flag(word: str, said: str, framework: str) -> Mapping[str, ConfigScalar]:
    """`bf16: true` and its like."""
    if said not in _ON:
        return {}
    if word in REDUCED:
        return _mixed(word, scaled=framework_called(framework).defaults.scales_fp16)
    if word in _PURE:
        return _pure(_PURE[word])
    return {}


def _in_section(word: str, name: str, value: Any) -> Mapping[str, ConfigScalar]:
    """DeepSpeed's `fp16: {enabled: true, loss_scale: 0, initial_scale_power: 16}` and its like for bf16."""
    if value is True:
        return _switched_on(word, name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _scaled_by(word, value)
    return {}


def _switched_on(word: str, name: str) -> Mapping[str, ConfigScalar]:
    """Return what a flag in a section of precision sets."""
    if word in ("enabled", "enable"):
        return _mixed(name, scaled=True)
    if word in (f"{name}_master_weights_and_grads", f"{name}_master_weights_and_gradients"):
        return {"weights_dtype": name}
    if word == f"{name}_optimizer_states":
        return {"optimizer_state_dtype": name}
    return {}


def _scaled_by(word: str, number: float) -> Mapping[str, ConfigScalar]:
    """Return what a number in a section of precision says of the loss scale."""
    if word == "loss_scale" and number == 0:
        return {"loss_scaling": "dynamic"}
    if word == "loss_scale" and number > 0:
        return {"loss_scaling": "static", "loss_scale": number}
    if word == "initial_scale_power" and 0 <= number < 128:
        return {"initial_loss_scale": 2.0**number}
    return {}


def _scaler(said: str, value: Any) -> Mapping[str, ConfigScalar]:
    """`loss_scaling: none`, `use_grad_scaler: false`, `loss_scale: dynamic`, `loss_scaling: 128`."""
    if said in _OFF or said == "disabled":
        return {"loss_scaling": "none"}
    if said in ("dynamic", "auto", "enabled", *_ON):
        return {"loss_scaling": "dynamic"}
    fixed = isinstance(value, int | float) and value > 0
    if fixed:
        return {"loss_scaling": "static", "loss_scale": value}
    return {}


def _mixed(name: str, *, scaled: bool) -> Mapping[str, ConfigScalar]:
    """Return mixed precision; in fp16 with a dynamic loss scale where the trainer scales the loss by itself."""
    if scaled and name == "fp16":
        return {"dtype": name, "mixed": True, "loss_scaling": "dynamic"}
    return {"dtype": name, "mixed": True}


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
    defaults = framework_called(framework).defaults
    if said.endswith("_mixed") or word != "precision" or defaults.bare_precision_is_mixed:
        return _mixed(name, scaled=defaults.scales_fp16)
    return {"dtype": name}


def _dtype(said: str, framework: str) -> Mapping[str, ConfigScalar]:
    """Return what the trainer's `dtype` sets: weights, autocast, or all that there is."""
    name = _known(said)
    defaults = framework_called(framework).defaults
    if not name:
        return {}
    if defaults.dtype == "weights":
        return {"weights_dtype": name}
    if name in REDUCED and defaults.dtype == "autocast":
        return _mixed(name, scaled=defaults.scales_fp16)
    if name in REDUCED and defaults.dtype == "all":
        return _pure(name)
    return {"dtype": name}


def _known(said: str) -> str:
    try:
        return dtype(said)
    except StabtreeError:
        return ""
