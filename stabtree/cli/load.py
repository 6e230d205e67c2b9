"""The runs that a command's paths hold."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.cli.options.read import LoadKeywords, ReadOptions, reading
from stabtree.common import extensions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.judging.settings import Settings
    from stabtree.loaders import Loaded


def loaded_runs(paths: Sequence[str], read: ReadOptions, settings: Settings) -> list[Loaded]:
    """Return the runs that paths hold, cut to the steps that are judged.

    Raises:
        StabtreeError: where an option is malformed, or nothing can be read.
    """
    from stabtree.judging.stretch import cut, stretch_of
    from stabtree.loaders import load_runs

    ends, how = stretch_of(read.steps), reading(read, settings)
    remote = any("://" in path for path in paths)
    load = extensions.function("fetched_runs") if remote else load_runs
    loaded = [*load(*paths, ranks=read.ranks, **how)]
    nested = [path for path in paths if _holds_folders(path)]
    if nested and not (read.ranks or read.run_name or read.format):
        loaded = _with_unread(nested, loaded, how)
    return [cut(item, ends) for item in loaded]


def _holds_folders(path: str) -> bool:
    """Return whether a path is a folder with folders in it; most hold one run and nothing below it."""
    with suppress(OSError, ValueError), os.scandir(path) as entries:  # a file; a NUL in its name
        return any(not entry.is_file() for entry in entries)
    return False


def _with_unread(paths: Sequence[str], loaded: list[Loaded], how: LoadKeywords) -> list[Loaded]:
    """Return the runs with those that a loader which searches folders itself left unread."""
    for path in paths:
        own = [item for item in loaded if item.path == path or Path(path) in Path(item.path).parents]
        found = extensions.function("with_unread_runs")(path, own, how)
        if found is not own:
            first = loaded.index(own[0])
            rest = [item for item in loaded if all(item is not one for one in own)]
            loaded = [*rest[:first], *found, *rest[first:]]
    return loaded
