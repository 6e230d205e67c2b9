"""The settings of one configuration file: of each the best spelling, wherever it nests, with its place."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.text import clean, masked
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.load import frameworks
from stabtree.frameworks.recognise import of_config, of_model, plain_word
from stabtree.loaders.config import positive_of
from stabtree.run import Setting
from stabtree.tools.check.document import ConfigFile, KeyPath, dotted
from stabtree.tools.check.precision import EXCLUSIVE, MODES, precision_in
from stabtree.tools.check.tables import (
    INNER,
    KINDS,
    LOOSE,
    SCALERS,
    SETTINGS,
    SPELLINGS,
    section_kind,
    squeezed,
    stage_of,
)

if TYPE_CHECKING:
    from stabtree.frameworks.load import Rule

Settings = dict[str, Setting]

# Ranks: the lowest counts.
_SURE = -1  # what the trainer's own way says: better than any spelling
_DEEPER = 10  # how much worse a spelling is one section further in
_PRECISION = 5  # how much worse a bare dtype is than what names itself
_MODEL = 5  # how much worse one is among those of a model, which may be there for something else
_ANY = 100  # how much worse one is in a section that no table knows: if two of these differ, neither counts

_DEEPEST = 6  # sections in sections
_DEEPEST_FLAG = 3  # the same, of flags that exclude each other
_OPEN = ("auto", "none", "null", "", "???")  # how a value says that somebody else will decide
_NONE_IS_AN_ANSWER = ("report_to", "log_with", *SCALERS)
# What a section says that is switched off, by its kind.
_OFF = {
    "scaler": ("loss_scaling", "none"),
    "checkpoint": ("save_strategy", "no"),
    "evaluation": ("eval_strategy", "no"),
}
_CLASSES = ("target", "class_path")  # what is built, which may be no more than the settings of it
_BETAS = ("betas", "adam_betas", "opt_betas")
_NUMBER = re.compile(r"[\d.]+(?:e-?\d+)?")
_PARTS = re.compile(r"[./]")
_SWITCH = re.compile(r"(?:use|is|enable|do|with|has)_(\w+)|(\w+)_(?:enabled?|on)")
_IMPORTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # a value that is a name of another module
# Counts of steps that some trainers take as a share of all steps if they are below 1.
_SHARES = ("log_interval", "eval_every", "checkpoint_every")


class Spelling(Struct, frozen=True):
    """A value that may be a setting.

    Attributes:
        key: the canonical key.
        rank: how good its spelling is; the lowest counts.
        path: where it stands in the file.
        value: as it stands there; None if it is not set.
        open: whether it is set elsewhere, so that no default counts.
    """

    key: str
    rank: int
    path: KeyPath
    value: Any
    open: bool = False


class FileSettings(Struct):
    """What a configuration file says.

    Attributes:
        file: the file.
        framework: the trainer that it is for; empty if nothing shows it.
        settings: its settings.
        notes: what is wrong in it.
        open: settings that are made elsewhere, so that no default of the trainer counts.
        partial: whether no default counts at all: of a part of a configuration, or what a log holds of it.
    """

    file: ConfigFile
    framework: str = ""
    settings: Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    partial: bool = False


def read_settings(file: ConfigFile) -> FileSettings:
    """Return the settings of a file, the better spelling of each, and notes on what can't be one."""
    values = file.values
    framework = "" if is_model(values) else trainer_of(values)
    trainer = framework_called(framework)
    words = {plain_word(key) for part in (values, *values.values()) if isinstance(part, Mapping) for key in part}
    partial = not words.isdisjoint(("log_history", "defaults", "base", *trainer.config.own_loop))
    reading = FileSettings(file, framework, notes=list(file.notes), partial=partial)
    if is_model(values):
        for key, value in of_model(values).items():
            _convert(reading, Spelling(key, 0, (), value), noted=False)
        return reading
    if framework:
        reading.settings["framework"] = Setting(framework, file.name)
    candidates = sorted(_section(values, "top", (), framework), key=attrgetter("rank"))
    _settle(reading, _agreeing([*_own_ways(values, framework), *candidates], reading))
    for path, section in _sections(values, ()):
        for key, flags in EXCLUSIVE.items():
            on = [flag for flag in flags if _is_on(section.get(flag))]
            if len(on) > 1:
                reading.settings[key] = file.setting("+".join(on), (*path, on[0]))
    if near := _misspelled(reading):
        path, word = near
        shown = f"{masked(clean(path[-1], 40))}: did you mean {word}?"
        reading.settings["misspelled"] = file.setting(shown, path, "key")
    for key in _without_meaning(values, framework):
        reading.settings.pop(key, None)
    return reading


def is_model(values: Mapping[str, Any]) -> bool:
    """Return whether a file describes a model and no training, as `config.json` beside weights does."""
    return "architectures" in values and "model_type" in values and not of_config(values)


def trainer_of(values: Mapping[str, Any]) -> str:
    """Return the trainer that a file is for, by its keys or by those of a section that holds all of its settings."""
    found = of_config(values)
    for key, section in values.items():
        if found:
            break
        if isinstance(section, Mapping) and section_kind(plain_word(key)):
            target = str(section.get("_target_") or section.get("class_path") or "")
            built = (one.id for one in frameworks().values() if target in one.config.targets)
            found = next(built, "") or of_config(section)
    return found


def _is_on(value: Any) -> bool:
    """Return whether a flag is on: `bf16: true`, `fp16: {enabled: true}`."""
    return value is True or (isinstance(value, Mapping) and value.get("enabled") is True)


def _sections(values: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    yield path, values
    for key, value in values.items():
        if isinstance(value, Mapping) and len(path) < _DEEPEST_FLAG and section_kind(plain_word(key)):
            yield from _sections(value, (*path, key))


def _without_meaning(values: Mapping[str, Any], framework: str) -> Iterator[str]:
    """Yield the settings without a meaning: of a state that keeps them all, of a schedule that is off."""
    if "log_history" in values:
        yield from ("eval_every", "checkpoint_every")
        return
    if values.get("decay_lr") is False:
        yield from ("schedule_steps", "min_lr", "warmup_steps")
    steps = values.get("max_steps")
    if framework_called(framework).defaults.steps_over_epochs and isinstance(steps, int) and steps > 0:
        yield "epochs"


# ---- where settings stand


def is_open(value: Any) -> bool:
    """Return whether a value is not there: null, `auto`, or what another setting is to fill in (`${...}`)."""
    return value is None or (isinstance(value, str) and (value.strip().lower() in _OPEN or "${" in value))


def _section(values: Mapping[str, Any], kind: str, path: KeyPath, framework: str) -> Iterator[Spelling]:
    """Yield all values of a section, and of those in it, that a setting is spelled by."""
    flag = next((word for word in ("enabled", "enable", "enable_checkpoint") if values.get(word) is False), "")
    if flag:
        if kind in _OFF:
            place = path if kind == "scaler" else (*path, flag)  # the scaler is called by its section
            yield Spelling(_OFF[kind][0], _SURE, place, _OFF[kind][1])
        return
    off = _switched_off(values)
    for spelling, value in values.items():
        below = (*path, spelling)
        *sections, word = (plain_word(part) for part in _PARTS.split(str(spelling)))
        inner = _inside(kind, sections)
        if not inner or any(word == stem or word.startswith(f"{stem}_") for stem in off):
            continue
        if not isinstance(value, Mapping):
            yield from _leaf(word, inner, below, value, framework)
        elif len(below) <= _DEEPEST and (deeper := _inside(inner, [word])):
            yield from _section(value, deeper, below, framework)


def _switched_off(values: Mapping[str, Any]) -> set[str]:
    """Return what flags of a section switch off: `use_peft: false` the words `peft` and `lora`."""
    off: set[str] = set()
    for key, value in values.items():
        switch = _SWITCH.fullmatch(plain_word(key))
        if switch and value is False:
            off.add(switch[1] or switch[2])
    if off & {"peft", "lora"}:
        off |= {"peft", "lora"}
    return off


def _inside(kind: str, words: list[str]) -> str:
    """Return the kind of a section within others; empty if one of them is about something else."""
    for word in words:
        if word in INNER and kind != "top":
            continue
        deeper = section_kind(word)
        # One that no table knows counts only if it may be about the training as a whole.
        if deeper == "any" and (kind not in ("top", "training", "any") or word.startswith(("val_", "eval_", "test_"))):
            return ""
        kind = deeper
        if not kind:
            break
    return kind


def _leaf(word: str, kind: str, path: KeyPath, value: Any, framework: str) -> Iterator[Spelling]:
    is_guessed = kind == "any" or stage_of(plain_word(path[0])) != ""
    depth = _DEEPER * (len(path) - 1) + _MODEL * (kind == "model") + _ANY * is_guessed
    if word in _BETAS and kind in ("top", "training", "optimizer", "any"):
        betas = _NUMBER.findall(value) if isinstance(value, str) else value
        for index, beta in enumerate(betas[:2] if isinstance(betas, list | tuple) else ()):
            yield Spelling(f"beta{index + 1}", depth, path, beta)
        return
    if isinstance(value, list) and len(value) == 1:  # one for each phase, or each group of weights
        value = value[0]
    left_open = is_open(value) and not (word in _NONE_IS_AN_ANSWER and value == "none")
    precision = {} if left_open else precision_in(word, kind, value, framework)
    for key, inner in precision.items():
        yield Spelling(key, depth + _PRECISION * (word == "dtype"), path, inner)
    key, rank = ("", 0) if precision else _key_of(word, kind, framework)
    if key:
        yield Spelling(key, rank + depth, path, None if left_open else value, left_open and value is not None)


def _key_of(word: str, kind: str, framework: str) -> tuple[str, int]:
    """Return the canonical key of a word in a kind of section, and the rank of the spelling; no key if it is none."""
    section = KINDS[kind]
    if kind not in ("optimizer", "schedule"):
        config = framework_called(framework).config
        if word in config.keys:
            return config.keys[word], 0
        if word in config.ignored:
            return "", 0
    if word in section.own:
        return section.own[word], int(word in _CLASSES)
    key, rank = SPELLINGS.get(word) or (("", 0) if framework else LOOSE.get(squeezed(word), ("", 0)))
    return (key, rank) if key in section.shared or "*" in section.shared else ("", 0)


# ---- which of the values count


def _agreeing(candidates: list[Spelling], reading: FileSettings) -> list[Spelling]:
    """Drop what two equal sections say in two ways, unless something better is there.

    Equal are sections that no table knows, and those of stages that follow one another: `sft`, then `dpo`.
    """
    sure = {one.key for one in candidates if one.rank < _ANY and one.value is not None}
    guessed: dict[str, list[Spelling]] = defaultdict(list)
    for one in candidates:
        if one.rank >= _ANY and one.key not in sure and _is_readable(one):
            guessed[one.key].append(one)
    differing = set()
    for key, (first, *others) in guessed.items():
        other = next((one for one in others if one.value != first.value), None)
        if other:
            where = f"{reading.file.where(first.path)} and {dotted(other.path)}"
            reading.notes.append(f"{where} say {key} in two ways: not judged.")
            differing.add(key)
    reading.open |= differing
    return [one for one in candidates if not (one.rank >= _ANY and one.key in differing)]


def _is_readable(one: Spelling) -> bool:
    try:
        return one.value is not None and SETTINGS[one.key][0](one.value) is not None
    except (ValueError, OverflowError, TypeError):
        return False


def _settle(reading: FileSettings, candidates: list[Spelling]) -> None:
    """Take the first candidate of each setting that is set, read as its key asks for."""
    settings, shares = reading.settings, dict[str, Setting]()
    bare_batch = False
    for one in map(_in_steps, candidates):
        key = one.key
        if one.open:
            reading.open.add(key)
        if key in settings or key in shares or one.value is None or _is_unset(one):
            continue
        if key in _SHARES and _is_share(one.value):
            shares[key] = reading.file.setting(one.value, one.path)
            reading.open.add(key)
        elif _convert(reading, one) and key == "batch_size":
            bare_batch = plain_word(one.path[-1]) == key
    steps = settings.get("max_steps")
    if framework_called(reading.framework).defaults.shares and steps and isinstance(steps.value, int):
        for key, share in shares.items():
            settings[key] = replace(share, value=math.ceil(float(share.value) * steps.value))  # type: ignore[arg-type]
    # A bare `batch_size` is what one device takes at once if it is accumulated.
    times = settings.get("accumulation_steps")
    if bare_batch and times and times.value != 1 and "micro_batch_size" not in settings:
        settings["micro_batch_size"] = settings.pop("batch_size")


def _convert(reading: FileSettings, one: Spelling, *, noted: bool = True) -> bool:
    """Add a value as its key asks for, or note that it is of the wrong kind; return whether it was added."""
    try:
        reading.settings[one.key] = reading.file.setting(SETTINGS[one.key][0](one.value), one.path)
    except (ValueError, OverflowError, TypeError) as error:
        text = one.value if isinstance(one.value, str) else ""
        if _IMPORTED.fullmatch(text):
            reading.open.add(one.key)
        elif noted and not (one.key == "warmup_steps" and text.isalpha()):  # the shape of a warm-up: `linear`
            shown = masked(clean(repr(one.value), 40))
            reading.notes.append(f"{reading.file.where(one.path)} is {shown}, not {clean(error, 60)}: ignored.")
        return False
    return True


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _is_unset(one: Spelling) -> bool:
    """Return whether a value says that nothing is set: -1, but of clipping, and `false` or 0 of what can't be 0."""
    counts = SETTINGS[one.key][0] is positive_of
    if isinstance(one.value, bool):
        return counts and not one.value
    if not isinstance(one.value, int | float):
        return False
    return (one.value == -1 and one.key != "grad_clip") or (counts and one.value == 0)


# Times with a unit, as Composer takes them: `5000ba` are batches, `1ep` is an epoch, `0.03dur` a share of the run.
_TIME = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?) ?(ba|iter|ep|dur|sp|samp|tok|t|sec|min|hr)", re.IGNORECASE)
_TIMED = ("max_steps", "warmup_steps", "eval_every", "checkpoint_every", "log_interval")
# What a number of epochs says: the setting, and its value if that is not the number.
_EPOCHS = {
    "max_steps": ("epochs", ""),
    "eval_every": ("eval_strategy", "epoch"),
    "checkpoint_every": ("save_strategy", "epoch"),
}


def _in_steps(one: Spelling) -> Spelling:
    """Return a time in steps or epochs as the setting that it is; one in another unit as no value."""
    if one.key == "warmup_steps" and _is_share(one.value):
        return replace(one, key="warmup_ratio")
    time = _TIME.fullmatch(one.value) if isinstance(one.value, str) and one.key in _TIMED else None
    if not time:
        return one
    number, unit = float(time[1]), time[2].lower()
    if unit in ("ba", "iter"):
        return replace(one, value=number)
    if unit == "dur" and one.key == "warmup_steps":
        return replace(one, key="warmup_ratio", value=number)
    if unit == "ep" and one.key in _EPOCHS:
        key, word = _EPOCHS[one.key]
        return replace(one, key=key, value=word or number)
    return replace(one, value=None)


# ---- what single trainers say in a way of their own, not by one key that has one value

_ADAPTERS = (
    *("adapter", "finetuning_type", "use_peft", "is_peft", "use_lora", "is_lora", "lora_enable", "enable_lora"),
    *("lora", "peft"),
)


def _own_ways(values: Mapping[str, Any], framework: str) -> Iterator[Spelling]:
    words = {plain_word(key): key for key in values}
    signs = framework_called(framework).config
    yield from _adapter(values, words)
    for rule in signs.rules:
        yield from _by_rule(rule, values)
    builder = words.get(signs.classes_in, "")
    if isinstance(values.get(builder), Mapping):
        yield from _built(values[builder], builder)


def _by_rule(rule: Rule, values: Mapping[str, Any]) -> Iterator[Spelling]:
    """Yield what a rule of the trainer's file sets, if it applies."""
    path: list[str] = []
    value: Any = values
    for word in rule.at:
        key = (
            next((key for key in value if plain_word(key) == plain_word(word)), None)
            if isinstance(value, Mapping)
            else None
        )
        if key is None:
            return
        path.append(key)
        value = value[key]
    if rule.equals is not None:
        applies = (value.lower() if isinstance(value, str) else value) in rule.equals
    elif rule.kind == "list":
        applies = isinstance(value, list)
    else:
        applies = rule.kind == "any" or not is_open(value)
    if applies:
        named = (name for pattern, name in rule.words.items() if fnmatchcase(str(value), pattern))
        yield Spelling(rule.key, _SURE, tuple(path), next(named, value if rule.value is None else rule.value))


def _adapter(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelling]:
    """Yield whether all weights are trained, or low-rank ones on weights that may be quantized."""
    word = next((word for word in _ADAPTERS if word in words and not isinstance(values[words[word]], Mapping)), "")
    if not word:
        return
    name = str(values[words[word]]).lower()
    if name == "true":
        name = "lora"
    elif name in ("none", "", "false") and word != "adapter":
        name = "full"
    in_4bit = values.get(words.get("load_in_4bit", "")) is True or values.get(words.get("quantization_bit", "")) == 4
    if name == "lora" and in_4bit:
        name = "qlora"
    if name in ("lora", "qlora", "full"):
        yield Spelling("adapter", _SURE, (words[word],), name)


def _built(section: Mapping[str, Any], name: str) -> Iterator[Spelling]:
    """Yield what the loggers and callbacks say that a section of a configuration has the trainer build.

    All callbacks that save count together: the most frequent, and all checkpoints that any of them keeps.
    """
    logger, callbacks = section.get("logger"), section.get("callbacks")
    logs = [_class(one).removesuffix("Logger") for one in (logger if isinstance(logger, list) else [logger])]
    if any(logs) or logger is False:
        yield Spelling("logs", _SURE, (name, "logger"), list(filter(None, logs)))
    saving: list[tuple[Mapping[str, Any], KeyPath]] = []
    listed: Iterable[Any] = callbacks if isinstance(callbacks, list) else ()
    if isinstance(callbacks, Mapping):
        listed = callbacks.values()
    for index, callback in enumerate(listed):
        if _class(callback) == "ModelCheckpoint":
            path = (name, "callbacks", index, *(("init_args",) if "init_args" in callback else ()))
            options = callback.get("init_args", callback)
            if isinstance(options, Mapping):
                saving.append((options, path))
    every = [(options.get("every_n_train_steps"), path) for options, path in saving]
    counts = [(count, path) for count, path in every if type(count) is int and count > 0]
    if counts:
        count, path = min(counts, key=lambda pair: pair[0])
        yield Spelling("checkpoint_every", _SURE, (*path, "every_n_train_steps"), count)
    places = [(*path, "save_top_k") for options, path in saving if "save_top_k" in options]
    kept = [options.get("save_top_k", 1) for options, _ in saving]
    if places and not any(kept) and not any(options.get("save_last") is True for options, _ in saving):
        yield Spelling("save_strategy", _SURE, places[-1], "no")
    elif places and all(isinstance(number, int) and number >= 0 for number in kept):
        yield Spelling("save_total_limit", _SURE, places[-1], sum(kept))


def _class(value: Any) -> str:
    """Return the name of the class that a section builds; empty if it is none."""
    if not isinstance(value, Mapping):
        return ""
    return str(value.get("class_path") or value.get("_target_") or "").rsplit(".", 1)[-1]


# ---- keys that no table knows and that are nearly one that is: `learning_rte`

_MIN_LENGTH = 7  # characters: shorter words resemble too many others
_MAX_KEYS = 1000  # no configuration of a person has as many
_CLOSE = 0.9  # of difflib, at which 1 is the same word: a letter in ten
_SEARCHED = ("top", "training", "optimizer", "schedule")  # kinds of sections
_KNOWN = [word for word, (key, _) in SPELLINGS.items() if SETTINGS[key][1]]  # without keys that no file spells
_USED = (*SPELLINGS, *MODES, *SCALERS)
# All that known spellings are made of: `model_type` is no slip for `model_dtype`.
_USED_PARTS = frozenset(part for word in _USED for part in word.split("_"))


def _misspelled(reading: FileSettings) -> tuple[KeyPath, str] | None:
    """Return the first key that is nearly a spelling of a setting that is not there, and that spelling."""
    config = framework_called(reading.framework).config
    for path, kind in islice(_keys(reading.file.values, "top", ()), _MAX_KEYS):
        word = plain_word(path[-1])
        used = word in (*_USED, *KINDS[kind].own, *config.keys, *config.ignored)
        if any((len(word) < _MIN_LENGTH, used, _USED_PARTS.issuperset(word.split("_")))):
            continue
        others = [other for other in _KNOWN if abs(len(other) - len(word)) < 2 and squeezed(other) != squeezed(word)]
        near = get_close_matches(word, others, 1, _CLOSE)
        if near and SPELLINGS[near[0]][0] not in {*reading.settings, *reading.open}:
            return path, near[0]
    return None


def _keys(values: Mapping[str, Any], kind: str, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    for key, value in values.items():
        if not isinstance(value, Mapping):
            yield (*path, key), kind
        elif len(path) < len(_SEARCHED) and (deeper := section_kind(plain_word(key))) in _SEARCHED:
            yield from _keys(value, deeper, (*path, key))
