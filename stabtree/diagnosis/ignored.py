"""What a user lets count for nothing, a leaf or one finding of it: found and told, but no part of the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.tree.model import Tree


@dataclass(frozen=True, slots=True)
class Accepted:
    """Why a finding counts for nothing though nobody ignores its leaf: it is known.

    Attributes:
        reason: why it is accepted, as somebody wrote; may be empty.
        since: since when, as somebody wrote; may be empty.
        source: the file that says so.
    """

    reason: str = ""
    since: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """What every output says of it.

        >>> Accepted("the loader is being mended", "March", "base.json").text
        'known since March, the loader is being mended (base.json)'
        """
        known = f"known since {self.since}" if self.since else "" if self.reason else "known"
        told = ", ".join(filter(None, [known, self.reason]))
        return f"{told} ({self.source})"


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
