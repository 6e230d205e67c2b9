"""What follows from the settings of a run: its trainer's defaults, products, and what others switch off."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.recognise import plain_word
from stabtree.predicates.settings.answers import DEFAULT
from stabtree.run import REDUCED, Setting
from stabtree.tools.check.configs.precision import SCALERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Settings = dict[str, Setting]

# A strategy -> the count of steps that is not looked at under any other than `steps`.
_STRATEGIES = {"save_strategy": "checkpoint_every", "eval_strategy": "eval_every", "log_strategy": "log_interval"}
_FACTORS = ("micro_batch_size", "accumulation_steps", "world_size")  # of the batch size
_SCALING = ("loss_scaling", "loss_scale", "initial_loss_scale", "min_loss_scale", "scale_window")
# A default -> the settings that say the same otherwise.
REPLACES: Mapping[str, tuple[str, ...]] = {
    "warmup_steps": ("warmup_ratio",),
    "micro_batch_size": ("batch_size",),
    "checkpoint_every": ("save_strategy",),
    "epochs": ("max_steps",),
    "dtype": ("mixed", "precisions", "weights_dtype"),
}


def completed(settings: Settings, left_open: Collection[str] | None = None) -> Settings:
    """The settings of a run with its trainer's defaults and what follows, without those that others switch off.

    Args:
        settings: those that are said.
        left_open: those that are made elsewhere, of which no default counts; None where none of any counts.
    """
    found = dict(settings)
    if "optimizer" not in found and {"beta1", "beta2"} <= found.keys():
        found["optimizer"] = Setting("adam-like", f"it has betas: {found['beta2'].source}")
    if left_open is not None:
        found = {**_defaults(found, left_open), **found}
    _drop_uncounted(found)
    _drop_constant(found)
    _scaling(found)
    if "lora_rank" in found and "adapter" not in found:
        found["adapter"] = Setting("lora", found["lora_rank"].source)
    if "batch_size" not in found:
        _multiply_factors(found)
    return found


def _defaults(said: Settings, left_open: Collection[str]) -> Settings:
    """What the trainer does where nothing is said, of what another setting does not replace."""
    nothing = Setting("", "")
    trainer = framework_called(str(said.get("framework", nothing).value))
    task = str(said.get("task", nothing).value)
    unset = {**trainer.unset, **trainer.unset_by_task.get(task, {})}
    source = f"{DEFAULT} of {trainer.name}"
    found: Settings = {}
    for key, value in unset.items():
        replaced = {*REPLACES.get(key, ()), key}
        if value == "epoch":  # a count of steps is what such a trainer goes by
            replaced.add(_STRATEGIES[key])
        if value is not None and replaced.isdisjoint(said) and replaced.isdisjoint(left_open):
            found[key] = Setting(value, source)
    return found


def _drop_constant(found: Settings) -> None:
    """Drop the length and the end of a schedule that ends at its peak: the rate is constant."""
    lowest, peak = found.get("min_lr"), found.get("lr")
    if lowest and peak and _is_first(peak) and _above(lowest, peak):
        del found["min_lr"]  # of a test that raises the rate until the run diverges
        return
    if lowest and peak and lowest.value == peak.value:
        for key in ("min_lr", "schedule_steps"):
            found.pop(key, None)
    # A schedule that is stepped once an epoch is as long as the run.
    steps, epochs = found.get("schedule_steps"), found.get("epochs")
    if steps and epochs and steps.value == epochs.value:
        del found["schedule_steps"]


def _is_first(rate: Setting) -> bool:
    """Whether a rate is called the one that a run begins at, which need not be its peak."""
    return plain_word(rate.spelled.rpartition(".")[2]).startswith("init")


def _above(one: Setting, other: Setting) -> bool:
    return isinstance(one.value, float) and isinstance(other.value, float) and one.value > other.value


def _drop_uncounted(found: Settings) -> None:
    """Drop the counts of steps of what is not done every so many steps."""
    for strategy, count in _STRATEGIES.items():
        if strategy in found and found[strategy].value != "steps":
            found.pop(count, None)


def _multiply_factors(found: Settings) -> None:
    """Add the batch size where all of its factors are known."""
    known = [one for one in map(found.get, _FACTORS) if one]
    if len(known) < len(_FACTORS):
        return
    size = math.prod(int(one.value) for one in known if isinstance(one.value, int))
    found["batch_size"] = Setting(size, " x ".join(one.source for one in known))


def _scaling(found: Settings) -> None:
    """Tell whether a scale that is set is a dynamic one; of other precisions than fp16 keep what switches a scaler."""
    scale = found.get("loss_scale")
    if scale and scale.value:
        # Times 1 is no scaling.
        found["loss_scaling"] = replace(scale, value="none" if scale.value == 1 else "static")
    elif scale:
        del found["loss_scale"]
        found["loss_scaling"] = Setting("dynamic", scale.source)
    if "dtype" in found and found["dtype"].value != "fp16":
        for key in _SCALING:
            if key != "loss_scaling" or not _switches_scaler(found.get(key)):
                found.pop(key, None)


def _switches_scaler(scaling: Setting | None) -> bool:
    """Whether a loss scale is said of the run itself, not in a section or by a flag that counts in fp16 alone."""
    *sections, word = map(plain_word, scaling.spelled.split(".")) if scaling else ("",)
    return word.removeprefix("use_") in (*SCALERS, "loss_scale") and not set(REDUCED) & {*sections}
