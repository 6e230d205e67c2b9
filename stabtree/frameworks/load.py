"""All trainers, from the YAML files beside this module; read once, when the first one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.data import DataFile, compiled, flag, number, one_of, text, texts, texts_by_name, words
from stabtree.common.errors import StabtreeError
from stabtree.frameworks import model
from stabtree.frameworks.model import ConfigSigns, Defaults, Framework, LogSigns, Rule

if TYPE_CHECKING:
    from stabtree.common.data import Reader
    from stabtree.common.yaml12 import Path as Place

FOLDER = Path(__file__).parent
OTHER = "other"  # the file of any trainer that is not known, which names each knob in general words


def _marks(value: Any) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(one.split()) for one in texts(value))


def _as_given(value: Any) -> object:
    return value


def _settings_by_piece(value: Any) -> Mapping[str, str]:
    """Return settings as `key=value` by the piece of a line that stands for them; empty ones are allowed."""
    if not isinstance(value, Mapping) or not all(word == "" or "=" in str(word) for word in value.values()):
        raise ValueError("settings as key=value, or empty, by pieces of lines")
    return {text(piece): str(setting) for piece, setting in value.items()}


def _spelling(value: Any) -> str:
    return "" if value == "" else text(value)


_RULE: Mapping[str, Reader] = {
    "at": lambda value: tuple(text(value).split(".")),
    "key": text,
    "is": _as_given,
    "value": _as_given,
    "words": texts_by_name,
}
_CONFIG: Mapping[str, Reader] = {
    "order": number,
    "marks": _marks,
    "keys": texts_by_name,
    "ignored": words,
    "rules": _as_given,
    "classes_in": text,
    "named_by": words,
    "targets": words,
    "own_loop": words,
    "adds": flag,
    "example": text,
}
_LOG: Mapping[str, Reader] = {
    "order": number,
    "marks": _marks,
    "path": text,
    "prefix": text,
    "format": text,
    "csv_logger": flag,
    "sparse_csv": flag,
    "beside": text,
    "prints": _settings_by_piece,
    "last_line": text,
    "errors": text,
    "example": text,
}
_DEFAULTS: Mapping[str, Reader] = {
    "scales_fp16": flag,
    "dtype": one_of("weights", "autocast", "all"),
    "bare_precision_is_mixed": flag,
    "mean_rows": flag,
    "shares": flag,
    "steps_over_epochs": flag,
    "fine_tunes": flag,
    "task": text,
    "pretrains": flag,
    "takes_beside": text,
}
_SECTIONS = ("config", "log", "defaults", "unset", "unset_by_task", "knobs")


@cache
def frameworks() -> Mapping[str, Framework]:
    """Return the known trainers by id, without the one that stands for all others."""
    return {id_: one for id_, one in all_trainers().items() if id_ != OTHER}


def framework(id_: str) -> Framework:
    """Return the trainer of that id; the one that stands for all others where none is called so."""
    return all_trainers().get(id_, all_trainers()[OTHER])


@cache
def all_trainers() -> Mapping[str, Framework]:
    """Return the known trainers by id, with the one that stands for all others."""
    return compiled("frameworks", model) or read(FOLDER)


def read(folder: Path) -> Mapping[str, Framework]:
    """Read the trainers of a folder: `other.yaml`, which names the knobs, and a file for each trainer.

    Raises:
        StabtreeError: with all mistakes of all files.
    """
    files = {path.stem: DataFile(path) for path in sorted(folder.glob("*.yaml"))}
    if OTHER not in files:
        raise StabtreeError(f"{OTHER}.yaml is missing", where=str(folder), hint="install stabtree again")
    knobs = tuple(files[OTHER].value.get("knobs") or ())
    # A trainer takes over what it doesn't say from the one that it is built on, which is read before.
    order = sorted(files, key=lambda id_: "built_on" in files[id_].value)
    found: dict[str, Framework] = {}
    for id_ in order:
        found[id_] = _framework(id_, files[id_], knobs, found)
    mistakes = [*chain.from_iterable(file.mistakes for file in files.values())]
    if mistakes:
        raise StabtreeError("\n".join(mistakes), hint="correct these files")
    return dict(sorted(found.items()))


def _framework(id_: str, file: DataFile, knobs: tuple[str, ...], known: Mapping[str, Framework]) -> Framework:
    """Return a trainer; what is wrong is noted in the file's mistakes."""
    bases = tuple(name for name, one in known.items() if name != OTHER and not one.built_on)
    readers: dict[str, Reader] = {
        "name": text,
        "built_on": one_of(*bases),
        "library": text,
        "may_run_on": words,
        "checkpoint_steps": texts,
        "general": words,
        **dict.fromkeys(_SECTIONS, _as_given),
    }
    parts = file.section((), file.value, readers)
    file.lacks((), parts, ("name",))
    base = known.get(parts.get("built_on", ""), Framework("", ""))
    config, log = _config(file, parts.get("config")), LogSigns(**file.section(("log",), parts.get("log"), _LOG))
    defaults = file.section(("defaults",), parts.get("defaults"), _DEFAULTS)
    unset, by_task = (_plain(file, name, parts) for name in ("unset", "unset_by_task"))
    spelled = file.section(("knobs",), parts.get("knobs"), dict.fromkeys(knobs, _spelling))
    for knob in set(parts.get("general", ())).difference(knobs):
        file.wrong(("general",), f"general names {knob!r}, which is not a knob")
    if id_ != OTHER and not (config.marks or _knows_a_log(log)):
        file.wrong((), "nothing says how the trainer is recognised: config.marks, or log.marks")
    return Framework(
        id_,
        parts.get("name", id_),
        parts.get("built_on", ""),
        parts.get("library", base.library),
        parts.get("may_run_on", base.may_run_on),
        config,
        log,
        Defaults(**{**asdict(base.defaults), **defaults}),
        {**base.unset, **unset},
        {**base.unset_by_task, **by_task},
        parts.get("checkpoint_steps", ()),
        {**base.knobs, **spelled},
        parts.get("general", base.general),
    )


def _plain(file: DataFile, name: str, parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values by name as they stand in a section; a section that is none is noted."""
    found = parts.get(name, {})
    if not isinstance(found, Mapping):
        file.wrong((name,), f"{name} is not values by setting")
        return {}
    return found


def _knows_a_log(log: LogSigns) -> bool:
    by_columns = log.marks or log.prefix or log.beside or log.csv_logger or log.sparse_csv
    return bool(by_columns or log.path or log.format or log.prints)


def _config(file: DataFile, value: Any) -> ConfigSigns:
    found = file.section(("config",), value, _CONFIG)
    rules = found.pop("rules", ())
    return ConfigSigns(**found, rules=tuple(_rules(file, rules)))


def _rules(file: DataFile, rules: Any) -> list[Rule]:
    path: Place = ("config", "rules")
    if not isinstance(rules, list | tuple):
        file.wrong(path, "config.rules is not a list")
        return []
    found = []
    for index, one in enumerate(rules):
        here = (*path, index)
        parts = file.section(here, one, _RULE)
        file.lacks(here, parts, ("at", "key"))
        when = parts.pop("is", "")
        if isinstance(when, list):
            parts["equals"] = tuple(when)
        elif when in ("", "any", "list"):
            parts["kind"] = when
        else:
            file.wrong(here, f"is {when!r} is not any, list or a list of values")
        if {"at", "key"} <= parts.keys():
            found.append(Rule(**parts))
    return found


def knobs() -> Mapping[str, str]:
    """Return what fixes may change, each with how it is called where nothing is known of the trainer."""
    return framework(OTHER).knobs


def spelling(knob: str, id_: str) -> str:
    """Return how a trainer spells a knob; empty where that is not known."""
    return frameworks()[id_].knobs.get(knob, "") if id_ in frameworks() else ""
