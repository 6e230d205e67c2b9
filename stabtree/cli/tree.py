"""`stabtree tree`: list, show, draw, check and test trees; the schema of their files, and what they may ask."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stabtree.cli.shell.command import TypedCommand, TypedGroup
from stabtree.cli.shell.printing import emit, screen
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.codes import FOUND, UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.tree.model import Cause, Signature

tree_app = typer.Typer(cls=TypedGroup, no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A tree that ships with stabtree, or a YAML file.")]


class GraphFormat(StrEnum):
    """What `tree graph` can write."""

    MERMAID = "mermaid"
    DOT = "dot"


@tree_app.command("list", cls=TypedCommand)
def list_() -> None:
    """List the trees that ship with stabtree."""
    from stabtree.render.trees import outline as outlines
    from stabtree.tree.load import load_tree, shipped

    width, color = screen()
    emit(outlines.listing([load_tree(name) for name in shipped()], width=width, color=color))


@tree_app.command(cls=TypedCommand)
def show(
    name: Name = "phase19",
    thresholds: Annotated[bool, typer.Option("--thresholds", help="The quick-reference table of thresholds.")] = False,
    literal: Annotated[
        bool, typer.Option("--literal", help="The source document's own rules, without the guards against noise.")
    ] = False,
) -> None:
    """Show a tree: its sections, questions and edges, or its thresholds."""
    from stabtree.render.trees import outline as outlines
    from stabtree.tree.load import load_tree

    tree = load_tree(name)
    width, color = screen()
    if thresholds:
        emit(outlines.thresholds(tree, literal=literal, width=width, color=color))
    else:
        emit(outlines.outline(tree, width=width, color=color))


@tree_app.command(cls=TypedCommand)
def graph(
    name: Name = "phase19",
    format_: Annotated[GraphFormat, typer.Option("--format", help="The graph language.")] = GraphFormat.MERMAID,
    section: Annotated[str, typer.Option("--section", help="One section of a large tree, such as 2 or learning.")] = "",
) -> None:
    """Write a tree, or one section of it, as a graph for Mermaid or Graphviz."""
    from stabtree.render.trees import graph as graphs
    from stabtree.tree.load import load_tree

    tree = load_tree(name)
    if section:
        tree = graphs.part_of(tree, section)
    emit(graphs.mermaid(tree) if format_ is GraphFormat.MERMAID else graphs.dot(tree))


@tree_app.command(cls=TypedCommand)
def schema() -> None:
    """Write the JSON Schema of tree files, for an editor to check them by."""
    import json

    from stabtree.predicates import predicate_names
    from stabtree.tree.schema import schema as made

    emit(json.dumps(made(predicate_names()), indent=1, ensure_ascii=False))


@tree_app.command(cls=TypedCommand)
def predicates(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One of them, with all that it reads and takes.")] = "",
) -> None:
    """List the predicates that a tree may ask, with their verdicts, or show one with its parameters."""
    from stabtree.common.text import near
    from stabtree.predicates import predicate_named, predicate_names
    from stabtree.render.trees.predicates import predicate_list, predicate_page

    width, color = screen()
    names = predicate_names()
    if not name:
        known = [item for item in map(predicate_named, names) if item]
        emit(predicate_list(known, width=width, color=color))
        return
    found = predicate_named(name)
    if found is None:
        hint = near(name, names).removeprefix("; ") or "type `stabtree tree predicates` for all of them"
        raise StabtreeError("no such predicate", where=clean(name, 100), hint=hint)
    emit(predicate_page(found, width=width, color=color))


@tree_app.command(cls=TypedCommand)
def check(name: Name) -> None:
    """Check a tree file completely: keys, edges, cycles, predicates and parameters."""
    from stabtree.tree.compose import NOTHING
    from stabtree.tree.load import load_tree
    from stabtree.tree.model import SHORT

    tree = load_tree(name)
    own = {section.id for section in tree.sections if section.tree in ("", tree.name)}
    questions = {question.id for question in tree.questions.values() if question.section in own}
    homes = questions | {group.id for group in tree.groups.values() if group.section in own}
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of in homes and leaf.title != NOTHING]
    told = f"{len(questions)} questions and {len(leaves)} leaves"
    others = f", and it uses {', '.join(tree.uses)}" if tree.uses else ""
    emit(f"{clean(tree.name)}: no mistake in {told}{others}")
    if long := sorted(id_ for id_ in questions if not tree.questions[id_].short):
        emit(f"note: {', '.join(long)}: no `short`, so a path shows the whole question; {SHORT} characters at most")
    for note in _cut_on_screen([*tree.signatures, *(cause for leaf in leaves for cause in leaf.causes)]):
        emit(note)


def _cut_on_screen(causes: Sequence[Cause | Signature]) -> Iterator[str]:
    """Notes of the causes that a screen of 80 columns has no room for, and that have no short form."""
    from stabtree.tree.fixes import plain
    from stabtree.tree.model import SHORT_CAUSE, SHORT_FIX

    if long := sorted({cause.id for cause in causes if len(cause.text) > SHORT_CAUSE and not cause.short}):
        yield f"note: {', '.join(long)}: no `short`, so a screen may cut the cause; {SHORT_CAUSE} characters at most"
    mended = [cause for cause in causes if cause.fixes and len(plain(cause.fixes[0])) > SHORT_FIX]
    if long := sorted({cause.id for cause in mended if not cause.mend}):
        yield f"note: {', '.join(long)}: no `mend`, so a screen may cut the first fix; {SHORT_FIX} characters at most"


@tree_app.command(cls=TypedCommand)
def test(name: Name) -> None:
    """Run a tree's own tests: logs that lie beside it, each with the leaf that it must reach.

    Exit code 0 means that all passed, 1 that one failed, 2 that the tree or a log can't be read.
    """
    from stabtree.diagnosis.why.cases import tried, untested
    from stabtree.render.trees.cases import cases_text
    from stabtree.tree.load import load_tree

    tree = load_tree(name)
    if not tree.tests:
        hint = "add `tests: [{run: fixtures/run.csv, reaches: LEAF}]` to it"
        raise StabtreeError("holds no tests", where=clean(name), hint=hint)
    results = [tried(tree, case, Path(name).parent) for case in tree.tests]
    width, color = screen()
    emit(cases_text(tree.name, results, untested(tree), width=width, color=color))
    if not all(result.passed for result in results):
        raise typer.Exit(FOUND if any(not (result.passed or result.error) for result in results) else UNUSABLE)
