"""What single trainers say in a way of their own, not by one key that has one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stabtree.loaders.configs.framework import plain_word
from stabtree.loaders.configs.spelled import Spelled, is_open

if TYPE_CHECKING:
    from stabtree.loaders.configs.document import Path_

_SURE = -1  # the rank of what is told here: better than any spelling
_TRACKERS = ("wandb", "tensorboard", "mlflow", "comet", "trackio", "clearml", "swanlab", "neptune")
_STAGES = {"pt": "pretrain", "rm": "reward"}
# Words that only the configuration of one task of TRL has.
_TASKS = {
    "num_generations": "grpo",
    "precompute_ref_log_probs": "dpo",
    "completion_only_loss": "sft",
    "dataset_text_field": "sft",
}


def told_by_trainer(values: Mapping[str, Any], framework: str) -> Iterator[Spelled]:
    """The settings that a configuration tells in the way of its trainer."""
    words = {plain_word(key): key for key in values}
    yield from _adapter(values, words, framework)
    yield from _trackers(values, words)
    if framework == "trl":
        yield from (_told("task", task, words[word]) for word, task in _TASKS.items() if word in words)
    elif framework == "llamafactory" and not is_open(values.get(stage := words.get("stage", ""))):
        yield _told("task", _STAGES.get(str(values[stage]), values[stage]), stage)
    elif framework == "axolotl":
        yield from _axolotl(values, words)
    elif framework == "verl":
        yield from _verl(values)
    elif framework == "lightning":
        yield from _lightning(values, words)
    for word, key in (("checkpoint", "save_strategy"), ("validation", "eval_strategy")):
        inner = values.get(word)
        if isinstance(inner, Mapping):
            off = [name for name in ("enabled", "enable", "enable_checkpoint") if inner.get(name) is False]
            yield from (_told(key, "no", word, name) for name in off[:1])


def _told(key: str, value: object, *path: str | int) -> Spelled:
    return Spelled(key, _SURE, path, value)


def _adapter(values: Mapping[str, Any], words: Mapping[str, str], framework: str) -> Iterator[Spelled]:
    """Whether all weights are trained, or low-rank ones on weights that may be quantized."""
    found, place = "", ""
    for word in ("adapter", "finetuning_type", "use_peft"):
        if word in words and not isinstance(values[words[word]], Mapping):
            place, said = words[word], str(values[words[word]]).lower()
            none = said in ("none", "", "false") and (word != "adapter" or framework == "axolotl")
            found = "full" if none else "lora" if said == "true" else said
            break
    model = values.get("model")
    if not found and framework == "torchtune" and isinstance(model, Mapping):
        component = str(model.get("_component_", ""))
        place, name = "model", component.rsplit(".", 1)[-1]
        found = ("qlora" if "qlora" in name else "lora" if "lora" in name else "full") if name else ""
    if found == "lora" and _is_4bit(values, words):
        found = "qlora"
    if found in ("lora", "qlora", "full"):
        yield _told("adapter", found, place)


def _is_4bit(values: Mapping[str, Any], words: Mapping[str, str]) -> bool:
    bits = values.get(words.get("quantization_bit", ""))
    return values.get(words.get("load_in_4bit", "")) is True or bits == 4


def _trackers(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelled]:
    """Where metrics go, by a flag for each place: `use_wandb`, `wandb_log`, or a project of that name."""
    if "report_to" in words:
        return
    names, places = [], []
    for name in _TRACKERS:
        for word in (f"use_{name}", f"{name}_log", f"enable_{name}", f"{name}_project"):
            value = values.get(words.get(word, ""))
            if word in words and (value is True or (word.endswith("project") and not is_open(value))):
                switch = values.get(words.get(f"{name}_log", ""))
                if switch is not False:
                    names.append(name)
                    places.append(words[word])
                    break
    if names:
        yield _told("logs", names, places[0])


def _axolotl(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelled]:
    for word, key in (("evals_per_epoch", "eval_strategy"), ("saves_per_epoch", "save_strategy")):
        count = values.get(words.get(word, ""))
        if isinstance(count, int | float) and not isinstance(count, bool):
            yield _told(key, "epoch" if count else "no", words[word])
    if not is_open(values.get(words.get("pretraining_dataset", ""))):
        yield _told("task", "pretrain", words["pretraining_dataset"])


def _verl(values: Mapping[str, Any]) -> Iterator[Spelled]:
    """The way that advantages are estimated, and what -1 switches off."""
    algorithm, trainer = values.get("algorithm"), values.get("trainer")
    if isinstance(algorithm, Mapping) and not is_open(how := algorithm.get("adv_estimator")):
        yield _told("task", {"gae": "ppo"}.get(str(how), how), "algorithm", "adv_estimator")
    if isinstance(trainer, Mapping):
        for word, key in (("save_freq", "save_strategy"), ("test_freq", "eval_strategy")):
            if trainer.get(word) == -1:
                yield _told(key, "no", "trainer", word)
        if isinstance(logs := trainer.get("logger"), list):
            yield _told("logs", logs, "trainer", "logger")


def _lightning(values: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[Spelled]:
    name = words.get("trainer", "")
    trainer = values.get(name)
    if not isinstance(trainer, Mapping):
        return
    for word, key in (("enable_checkpointing", "save_strategy"), ("limit_val_batches", "eval_strategy")):
        if word in trainer and trainer[word] is not None and trainer[word] in (False, 0):
            yield _told(key, "no", name, word)
    if "gradient_clip_val" in trainer and trainer["gradient_clip_val"] is None:
        yield _told("grad_clip", 0.0, name, "gradient_clip_val")
    if "logger" in trainer and (logs := _classes(trainer["logger"])) is not None:
        yield _told("logs", [log.removesuffix("Logger") for log in logs], name, "logger")
    callbacks = trainer.get("callbacks")
    for place, callback in enumerate(callbacks if isinstance(callbacks, list) else []):
        if isinstance(callback, Mapping) and _class(callback) == "ModelCheckpoint":
            inner = callback.get("init_args", callback)
            path: Path_ = (name, "callbacks", place, *(("init_args",) if inner is not callback else ()))
            if isinstance(inner, Mapping):
                yield from _saves(inner, path)


def _saves(given: Mapping[str, Any], path: Path_) -> Iterator[Spelled]:
    for word, key in (("every_n_train_steps", "checkpoint_every"), ("save_top_k", "save_total_limit")):
        if not is_open(given.get(word)):
            yield _told(key, given[word], *path, word)
    if given.get("save_top_k") == 0 and given.get("save_last") is not True:
        yield _told("save_strategy", "no", *path, "save_top_k")


def _classes(value: Any) -> list[str] | None:
    """The names of the classes that are to be made; none for `false`, None where nothing is said."""
    if value is False:
        return []
    many = value if isinstance(value, list) else [value]
    names = [name for one in many if isinstance(one, Mapping) and (name := _class(one))]
    return names or None


def _class(value: Mapping[str, Any]) -> str:
    return str(value.get("class_path") or value.get("_target_") or "").rsplit(".", 1)[-1]
