"""What the loaders of run folders share: looking around without being led astray."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stabtree.text import clean

if TYPE_CHECKING:
    from pathlib import Path

# Runs lie a few levels below the folder that one names; a data set or an environment may lie beside them.
MAX_DEPTH = 6
MAX_ENTRIES = 50_000


def entries(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the sub-folders, links left out since they may lead back, and of the regular files; both in order.

    A folder that can't be read is empty.
    """
    folders, files = [], []
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file():
                    files.append(entry.name)
                if len(folders) + len(files) >= MAX_ENTRIES:
                    break
    except OSError:
        return [], []
    return sorted(folders), sorted(files)


def find(folder: Path, mark: str) -> tuple[dict[tuple[str, ...], list[str]], tuple[str, ...]]:
    """The files below a folder whose names hold `mark`, by the folder that they lie in; and notes."""
    found: dict[tuple[str, ...], list[str]] = {}
    open_: list[tuple[str, ...]] = [()]
    seen = 0
    for parts in open_:
        folders, files = entries(folder.joinpath(*parts))
        marked = [name for name in files if mark in name]
        if marked:
            found[parts] = marked
        seen += len(folders) + len(files)
        if seen >= MAX_ENTRIES:
            return found, (f"The folder holds more than {MAX_ENTRIES:,} entries: not all were looked at.",)
        if len(parts) < MAX_DEPTH:
            open_ += [(*parts, name) for name in folders if not name.startswith(".")]
    return found, ()


def shown(parts: tuple[str, ...]) -> str:
    """A folder's place below another, safe to print."""
    return clean("/".join(parts), 80) or "."
