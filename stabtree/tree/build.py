"""Turns a parsed YAML document into the classes of `stabtree.tree.model`, with every key and type checked."""

from __future__ import annotations

import difflib
import re
from dataclasses import is_dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stabtree.tree.compose import NOTHING, expand_checks
from stabtree.tree.kinds import MADE, Kind, kinds, lists
from stabtree.tree.model import LEAF, FactParams, Leaf, Section, Tree
from stabtree.tree.params import current_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.common.yaml12 import Document


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")  # in an address
_PREFIX = {Section: "§", FactParams: "fact "}  # sections and facts may have the id of a node
_OLD_KEYS = {"mend": "short_fix"}  # as files of earlier versions spell them
_PARAMS = ("params", "advanced", "literal")


class Builder:
    """Turns a parsed document into dataclasses, collecting mistakes instead of stopping at the first.

    Attributes:
        mistakes: the mistakes, as (line, text).
        lines: the line of each id, and of each of its keys as `id.key`.
        broken: the lines of nodes with a mistake, of which nothing else is to be reported.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[tuple[int, str]] = []
        self.lines: dict[str, int] = {}
        self.broken: set[int] = set()

    def tree(self) -> Tree | None:
        """Return the tree, as far as its keys can be read; None if it has no shape at all.

        A node with a mistake is part of it all the same, its missing values filled in, so that the mistakes of the
        others can be reported at once.
        """
        top = self.document.value
        if not isinstance(top, dict):
            self.mistakes.append((1, "a tree is a mapping with name, title, sections, questions and leaves"))
            return None
        self._check_top(top)
        given = {key: top[key] for key in lists() if isinstance(top.get(key), list)}
        found = {key: self._items(given.get(key, []), kind, key) for key, kind in lists().items()}
        others = {key: value for key, value in top.items() if key not in MADE}
        values = {"name": "", "title": ""}
        for key, value in self._checked(others, Tree, ()).items():
            if key not in found:
                values[key] = self._built(value, kinds(Tree)[key].of, (key,))
        wrong = (MADE.keys() & top.keys()) - given.keys()
        self.mistakes += [(self.document.line(key), f"{key!r} must be a list") for key in wrong]
        return None if wrong else self._assembled(values, found)

    def _check_top(self, top: dict[str, Any]) -> None:
        needed = ["name", "title"]
        if {"checks", "entries", "causes"}.isdisjoint(top):
            needed += ["sections", "questions", "leaves"]
        self.mistakes += [(1, f"the key {key!r} is missing") for key in needed if key not in top]

    def _assembled(self, values: dict[str, Any], found: dict[str, list[Any]]) -> Tree:
        """Return the tree of plain values and lists of nodes, its checks expanded."""
        sections, questions, leaves = expand_checks(values["name"], found["checks"])
        for index in range(len(found["tests"])):
            self.lines[f"test {index}"] = self.document.line("tests", index)
        for section in sections:
            self.lines[f"§{section.id}"] = self.lines.get(section.id, 1)
        questions = [*found["questions"], *questions]
        leaves = [_with_page(leaf, values.get("pages", "")) for leaf in (*found["leaves"], *leaves)]
        self._check_unique((*questions, *leaves, *found["groups"], *found["entries"]))
        self._check_unique(found["facts"])
        return Tree(
            **values,
            sections=(*found["sections"], *sections),
            questions=_by_id(questions),
            leaves=_by_id(leaves),
            groups=_by_id(found["groups"]),
            entries=_by_id(found["entries"]),
            facts=_by_id(found["facts"]),
            signatures=tuple(found["causes"]),
            tests=tuple(found["tests"]),
        )

    def _check_unique(self, nodes: Iterable[Any]) -> None:
        seen: set[str] = set()
        for node in nodes:
            if node.id in seen:
                self.mistakes.append((self.lines.get(node.id, 1), f"the id {node.id} is used twice"))
            seen.add(node.id)

    def _items(self, raw: list[Any], kind: type, *path: str | int) -> list[Any]:
        built = []
        for index, value in enumerate(raw):
            item = self._item(value, kind, (*path, index))
            if item is None:
                continue
            built.append(item)
            if hasattr(item, "id"):
                self._record_lines(item, value, (*path, index))
        return built

    def _record_lines(self, item: Any, raw: dict[str, Any], path: tuple[str | int, ...]) -> None:
        line = self.document.line(*path)
        name = _PREFIX.get(type(item), "") + item.id
        lines = {f"{name}.{key}": self.document.line(*path, key) for key in raw}
        self.lines |= {name: line, **lines}
        if line in self.broken:
            self.broken.update(lines.values())
        self.lines.setdefault(getattr(item, "leaf", item.id), line)

    def _item(self, raw: Any, kind: type, path: tuple[str | int, ...]) -> Any:
        before = len(self.mistakes)
        line = self.document.line(*path)
        if not isinstance(raw, dict):
            self.mistakes.append((line, f"a {kind.__name__.lower()} is a mapping"))
            return None
        values = self._checked(raw, kind, path)
        for key, value in values.items():
            values[key] = self._built(value, kinds(kind)[key].of, (*path, key))
        for key in _PARAMS:
            if key in values:
                values[key] = {current_name(name): value for name, value in values[key].items()}
        if len(self.mistakes) == before:
            return kind(**values)
        self.broken.add(line)
        if not isinstance(raw.get("id"), str):
            return None
        filled = {key: item.filler for key, item in kinds(kind).items() if item.required and key not in values}
        return kind(**filled, **values)

    def _built(self, value: Any, kind: type | None, path: tuple[str | int, ...]) -> Any:
        """Turn a value of the right shape into what the class holds."""
        if kind is None or kind is str:
            return tuple(value) if isinstance(value, list) else value
        if kind is tuple:
            return {key: tuple(words) for key, words in value.items()}
        if is_dataclass(kind):
            if isinstance(value, list):
                return tuple(self._items(value, kind, *path))
            return self._item(value, kind, path)
        if isinstance(value, dict):
            return {key: kind(word) for key, word in value.items()}
        return kind(value)

    def _checked(self, raw: dict[str, Any], kind: type, path: tuple[str | int, ...]) -> dict[str, Any]:
        """Return the values that the class knows, each of the right shape; record mistakes for the others."""
        known = kinds(kind)
        what = f"{kind.__name__.lower()} {raw.get('id', '')}".strip()
        values: dict[str, Any] = {}
        for key, value in raw.items():
            problem = _mistake(key, value, known, what)
            if problem:
                self.mistakes.append((self.document.line(*path, key), problem))
            else:
                values[_OLD_KEYS.get(key, key)] = value
        if path:
            missing = [key for key, item in known.items() if item.required and key not in raw]
            self.mistakes += [(self.document.line(*path), f"{what} lacks the key {key!r}") for key in missing]
        return values


def _by_id(nodes: Iterable[Any]) -> dict[str, Any]:
    return {node.id: node for node in nodes}


def file_of(id_: str) -> str:
    """Return an id as the name of a file, which is part of an address too, in characters that are safe anywhere."""
    return _UNSAFE.sub("_", id_)


def _with_page(leaf: Leaf, pages: str) -> Leaf:
    """Return the leaf with the address of its page, if its tree has pages and it has none of its own."""
    if leaf.page or leaf.title == NOTHING:
        return leaf
    return replace(leaf, page=pages.replace(LEAF, file_of(leaf.id)))


def _mistake(key: str, value: Any, known: Mapping[str, Kind], what: str) -> str:
    """Return what to say of a key of `what` and its value; empty if nothing is wrong."""
    kind = known.get(_OLD_KEYS.get(key, key))
    if kind is None:
        close = difflib.get_close_matches(key, known, 1)
        meant = "".join(f"; did you mean {name!r}?" for name in close)
        return f"{what} has no key {key!r}{meant}"
    problem = _problem(key, value, kind)
    if problem.startswith("must"):
        return f"{key!r} of {what} {problem}"
    return problem


def _problem(key: str, value: Any, kind: Kind) -> str:
    """Return what is wrong with the value of a key; empty if nothing is."""
    if not isinstance(value, kind.shape):
        return f"must be {kind.described}"
    items = _items_of(value)
    if kind.of is str:
        return _no_texts(items, kind)
    if kind.of is tuple and not all(map(_is_list_of_texts, items)):
        return f"must be {kind.described}"
    if kind.of is None or not issubclass(kind.of, StrEnum):
        return ""
    words = list(kind.of)
    return "" if all(item in words for item in items) else f"{key} is one of {', '.join(words)}"


def _no_texts(items: list[Any], kind: Kind) -> str:
    """Return what is wrong with texts that are to be in a list or a mapping; empty if nothing is."""
    if _are_texts(items):
        return ""
    if kind.shape is dict:
        return "must map words to words"
    return "must hold text only: quote what contains a colon"


def _items_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _are_texts(items: list[Any]) -> bool:
    return all(isinstance(item, str) for item in items)


def _is_list_of_texts(item: Any) -> bool:
    return isinstance(item, list) and _are_texts(item)
