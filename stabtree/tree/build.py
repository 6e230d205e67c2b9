"""From a parsed YAML document to the classes of `stabtree.tree.model`, with every key and type checked."""

from __future__ import annotations

import difflib
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from stabtree.tree.compose import expanded
from stabtree.tree.model import (
    Cause,
    Check,
    Entry,
    FactParams,
    Group,
    Leaf,
    Question,
    Quick,
    Section,
    Severity,
    Signature,
    Tree,
)

if TYPE_CHECKING:
    from stabtree.yaml12 import Document

TEXTS = ("fixes", "see", "needs", "when", "of", "uses")
# Fields of the classes that no file sets.
OURS = {Tree: {"parts", "signatures"}, Section: {"tree", "check"}}

_KINDS: dict[str, tuple[type, str]] = {
    "go": (dict, "a mapping of verdicts to ids"),
    "params": (dict, "a mapping"),
    "advanced": (dict, "a mapping"),
    "literal": (dict, "a mapping"),
    "facts": (list, "a list"),
    "quick": (dict, "a mapping"),
    "causes": (list, "a list"),
    "fixes": (list, "a list of sentences"),
    "see": (list, "a list"),
    "needs": (list, "a list of question ids"),
    "sections": (list, "a list"),
    "questions": (list, "a list"),
    "leaves": (list, "a list"),
    "words": (dict, "a mapping of words to verdicts"),
    "when": (list, "a list of metrics"),
    "groups": (list, "a list"),
    "checks": (list, "a list"),
    "entries": (list, "a list"),
    "uses": (list, "a list of trees"),
    "severities": (dict, "a mapping of verdicts to severities"),
    "restart": (bool, "true or false"),
    "quiet": (bool, "true or false"),
}

LISTS: dict[str, type] = {
    "sections": Section,
    "questions": Question,
    "leaves": Leaf,
    "groups": Group,
    "checks": Check,
    "entries": Entry,
    "causes": Signature,
    "facts": FactParams,
}


# Sections and facts may be called what a node is called.
_PLACE = {Section: "§", FactParams: "fact "}


class Builder:
    """Turns a parsed document into dataclasses, collecting mistakes instead of stopping at the first."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[tuple[int, str]] = []
        self.places: dict[str, int] = {}

    def tree(self) -> Tree | None:
        """The tree, None where a mistake stands in its way."""
        top = self.document.value
        if not isinstance(top, dict):
            self.mistakes.append((1, "a tree is a mapping with name, title, sections, questions and leaves"))
            return None
        whole = {"checks", "entries", "causes"}.isdisjoint(top)
        for key in ("name", "title", *(("sections", "questions", "leaves") if whole else ())):
            if key not in top:
                self.mistakes.append((1, f"the key {key!r} is missing"))
        lists = {
            key: self._items(top[key] if isinstance(top.get(key), list) else [], kind, key)
            for key, kind in LISTS.items()
        }
        wrong = [key for key in ("checks", "causes") if not isinstance(top.get(key, []), list)]
        self.mistakes += [(self.document.line(key), f"{key!r} must be a list") for key in wrong]
        others = {key: value for key, value in top.items() if key not in ("checks", "causes")}
        values = {key: value for key, value in self._checked(others, Tree, ()).items() if key not in LISTS}
        if self.mistakes:
            return None
        sections, questions, leaves = expanded(values["name"], lists["checks"])
        self.places |= {f"§{section.id}": self.places.get(section.id, 1) for section in sections}
        sections, questions = [*lists["sections"], *sections], [*lists["questions"], *questions]
        leaves = [*lists["leaves"], *leaves]
        self._repeated([*questions, *leaves, *lists["groups"], *lists["entries"]])
        self._repeated(lists["facts"])
        return Tree(
            **values,
            sections=tuple(sections),
            questions={node.id: node for node in questions},
            leaves={node.id: node for node in leaves},
            groups={node.id: node for node in lists["groups"]},
            entries={node.id: node for node in lists["entries"]},
            facts={item.id: item for item in lists["facts"]},
            signatures=tuple(lists["causes"]),
        )

    def _repeated(self, nodes: list[Any]) -> None:
        seen: set[str] = set()
        for node in nodes:
            if node.id in seen:
                self.mistakes.append((1, f"the id {node.id} is used twice"))
            seen.add(node.id)

    def _items(self, raw: list[Any], kind: type, *path: str | int) -> list[Any]:
        built = [self._item(value, kind, (*path, place)) for place, value in enumerate(raw)]
        for place, item in enumerate(built):
            if item is not None and hasattr(item, "id"):
                line = self.document.line(*path, place)
                self.places[_PLACE.get(kind, "") + item.id] = line
                self.places.setdefault(getattr(item, "leaf", item.id), line)
        return [item for item in built if item is not None]

    def _item(self, raw: Any, kind: type, path: tuple[str | int, ...]) -> Any:
        before = len(self.mistakes)
        if not isinstance(raw, dict):
            self.mistakes.append((self.document.line(*path), f"a {kind.__name__.lower()} is a mapping"))
            return None
        values = self._checked(raw, kind, path)
        if "causes" in values:
            values["causes"] = tuple(self._items(list(values["causes"]), Cause, *path, "causes"))
        if "quick" in values:
            values["quick"] = self._item(values["quick"], Quick, (*path, "quick"))
        words = [values.get("severity", Severity.OK), *values.get("severities", {}).values()]
        if not set(words) <= set(Severity):
            choices = ", ".join(Severity)
            self.mistakes.append((self.document.line(*path, "severity"), f"severity is one of {choices}"))
        elif "severity" in values:
            values["severity"] = Severity(values["severity"])
        return kind(**values) if len(self.mistakes) == before else None

    def _checked(self, raw: dict[str, Any], kind: type, path: tuple[str | int, ...]) -> dict[str, Any]:
        """The values that the class knows, each of the right kind; mistakes for the others."""
        known = {item.name: item for item in fields(kind) if item.name not in OURS.get(kind, ())}
        what = f"{kind.__name__.lower()} {raw.get('id', '')}".strip()
        values: dict[str, Any] = {}
        for key, value in raw.items():
            line = self.document.line(*path, key)
            expected, described = _KINDS.get(key, (str, "text"))
            if kind is Signature and key == "of":
                expected, described = list, "a list of leaf ids"
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self.mistakes.append((line, f"{what} has no key {key!r}{hint}"))
            elif not isinstance(value, expected):
                self.mistakes.append((line, f"{key!r} of {what} must be {described}"))
            elif isinstance(value, list) and key in TEXTS and not all(isinstance(item, str) for item in value):
                self.mistakes.append((line, f"{key!r} of {what} must hold text only: quote what contains a colon"))
            elif (
                isinstance(value, dict)
                and key in ("go", "words", "severities")
                and not all(isinstance(v, str) for v in value.values())
            ):
                self.mistakes.append((line, f"{key!r} of {what} must map words to words"))
            else:
                values[key] = tuple(value) if isinstance(value, list) and key in TEXTS else value
        for name, item in known.items():
            if item.default is MISSING and item.default_factory is MISSING and name not in raw and path:
                self.mistakes.append((self.document.line(*path), f"{what} lacks the key {name!r}"))
        return values
