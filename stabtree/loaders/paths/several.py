"""Several paths: patterns, which of them name one file, and what is read of them."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.loaders.paths.find import Unit, is_read_anyway

if TYPE_CHECKING:
    from collections.abc import Sequence


def expanded(path: str) -> list[str]:
    """Return the paths that match a pattern which the shell did not expand; any other path as it is."""
    if path == "-" or not glob.has_magic(path) or Path(path).exists():
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]  # noqa: PTH207 - a pattern may be absolute


def deduplicated(paths: Sequence[str | Path]) -> list[str | Path]:
    """Return the paths without those that name a file again, by a link or in another spelling."""
    first: dict[str, str | Path] = {}
    for path in paths:
        first.setdefault(_resolved(path), path)
    return list(first.values())


def _resolved(path: str | Path) -> str:
    try:
        if str(path) == "-":
            return str(path)
        return str(Path(path).resolve())
    except (OSError, RuntimeError, ValueError):
        return str(path)  # a link in a loop, or no path at all: opening it says so


def units_of(paths: Sequence[str]) -> list[Unit]:
    """Return what to read of paths; one that is named twice, or lies below another one, is read once."""
    typed = list(dict.fromkeys(path if path in ("", "-") else str(Path(path)) for path in paths))
    real = {path: _real(path) for path in typed}
    folders = [path for path in typed if path and _is_folder(path)]
    inner = {path for path in typed if any(_within(real[path], real[folder]) for folder in folders)}
    first = {real[path]: path for path in reversed(typed) if path not in inner}
    found = []
    for path in typed:
        if first.get(real[path]) != path:
            continue
        if path in folders:
            found.append(Unit(path))
        elif path in ("", "-"):
            found.append(Unit("", (path,), named=True))
        else:
            found.append(Unit(str(Path(path).parent), (Path(path).name,), named=True))
    return found


def _real(path: str) -> str:
    """Return a path with its links resolved; itself where it is none, as with a NUL in it."""
    try:
        return path if path in ("", "-") else os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - never raises


def _within(path: str, folder: str) -> bool:
    """Return whether whoever reads the folder finds the path."""
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep) and is_read_anyway(path, [folder])
