"""YAML read safely, with YAML 1.2 scalars, the line of everything, and typed values.

PyYAML follows YAML 1.1: `yes`, `no` and `on` become booleans, `1e-3` a string, and the last of two
equal keys wins. Here `yes` stays a word, `1e-3` is a number and a repeated key is a mistake. Nothing
but strings, numbers, booleans, null, lists and mappings can come out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import msgspec

from stabtree.common.errors import StabtreeError
from stabtree.common.text import near

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path as FilePath

T = TypeVar("T")
Node = TypeVar("Node", bound=msgspec.Struct)
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
        location = f"{where}:{mark.line + 1}" if mark else where
        hint = "correct that line, then `stabtree tree check FILE`"
        raise StabtreeError(f"not valid YAML: {problem}", where=location, hint=hint) from None


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


def checked(
    value: Any, kind: type[Node], path: Path, report: Callable[[Path, str], None], name: str = ""
) -> Node | None:
    """Return a mapping of a file as an object of a class, what is missing or wrong filled in; None for no mapping.

    Args:
        value: what the file holds.
        kind: a `msgspec.Struct`.
        path: where in the file it is.
        report: is called with each mistake and its path.
        name: what messages call it; by default as its class.
    """
    name = name or kind.__name__.lower()
    if not isinstance(value, dict):
        report(path, f"a {name} is a mapping")
        return None
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    what = f"{name} {value.get('id', '')}".strip()
    found: dict[str, Any] = {}
    for key, given in value.items():
        if key not in fields:
            report((*path, key), f"{what} has no key {key!r}{near(key, fields)}")
            continue
        type_, here = fields[key].type, (*path, key)
        inner = _struct_in(type_)
        is_list = get_origin(type_) is tuple
        if inner and is_list and isinstance(given, list):
            made = [checked(item, inner, (*here, index), report) for index, item in enumerate(given)]
            found[key] = tuple(item for item in made if item is not None)
        elif inner and not is_list and isinstance(given, dict):
            found[key] = checked(given, inner, here, report)
        else:
            try:
                found[key] = msgspec.convert(given, type_)
            except msgspec.ValidationError:
                report(here, f"{key!r} of {what} must be {expected(type_)}")
    for key, field in fields.items():
        if field.required and key not in value:
            report((*path, key), f"{what} lacks the key {key!r}")
        if field.required:
            found.setdefault(key, _filler(field.type))
    if "id" in fields and not isinstance(value.get("id"), str):
        return None
    return kind(**found)


def _struct_in(type_: Any) -> Any:
    """Return the class of ours that a value or its items are of; None where they are plain."""
    for part in (type_, *get_args(type_)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None


def expected(type_: Any) -> str:
    """Return what a value of a type is, in words."""
    origin, args = get_origin(type_), get_args(type_)
    if origin is tuple:
        return "a list" if _struct_in(type_) else "a list of texts"
    if origin is Mapping:
        inner = "values" if type(args[1]) is not type and get_origin(args[1]) is None else expected(args[1])
        return f"a mapping of words to {inner.removeprefix('a ')}"
    if isinstance(type_, type) and issubclass(type_, StrEnum):
        return f"one of {', '.join(type_)}"
    bounds = [item for item in args if isinstance(item, msgspec.Meta)]
    if bounds:
        return f"text of at most {bounds[0].max_length} characters"
    return {str: "text", bool: "true or false", float: "a number"}.get(type_, "a mapping")


def _filler(type_: Any) -> Any:
    """Return a value of a type, for one that is missing or wrong."""
    origin = get_origin(type_) or type_
    if isinstance(origin, type) and issubclass(origin, StrEnum):
        return next(iter(origin))
    return {tuple: (), Mapping: {}, float: 1.0}.get(origin, "")
