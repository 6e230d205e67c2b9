"""`stabtree explain`: read a node of a tree, or what a metric is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import values
from stabtree.cli.options.judge import JudgeOptions
from stabtree.cli.program.expand import Only
from stabtree.cli.shell.printing import emit, screen
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from stabtree.report.trees.nodes import Node
    from stabtree.tree.model import Tree

MIN_LETTERS = 4  # of a part of an id that is a word of its own
SECTION = re.compile(r"§.*|[qQ]\d+(?:\.\d*)?")
MAX_WHOLE = 3  # nodes found by their text that are shown whole; more are a line each


def explain(
    node: Annotated[
        str | None,
        typer.Argument(
            help="An id (Q2.3, spike-minor, §2), a metric (grad_norm), or words to search for (spike).",
            autocompletion=values.nodes,
        ),
    ] = None,
    judge: Annotated[JudgeOptions, Only("tree")] = JudgeOptions(),  # noqa: B008 - frozen
    all_: Annotated[bool, typer.Option("--all", help="Explain every node.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show everything: leaves with their causes and fixes, all parameters.")
    ] = False,
) -> None:
    """Explain a node: the question, why it matters, the exact thresholds, what it reads, its edges and fixes."""
    from stabtree.metrics.table import by_name
    from stabtree.report.trees import nodes, reference
    from stabtree.tree.load import load_defining, load_known, load_tree

    tree = load_tree(judge.tree) if judge.tree else None
    if tree is None and node and not all_ and node not in by_name():
        tree = load_defining(node)  # its own trees are enough for a node; questions of all trees read a metric
    chosen = tree or load_known()
    if all_:
        width, color = screen()
        emit(reference.explain(chosen, nodes.every(chosen), full=full, width=width, color=color))
        return
    if node is None or not clean(node).strip("§ "):
        raise StabtreeError(
            "which node?", where="explain", hint="type `stabtree explain Q2.1`, or --all for every node"
        )
    emit(_explained(chosen, node, full=full))


def _explained(tree: Tree, node: str, *, full: bool) -> str:
    """Return the explanation of what is called so, or of what mentions it.

    Raises:
        StabtreeError: where there is nothing.
    """
    from stabtree.report.trees import nodes
    from stabtree.report.trees.metric import about_metric

    width, color = screen()
    metric = about_metric(tree, node, width=width, color=color)
    found, by_id = nodes.find(tree, node)
    if not found and not metric:
        hint = _meant(tree, node) or f"`stabtree tree show {tree.name}` lists the nodes"
        raise StabtreeError(f"nothing is called {clean(node, 60)!r} or mentions it", where="explain", hint=hint)
    if not found:
        return metric
    if by_id or len(found) <= MAX_WHOLE:
        return metric + _whole(tree, found, node, full=full)
    return metric + _listed(found, after_metric=bool(metric), full=full)


def _whole(tree: Tree, found: list[Node], word: str, *, full: bool) -> str:
    """Return the nodes in words."""
    from stabtree.report.trees import reference

    width, color = screen()
    if full:
        return reference.explain(tree, found, full=True, width=width, color=color)
    return reference.one_screen(tree, found, named=word, width=width, color=color)


def _listed(found: list[Node], *, after_metric: bool, full: bool) -> str:
    """Return many nodes in short: below what is known of a metric by their ids alone."""
    from stabtree.report.trees import reference

    width, color = screen()
    if not after_metric:
        return reference.listing(found, width=width, color=color)
    if full:
        return "\n" + reference.listing(found, width=width, color=color)
    return reference.by_kind(found, width=width, color=color)


def _meant(tree: Tree, word: str) -> str:
    """Return a hint of what to type instead of an unknown word: an id, a metric, or a word of one."""
    import difflib  # only a mistake needs it

    from stabtree.metrics.table import by_name

    if SECTION.fullmatch(word.strip()):
        numbers = [section.id for section in tree.sections if section.id.isdigit()]
        if numbers:
            return f"the sections are §{', §'.join(numbers)}; type `stabtree explain {numbers[0]}`"
        return ""
    known: dict[str, str] = {}
    ids = [*tree.questions, *tree.leaves, *tree.entries, *tree.groups, *by_name()]
    for id_ in ids:
        parts = id_.lower().replace("_", "-").split("-")
        known.update((part, part) for part in parts if len(part) >= MIN_LETTERS)
    known.update((id_.lower(), id_) for id_ in ids)
    close = difflib.get_close_matches(word.strip().lower(), known, 1)
    return f"did you mean `stabtree explain {known[close[0]]}`?" if close else ""
