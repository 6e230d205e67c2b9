"""Tables of knowledge that ship as YAML: read strictly, with all mistakes of a file reported at once.

Parsing them takes longer than judging a run, so `release/compiled.py` writes what reading them comes to as JSON when
stabtree is built or installed. That is used only while the files that it was made of are the same; else they are read,
as in a checkout after a change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import near

if TYPE_CHECKING:
    from types import ModuleType

    from stabtree.common.yaml12 import Document
    from stabtree.common.yaml12 import Path as Place

PACKAGE = Path(__file__).parents[1]
FILE = PACKAGE / "compiled.json"
INSTALLED = PACKAGE / "_trees"  # where a wheel has the trees; in a checkout they are beside the package
TAG = ""
"""The key under which an object names its class, beside its attributes; `CONTAINER` holds the items of a container."""
CONTAINER = "[]"

Reader = Callable[[Any], object]


def text(value: Any) -> str:
    """Return a text; numbers as they are written.

    Raises:
        ValueError: where it is empty or no scalar; this and the readers below say what was expected.
    """
    if isinstance(value, bool | Mapping | list) or value in (None, ""):
        raise ValueError("a text")
    return str(value)


def words(value: Any) -> tuple[str, ...]:
    """Return the words of a text, in order."""
    return tuple(text(value).split())


def flag(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def number(value: Any) -> int:
    """Return a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("a whole number")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list):
        raise ValueError("a list of texts")
    return tuple(map(text, value))


def texts_by_name(value: Any) -> Mapping[str, str]:
    """Return texts by name."""
    if not isinstance(value, Mapping):
        raise ValueError("a text for each name")
    return {key: text(one) for key, one in value.items()}


def one_of(*allowed: str) -> Reader:
    """Return a reader of one of these words."""

    def read(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return str(value)

    return read


class DataFile:
    """A YAML file of knowledge, read key by key; mistakes are collected and raised together.

    Attributes:
        value: the mapping that the file holds, empty where it holds something else.
        mistakes: `line: what is wrong`, in the order in which they were found.
    """

    def __init__(self, path: Path) -> None:
        """Parse a file.

        Raises:
            StabtreeError: where it is no YAML.
        """
        from stabtree.common.yaml12 import parse

        self._name = path.name
        self._document: Document = parse(path.read_text(encoding="utf-8"), path.name)
        self.mistakes = [f"{path.name}:{line}: {mistake}" for line, mistake in self._document.mistakes]
        self.value: Mapping[str, Any] = {}
        if isinstance(self._document.value, Mapping):
            self.value = self._document.value
        else:
            self.wrong((), "the file is not a mapping")

    def wrong(self, path: Place, mistake: str) -> None:
        """Note a mistake, with the line of what it is about."""
        self.mistakes.append(f"{self._name}:{self._document.line(*path)}: {mistake}")

    def section(self, path: Place, value: Any, readers: Mapping[str, Reader]) -> dict[str, Any]:
        """Return the values of a mapping, each as its reader returns it; without those that are wrong.

        Args:
            path: where the mapping is in the file.
            value: the mapping; None is an empty one.
            readers: what reads each key that may be there.
        """
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong(path, f"{_called(path)} is not a mapping")
            return {}
        found: dict[str, Any] = {}
        for key, one in value.items():
            here = (*path, key)
            if key not in readers:
                self.wrong(here, f"{_called(here)} is not a known key{near(key, readers)}")
                continue
            try:
                found[key] = readers[key](one)
            except ValueError as error:
                self.wrong(here, f"{_called(here)} is not {error}")
        return found

    def lacks(self, path: Place, found: Mapping[str, object], keys: tuple[str, ...]) -> None:
        """Note each required key that is not there."""
        for key in keys:
            if key not in found:
                self.wrong(path, f"{_called((*path, key))} is missing")

    def check(self) -> None:
        """Raise what was noted.

        Raises:
            StabtreeError: with all mistakes of the file.
        """
        if self.mistakes:
            raise StabtreeError("\n".join(self.mistakes), hint="correct the file that stabtree ships")


def _called(path: Place) -> str:
    return ".".join(map(str, path)) or "the file"


def key(*, checkout: bool) -> str:
    """Return what identifies this version and its YAML; of a checkout also the modules that read it.

    Args:
        checkout: whether the package lies in one, where files change.
    """
    folders = [PACKAGE / name for name in ("common", "frameworks", "metrics")]
    files = [*trees_folder().glob("*.yaml"), *chain.from_iterable(folder.glob("*.yaml") for folder in folders)]
    if checkout:
        files += chain.from_iterable(folder.glob("*.py") for folder in (*folders, PACKAGE / "tree"))
    sums = (f"{file.name} {crc32(file.read_bytes()):08x}" for file in files)  # hashlib takes 4 ms to import
    return " ".join([__version__, *sorted(sums)])


def trees_folder() -> Path:
    """Return the folder of the shipped trees."""
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
    classes: dict[str, Any] = {"tuple": tuple, "list": list, "frozenset": frozenset}
    for module in modules:
        classes |= vars(module)

    def made(found: dict[str, Any]) -> Any:
        kind = found.pop(TAG, None)
        for attribute, value in found.items():
            if type(value) is list:
                found[attribute] = tuple(value)
        if kind is None:
            return found
        if CONTAINER in found:
            return classes[kind](found[CONTAINER])
        return classes[kind](**found)

    return json.loads(line, object_hook=made)
