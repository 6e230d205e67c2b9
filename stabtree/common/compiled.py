"""What reading and checking our YAML files comes to, kept as JSON: parsing them takes longer than judging a run.

`release/compiled.py` writes the file when stabtree is built or installed. It is used only while the files that it was
made of are the same; else they are read, as in a checkout after a change.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from stabtree._version import __version__

if TYPE_CHECKING:
    from types import ModuleType

PACKAGE = Path(__file__).parents[1]
FILE = PACKAGE / "compiled.json"
INSTALLED = PACKAGE / "_trees"  # where a wheel has the trees
TAG = ""
"""The key under which an object names its class, beside its attributes; `CONTAINER` holds the items of a container."""
CONTAINER = "[]"
_CONTAINERS = {"tuple": tuple, "list": list, "frozenset": frozenset}


def key(*, checkout: bool) -> str:
    """Return what identifies this version and its YAML; of a checkout also the modules that read it.

    Args:
        checkout: whether the package lies in one, where files change.
    """
    folders = [PACKAGE / name for name in ("common", "frameworks", "metrics")]
    files = [*_trees().glob("*.yaml"), *chain.from_iterable(folder.glob("*.yaml") for folder in folders)]
    if checkout:
        files += chain.from_iterable(folder.glob("*.py") for folder in (*folders, PACKAGE / "tree"))
    sums = (f"{file.name} {crc32(file.read_bytes()):08x}" for file in files)  # hashlib takes 4 ms to import
    return " ".join([__version__, *sorted(sums)])


def _trees() -> Path:
    if INSTALLED.is_dir():
        return INSTALLED
    return PACKAGE.parent / "trees"


@cache
def _lines() -> dict[str, str]:
    """Return what was compiled, by name; nothing where there is no such file, or it is out of date."""
    try:
        first, *lines = FILE.read_text(encoding="utf-8").split("\n")
        if first != key(checkout=not INSTALLED.is_dir()):
            return {}
    except (OSError, ValueError):
        return {}
    return dict(zip(lines[::2], lines[1::2], strict=False))


def compiled(name: str, *modules: ModuleType) -> Any:
    """Return what was compiled under a name; None where that is not there, or out of date.

    Args:
        name: the name.
        modules: where its classes are defined.
    """
    line = _lines().get(name)
    if line is None:
        return None
    classes = {name: found for module in modules for name, found in vars(module).items() if isinstance(found, type)}

    def made(found: dict[str, Any]) -> Any:
        kind = found.pop(TAG, None)
        for attribute, value in found.items():
            if type(value) is list:
                found[attribute] = tuple(value)
        if kind is None:
            return found
        if CONTAINER in found:
            return _CONTAINERS.get(kind, classes.get(kind))(found[CONTAINER])
        return classes[kind](**found)

    return json.loads(line, object_hook=made)
