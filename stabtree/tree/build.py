"""Turns a YAML document into a tree: at once where the file is ours, with every key and type checked where not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from stabtree.common.yaml12 import checked
from stabtree.tree.compose import expand_checks
from stabtree.tree.model import LEAF, NOTHING, Leaf, Tree, TreeFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.yaml12 import Document, Path

NODES = ("sections", "questions", "leaves", "groups", "entries", "facts", "checks", "causes", "tests")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")  # in an address
_PREFIX = {"sections": "§", "facts": "fact ", "tests": "test "}  # sections and facts may have the id of a node

Mistake = tuple[str, str, str]
"""The name of a node, as `§1`, `fact spike`, `test 0` or its id; the key that it is about, if any; the text."""


def tree_of(file: TreeFile) -> Tree:
    """Return the tree of a file, with its checks expanded."""
    sections, questions, leaves = expand_checks(file.name, file.checks)
    plain = ("name", "title", "about", "source", "see", "when", "uses", "tests", "pages", "version")
    return Tree(
        **{name: getattr(file, name) for name in plain},
        sections=(*file.sections, *sections),
        questions=_by_id((*file.questions, *questions)),
        leaves=_by_id(_with_page(leaf, file.pages) for leaf in (*file.leaves, *leaves)),
        groups=_by_id(file.groups),
        entries=_by_id(file.entries),
        facts=_by_id(file.facts),
        signatures=file.causes,
    )


class TreeReader:
    """Reads a file that anyone may have written, and collects its mistakes instead of stopping at the first.

    A node with a mistake is part of the tree all the same, its missing values filled in, so that the mistakes of the
    others can be reported at once.

    Attributes:
        mistakes: the mistakes, as (line, text).
    """

    def __init__(self, document: Document) -> None:
        self.mistakes: list[tuple[int, str]] = [*document.mistakes]
        self._document = document
        self._paths: dict[str, Path] = {}
        self._wrong: list[Path] = []

    def tree(self) -> Tree | None:
        """Return the tree, as far as its keys can be read; None if it has no shape at all."""
        top = self._document.value
        if not isinstance(top, dict):
            self.mistakes.append((1, "a tree is a mapping with name, title, sections, questions and leaves"))
            return None
        needed = ["name", "title"]
        if {"checks", "entries", "causes"}.isdisjoint(top):
            needed += ["sections", "questions", "leaves"]
        self.mistakes += [(1, f"the key {key!r} is missing") for key in needed if key not in top]
        file = checked({"name": "", "title": "", **top}, TreeFile, (), self._report, "tree")
        if file is None or not all(isinstance(top.get(key, []), list) for key in NODES):
            return None
        self._record(top)
        nodes: tuple[Any, ...] = (*file.questions, *file.checks, *file.leaves, *file.groups, *file.entries)
        self._check_unique([*(node.id for node in nodes), *(check.leaf for check in file.checks)])
        self._check_unique([f"fact {stated.id}" for stated in file.facts])
        return tree_of(file)

    def add(self, found: Iterable[Mistake]) -> None:
        """Add mistakes between nodes, but for those that come of a key that could not be read."""
        for name, key, text in found:
            path = (*self._paths.get(name, ()), *filter(None, [key]))
            if not path or not any(wrong[: len(path)] == path for wrong in self._wrong):
                self.mistakes.append((self._document.line(*path), text))

    def _report(self, path: Path, text: str) -> None:
        self._wrong.append(path)
        self.mistakes.append((self._document.line(*path), text))

    def _record(self, top: dict[str, Any]) -> None:
        """Note where each node is."""
        for key in NODES:
            for index, raw in enumerate(top.get(key, [])):
                id_ = str(raw.get("id", "")) if isinstance(raw, dict) else ""
                self._paths[_PREFIX.get(key, "") + (id_ or str(index))] = (key, index)
                if key == "checks" and id_:
                    self._paths[f"§{id_}"] = (key, index)
                    self._paths.setdefault(str(raw.get("leaf")), (key, index))

    def _check_unique(self, ids: list[str]) -> None:
        for id_ in sorted({id_ for id_ in ids if ids.count(id_) > 1}):
            name = id_.removeprefix("fact ")
            self.mistakes.append((self._document.line(*self._paths[id_]), f"the id {name} is used twice"))


def file_of(id_: str) -> str:
    """Return an id as the name of a file, which is part of an address too, in characters that are safe anywhere."""
    return _UNSAFE.sub("_", id_)


def _by_id(nodes: Iterable[Any]) -> dict[str, Any]:
    return {node.id: node for node in nodes}


def _with_page(leaf: Leaf, pages: str) -> Leaf:
    """Return the leaf with the address of its page, if its tree has pages and it has none of its own."""
    if leaf.page or leaf.title == NOTHING:
        return leaf
    return replace(leaf, page=pages.replace(LEAF, file_of(leaf.id)))


def schema(tests: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of tree files, for editors; what relates nodes is checked by `stabtree tree check` alone.

    Args:
        tests: the names of predicates that a `test` may have.
    """
    made = msgspec.json.schema(TreeFile)
    kinds = made["$defs"]
    for shape in kinds.values():
        shape["description"] = shape.get("description", "").partition("\n\n")[0]
    for kind in ("Question", "Check", "Cause", "Signature"):
        kinds[kind]["properties"]["test"] = {"enum": sorted(tests)}
    top = kinds.pop("TreeFile") | {"title": "A decision tree of stabtree"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": kinds}
