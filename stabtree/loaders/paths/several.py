"""Several paths: patterns, and which of them name one file."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

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
