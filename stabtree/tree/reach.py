"""Which nodes of a tree a walk can reach, and whether it could go round in a circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.tree.model import Tree


def check_reach(tree: Tree, lines: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """Yield the circles and the nodes that no walk reaches, as (line, text); all edges must exist."""
    seen: set[str] = set()
    for section in tree.sections:
        for circle in _circles(tree, section.entry, seen):
            yield lines.get(circle[-2], 1), f"the walk can go round in a circle: {' → '.join(circle)}"
    for id_ in (*tree.questions, *tree.leaves):
        if id_ not in seen:
            yield lines.get(id_, 1), f"{id_} can't be reached from any section"


def _circles(tree: Tree, entry: str, seen: set[str]) -> Iterator[list[str]]:
    """Yield each circle that a walk from an entry could go round in; add the nodes that it reaches to `seen`."""
    seen.add(entry)
    path = {entry: iter(_next(tree, entry))}
    while path:
        id_ = next(reversed(path))
        target = next(path[id_], None)
        if target is None:
            del path[id_]
        elif target in path:
            ids = list(path)
            yield [*ids[ids.index(target) :], target]
        elif target not in seen:
            seen.add(target)
            path[target] = iter(_next(tree, target))


def _next(tree: Tree, id_: str) -> tuple[str, ...]:
    if id_ in tree.questions:
        return tuple(tree.questions[id_].go.values())
    leaf = tree.leaves[id_]
    return tuple(filter(None, [leaf.escalate, leaf.near, leaf.unproven]))
