"""`stabtree explain`: read a node of a tree, or what a metric is."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.options import TreeOpt  # noqa: TC001 - typer reads it
from stabtree.cli.shell.printing import emit, screen
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from stabtree.tree.model import Tree

LEAST = 3  # letters of a part of an id that is a word of its own
SECTION = re.compile(r"§.*|[qQ]\d+(?:\.\d*)?")
IN_FULL = 3  # nodes found by their text are shown whole up to this many, else in a line each


def explain(
    node: Annotated[
        str | None,
        typer.Argument(help="An id (Q2.3, spike-minor, §2), a metric (grad_norm), or words to look for (spike)."),
    ] = None,
    tree: TreeOpt = None,
    all_: Annotated[bool, typer.Option("--all", help="Explain every node.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Tell all of it: leaves with their causes and fixes, all parameters.")
    ] = False,
) -> None:
    """Explain a node: the question, why it matters, the exact thresholds, what it reads, its edges and fixes."""
    from stabtree.metrics.table import by_name
    from stabtree.render.trees import nodes, reference
    from stabtree.render.trees.metric import about_metric
    from stabtree.tree.load import load_defining, load_known, load_tree

    # A node's own trees are enough to explain it; a metric is read by questions of all.
    alone = load_defining(node) if node and not (all_ or tree or node in by_name()) else None
    chosen = load_tree(tree) if tree else alone or load_known()
    width, color = screen()
    if all_:
        emit(reference.explain(chosen, nodes.every(chosen), full=full, width=width, color=color))
        return
    if node is None or not clean(node).strip("§ "):
        raise StabtreeError(
            "which node?", where="explain", hint="type `stabtree explain Q2.1`, or --all for every node"
        )
    metric = about_metric(chosen, node, width=width, color=color)
    found, by_id = nodes.find(chosen, node)
    if not found and not metric:
        hint = _meant(chosen, node) or f"`stabtree tree show {chosen.name}` lists the nodes"
        raise StabtreeError(f"nothing is called {clean(node, 60)!r} or mentions it", where="explain", hint=hint)
    parts = [metric] if metric else []
    if by_id or len(found) <= IN_FULL:
        told = partial(reference.explain, full=True) if full else reference.one_screen
        parts += [told(chosen, found, width=width, color=color)] if found else []
    elif metric and not full:
        parts.append(reference.by_kind(found, width=width, color=color))
    else:
        parts.append("\n" * bool(metric) + reference.listing(found, width=width, color=color))
    emit("".join(parts))


def _meant(tree: Tree, word: str) -> str:
    """What to type instead of a word that nothing is called: an id, a metric, or a word of one."""
    import difflib  # only a mistake needs it

    from stabtree.metrics.table import by_name

    if SECTION.fullmatch(word.strip()):
        numbers = [section.id for section in tree.sections if section.id.isdigit()]
        return f"the sections are §{', §'.join(numbers)}; type `stabtree explain {numbers[0]}`" if numbers else ""
    ids = [*tree.questions, *tree.leaves, *tree.entries, *tree.groups, *by_name()]
    known = {part: part for id_ in ids for part in id_.lower().replace("_", "-").split("-") if len(part) > LEAST}
    known |= {id_.lower(): id_ for id_ in ids}
    close = difflib.get_close_matches(word.strip().lower(), known, 1)
    return f"did you mean `stabtree explain {known[close[0]]}`?" if close else ""
