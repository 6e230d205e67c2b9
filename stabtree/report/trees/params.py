"""The parameters of a node as text, each with the name to set it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.trees.fitted import fitted_texts
from stabtree.report.trees.predicates import shown_value
from stabtree.tree.model import Question
from stabtree.tree.params import fine, known, settable

if TYPE_CHECKING:
    from stabtree.predicates import Predicate
    from stabtree.report.page import Page
    from stabtree.report.text import Line
    from stabtree.tree.model import Tree
    from stabtree.tree.params import Asking

HEAD = 11  # columns of the name of a field


def add_params(page: Page, tree: Tree, node: Asking, predicate: Predicate, *, full: bool) -> None:
    """Add what can be set, with the name to set it by: a parameter of a fact by the fact's.

    Args:
        page: where to.
        tree: the tree of the node.
        node: what asks.
        predicate: what it asks.
        full: whether those that only fine-tune a guard are shown as well.
    """
    able = _able(node, predicate)
    names = list(able)
    if not full:
        guards = set(fine(tree, node)).union(*(fact.advanced for fact in tree.facts.values()))
        names = [name for name in names if name not in guards]
    keys = {name: f"{able[name] or node.id}.{name}" for name in names}
    rows = _rows(tree, node, keys)
    hidden = len(able) - len(keys)
    if hidden:
        rows.append([(f"and {hidden} that fine-tune it (--full)", "dim")])
    page.listed("set", rows, indent=1, head_width=HEAD)
    page.listed("limit", ([(text, "")] for text in fitted_texts(node.id)), indent=1, head_width=HEAD)


def _able(node: Asking, predicate: Predicate) -> dict[str, str]:
    """Return the parameters that can be set, each with the fact that takes it; empty for the predicate's own."""
    homes = {name: home for name, (home, _) in settable(predicate).items()}
    if isinstance(node, Question):
        return homes
    # The question that led to a cause shows what the facts take.
    return {name: home for name, home in homes.items() if not home}


def _rows(tree: Tree, node: Asking, keys: dict[str, str]) -> list[Line]:
    """Return a row for each parameter: how to set it, its value, and the source document's where that differs."""
    usual, literal = known(tree, node), known(tree, node, literal=True)
    longest = max(map(len, keys.values()), default=0)
    rows: list[Line] = []
    for name, key in keys.items():
        other = ""
        if literal[name] != usual[name]:
            other = f"   (--literal: {shown_value(literal[name])})"
        rows.append([(f"{key:<{longest}} = ", ""), (shown_value(usual[name]), "number"), (other, "dim")])
    return rows
