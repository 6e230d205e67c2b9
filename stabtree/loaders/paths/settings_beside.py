"""The configuration beside a metrics file: a manifest, or what its trainer wrote there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import Settings, is_file, settings_in
from stabtree.loaders.json import manifest
from stabtree.loaders.source import open_source
from stabtree.run import Setting

if TYPE_CHECKING:
    from pathlib import Path


def settings_of(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the configuration from files in the same folder as a metrics file, and notes about them."""
    named, notes = _from_manifest(file)
    found, more = settings_in(file.parent)
    return {**found, **named}, (*notes, *more)


def _from_manifest(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the configuration from a manifest in the same folder that names this file, or that names no metrics."""
    name = manifest.NAMES[0]
    path = file.parent / name
    if path == file or not is_file(path):
        return {}, ()
    try:
        content = manifest.parse(open_source(path))
        named = any(other.resolve() == file.resolve() for other in content.files)
    except (StabtreeError, OSError) as error:
        return {}, (f"{name} beside the file was not used: {clean(error, 160)}.",)
    if not named and (content.files or manifest.holds_metrics(content)):
        return {}, ()
    note = f"The configuration is from {name} beside the file."
    return {key: Setting(value, name) for key, value in content.config.items()}, (note, *content.notes)
