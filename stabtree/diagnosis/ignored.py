"""Leaves that a user lets count for nothing: found and told, but no part of the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.tree.model import Tree


def check_ignored(tree: Tree, leaves: Iterable[str]) -> None:
    """Check that leaves which are to be ignored exist.

    Raises:
        StabtreeError: for one that the tree does not have.
    """
    for id_ in leaves:
        if id_ not in tree.leaves:
            close = near(id_, tree.leaves)
            nodes = [leaf.id for leaf in tree.leaves.values() if leaf.of == id_]
            hint = f"the findings of {id_} are {', '.join(nodes)}" if nodes else "the report and --json name them"
            raise StabtreeError(f"no finding is called {clean(id_, 60)!r}{close}", where="--ignore", hint=hint)
