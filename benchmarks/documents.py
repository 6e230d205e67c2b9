"""Name the numbers that the documents give themselves: they are never fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stabtree.tree.model import Tree

STATED = {
    *("spike.window_steps", "spike.sigma", "spike.back_sigma", "spike.horizon_steps", "rise.window_steps"),
    *("Q2.3.grad_norm_factor", "Q3.2.collapse_below", "Q4.3.factor"),
    *("O7.usual", "O7.slow.usual", "O7.worse.usual"),
}
GUIDE = "axolotl"
"""How the source of a question begins whose `level` is a row of the guide's tables."""


def documented(tree: Tree, node: str, name: str) -> bool:
    """Return whether a document gives the value of a parameter."""
    question = tree.questions.get(node)
    row = question is not None and name == "level" and question.source.startswith(GUIDE)
    return row or f"{node}.{name}" in STATED
