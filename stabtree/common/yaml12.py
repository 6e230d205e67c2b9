"""YAML read safely, with YAML 1.2 scalars and the line of everything.

PyYAML follows YAML 1.1: `yes`, `no` and `on` become booleans, `1e-3` a string, and the last of two
equal keys wins. Here `yes` stays a word, `1e-3` is a number and a repeated key is a mistake. Nothing
but strings, numbers, booleans, null, lists and mappings can come out.
"""

from __future__ import annotations

import re
from typing import Any

from stabtree.common.errors import StabtreeError

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

Path = tuple[str | int, ...]


class Document:
    """A parsed document.

    Attributes:
        value: the plain value.
        lines: 1-based line of each value by its path of keys and indices.
        mistakes: (line, text) of what was wrong but readable, such as repeated keys.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.lines: dict[Path, int] = {}
        self.mistakes: list[tuple[int, str]] = []
        self.count = 0

    def line(self, *path: str | int) -> int:
        """Return the line of a path, or of its nearest ancestor that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(text: str, where: str) -> Document:
    """Parse one YAML document.

    Raises:
        StabtreeError: if the text is not YAML, nests too deeply or grows too large.
    """
    import yaml

    if _too_deep(text):
        raise StabtreeError("not valid YAML: it nests too deeply", where=where, hint="a tree nests four levels deep")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = Document()
    try:
        node = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        location = f"{where}:{mark.line + 1}" if mark else where
        problem = getattr(error, "problem", None) or "it nests too deeply or holds a character that YAML forbids"
        raise StabtreeError(
            f"not valid YAML: {problem}", where=location, hint="correct that line, then `stabtree tree check FILE`"
        ) from None
    if node is not None:
        document.value = _convert(node, (), document, where)
    return document


def _too_deep(text: str) -> bool:
    """Return whether brackets or dashes nest so deeply that the C parser, which recurses, would run out of stack."""
    depth = deepest = 0
    for mark in _MARKS.findall(text):
        if mark in "[{":
            depth += 1
        else:
            depth -= 1
        deepest = max(deepest, depth)
    return deepest > BRACKETS or bool(_DASHES.search(text)) or bool(_INDENT.search(text))


def _convert(node: Any, path: Path, document: Document, where: str) -> Any:
    line = node.start_mark.line + 1
    document.count += 1
    if document.count > MAX_NODES or len(path) > MAX_DEPTH:
        raise StabtreeError(
            "the file grows too large or nests too deeply", where=f"{where}:{line}", hint="use fewer aliases"
        )
    document.lines[path] = line
    if node.id == "scalar":
        return _scalar(node)
    if node.id == "sequence":
        return [_convert(item, (*path, index), document, where) for index, item in enumerate(node.value)]
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.id != "scalar":
            document.mistakes.append((line, "a key must be a word"))
            continue
        key = str(key_node.value)
        if key in found:
            document.mistakes.append((key_node.start_mark.line + 1, f"the key {key!r} is given here a second time"))
        found[key] = _convert(value_node, (*path, key), document, where)
    return found


def _scalar(node: Any) -> Any:
    text: str = node.value
    if node.style in ('"', "'", "|", ">"):
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.match(text) and len(text) < 20:
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text
