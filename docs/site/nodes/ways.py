"""Where the answers of a question lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stabtree.tree.model import Question


def exits(question: Question) -> dict[str, list[str]]:
    """Where a question's answers lead, each with all the answers that lead there."""
    found: dict[str, list[str]] = {}
    for verdict, target in question.go.items():
        found.setdefault(target, []).append(verdict)
    return found
