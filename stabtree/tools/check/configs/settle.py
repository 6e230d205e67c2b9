"""The settings of one file: of each the best spelling, read; and what follows from several settings of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean, masked
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.model_config import of_model
from stabtree.frameworks.recognise import of_config, plain_word
from stabtree.loaders.config import positive_of
from stabtree.run import REDUCED, Setting
from stabtree.tools.check.configs.keys import KEYS
from stabtree.tools.check.configs.precision import EXCLUSIVE, SCALERS, switched_on
from stabtree.tools.check.configs.spelled import spelled_in
from stabtree.tools.check.configs.trainers import set_by_trainer
from stabtree.tools.check.configs.units import in_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.tools.check.configs.document import ConfigFile, Path_
    from stabtree.tools.check.configs.spelled import Spelled

Settings = dict[str, Setting]

# Counts of steps that some trainers take as a share of all steps where they are below 1.
_SHARES = ("log_interval", "eval_every", "checkpoint_every")
# A strategy -> the count of steps that is not looked at under any other than `steps`.
_STRATEGIES = {"save_strategy": "checkpoint_every", "eval_strategy": "eval_every", "log_strategy": "log_interval"}
_FACTORS = ("micro_batch_size", "accumulation_steps", "world_size")  # of the batch size
_SCALING = ("loss_scaling", "loss_scale", "initial_loss_scale", "min_loss_scale", "scale_window")


@dataclass(slots=True)
class _Reading:
    """The settings of a file while they are read.

    Attributes:
        file: the file.
        settings: those that were read.
        shares: counts of steps that are said as a share of all steps.
        notes: one for each value of the wrong kind.
        bare: whether the batch size is spelled `batch_size`.
    """

    file: ConfigFile
    settings: Settings
    shares: Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    bare: bool = False

    def add(self, one: Spelled) -> None:
        """Take in a value, unless a better spelling of the same setting was read."""
        key = _key_of(one)
        if key in self.settings or key in self.shares or _is_unset(one) or one.value is None:
            return
        if key in _SHARES and _is_share(one.value):
            self.shares[key] = Setting(one.value, written(self.file, one.path))
            return
        self._convert(key, one)

    def _convert(self, key: str, one: Spelled) -> None:
        """Read a value as its key asks for, or note that it is of the wrong kind."""
        source = written(self.file, one.path)
        try:
            self.settings[key] = Setting(KEYS[key][0](one.value), source, _dotted(one.path))
        except (ValueError, OverflowError, TypeError) as error:
            shown = masked(clean(repr(one.value), 40))
            self.notes.append(f"{source} is {shown}, not {clean(error, 60)}: ignored.")
            return
        if key == "batch_size" and plain_word(one.path[-1]) == key:
            self.bare = True


def settings_of(file: ConfigFile) -> tuple[Settings, list[str]]:
    """The settings of a file, and a note for each value of the wrong kind."""
    if is_model(file.values):
        return _of_model(file), []
    framework = of_config(file.values)
    reading = _Reading(file, {"framework": Setting(framework, file.name)} if framework else {})
    for one in map(in_steps, (*set_by_trainer(file.values, framework), *spelled_in(file.values, framework))):
        reading.add(one)
    settings = reading.settings
    if framework_called(framework).defaults.shares:
        settings |= _counted(reading.shares, settings.get("max_steps"))
    if reading.bare:
        _rename_accumulated(settings)
    settings |= _exclusive(file)
    unused = _unused(file.values, framework)
    return {key: one for key, one in settings.items() if key not in unused}, reading.notes


def _exclusive(file: ConfigFile) -> Settings:
    """The flags that are on together, of those of which a run can have one only."""
    on = {key: switched_on(file.values, flags) for key, flags in EXCLUSIVE.items()}
    both = {key: names for key, names in on.items() if len(names) > 1}
    return {key: Setting("+".join(names), written(file, names[:1]), names[0]) for key, names in both.items()}


def _key_of(one: Spelled) -> str:
    """Return the key of a value: a warmup below 1 is a share of all steps."""
    if one.key == "warmup_steps" and _is_share(one.value):
        return "warmup_ratio"
    return one.key


def _rename_accumulated(settings: Settings) -> None:
    """Take a bare `batch_size` for what one device takes at once where it is accumulated."""
    times = settings.get("accumulation_steps")
    if times and times.value != 1 and "micro_batch_size" not in settings:
        settings["micro_batch_size"] = settings.pop("batch_size")


def _unused(values: Mapping[str, Any], framework: str) -> tuple[str, ...]:
    """The settings without a meaning: of a state that keeps them all, of a schedule that is off, of a run in steps."""
    if "log_history" in values:
        return ("eval_every", "checkpoint_every")
    off = ("schedule_steps", "min_lr", "warmup_steps") if values.get("decay_lr") is False else ()
    steps = values.get("max_steps")
    over_epochs = framework_called(framework).defaults.steps_over_epochs
    by_steps = over_epochs and isinstance(steps, int) and steps > 0
    if by_steps:
        return (*off, "epochs")
    return off


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
    return "architectures" in values and "model_type" in values and not of_config(values)


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
    if line:
        return f"{file.name}:{line}, {_dotted(path)}"
    return f"{file.name}, {_dotted(path)}"


def _dotted(path: Path_) -> str:
    return masked(clean(".".join(map(str, path)), 80))


def completed(settings: Settings) -> Settings:
    """The settings of a run with what follows from several, and without those that others switch off."""
    found = dict(settings)
    _drop_uncounted(found)
    _scaling(found)
    if "lora_rank" in found and "adapter" not in found:
        found["adapter"] = Setting("lora", found["lora_rank"].source)
    if "batch_size" not in found:
        _multiply_factors(found)
    return found


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
