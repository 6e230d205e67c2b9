"""The nodes of a tree, found by their ids or by words of their texts."""

from __future__ import annotations

from stabtree.tree.compose import NOTHING
from stabtree.tree.document import Entry, Group
from stabtree.tree.model import Leaf, Question, Signature, Tree

Node = Question | Leaf | Group | Entry


def every(tree: Tree) -> list[Node]:
    """All nodes: questions, groups, leaves, entries, and signatures as entries."""
    signatures = map(_as_entry, tree.signatures)
    return [
        *tree.questions.values(),
        *tree.groups.values(),
        *tree.leaves.values(),
        *tree.entries.values(),
        *signatures,
    ]


def _as_entry(item: Signature) -> Entry:
    """A signature as it is read: what it looks like, what it means, and the leaves under which it stands as a cause."""
    return Entry(
        id=item.id,
        title=item.text,
        symptom=item.example,
        cause=f"a possible cause of {', '.join(item.of)}",
        fixes=item.fixes,
        source=item.source,
        probe=f"tested in the log: {item.test}" if item.test else "no log can test it",
        see=item.see,
    )


def find(tree: Tree, word: str) -> tuple[list[Node], bool]:
    """The nodes that a word names, and whether it names them by id rather than by their text.

    An id of a question, leaf or cause; a node of the document that holds several (`Q1.4`, `Q2`, `§2`, `2`);
    else every node whose texts contain the word.
    """
    nodes = every(tree)
    wanted = word.strip().lower().removeprefix("§")
    exact = [n for n in nodes if n.id.lower() == wanted or (isinstance(n, Leaf) and n.of.lower() == wanted)]
    exact += [n for n in nodes if not isinstance(n, Leaf) and n.id.lower().startswith(f"{wanted}.") and n not in exact]
    exact = [n for n in exact if n.id.lower() == wanted or not isinstance(n, Leaf) or n.title != NOTHING]
    if not exact:
        exact = [n for n in nodes if isinstance(n, Leaf) and any(c.id.lower() == wanted for c in n.causes)]
    if not exact and wanted.removeprefix("q").replace(".", "").isdigit():
        prefix = "q" + wanted.removeprefix("q")
        exact = [n for n in nodes if _home(n).lower() == prefix or _home(n).lower().startswith(prefix + ".")]
    if exact or "§" in word:  # a number of a section stands in many a text
        return exact, True
    return [n for n in nodes if all(part in _words(n) for part in wanted.split())], False


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
    causes = [text for cause in node.causes for text in (cause.text, *cause.fixes)]
    return " ".join((node.id, node.title, node.why, *causes, *node.fixes)).lower()
