"""What a log holds of the configuration that it was written under, for a run whose configuration is lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.frameworks.load import framework as framework_called
from stabtree.loaders.assemble.run import run_of
from stabtree.loaders.folder import find
from stabtree.loaders.packed.unpack import MAX_BYTES, chunks
from stabtree.loaders.paths.read import read_files
from stabtree.loaders.source import open_source
from stabtree.loaders.tensorboard import loader as tensorboard
from stabtree.loaders.tensorboard.records import RecordReader
from stabtree.loaders.tensorboard.scalars import Scalars
from stabtree.loaders.text.settings import ConfigDump
from stabtree.loaders.wandb import loader as wandb
from stabtree.loaders.wandb.records import Log
from stabtree.metrics.names import named
from stabtree.predicates.settings.answers import DEFAULT
from stabtree.tools.check.configs.document import ConfigFile, literal
from stabtree.tools.check.configs.folder import Configured
from stabtree.tools.check.configs.keys import KEYS
from stabtree.tools.check.configs.settle import settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.run import Setting

# Files that hold a whole configuration, by what their names hold.
_WHOLE = ("tfevents", ".wandb")
_FEW = 3  # fewer settings than these are no header: a column named after an optimizer, a seed in a file's name
_MANY = 20  # fewer printed arguments than these are not all


def logged(path: Path) -> Configured | None:
    """The configuration in a log, or in the only log of a folder; None where there is none."""
    try:
        if path.is_dir():
            marked = chain.from_iterable(_marked(path, mark) for mark in _WHOLE)
            inside = [path.joinpath(*parts, name) for parts, name in marked]
            if len(inside) == 1:
                return logged(inside[0])
            return _header(path)
        values = _values(open_source(path))
        if not values:
            return _header(path)
    except StabtreeError:
        return None
    settings, notes = settings_of(ConfigFile(masked(clean(path.name)), values))
    if settings:
        return Configured(path, settings, tuple(notes), values)
    return None


def _marked(folder: Path, mark: str) -> list[tuple[tuple[str, ...], str]]:
    found: list[tuple[tuple[str, ...], str]] = []
    for parts, names in find(folder, mark)[0].items():
        found += [(parts, name) for name in names]
    return found


def _values(source: Source) -> dict[str, Any]:
    """All that a TensorBoard or W&B file, or what a trainer printed, holds of its configuration."""
    names, notes = named({}, None), list[str]()
    if tensorboard.sniff(source, names):
        reader = RecordReader(stored=MAX_BYTES if source.packed else source.size)
        scalars = Scalars(reader.damage)
        for block in reader.read(chunks(source, notes)):
            scalars.add(block)
        return scalars.config
    if wandb.sniff(source, names):
        log = Log()
        for _ in log.entries(chunks(source, notes)):
            pass  # the configuration may stand after any row
        return {**log.config, "display_name": log.name}
    if source.binary:
        return {}
    return _printed(source.head)


def _printed(head: str) -> dict[str, Any]:
    """The arguments that a trainer prints as a whole before it starts: `Arguments(lr=0.1, ...)`, `lr ..... 0.1`."""
    dump = ConfigDump(everything=True)
    for line in head.split("\n"):
        dump.look(line, 0, code=True)
    texts = dump.texts()
    if len(texts) >= _MANY:
        return {key: literal(text) for key, text in texts.items()}
    return {}


def _header(path: Path) -> Configured | None:
    """The settings that a trainer prints before its rows, as far as the loaders read them."""
    names = named({}, None)
    found = read_files([path], names, None, None, {})
    run = run_of(found.tables, names, found.name, found.settings)
    settings = header_settings(run.config)
    return Configured(path, settings) if settings else None


def header_settings(config: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return what the configuration in a log says of how the run is trained; empty where that is too little."""
    settings = {key: one for key, one in config.items() if key in KEYS}
    # What the batch is of is not said there.
    settings.pop("batch_size", None)
    # A warm-up of 0 may be one by a share of all steps.
    if "warmup_steps" in settings and not settings["warmup_steps"].value:
        del settings["warmup_steps"]
    if len(settings) < _FEW:
        return {}
    return settings | _not_chosen(settings, config)


def _not_chosen(settings: Mapping[str, Setting], config: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the settings that are the trainer's defaults: it logs all that it trains with, whoever chose it."""
    if "framework" not in config:
        return {}
    trainer = framework_called(str(config["framework"].value))
    same = {key: one for key, one in settings.items() if key in trainer.unset and trainer.unset[key] == one.value}
    return {key: replace(one, source=f"{DEFAULT} of {trainer.name}") for key, one in same.items()}
