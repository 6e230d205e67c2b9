"""The settings of one file: of each the best spelling, read; and what follows from several settings of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean, masked
from stabtree.loaders.config import of_model, positive_of
from stabtree.loaders.configs.framework import HOSTED, framework_in, plain_word
from stabtree.loaders.configs.keys import KEYS
from stabtree.loaders.configs.precision import SCALERS
from stabtree.loaders.configs.spelled import spelled_in
from stabtree.loaders.configs.trainers import told_by_trainer
from stabtree.loaders.configs.units import in_steps
from stabtree.run import REDUCED, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.loaders.configs.document import ConfigFile, Path_
    from stabtree.loaders.configs.spelled import Spelled

Settings = dict[str, Setting]

# Counts of steps that the Hugging Face trainer takes as a share of all steps where they are below 1.
_SHARES = ("log_interval", "eval_every", "checkpoint_every")
# A strategy -> the count of steps that is not looked at under any other than `steps`.
_STRATEGIES = {"save_strategy": "checkpoint_every", "eval_strategy": "eval_every", "log_strategy": "log_interval"}
_SCALING = ("loss_scaling", "loss_scale", "initial_loss_scale", "min_loss_scale", "scale_window")


def settings_of(file: ConfigFile) -> tuple[Settings, list[str]]:
    """The settings of a file, and a note for each value of the wrong kind."""
    if is_model(file.values):
        return _of_model(file), []
    framework = framework_in(file.values)
    settings: Settings = {"framework": Setting(framework, file.name)} if framework else {}
    shares: Settings = {}
    notes = []
    bare = False
    for one in map(in_steps, (*told_by_trainer(file.values, framework), *spelled_in(file.values, framework))):
        key = "warmup_ratio" if one.key == "warmup_steps" and _is_share(one.value) else one.key
        if key in settings or key in shares or _is_unset(one) or one.value is None:
            continue
        source = written(file, one.path)
        if key in _SHARES and _is_share(one.value):
            shares[key] = Setting(one.value, source)
            continue
        try:
            settings[key] = Setting(KEYS[key][0](one.value), source, _dotted(one.path))
            bare = bare or (key == "batch_size" and plain_word(one.path[-1]) == key)
        except (ValueError, OverflowError, TypeError) as error:
            shown = masked(clean(repr(one.value), 40))
            notes.append(f"{source} is {shown}, not {clean(error, 60)}: ignored.")
    if framework in HOSTED:
        settings |= _counted(shares, settings.get("max_steps"))
    times = settings.get("accumulation_steps")
    if bare and times and times.value != 1 and "micro_batch_size" not in settings:
        # A bare `batch_size` is what one device takes at once where it is accumulated.
        settings["micro_batch_size"] = settings.pop("batch_size")
    unused = _unused(file.values, framework)
    return {key: one for key, one in settings.items() if key not in unused}, notes


def _unused(values: Mapping[str, Any], framework: str) -> tuple[str, ...]:
    """The settings without a meaning: of a state that keeps them all, of a schedule that is off, of a run in steps."""
    if "log_history" in values:
        return ("eval_every", "checkpoint_every")
    off = ("schedule_steps", "min_lr", "warmup_steps") if values.get("decay_lr") is False else ()
    steps = values.get("max_steps")
    by_steps = framework in HOSTED and isinstance(steps, int) and steps > 0
    return (*off, "epochs") if by_steps else off


def _counted(shares: Settings, steps: Setting | None) -> Settings:
    """Shares of all steps as counts of steps, where it is known how many there are."""
    if not steps or not isinstance(steps.value, int):
        return {}
    return {
        key: Setting(math.ceil(one.value * steps.value), one.source)
        for key, one in shares.items()
        if isinstance(one.value, float)
    }


def is_model(values: Mapping[str, Any]) -> bool:
    """Whether a file describes a model, as `config.json` beside its weights does, and no training."""
    return "architectures" in values and "model_type" in values and not framework_in(values)


def _of_model(file: ConfigFile) -> Settings:
    found: Settings = {}
    for key, value in of_model(file.values).items():
        try:
            found[key] = Setting(KEYS[key][0](value), file.name)
        except (ValueError, OverflowError, TypeError):
            continue
    return found


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _is_unset(one: Spelled) -> bool:
    """Whether a value says that nothing is set: -1, but of clipping, and `false` or 0 of what can't be 0."""
    counts = KEYS[one.key][0] is positive_of
    if isinstance(one.value, bool):
        return counts and not one.value
    return isinstance(one.value, int | float) and (
        (one.value == -1 and one.key != "grad_clip") or (counts and one.value == 0)
    )


def written(file: ConfigFile, path: Path_) -> str:
    """Where a value stands: `config.yaml:12, optimizer.lr`."""
    line = file.lines.get(path)
    return f"{file.name}:{line}, {_dotted(path)}" if line else f"{file.name}, {_dotted(path)}"


def _dotted(path: Path_) -> str:
    return masked(clean(".".join(map(str, path)), 80))


def completed(settings: Settings) -> Settings:
    """The settings of a run with what follows from several, and without those that others switch off."""
    found = dict(settings)
    for strategy, count in _STRATEGIES.items():
        if strategy in found and found[strategy].value != "steps":
            found.pop(count, None)
    _scaling(found)
    if "lora_rank" in found and "adapter" not in found:
        found["adapter"] = Setting("lora", found["lora_rank"].source)
    factors = [found.get(key) for key in ("micro_batch_size", "accumulation_steps", "world_size")]
    if "batch_size" not in found and all(factors):
        known = [one for one in factors if one]
        size = math.prod(int(one.value) for one in known if isinstance(one.value, int))
        found["batch_size"] = Setting(size, " x ".join(one.source for one in known))
    return found


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
