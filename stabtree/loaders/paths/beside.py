"""The configuration that lies beside a metrics file: a manifest that names it, or what its trainer wrote there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stabtree import yaml12
from stabtree.errors import StabtreeError
from stabtree.loaders.config import read_config
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.json import manifest
from stabtree.loaders.source import open_source
from stabtree.run import Setting
from stabtree.text import clean

if TYPE_CHECKING:
    from pathlib import Path

# Nothing else is opened. A model's `config.json` is left out: its dtype is that of the weights, not of the run.
NAMES = (
    "hparams.yaml",
    "hparams.yml",
    "config.yaml",
    "config.yml",
    "args.yaml",
    "args.json",
    "training_args.json",
    "hparams.json",
    "params.json",
)
MAX_BYTES = 256 << 10

Settings = dict[str, Setting]


def settings_of(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """The configuration from files in the same folder as a metrics file, and notes about them."""
    named, notes = _manifest(file)
    found, more = settings_in(file.parent)
    return {**found, **named}, (*notes, *more)


def settings_in(folder: Path) -> tuple[Settings, tuple[str, ...]]:
    """The configuration from the trainer's files in a folder; of two that hold a setting the first in `NAMES` counts.

    A file that can't be read is no error, only a note: nobody asked for it.
    """
    settings: Settings = {}
    notes: list[str] = []
    for name in NAMES:
        place = folder / name
        try:
            if not place.is_file():
                continue
            content = _content(place)
        except (StabtreeError, OSError, ValueError) as error:
            problem = error.problem if isinstance(error, StabtreeError) else error
            notes.append(f"{name} beside the metrics was not used: {clean(problem, 160)}.")
            continue
        config, wrong = read_config(content)
        settings = {**{key: Setting(value, name) for key, value in config.items()}, **settings}
        notes += wrong
    return settings, tuple(notes)


def _content(place: Path) -> Mapping[str, Any]:
    """The settings that a file holds, W&B's `{value: ...}` opened.

    Raises:
        StabtreeError, OSError, ValueError: where it can't be read.
    """
    if place.stat().st_size > MAX_BYTES:
        raise ValueError("larger than 256 KiB")
    text = place.read_text(encoding="utf-8", errors="replace")
    value = yaml12.parse(text, place.name).value if place.suffix in (".yaml", ".yml") else jsonl.parse(text)
    if not isinstance(value, Mapping):
        raise ValueError("it holds no settings")
    return {str(key): _opened(inner) for key, inner in value.items()}


def _opened(value: Any) -> Any:
    return (
        value["value"] if isinstance(value, Mapping) and "value" in value and set(value) <= {"value", "desc"} else value
    )


def _manifest(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """The configuration from a manifest in the same folder, if that manifest names this file."""
    name = manifest.NAMES[0]
    place = file.parent / name
    if place == file or not place.is_file():
        return {}, ()
    try:
        content = manifest.parse(open_source(place))
        named = any(other.resolve() == file.resolve() for other in content.files)
    except (StabtreeError, OSError) as error:
        return {}, (f"{name} beside the file was not used: {clean(error, 160)}.",)
    if not named:
        return {}, ()
    note = f"The configuration is from {name} beside the file."
    return {key: Setting(value, name) for key, value in content.config.items()}, (note, *content.notes)
