"""YAML read safely, with YAML 1.2 scalars, the line of everything, and typed values.

PyYAML follows YAML 1.1: `yes`, `no` and `on` become booleans, `1e-3` a string, and the last of two
equal keys wins. Here `yes` stays a word, `1e-3` is a number and a repeated key is a mistake. Nothing
but strings, numbers, booleans, null, lists and mappings can come out.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from stabtree.common.errors import StabtreeError
from stabtree.common.files import Place

if TYPE_CHECKING:
    from pathlib import Path as FilePath

T = TypeVar("T")
Path = tuple[str | int, ...]

MAX_NODES = 50_000  # aliases are expanded; this bounds what nested ones can blow up to
MAX_DEPTH = 50

# Far below what the parser's stack holds, far above what brackets in a tree's texts add up to unbalanced.
BRACKETS = 500
_MARKS = re.compile(r"[\[\]{}]")
_DASHES = re.compile(r"([-?:][ \t]+){100}")
_INDENT = re.compile(r"^[ ]{1000}", re.MULTILINE)

_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}


class Document:
    """A parsed document.

    Attributes:
        value: the plain value.
        mistakes: (line, text) of what was wrong but readable, such as repeated keys.
    """

    def __init__(self, node: Any, where: str) -> None:
        self.mistakes: list[tuple[int, str]] = []
        self._node = node
        self._where = where
        self._count = 0
        self.value: Any = None if node is None else self._plain(node, 0)

    @cached_property
    def lines(self) -> dict[Path, int]:
        """The 1-based line of each value by its path of keys and indices."""
        found: dict[Path, int] = {}
        waiting: list[tuple[Path, Any]] = [] if self._node is None else [((), self._node)]
        while waiting:
            path, node = waiting.pop()
            found.setdefault(path, node.start_mark.line + 1)  # of a repeated key the last value, which counts
            if node.id == "mapping":
                waiting += [((*path, key.value), value) for key, value in node.value if key.id == "scalar"]
            elif node.id == "sequence":
                waiting += [((*path, index), value) for index, value in enumerate(node.value)]
        return found

    def line(self, *path: str | int) -> int:
        """Return the line of a path, or of its nearest ancestor that is there."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def _plain(self, node: Any, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_NODES or depth > MAX_DEPTH:
            where = f"{self._where}:{node.start_mark.line + 1}"
            raise StabtreeError("the file grows too large or nests too deeply", where=where, hint="use fewer aliases")
        if node.id == "scalar":
            return node.value if node.style else _scalar(node.value)
        if node.id == "sequence":
            return [self._plain(item, depth + 1) for item in node.value]
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                self.mistakes.append((line, "a key must be a word"))
                continue
            if key.value in found:
                self.mistakes.append((line, f"the key {key.value!r} is given here a second time"))
            found[key.value] = self._plain(value, depth + 1)
        return found


def parse(text: str, where: str) -> Document:
    """Parse one YAML document.

    Raises:
        StabtreeError: if the text is not YAML, nests too deeply or grows too large.
    """
    if _too_deep(text):
        raise StabtreeError("not valid YAML: it nests too deeply", where=where, hint="a tree nests four levels deep")
    return _parsed(text, where)


def _parsed(text: str, where: str) -> Document:
    import yaml

    try:
        return Document(yaml.compose(text, Loader=_loader()), where)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it nests too deeply or holds a character that YAML forbids"
        hint, places = "correct that line, then `stabtree tree check FILE`", {}
        if mark:
            line, where = (*text.splitlines(), "")[mark.line], f"{where}:{mark.line + 1}"
            places[0] = Place(mark.line + 1, line, mark.column, mark.column + 1)
        raise StabtreeError(f"not valid YAML: {problem}", where=where, hint=hint, places=places) from None


@cache
def _loader() -> Any:
    """Return a loader that leaves all scalars as they are written: what they mean is decided here."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return type("Loader", (base,), {"resolve": lambda *_: ""})


def _too_deep(text: str) -> bool:
    """Return whether brackets or dashes nest so deeply that the C parser, which recurses, would run out of stack."""
    depth = deepest = 0
    for mark in _MARKS.findall(text):
        depth += 1 if mark in "[{" else -1
        deepest = max(deepest, depth)
    return deepest > BRACKETS or bool(_DASHES.search(text)) or bool(_INDENT.search(text))


def _scalar(text: str) -> Any:
    if text[:1].isalpha() and text[0] not in "tfnTFN":
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.match(text) and len(text) < 20:
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text


class Words(tuple[str, ...]):
    """Words that a file writes as one text, with blanks between them."""

    __slots__ = ()
    between: str | None = None


class Dotted(Words):
    """Words that a file writes as one text, with dots between them."""

    __slots__ = ()
    between = "."


class WordSet(frozenset[str]):
    """Words that a file writes as one text, in no order."""

    __slots__ = ()
    between: str | None = None


def read(path: FilePath) -> dict[str, Any]:
    """Return what a file of ours holds.

    Raises:
        StabtreeError: where it is no YAML or no mapping, or has a key twice.
    """
    document = _parsed(path.read_text(encoding="utf-8"), path.name)
    for line, mistake in document.mistakes:
        raise StabtreeError(mistake, where=f"{path.name}:{line}")
    if not isinstance(document.value, dict):
        raise StabtreeError("the file is not a mapping", where=path.name)
    return document.value


def typed(value: Any, kind: type[T], where: str) -> T:
    """Return a value of a file of ours as an object of a class.

    Raises:
        StabtreeError: with the first mistake: that all files of ours are right is for tests to show.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        raise StabtreeError(str(error), where=where, hint="correct the file that stabtree ships") from None


def _from_text(kind: type[Words | WordSet], value: Any) -> Words | WordSet:
    if not isinstance(value, str):
        raise TypeError(f"Expected words, got `{type(value).__name__}`")
    return kind(value.split(kind.between))
