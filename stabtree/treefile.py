"""Trees from YAML files, checked completely: all mistakes at once, each with its line.

A file holds `name`, `title`, `sections` (id, title, entry), `questions` and `leaves`; their keys are the
attributes of the classes in `stabtree.tree`. Further rules: every edge leads to a question or a leaf,
no walk can come back to where it was, every node can be reached, every verdict of a predicate has an
edge (`unknown` may lack one: the walk then goes on along `no`), every parameter exists and has the type
of its default, every leaf has a fix and a source.
"""

from __future__ import annotations

import difflib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from stabtree.errors import StabtreeError
from stabtree.text import clean
from stabtree.tree import Cause, Group, Leaf, Question, Quick, Section, Severity, Tree, compose
from stabtree.treecheck import check
from stabtree.yaml12 import Document, parse

LARGEST_BYTES = 1_000_000
TEXTS = ("fixes", "see", "needs", "when")
DEFAULT = ("phase19", "convergence")

_KINDS: dict[str, tuple[type, str]] = {
    "go": (dict, "a mapping of verdicts to ids"),
    "params": (dict, "a mapping"),
    "literal": (dict, "a mapping"),
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
    "restart": (bool, "true or false"),
}


def shipped() -> dict[str, Path]:
    """The trees that come with stabtree, by name."""
    package = Path(__file__).parent
    folder = package / "_trees"  # in a wheel; in a checkout the trees stand beside the package
    if not folder.is_dir():
        folder = package.parent / "trees"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_trees() -> Tree:
    """The trees that `diagnose` walks unless told otherwise, put together: Phase-19 first, then those beside it."""
    return compose([load_tree(name) for name in DEFAULT])


def load_tree(name: str | Path = "phase19") -> Tree:
    """Load a tree by the name of a shipped one, or from a YAML file.

    Raises:
        StabtreeError: with every mistake in the file as `file:line: what`, or where there is no such tree.
    """
    known = shipped()
    path = known.get(str(name)) or Path(name)
    if not _is_file(path):
        near = difflib.get_close_matches(str(name), known, 1)
        hint = f"did you mean {near[0]}?" if near else f"shipped trees: {', '.join(known)}; or give a YAML file"
        raise StabtreeError("no such tree", where=clean(name, 100), hint=hint)
    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST_BYTES:
            raise StabtreeError(f"a tree of {len(raw):,} bytes is no tree", where=str(name), hint="the limit is 1 MB")
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StabtreeError("the file is not UTF-8 text", where=str(name), hint="save the tree as UTF-8") from None
    except OSError as error:
        raise StabtreeError(
            f"it can't be read: {error.strerror}", where=str(name), hint="check its permissions"
        ) from None
    return build(text, path.name if str(name) in known else str(name))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # a name too long, or one with a NUL


def build(text: str, where: str) -> Tree:
    """Build a tree from YAML text; `where` names it in messages.

    Raises:
        StabtreeError: with every mistake found.
    """
    document = parse(text, where)
    builder = _Builder(document)
    tree = builder.tree()
    mistakes = [*document.mistakes, *builder.mistakes]
    if tree is not None:
        mistakes += check(tree, document)
    if mistakes or tree is None:
        lines = [f"{where}:{line}: {what}" for line, what in sorted(set(mistakes))]
        count = f"{len(lines)} mistake{'s' if len(lines) != 1 else ''} in the tree"
        raise StabtreeError(
            "\n  ".join([count, *lines]), where=where, hint="mend them, then `stabtree tree check FILE`"
        )
    return tree


class _Builder:
    """Turns a parsed document into dataclasses, collecting mistakes instead of stopping at the first."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[tuple[int, str]] = []

    def tree(self) -> Tree | None:
        top = self.document.value
        if not isinstance(top, dict):
            self.mistakes.append((1, "a tree is a mapping with name, title, sections, questions and leaves"))
            return None
        for key in ("name", "title", "sections", "questions", "leaves"):
            if key not in top:
                self.mistakes.append((1, f"the key {key!r} is missing"))
        values = self.checked(top, Tree, ())
        found: dict[str, list[Any]] = {
            "sections": self.items(values.pop("sections", []), Section, "sections"),
            "questions": self.items(values.pop("questions", []), Question, "questions"),
            "leaves": self.items(values.pop("leaves", []), Leaf, "leaves"),
            "groups": self.items(values.pop("groups", []), Group, "groups"),
        }
        if self.mistakes:
            return None
        self.repeated([*found["questions"], *found["leaves"], *found["groups"]])
        return Tree(
            **values,
            sections=tuple(found["sections"]),
            questions={node.id: node for node in found["questions"]},
            leaves={node.id: node for node in found["leaves"]},
            groups={node.id: node for node in found["groups"]},
        )

    def repeated(self, nodes: list[Any]) -> None:
        seen: set[str] = set()
        for node in nodes:
            if node.id in seen:
                self.mistakes.append((1, f"the id {node.id} is used twice"))
            seen.add(node.id)

    def items(self, raw: list[Any], kind: type, *path: str | int) -> list[Any]:
        built = [self.item(value, kind, (*path, place)) for place, value in enumerate(raw)]
        return [item for item in built if item is not None]

    def item(self, raw: Any, kind: type, path: tuple[str | int, ...]) -> Any:
        before = len(self.mistakes)
        if not isinstance(raw, dict):
            self.mistakes.append((self.document.line(*path), f"a {kind.__name__.lower()} is a mapping"))
            return None
        values = self.checked(raw, kind, path)
        if "causes" in values:
            values["causes"] = tuple(self.items(list(values["causes"]), Cause, *path, "causes"))
        if "quick" in values:
            values["quick"] = self.item(values["quick"], Quick, (*path, "quick"))
        if kind is Leaf and "severity" in values and values["severity"] not in set(Severity):
            choices = ", ".join(Severity)
            self.mistakes.append((self.document.line(*path, "severity"), f"severity is one of {choices}"))
        elif kind is Leaf and "severity" in values:
            values["severity"] = Severity(values["severity"])
        return kind(**values) if len(self.mistakes) == before else None

    def checked(self, raw: dict[str, Any], kind: type, path: tuple[str | int, ...]) -> dict[str, Any]:
        """The values that the class knows, each of the right kind; mistakes for the others."""
        known = {item.name: item for item in fields(kind)}
        what = f"{kind.__name__.lower()} {raw.get('id', '')}".strip()
        values: dict[str, Any] = {}
        for key, value in raw.items():
            line = self.document.line(*path, key)
            expected, described = _KINDS.get(key, (str, "text"))
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
                and key in ("go", "words")
                and not all(isinstance(v, str) for v in value.values())
            ):
                self.mistakes.append((line, f"{key!r} of {what} must map words to words"))
            else:
                values[key] = tuple(value) if isinstance(value, list) and key in TEXTS else value
        for name, item in known.items():
            if item.default is MISSING and item.default_factory is MISSING and name not in raw and path:
                self.mistakes.append((self.document.line(*path), f"{what} lacks the key {name!r}"))
        return values
