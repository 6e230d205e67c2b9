"""A known metric as text: what it is, under which names it is found, how to log it, and which questions read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named
from stabtree.report.page import Page
from stabtree.report.trees.predicates import metrics_of

if TYPE_CHECKING:
    from stabtree.tree.model import Question, Tree

NAMES_SHOWN = 12


def about_metric(tree: Tree, name: str, *, width: int = 100, color: bool = False) -> str:
    """Return what is known of the metric of that name; empty where there is none."""
    metric = by_name().get(name)
    if metric is None:
        return ""
    page = Page(width=width, color=color)
    page.line((metric.name, "id"), ("  ", ""), (metric.meaning, "heading"), hanging=len(metric.name) + 2)
    page.blank()
    names, more = ", ".join(metric.aliases[:NAMES_SHOWN]), len(metric.aliases) - NAMES_SHOWN
    if more > 0:
        names += f" and {more:,} more; --column {metric.name}=NAME adds one"
    readers = [node.id for node in tree.questions.values() if name in _reads(node)]
    for head, text in (
        ("log", metric.log),
        ("groups", f"{metric.name}/<group>, a series each" if metric.grouped else ""),
        ("found as", names),
        ("read by", ", ".join(readers)),
    ):
        if text:
            page.item((head, "dim"), [(text, "")], indent=1, head_width=11)
    return page.text()


def _reads(node: Question) -> set[object]:
    """Return the metrics that a question asks for, by its predicate and the facts behind it, or by name."""
    predicate = predicate_named(node.test)
    if predicate is None:
        return set()
    return {*(found.removesuffix("/<group>") for found in metrics_of(predicate)), node.params.get("metric")}
