"""From a parsed YAML document to the classes of `stabtree.tree.model`, with every key and type checked."""

from __future__ import annotations

import difflib
import re
from dataclasses import is_dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stabtree.tree.compose import NOTHING, expanded
from stabtree.tree.kinds import Kind, kinds, lists
from stabtree.tree.model import LEAF, FactParams, Leaf, Section, Tree

if TYPE_CHECKING:
    from stabtree.common.yaml12 import Document


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")  # in an address
# Sections and facts may be called what a node is called.
_PLACE = {Section: "§", FactParams: "fact "}


class Builder:
    """Turns a parsed document into dataclasses, collecting mistakes instead of stopping at the first."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[tuple[int, str]] = []
        self.places: dict[str, int] = {}
        self.broken: set[int] = set()

    def tree(self) -> Tree | None:
        """The tree, as far as its keys can be read; None where it has no shape at all.

        A node with a mistake is there all the same, its missing values filled in, so that the mistakes of the others
        can be told at once; `broken` has its lines, of which nothing else is to be told.
        """
        top = self.document.value
        if not isinstance(top, dict):
            self.mistakes.append((1, "a tree is a mapping with name, title, sections, questions and leaves"))
            return None
        whole = {"checks", "entries", "causes"}.isdisjoint(top)
        for key in ("name", "title", *(("sections", "questions", "leaves") if whole else ())):
            if key not in top:
                self.mistakes.append((1, f"the key {key!r} is missing"))
        found = {
            key: self._items(top[key] if isinstance(top.get(key), list) else [], kind, key)
            for key, kind in lists().items()
        }
        wrong = [key for key in ("checks", "causes") if not isinstance(top.get(key, []), list)]
        self.mistakes += [(self.document.line(key), f"{key!r} must be a list") for key in wrong]
        others = {key: value for key, value in top.items() if key not in ("checks", "causes")}
        plain = {key: value for key, value in self._checked(others, Tree, ()).items() if key not in lists()}
        values = {key: self._built(value, kinds(Tree)[key].of, (key,)) for key, value in plain.items()}
        if wrong:
            return None
        values = {"name": "", "title": "", **values}
        sections, questions, leaves = expanded(values["name"], found["checks"])
        self.places |= {f"test {place}": self.document.line("tests", place) for place in range(len(found["tests"]))}
        self.places |= {f"§{section.id}": self.places.get(section.id, 1) for section in sections}
        sections, questions = [*found["sections"], *sections], [*found["questions"], *questions]
        leaves = [*found["leaves"], *leaves]
        self._repeated([*questions, *leaves, *found["groups"], *found["entries"]])
        self._repeated(found["facts"])
        return Tree(
            **values,
            sections=tuple(sections),
            questions={node.id: node for node in questions},
            leaves={node.id: _with_page(node, values.get("pages", "")) for node in leaves},
            groups={node.id: node for node in found["groups"]},
            entries={node.id: node for node in found["entries"]},
            facts={item.id: item for item in found["facts"]},
            signatures=tuple(found["causes"]),
            tests=tuple(found["tests"]),
        )

    def _repeated(self, nodes: list[Any]) -> None:
        seen: set[str] = set()
        for node in nodes:
            if node.id in seen:
                self.mistakes.append((self.places.get(node.id, 1), f"the id {node.id} is used twice"))
            seen.add(node.id)

    def _items(self, raw: list[Any], kind: type, *path: str | int) -> list[Any]:
        built = [self._item(value, kind, (*path, place)) for place, value in enumerate(raw)]
        for place, item in enumerate(built):
            if item is not None and hasattr(item, "id"):
                line = self.document.line(*path, place)
                name = _PLACE.get(kind, "") + item.id
                self.places[name] = line
                lines = {f"{name}.{key}": self.document.line(*path, place, key) for key in raw[place]}
                self.places |= lines
                self.broken |= {line, *lines.values()} if line in self.broken else set()
                self.places.setdefault(getattr(item, "leaf", item.id), line)
        return [item for item in built if item is not None]

    def _item(self, raw: Any, kind: type, path: tuple[str | int, ...]) -> Any:
        before = len(self.mistakes)
        if not isinstance(raw, dict):
            self.mistakes.append((self.document.line(*path), f"a {kind.__name__.lower()} is a mapping"))
            return None
        values = self._checked(raw, kind, path)
        for key, value in values.items():
            values[key] = self._built(value, kinds(kind)[key].of, (*path, key))
        if len(self.mistakes) > before:
            self.broken.add(self.document.line(*path))
            filled = {key: item.filler for key, item in kinds(kind).items() if item.required and key not in values}
            return kind(**filled, **values) if isinstance(raw.get("id"), str) else None
        return kind(**values)

    def _built(self, value: Any, kind: type | None, path: tuple[str | int, ...]) -> Any:
        """A value of the right shape as what the class holds."""
        if kind is None or kind is str:
            return tuple(value) if isinstance(value, list) else value
        if kind is tuple:
            return {key: tuple(words) for key, words in value.items()}
        if is_dataclass(kind):
            return tuple(self._items(value, kind, *path)) if isinstance(value, list) else self._item(value, kind, path)
        return {key: kind(word) for key, word in value.items()} if isinstance(value, dict) else kind(value)

    def _checked(self, raw: dict[str, Any], kind: type, path: tuple[str | int, ...]) -> dict[str, Any]:
        """The values that the class knows, each of the right shape; mistakes for the others."""
        known = kinds(kind)
        what = f"{kind.__name__.lower()} {raw.get('id', '')}".strip()
        values: dict[str, Any] = {}
        for key, value in raw.items():
            if key in known:
                problem = _problem(key, value, known[key])
                told = f"{key!r} of {what} {problem}" if problem.startswith("must") else problem
            else:
                near = difflib.get_close_matches(key, known, 1)
                told = f"{what} has no key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
            if told:
                self.mistakes.append((self.document.line(*path, key), told))
            else:
                values[key] = value
        missing = [key for key, item in known.items() if item.required and key not in raw] if path else []
        self.mistakes += [(self.document.line(*path), f"{what} lacks the key {key!r}") for key in missing]
        return values


def file_of(id_: str) -> str:
    """A file's name for an id, which is one in an address too: without what systems, shells and browsers read."""
    return _UNSAFE.sub("_", id_)


def _with_page(leaf: Leaf, pages: str) -> Leaf:
    """The leaf with the address of its page, where its tree has pages and it has none of its own."""
    told = leaf.page or ("" if leaf.title == NOTHING else pages.replace(LEAF, file_of(leaf.id)))
    return replace(leaf, page=told)


def _problem(key: str, value: Any, kind: Kind) -> str:
    """What is wrong with the value of a key, empty where nothing is."""
    if not isinstance(value, kind.shape):
        return f"must be {kind.described}"
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    if kind.of is str and not all(isinstance(item, str) for item in held):
        return "must map words to words" if kind.shape is dict else "must hold text only: quote what contains a colon"
    if kind.of is tuple and not all(isinstance(item, list) and all(isinstance(w, str) for w in item) for item in held):
        return f"must be {kind.described}"
    if kind.of is not None and issubclass(kind.of, StrEnum):
        choices = list(kind.of)
        return "" if all(item in choices for item in held) else f"{key} is one of {', '.join(choices)}"
    return ""
