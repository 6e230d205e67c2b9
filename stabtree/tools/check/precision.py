"""What one value of a configuration says about precision, which every trainer spells in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.frameworks.load import framework as framework_called
from stabtree.loaders.config import dtype
from stabtree.metrics.table import normalize
from stabtree.run import REDUCED, ConfigScalar
from stabtree.tools.check.tables import SCALERS

if TYPE_CHECKING:
    from stabtree.frameworks.load import Defaults

Settings = Mapping[str, ConfigScalar]
EXCLUSIVE = {"precisions": ("fp16", "bf16"), "quantizations": ("load_in_8bit", "load_in_4bit")}
"""Flags of which a run can have one only, by the setting that names those that are on."""
MODES = ("precision", "mixed_precision", "amp", "amp_dtype", "amp_level")
# Flags of training without autocast: weights and gradients are of that precision.
_PURE = {"bfloat16": "bf16", "float16": "fp16", "pure_bf16": "bf16"}
_FULL = ("32", "32_true", "fp32", "float32")
_ON = ("true", "full", "yes", "on", "1")
_OFF = ("no", "false", "off", "none")


def precision_in(word: str, kind: str, value: Any, framework: str) -> Settings:
    """Return the settings of precision in one value: canonical key -> value.

    Args:
        word: its key, normalised.
        kind: the kind of section that it stands in.
        value: the value.
        framework: the trainer that the file is for.
    """
    text, defaults = normalize(str(value)), framework_called(framework).defaults
    if kind in REDUCED:
        return _in_section(word, kind, value)
    of_the_run = kind in ("top", "training")
    if of_the_run and (word.removeprefix("use_") in SCALERS or (word == "loss_scale" and isinstance(value, str))):
        return _scaler(text, value)
    if (of_the_run and word in MODES) or (kind == "any" and word == "mixed_precision"):
        return _mode(word, text, defaults)
    if of_the_run and word == "dtype":
        return _dtype(text, defaults)
    if text in _ON and (of_the_run or kind == "any"):  # `bf16: true` and its like
        if word in REDUCED:
            return _mixed(word, scaled=defaults.scales_fp16)
        if word in _PURE:
            return _pure(_PURE[word])
    return {}


def _in_section(word: str, name: str, value: Any) -> Settings:
    """Read DeepSpeed's `fp16: {enabled: true, loss_scale: 0, initial_scale_power: 16}` and its like for bf16."""
    if value is True:
        weights = {"weights_dtype": name}
        known: Mapping[str, Settings] = {
            **dict.fromkeys(("enabled", "enable"), _mixed(name, scaled=True)),
            **dict.fromkeys((f"{name}_master_weights_and_grads", f"{name}_master_weights_and_gradients"), weights),
            f"{name}_optimizer_states": {"optimizer_state_dtype": name},
        }
        return known.get(word, {})
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {}
    if word == "loss_scale" and value == 0:
        return {"loss_scaling": "dynamic"}
    if word == "loss_scale" and value > 0:
        return {"loss_scaling": "static", "loss_scale": value}
    if word == "initial_scale_power" and 0 <= value < 128:
        return {"initial_loss_scale": 2.0**value}
    return {}


def _scaler(text: str, value: Any) -> Settings:
    """Read `loss_scaling: none`, `use_grad_scaler: false`, `loss_scale: dynamic`, `loss_scaling: 128`."""
    if text in (*_OFF, "disabled"):
        return {"loss_scaling": "none"}
    if text in ("dynamic", "auto", "enabled", *_ON):
        return {"loss_scaling": "dynamic"}
    if isinstance(value, int | float) and value > 0:
        return {"loss_scaling": "static", "loss_scale": value}
    return {}


def _mode(word: str, text: str, defaults: Defaults) -> Settings:
    """Read `precision: 16-mixed`, `mixed_precision: bf16`, `amp: true`."""
    if text in _FULL:
        return {"mixed": False, "dtype": "fp32"}
    if text in (*_OFF, *_ON):
        return {"mixed": text in _ON}
    name = _known(text)
    if not name:
        return {}
    if text.endswith("_true"):
        return _pure(name)
    if text.endswith("_mixed") or word != "precision" or defaults.bare_precision_is_mixed:
        return _mixed(name, scaled=defaults.scales_fp16)
    return {"dtype": name}


def _dtype(text: str, defaults: Defaults) -> Settings:
    """Return what the trainer's `dtype` sets: weights, autocast, or all that there is."""
    name = _known(text)
    if not name:
        return {}
    if defaults.dtype == "weights":
        return {"weights_dtype": name}
    if name in REDUCED and defaults.dtype == "autocast":
        return _mixed(name, scaled=defaults.scales_fp16)
    if name in REDUCED and defaults.dtype == "all":
        return _pure(name)
    return {"dtype": name}


def _mixed(name: str, *, scaled: bool) -> Settings:
    """Return mixed precision; in fp16 with a dynamic loss scale if the trainer scales the loss by itself."""
    scaling = {"loss_scaling": "dynamic"} if scaled and name == "fp16" else {}
    return {"dtype": name, "mixed": True, **scaling}


def _pure(name: str) -> Settings:
    scaling = {"loss_scaling": "none"} if name == "fp16" else {}
    return {"dtype": name, "mixed": False, "weights_dtype": name, **scaling}


def _known(text: str) -> str:
    try:
        return dtype(text)
    except StabtreeError:
        return ""
