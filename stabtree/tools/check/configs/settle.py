"""The settings of one file: of each the best spelling, read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.text import clean, masked
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.load import frameworks
from stabtree.frameworks.model_config import of_model
from stabtree.frameworks.recognise import of_config, plain_word
from stabtree.loaders.config import positive_of
from stabtree.run import Setting
from stabtree.tools.check.configs.keys import KEYS
from stabtree.tools.check.configs.near import misspelled
from stabtree.tools.check.configs.precision import EXCLUSIVE, switched_on
from stabtree.tools.check.configs.sections import section_kind, stage_of
from stabtree.tools.check.configs.spelled import ANY, spelled_in
from stabtree.tools.check.configs.trainers import set_by_trainer
from stabtree.tools.check.configs.units import in_steps

if TYPE_CHECKING:
    from stabtree.tools.check.configs.complete import Settings
    from stabtree.tools.check.configs.document import ConfigFile, Path_
    from stabtree.tools.check.configs.spelled import Spelled


# Counts of steps that some trainers take as a share of all steps where they are below 1.
_SHARES = ("log_interval", "eval_every", "checkpoint_every")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_DEEPEST = 3  # sections in sections that are looked into for flags that exclude each other


@dataclass(slots=True)
class _Reading:
    """The settings of a file while they are read.

    Attributes:
        file: the file.
        settings: those that were read.
        shares: counts of steps that are said as a share of all steps.
        notes: one for each value of the wrong kind.
        bare: whether the batch size is spelled `batch_size`.
        open: settings that are made elsewhere, so that no default counts.
    """

    file: ConfigFile
    settings: Settings
    shares: Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    bare: bool = False
    open: set[str] = field(default_factory=set)

    def add(self, one: Spelled) -> None:
        """Take in a value, unless a better spelling of the same setting was read."""
        key = _key_of(one)
        if one.open:
            self.open.add(key)
        if key in self.settings or key in self.shares or _is_unset(one) or one.value is None:
            return
        if key in _SHARES and _is_share(one.value):
            self.shares[key] = Setting(one.value, written(self.file, one.path))
            self.open.add(key)
            return
        self._convert(key, one)

    def _convert(self, key: str, one: Spelled) -> None:
        """Read a value as its key asks for, or note that it is of the wrong kind."""
        source = written(self.file, one.path)
        try:
            self.settings[key] = Setting(KEYS[key][0](one.value), source, _dotted(one.path))
        except (ValueError, OverflowError, TypeError) as error:
            if isinstance(one.value, str) and _NAME.fullmatch(one.value):  # of another module
                self.open.add(key)
                return
            if key == "warmup_steps" and isinstance(one.value, str) and one.value.isalpha():  # its shape: `linear`
                return
            shown = masked(clean(repr(one.value), 40))
            self.notes.append(f"{source} is {shown}, not {clean(error, 60)}: ignored.")
            return
        if key == "batch_size" and plain_word(one.path[-1]) == key:
            self.bare = True


def settings_of(file: ConfigFile) -> tuple[Settings, list[str]]:
    """The settings of a file, and a note for each value of the wrong kind."""
    found = read_settings(file)
    return found.settings, found.notes


def read_settings(file: ConfigFile) -> _Reading:
    """The settings of a file with all that there is to say of them."""
    if is_model(file.values):
        return _Reading(file, _of_model(file))
    framework = trainer_of(file.values)
    reading = _Reading(file, {"framework": Setting(framework, file.name)} if framework else {})
    spelled = [*set_by_trainer(file.values, framework), *spelled_in(file, framework)]
    for one in map(in_steps, _agreeing(spelled, reading)):
        reading.add(one)
    settings = reading.settings
    if framework_called(framework).defaults.shares:
        settings |= _counted(reading.shares, settings.get("max_steps"))
    if reading.bare:
        _rename_accumulated(settings)
    settings |= _exclusive(file)
    near = misspelled(file, framework, {*settings, *reading.open})
    if near:
        path, word = near
        shown = f"{masked(clean(path[-1], 40))}: did you mean {word}?"
        settings["misspelled"] = Setting(shown, written(file, path), _dotted(path))
    unused = _unused(file.values, framework)
    reading.settings = {key: one for key, one in settings.items() if key not in unused}
    return reading


def trainer_of(values: Mapping[str, Any]) -> str:
    """The trainer that a file is for, by its keys or by those of a section that holds its configuration as a whole."""
    found = of_config(values)
    if found:
        return found
    sections = [value for key, value in values.items() if isinstance(value, Mapping) and section_kind(plain_word(key))]
    return next(filter(None, map(_trainer_of_section, sections)), "")


def _trainer_of_section(section: Mapping[str, Any]) -> str:
    target = str(section.get("_target_") or section.get("class_path") or "")
    built = (one.id for one in frameworks().values() if target in one.config.targets)
    return next(built, "") or of_config(section)


def _agreeing(spelled: list[Spelled], reading: _Reading) -> list[Spelled]:
    """All but those that two equal sections say in two ways, where nothing better is there.

    Equal are sections that no table knows, and those of stages that follow one another: `sft`, then `dpo`.
    """
    spelled = _by_stages(spelled)
    sure = {one.key for one in spelled if not one.is_guessed and one.value is not None}
    guessed: dict[str, list[Spelled]] = {}
    for one in spelled:
        if one.is_guessed and one.key not in sure and _can_be_read(one):
            guessed.setdefault(one.key, []).append(one)
    differing = {key: other for key, some in guessed.items() if (other := _other(some))}
    for key, other in differing.items():
        where = f"{written(reading.file, guessed[key][0].path)} and {_dotted(other.path)}"
        reading.notes.append(f"{where} say {key} in two ways: not judged.")
        reading.open.add(key)
    return [one for one in spelled if not (one.is_guessed and one.key in differing)]


def _by_stages(spelled: list[Spelled]) -> list[Spelled]:
    """Rank what several stages say each as what no section makes sure."""
    stages: dict[str, set[str]] = {}
    for one in spelled:
        if stage := stage_of(plain_word(one.path[0])):
            stages.setdefault(one.key, set()).add(stage)
    several = {key for key, found in stages.items() if len(found) > 1}
    return [
        replace(one, rank=ANY) if one.key in several and stage_of(plain_word(one.path[0])) else one for one in spelled
    ]


def _other(some: list[Spelled]) -> Spelled | None:
    """Return the first of several values that is not that of the first; None where they agree."""
    return next((one for one in some if one.value != some[0].value), None)


def _can_be_read(one: Spelled) -> bool:
    try:
        return one.value is not None and KEYS[one.key][0](one.value) is not None
    except (ValueError, OverflowError, TypeError):
        return False


def _exclusive(file: ConfigFile) -> Settings:
    """The flags that are on together, of those of which a run can have one only."""
    found: Settings = {}
    for path, section in _sections(file.values, ()):
        for key, flags in EXCLUSIVE.items():
            names = switched_on(section, flags)
            if len(names) > 1:
                found[key] = Setting("+".join(names), written(file, (*path, names[0])), names[0])
    return found


def _sections(values: Mapping[str, Any], path: Path_) -> Iterator[tuple[Path_, Mapping[str, Any]]]:
    yield path, values
    for key, value in values.items():
        if isinstance(value, Mapping) and len(path) < _DEEPEST and section_kind(plain_word(key)):
            yield from _sections(value, (*path, key))


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
