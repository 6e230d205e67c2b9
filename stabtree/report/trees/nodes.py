"""The nodes of a tree, found by their ids or by words of their texts."""

from __future__ import annotations

import re
from itertools import chain

from stabtree.common.dataclass import dataclass
from stabtree.run import CONFIG
from stabtree.tree.compose import NOTHING
from stabtree.tree.document import Cause, Entry, Group, Signature
from stabtree.tree.model import Leaf, Question, Tree


@dataclass(frozen=True, slots=True)
class CauseOf:
    """A cause with the leaves that it is a cause of."""

    cause: Cause
    leaves: tuple[Leaf, ...]

    @property
    def id(self) -> str:
        """The id of the cause."""
        return self.cause.id


Node = Question | Leaf | Group | Entry | CauseOf


def title_of(node: Node) -> str:
    """Return the question of a node, or its title."""
    if isinstance(node, CauseOf):
        return node.cause.text
    return node.title if isinstance(node, Leaf | Entry) else node.ask


def every(tree: Tree) -> list[Node]:
    """Return all nodes: questions, groups, leaves, entries, and signatures as causes."""
    signatures = (CauseOf(item, _leaves(tree, item)) for item in tree.signatures)
    return [
        *tree.questions.values(),
        *tree.groups.values(),
        *tree.leaves.values(),
        *tree.entries.values(),
        *signatures,
    ]


def _leaves(tree: Tree, item: Signature) -> tuple[Leaf, ...]:
    return tuple(tree.leaves[id_] for id_ in item.of if id_ in tree.leaves)


def example_of(node: CauseOf) -> str:
    """Return a run that had the cause; empty where none is known."""
    return node.cause.example if isinstance(node.cause, Signature) else ""


def find(tree: Tree, word: str) -> tuple[list[Node], bool]:
    """Return the nodes that a word names, and whether it names them by id rather than by their text.

    An id of a question, leaf or cause; a node of the document that holds several (`Q1.4`, `Q2`, `§2`, `2`);
    else every node whose texts contain the word.
    """
    wanted = _id(word)
    nodes = every(tree)
    named = _named(nodes, wanted) or _cause(nodes, wanted) or _in_section(nodes, wanted)
    if named or "§" in word:  # the number of a section occurs in many texts
        return sorted(named, key=lambda node: not is_named(node, word)), True
    return [node for node in nodes if all(part in _words(node) for part in wanted.split())], False


def mentions(node: Node, word: str) -> bool:
    """Whether a text of a node has the word as a whole."""
    return re.search(rf"(?<![\w/]){re.escape(_id(word))}(?![\w/])", _words(node)) is not None


def _named(nodes: list[Node], wanted: str) -> list[Node]:
    """Return the nodes with that id, then those that it holds."""
    exact = [node for node in nodes if wanted in (node.id.lower(), _home(node).lower())]
    inside = [node for node in nodes if not isinstance(node, Leaf) and node.id.lower().startswith(f"{wanted}.")]
    found = [*exact, *(node for node in inside if node not in exact)]
    return [node for node in found if node.id.lower() == wanted or not _is_nothing(node)]


def _is_nothing(node: Node) -> bool:
    """Whether it is the leaf of a check that finds nothing."""
    return isinstance(node, Leaf) and node.title == NOTHING


def _cause(nodes: list[Node], wanted: str) -> list[Node]:
    """Return the cause of that id with its leaves."""
    leaves = [node for node in nodes if isinstance(node, Leaf)]
    having = [leaf for leaf in leaves if any(cause.id.lower() == wanted for cause in leaf.causes)]
    if not having:
        return []
    cause = next(cause for cause in having[0].causes if cause.id.lower() == wanted)
    return [CauseOf(cause, tuple(having))]


def _in_section(nodes: list[Node], wanted: str) -> list[Node]:
    """Return the nodes of a section or a group of the source document, by its number."""
    number = wanted.removeprefix("q")
    if not number.replace(".", "").isdigit():
        return []
    homes = [(node, _home(node).lower()) for node in nodes]
    return [node for node, home in homes if home == f"q{number}" or home.startswith(f"q{number}.")]


def is_named(node: Node, word: str) -> bool:
    """Whether a word is the very id of a node."""
    return node.id.lower() == _id(word)


def _id(word: str) -> str:
    return word.strip().lower().removeprefix("§")


def _home(node: Node) -> str:
    return node.of if isinstance(node, Leaf) else node.id


def _words(node: Node) -> str:
    if isinstance(node, Group):
        return " ".join((node.id, node.ask, node.why, node.rule)).lower()
    if isinstance(node, Question):
        return " ".join((node.id, node.ask, node.why, node.rule, node.person, node.test)).lower()
    if isinstance(node, Entry):
        texts = (node.id, node.title, node.symptom, node.cause, node.probe, node.knob, *node.fixes)
        return " ".join(texts).lower()
    if isinstance(node, CauseOf):
        return " ".join((node.id, node.cause.text, *node.cause.fixes)).lower()
    causes = chain.from_iterable((cause.text, *cause.fixes) for cause in node.causes)
    return " ".join((node.id, node.title, node.why, *causes, *node.fixes)).lower()


def how_to_ask(tree: Tree, node: Question | Leaf | Group) -> str:
    """Return the command that asks a node."""
    if _before_run(tree, node):
        return "asked by: stabtree check CONFIG"
    return f"ask it of a run: stabtree diagnose RUN --why-not {node.id}"


def _before_run(tree: Tree, node: Question | Leaf | Group) -> bool:
    """Whether a node is of a tree that waits for a configuration alone."""
    question = node if isinstance(node, Question) else tree.questions.get(getattr(node, "of", ""))
    home = tree.section(question.section).tree if question else ""
    return CONFIG in next((part.when for part in tree.parts if part.name == home), tree.when)
