"""The ways through a tree: which of them leads to a node with the fewest answers that would have to be others."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from stabtree.common.answer import NO

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from stabtree.common.answer import Answer
    from stabtree.diagnosis.visits import Visit
    from stabtree.tree.model import Question, Section, Tree

    Way = tuple[tuple[str, str], ...]  # each question with the node that it must lead to


def target(question: Question, answer: Answer) -> str:
    """Return the node to which an answer leads."""
    return question.go.get(answer.verdict) or question.go[NO]


def end_of(walk: Sequence[Visit]) -> str:
    """Return the node to which the last answer of a walk leads."""
    return target(walk[-1].question, walk[-1].answer)


def nearest_way(
    tree: Tree,
    sections: Iterable[Section],
    nodes: Collection[str],
    ask: Callable[[Question], Answer],
) -> tuple[str, Way] | None:
    """Return the way to one of some nodes with the fewest answers that lead elsewhere, of those the shortest.

    The first section's way may cross into others, as the path does; that of any other stays inside.

    Args:
        tree: the tree.
        sections: those from whose entry a way may begin.
        nodes: where it may end.
        ask: the answer to a question.

    Returns:
        The node and the way to it; None where none leads there.
    """
    waiting: list[tuple[int, int, int, str, str, Way]] = []
    for index, section in enumerate(sections):
        home = ""
        if section is not tree.sections[0]:
            home = section.id
        heappush(waiting, (0, 0, index, home, section.entry, ()))
    order, closed = len(waiting), set()
    while waiting:
        wrong, length, _, home, id_, way = heappop(waiting)
        if id_ in nodes:
            return id_, way
        if id_ not in tree.questions or (home, id_) in closed:
            continue
        closed.add((home, id_))
        question = tree.questions[id_]
        chosen = target(question, ask(question))
        for other in dict.fromkeys(question.go.values()):
            if not home or other in tree.leaves or tree.questions[other].section == home:
                order += 1
                heappush(waiting, (wrong + (other != chosen), length + 1, order, home, other, (*way, (id_, other))))
    return None


def nodes_by_name(tree: Tree) -> dict[str, frozenset[str]]:
    """Return all that can be asked about, each with the nodes of walks that it names; none for what no log shows."""
    held = {id_: frozenset([id_]) for id_ in (*tree.questions, *tree.leaves)}
    for group in tree.groups:
        held.setdefault(group, frozenset(leaf.id for leaf in tree.leaves.values() if leaf.of == group))
    causes: dict[str, set[str]] = {}
    for leaf in tree.leaves.values():
        for cause in leaf.causes:
            causes.setdefault(cause.id, set()).add(leaf.id)
    held = {id_: frozenset(leaves) for id_, leaves in causes.items()} | held
    for section in tree.sections:
        held.setdefault(section.id, frozenset([section.entry]))
    return {entry: frozenset() for entry in tree.entries} | held
