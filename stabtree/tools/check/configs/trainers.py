"""What single trainers say in a way of their own, not by one key that has one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.recognise import plain_word
from stabtree.tools.check.configs.spelled import Spelled, is_open

if TYPE_CHECKING:
    from stabtree.frameworks.model import Rule
    from stabtree.tools.check.configs.document import Path_

_SURE = -1  # the rank of what is found here: better than any spelling
_ADAPTERS = (
    *("adapter", "finetuning_type", "use_peft", "is_peft", "use_lora", "is_lora", "lora_enable", "enable_lora"),
    *("lora", "peft"),
)
_SCHEDULES = ("param_scheduler", "lr_schedulers", "lr_scheduler", "schedulers")
_WARMUPS = ("LinearLR", "ConstantLR", "WarmupLR")
_TRACKERS = ("wandb", "tensorboard", "mlflow", "comet", "trackio", "clearml", "swanlab", "neptune")


def set_by_trainer(values: Mapping[str, Any], framework: str) -> Iterator[Spelled]:
    """Return the settings that a configuration makes in the way of its trainer."""
    words = {plain_word(key): key for key in values}
    signs = framework_called(framework).config
    yield from _adapter(values, words)
    yield from _trackers(values, words)
    for rule in signs.rules:
        yield from _by_rule(rule, values)
    if signs.classes_in:
        yield from _classes_in(values, words.get(signs.classes_in, ""))
    yield from _schedules(values, words)
    for word, key in (("checkpoint", "save_strategy"), ("validation", "eval_strategy")):
        inner = values.get(word)
        if isinstance(inner, Mapping):
            off = [name for name in ("enabled", "enable", "enable_checkpoint") if inner.get(name) is False]
            yield from (_setting(key, "no", word, name) for name in off[:1])


def _setting(key: str, value: object, *path: str | int) -> Spelled:
    return Spelled(key, _SURE, path, value)


def _schedules(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelled]:
    """Return what a list of schedules says that follow one another: the first may be a warm-up."""
    for name in (words[word] for word in _SCHEDULES if isinstance(values.get(words.get(word, "")), list)):
        listed = [(at, one) for at, one in enumerate(values[name]) if isinstance(one, Mapping)]
        for at, one in listed:
            kind = str(one.get("type", ""))
            if not kind.endswith(_WARMUPS) or (len(listed) == 1 and not one.get("end")):
                yield _setting("lr_schedule", kind or None, name, at, "type")
            elif one.get("begin", 0) == 0:
                steps = None if one.get("by_epoch", True) else one.get("end")
                yield Spelled("warmup_steps", _SURE, (name, at, "end"), steps, open=steps is None)


def _by_rule(rule: Rule, values: Mapping[str, Any]) -> Iterator[Spelled]:
    """Return what a rule of the trainer's file sets, nothing where it doesn't apply."""
    path: list[str] = []
    value: Any = values
    for word in rule.at:
        if not isinstance(value, Mapping):
            return
        key = next((key for key in value if plain_word(key) == plain_word(word)), None)
        if key is None:
            return
        path.append(key)
        value = value[key]
    if _applies(rule, value):
        found = value if rule.value is None else rule.value
        called = (name for pattern, name in rule.words.items() if fnmatchcase(str(value), pattern))
        yield _setting(rule.key, next(called, found), *path)


def _applies(rule: Rule, value: Any) -> bool:
    if rule.equals is not None:
        if isinstance(value, str):
            value = value.lower()
        return value in rule.equals
    if rule.kind == "list":
        return isinstance(value, list)
    return rule.kind == "any" or not is_open(value)


def _adapter(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelled]:
    """Return whether all weights are trained, or low-rank ones on weights that may be quantized."""
    known = [word for word in _ADAPTERS if word in words]
    word = next((word for word in known if not isinstance(values[words[word]], Mapping)), "")
    if not word:
        return
    found = _named_adapter(word, str(values[words[word]]).lower())
    if found == "lora" and _is_4bit(values, words):
        found = "qlora"
    if found in ("lora", "qlora", "full"):
        yield _setting("adapter", found, words[word])


def _named_adapter(word: str, value: str) -> str:
    """Return the adapter that a value of one of these words stands for; the value itself where that names it."""
    if value == "true":
        return "lora"
    if value in ("none", "", "false") and word != "adapter":
        return "full"
    return value


def _is_4bit(values: Mapping[str, Any], words: Mapping[str, str]) -> bool:
    bits = values.get(words.get("quantization_bit", ""))
    return values.get(words.get("load_in_4bit", "")) is True or bits == 4


def _trackers(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelled]:
    """Return where metrics go, by a flag for each: `use_wandb`, `wandb_log`, or a project of that name."""
    if "report_to" in words:
        return
    found = {}
    for name in _TRACKERS:
        key = _switched_on(name, values, words)
        if key:
            found[name] = key
    if found:
        yield _setting("logs", list(found), next(iter(found.values())))


def _switched_on(tracker: str, values: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """Return the key that sends metrics to a tracker; empty where none does, or the tracker is off."""
    if values.get(words.get(f"{tracker}_log", "")) is False:
        return ""
    for word in (f"use_{tracker}", f"{tracker}_log", f"enable_{tracker}", f"{tracker}_project"):
        value = values.get(words.get(word, ""))
        named = word.endswith("project") and not is_open(value)
        if word in words and (value is True or named):
            return words[word]
    return ""


def _classes_in(values: Mapping[str, Any], name: str) -> Iterator[Spelled]:
    """Return what the loggers and callbacks say that a section of a configuration has the trainer build."""
    section = values.get(name)
    if not isinstance(section, Mapping):
        return
    logs = _classes(section.get("logger"))
    if logs is not None:
        yield _setting("logs", [log.removesuffix("Logger") for log in logs], name, "logger")
    callbacks = section.get("callbacks")
    if isinstance(callbacks, Mapping):
        callbacks = [*callbacks.values()]
    if not isinstance(callbacks, list):
        return
    saving = []
    for index, callback in enumerate(callbacks):
        if isinstance(callback, Mapping) and _class(callback) == "ModelCheckpoint":
            inner = callback.get("init_args", callback)
            path: Path_ = (name, "callbacks", index, *(("init_args",) if inner is not callback else ()))
            if isinstance(inner, Mapping):
                saving.append((inner, path))
    yield from _saves(saving)


def _saves(saving: Sequence[tuple[Mapping[str, Any], Path_]]) -> Iterator[Spelled]:
    """Return what all callbacks that save say together: the most frequent, and all that any of them keeps."""
    every = [(given["every_n_train_steps"], path) for given, path in saving if _is_count(given, "every_n_train_steps")]
    if every:
        count, path = min(every, key=lambda one: one[0])
        yield _setting("checkpoint_every", count, *path, "every_n_train_steps")
    said = [(given, path) for given, path in saving if "save_top_k" in given]
    if not said:
        return
    kept = [given.get("save_top_k", 1) for given, _ in saving]
    place = (*said[-1][1], "save_top_k")
    if all(_saves_nothing(given) for given, _ in saving):
        yield _setting("save_strategy", "no", *place)
    elif all(isinstance(one, int) and one >= 0 for one in kept):
        yield _setting("save_total_limit", sum(kept), *place)


def _saves_nothing(given: Mapping[str, Any]) -> bool:
    return given.get("save_top_k") == 0 and given.get("save_last") is not True


def _is_count(given: Mapping[str, Any], key: str) -> bool:
    value = given.get(key)
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _classes(value: Any) -> list[str] | None:
    """Return the names of the classes to build; none for `false`, None where nothing is said."""
    if value is False:
        return []
    if not isinstance(value, list):
        value = [value]
    names = [_class(one) for one in value if isinstance(one, Mapping)]
    return [name for name in names if name] or None


def _class(value: Mapping[str, Any]) -> str:
    return str(value.get("class_path") or value.get("_target_") or "").rsplit(".", 1)[-1]
