"""Where the path hinges on what only a person can name, such as the precision of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.predicates import predicate_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stabtree.diagnosis.visits import Visit
    from stabtree.tree.model import Leaf, Question


def hinges(path: Iterable[Visit], leaf_after: Callable[[Question, str], Leaf | None]) -> dict[str, str]:
    """The settings that the path would go another way with, and between which leaves each of them decides.

    Args:
        path: the walk.
        leaf_after: where the walk would end if a question had this answer.
    """
    found = {}
    for visit in path:
        predicate = predicate_named(visit.question.test)
        if visit.answer.verdict != UNKNOWN or not predicate or predicate.sets not in visit.answer.missing:
            continue
        leads: dict[str, list[str]] = {}
        for word in (verdict for verdict in visit.question.go if verdict != UNKNOWN):
            leaf = leaf_after(visit.question, word)
            leads.setdefault(leaf.title if leaf else "", []).append(word)
        if len(leads) > 1:
            *first, last = (f'"{title}" ({", ".join(words)})' for title, words in leads.items())
            found[predicate.sets] = f"between {', '.join(first)} and {last}"
    return found
