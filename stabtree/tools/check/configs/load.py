"""A configuration before its run: `load_config`."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.frameworks.load import framework as framework_called
from stabtree.run import FileUse, Run, Setting
from stabtree.tools.check.configs.complete import completed
from stabtree.tools.check.configs.document import HINT, SHELL
from stabtree.tools.check.configs.folder import SUFFIXES, beside, configured, in_folder

if TYPE_CHECKING:
    from stabtree.tools.check.configs.complete import Settings
    from stabtree.tools.check.configs.folder import Configured

# What the configuration of a model says too.
_NOT_TRAINING = ("vocab_size", "n_classes", "weights_dtype")
_NEITHER = "is no configuration, and no log whose header says how it was trained"


def load_config(*paths: str | Path) -> Run:
    """Read what a run is going to be from its configuration, before it starts.

    Args:
        paths: the files of one configuration, or its folder. What a later one says goes before an earlier one's.

    Returns:
        A run without series. Its `config` holds what the files say, the trainer's defaults, and what follows.

    Raises:
        StabtreeError: where a file can't be read, or none holds a setting that is known.
    """
    if not paths:
        raise StabtreeError("no configuration to read", hint=HINT)
    settings: Settings = {}
    notes: list[str] = []
    read: list[Configured] = []
    named = {os.path.realpath(path) for path in paths}
    for path in map(Path, paths):
        found, more = _read(path)
        notes += more
        for one in found:
            if one.path != path and os.path.realpath(one.path) in named:
                continue  # it lies beside this one, and is named itself
            notes += (*one.notes, *_otherwise(settings, one.settings))
            settings = _merged(settings, one.settings)
            read.append(one)
    if not settings.keys() - {*_NOT_TRAINING, "framework", "name"}:
        where = masked(clean(paths[0]))
        raise StabtreeError("holds no setting of a training that stabtree knows", where=where, hint=HINT)
    name = settings.pop("name", None)
    sources = tuple(FileUse(masked(clean(one.path)), _format(one), 0) for one in read)
    return Run(
        str(name.value) if name else Path(sources[-1].path).stem,
        {},
        completed(settings, _left_open(read)),
        sources=sources,
        notes=tuple(dict.fromkeys(notes)),
    )


def _read(path: Path) -> tuple[list[Configured], tuple[str, ...]]:
    """What a path says; of one that is no configuration but a log, what its trainer wrote of its settings there."""
    try:
        if path.is_dir():
            return in_folder(path)
        one = configured(path)
    except StabtreeError:
        if path.suffix.lower() in (*SUFFIXES, *SHELL, ".py") or not path.exists():
            raise
        from stabtree.tools.check.configs.logged import (
            logged,  # the loaders of logs, which a configuration needs none of
        )

        found = logged(path)
        if not found:
            raise StabtreeError(_NEITHER, where=masked(clean(path)), hint=HINT) from None
        return [found], ()
    others, notes = beside(one)
    return [*others, one], notes


def _left_open(read: list[Configured]) -> frozenset[str] | None:
    """Return what the files leave to others; None where one of them is only a part."""
    said = [one.open for one in read if one.open is not None]
    return frozenset(chain.from_iterable(said)) if len(said) == len(read) else None


def _merged(settings: Settings, later: Settings) -> Settings:
    """Return what two files say together: what is added to a trainer takes nothing of its defaults from it."""
    adds = [_adds(one) for one in (settings, later)]
    found = {**settings, **later}
    if adds[1] and "framework" in settings:
        found["framework"] = settings["framework"]
    pair = [one["dtype"] for one in (settings, later) if "dtype" in one]
    if any(adds) and {one.value for one in pair} == {"bf16", "fp16"}:
        found["precisions"] = Setting("fp16+bf16", " and ".join(one.source for one in pair))
    return found


def _adds(settings: Settings) -> bool:
    trainer = settings.get("framework")
    return trainer is not None and framework_called(str(trainer.value)).config.adds


def _format(one: Configured) -> str:
    if one.framework:
        return f"configuration ({one.framework})"
    return "configuration"


def _otherwise(settings: Settings, later: Settings) -> list[str]:
    """A note for each setting that a later file says otherwise."""
    both = [key for key in later if key in settings and key not in ("framework", "name")]
    return [
        f"{settings[key].source} says {settings[key].value}; {later[key].source} says {later[key].value}, which counts."
        for key in both
        if settings[key].value != later[key].value
    ]
