"""`stabtree explain`: read a node of a tree, or what a metric is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import JudgeOptions, Only
from stabtree.cli.terminal import emit, screen
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from stabtree.report.explain import Node
    from stabtree.tree.model import Tree

MIN_LETTERS = 4  # of a part of an id that is a word of its own
SECTION = re.compile(r"§.*|[qQ]\d+(?:\.\d*)?")
MAX_WHOLE = 3  # nodes found by their text that are shown whole; more are a line each


def explain(
    node: Annotated[
        str | None,
        typer.Argument(help="An id (Q2.3, lr-too-high, §2), a metric (grad_norm), or words to search for (z-loss)."),
    ] = None,
    judge: Annotated[JudgeOptions, Only("tree")] = JudgeOptions(),  # noqa: B008 - frozen
    all_: Annotated[bool, typer.Option("--all", help="Explain every node.")] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Show everything: all causes, what speaks for each, all fixes and parameters."),
    ] = False,
) -> None:
    """Explain a node on one screen: the question, its rule, where each answer leads, and the fix."""
    from stabtree.metrics.table import by_name
    from stabtree.report import explain as nodes
    from stabtree.tree.load import load_defining, load_known, load_tree

    tree = load_tree(judge.tree) if judge.tree else None
    if tree is None and node and not all_ and node not in by_name():
        tree = load_defining(node)  # its own trees are enough for a node; questions of all trees read a metric
    chosen = tree or load_known()
    if all_:
        width, color = screen()
        emit(nodes.explain(chosen, nodes.every(chosen), width=width, color=color))
        return
    if node is None or not clean(node).strip("§ "):
        raise StabtreeError(
            "which node?", where="explain", hint="type `stabtree explain Q2.1`, or --all for every node"
        )
    emit(_explained(chosen, node, full=full))


def _explained(tree: Tree, word: str, *, full: bool) -> str:
    """Return the explanation of what is called so, or of what mentions it.

    Raises:
        StabtreeError: where there is nothing.
    """
    from stabtree.report import explain as nodes
    from stabtree.report.trees import about_metric, metric_of

    width, color = screen()

    def listed(named: list[Node]) -> str:
        most = len(named) if full else nodes.LISTED
        return nodes.listing(named, width=width, color=color, most=most)

    found, by_id = nodes.find(tree, word)
    metric = metric_of(word)
    by_id = by_id and bool(found) and metric != word
    if metric and not by_id:
        found, _ = nodes.find(tree, metric)
        about = about_metric(tree, metric, named=word, width=width, color=color)
        return about + (f"\n{listed(found)}" if found and full else "\n more: --full\n" * bool(found))
    if not found:
        lists = f"`stabtree tree show {tree.name}` lists the nodes, `stabtree inspect RUN` what each column is read as"
        hint = _meant(tree, word) or lists
        raise StabtreeError(f"nothing is called {clean(word, 60)!r} or mentions it", where="explain", hint=hint)
    whole = found
    if not by_id:
        titles = [other for other in found if nodes.rank(tree, other, word) == nodes.IN_TITLE]
        if len(titles) == 1:
            whole, word = titles, titles[0].id
        elif len(found) > MAX_WHOLE:
            return listed(found)
    if full:
        return nodes.explain(tree, whole, width=width, color=color)
    return nodes.one_screen(tree, found, named=word, width=width, color=color)


def _meant(tree: Tree, word: str) -> str:
    """Return a hint of what to type instead of an unknown word: an id, a metric, or a word of one."""
    import difflib  # only a mistake needs it

    from stabtree.metrics.table import by_name

    numbers = [section.id for section in tree.sections if section.id.isdigit()]
    if numbers and SECTION.fullmatch(word.strip()):
        return f"the sections are §{', §'.join(numbers)}; type `stabtree explain {numbers[0]}`"
    ids = [*tree.questions, *tree.leaves, *tree.entries, *tree.groups, *by_name()]
    parts = {part for id_ in ids for part in id_.lower().replace("_", "-").split("-") if len(part) >= MIN_LETTERS}
    known = {part: part for part in parts} | {id_.lower(): id_ for id_ in ids}
    close = difflib.get_close_matches(word.strip().lower(), known, 1)
    return "".join(f"did you mean `stabtree explain {known[name]}`?" for name in close)
