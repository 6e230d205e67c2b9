"""Tables of knowledge that ship as YAML: read strictly, with all mistakes of a file reported at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import near

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from stabtree.common.yaml12 import Document, Path

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

    def __init__(self, path: FilePath) -> None:
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

    def wrong(self, path: Path, mistake: str) -> None:
        """Note a mistake, with the line of what it is about."""
        self.mistakes.append(f"{self._name}:{self._document.line(*path)}: {mistake}")

    def section(self, path: Path, value: Any, readers: Mapping[str, Reader]) -> dict[str, Any]:
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

    def lacks(self, path: Path, found: Mapping[str, object], keys: tuple[str, ...]) -> None:
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


def _called(path: Path) -> str:
    return ".".join(map(str, path)) or "the file"
