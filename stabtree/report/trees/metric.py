"""A known metric as text: what it is, under which names it is found, how to log it, and which questions read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.metrics.metric import Role
from stabtree.metrics.names import AXES, Names
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named
from stabtree.report.page import Page
from stabtree.report.trees.predicates import metrics_of

if TYPE_CHECKING:
    from stabtree.tree.model import Question, Tree

NAMES_SHOWN = 12
AXIS = {
    "step": "the optimizer step: where each row is",
    "epoch": "the epoch: where each row is, if no step is logged",
    "rank": "which process wrote the row",
    "run": "which run the row is of",
    "phase": "whether the row is of training or of evaluation",
}


def metric_of(name: str) -> str:
    """Return the metric that a column of that name is read as; empty where it is none."""
    return Names().match(name).role.partition("/")[0] if Names().match(name).role not in AXES else ""


def about_column(name: str, *, width: int = 100, color: bool = False) -> str:
    """Return what a column of that name is read as where it is no known metric; empty where the name says nothing."""
    axis, reading = Names().match(name).role, describe_name(name)
    if axis not in AXIS and reading.role is Role.OTHER:
        return ""
    page = Page(width=width, color=color)
    if axis in AXIS:
        page.line((name, "id"), ("  ", ""), (f"read as {axis}, {AXIS[axis]}", "heading"))
        return page.text()
    better = f", {reading.better} is better" if reading.better else ""
    page.line((name, "id"), ("  ", ""), (f"a column, read by its name as: {reading.role}{better}", "heading"))
    page.blank()
    use = "in the order of events, the plots and the quoted rows"
    if reading.role in (Role.REWARD, Role.QUALITY, Role.HELD_OUT_LOSS):
        use = f"as what the run is judged by, where no better one is logged; {use}"
    page.item(("used", "dim"), [(use, "")], indent=1, head_width=11)
    page.item(("rename", "dim"), [("--column METRIC=NAME reads it as a known metric", "")], indent=1, head_width=11)
    page.line(("`stabtree inspect RUN` shows what each column of a run is read as", "dim"), indent=1)
    return page.text()


def about_metric(tree: Tree, name: str, *, named: str = "", width: int = 100, color: bool = False) -> str:
    """Return what is known of the metric of that name; empty where there is none.

    Args:
        tree: whose questions read it.
        name: the metric.
        named: what was typed, where that is another name of it.
        width: columns.
        color: whether it may be coloured.
    """
    metric = by_name().get(name)
    if metric is None:
        return ""
    page = Page(width=width, color=color)
    if named not in ("", name):
        page.line((f"{named} is read as {name}.", "dim"))
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
