"""What files and folders look like: as long as that is the same, what was found in them holds."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from stabtree.loaders.paths.find import PASSED_BY, is_log
from stabtree.tools.fleet.remote import mirror
from stabtree.tools.fleet.remote.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.loaders.paths.find import Unit

MOST = 5_000  # entries below a folder; of more nothing is remembered


def stamp(unit: Unit, *, deep: bool) -> str:
    """Return a hash of sizes and times of all that a unit is read from; empty where that is unknown, or too much.

    Args:
        unit: the unit.
        deep: whether all that is below a folder counts, or only what is in it.
    """
    if is_address(unit.folder):
        return mirror.stamp(unit, deep=deep)
    digest = hashlib.sha256()
    try:
        if unit.files:
            found = _loose(unit)
        else:
            found = _below(unit.folder, deep=deep)
        for count, line in enumerate(found):
            if count > MOST:
                return ""
            digest.update(line.encode("utf-8", "surrogateescape"))
    except OSError:
        return ""
    return digest.hexdigest()


def of_files(paths: Iterable[str]) -> str:
    """Return the same of single files."""
    return hashlib.sha256("".join(map(_line, paths)).encode("utf-8", "surrogateescape")).hexdigest()


def _line(path: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of them
    except OSError:
        return f"{path}\0-\n"
    return f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode}\n"


def _loose(unit: Unit) -> Iterator[str]:
    """Logs, and what beside them describes their runs: settings, and the names of folders of checkpoints."""
    yield from map(_line, unit.paths)
    names, folders = _beside(unit.folder, os.stat(unit.folder or ".").st_mtime_ns)  # noqa: PTH116
    yield folders
    yield from (_line(os.path.join(unit.folder, name)) for name in names if name not in unit.files)  # noqa: PTH118


# A folder of many logs is parted into many units.
@lru_cache(maxsize=4)
def _beside(folder: str, _changed: int) -> tuple[tuple[str, ...], str]:
    """Return the files of a folder that are no logs by their names, and a hash of the names of its folders."""
    files, folders = [], []
    with os.scandir(folder or ".") as entries:
        for entry in entries:
            if entry.is_dir():
                folders.append(entry.name)
            elif entry.name.endswith((".yaml", ".yml", ".json", ".pt", ".pth", ".ckpt")) and not is_log(entry.name):
                files.append(entry.name)
    names = "\0".join(sorted(folders)).encode("utf-8", "surrogateescape")
    return tuple(sorted(files)[:MOST]), hashlib.sha256(names).hexdigest()


def _below(folder: str, *, deep: bool) -> Iterator[str]:
    waiting = [folder or "."]
    for place in waiting:
        with os.scandir(place) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            if entry.name.startswith(".") or entry.name in PASSED_BY:
                continue
            yield _line(entry.path)
            if deep and entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
