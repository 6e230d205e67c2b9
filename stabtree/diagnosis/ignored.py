"""Findings that a user ignores or accepts: they are reported, but do not count towards the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.tree.model import Tree


class Accepted(Struct, frozen=True):
    """Why a finding does not count, though nobody ignores its leaf: it is known.

    Attributes:
        reason: why it is accepted, in the user's words; may be empty.
        since: since when, in the user's words; may be empty.
        source: the file that accepts it.
    """

    reason: str = ""
    since: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """The sentence that every output shows.

        >>> Accepted("the loader is being fixed", "March", "base.json").text
        'known since March, the loader is being fixed (base.json)'
        """
        known = "" if self.reason else "known"
        if self.since:
            known = f"known since {self.since}"
        return f"{', '.join(filter(None, [known, self.reason]))} ({self.source})"


def check_ignored(tree: Tree, leaves: Iterable[str]) -> None:
    """Check that the leaves to ignore exist.

    Raises:
        StabtreeError: for one that the tree does not have.
    """
    for id_ in leaves:
        if id_ in tree.leaves:
            continue
        hint = "the report and --json name them"
        findings = [leaf.id for leaf in tree.leaves.values() if leaf.of == id_]
        if findings:
            hint = f"the findings of {id_} are {', '.join(findings)}"
        problem = f"no finding is called {clean(id_, 60)!r}{near(id_, tree.leaves)}"
        raise StabtreeError(problem, where="--ignore", hint=hint)
