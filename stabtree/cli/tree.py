"""`stabtree tree`: list, show, check and test trees; the schema of their files, and the measures they ask."""

from __future__ import annotations

from typing import Annotated

import typer

from stabtree.cli.program import PlainCommand
from stabtree.cli.terminal import emit, screen
from stabtree.common import extensions
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near

tree_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped tree, or a YAML file.")]


@tree_app.command("list", cls=PlainCommand)
def list_() -> None:
    """List the trees that ship with stabtree."""
    from stabtree.report import trees as outlines
    from stabtree.tree.load import load_tree
    from stabtree.tree.shipped import shipped

    width, color = screen()
    emit(outlines.listing([load_tree(name) for name in shipped()], width=width, color=color))


@tree_app.command(cls=PlainCommand)
def show(
    name: Name = "phase19",
    thresholds: Annotated[bool, typer.Option("--thresholds", help="Show the table of thresholds instead.")] = False,
    literal: Annotated[
        bool, typer.Option("--literal", help="Show the source document's own rules, without the guards against noise.")
    ] = False,
) -> None:
    """Show a tree: its sections, questions and edges, or its thresholds."""
    from stabtree.report import trees as outlines
    from stabtree.tree.load import load_tree

    tree = load_tree(name)
    width, color = screen()
    if thresholds:
        emit(outlines.thresholds(tree, literal=literal, width=width, color=color))
    else:
        emit(outlines.outline(tree, width=width, color=color))


@tree_app.command(cls=PlainCommand)
def schema() -> None:
    """Print the JSON Schema of tree files, for an editor to check them."""
    import json

    from stabtree.measures import measure_names
    from stabtree.tree.load import schema as tree_schema

    emit(json.dumps(tree_schema(measure_names()), indent=1, ensure_ascii=False))


@tree_app.command(cls=PlainCommand)
def measures(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Show this one, with the metrics it reads and its parameters.")
    ] = "",
) -> None:
    """List the measures that a tree can ask, with their verdicts, or show one with its parameters."""
    from stabtree.measures import measure_named, measure_names
    from stabtree.report.trees import measure_list, measure_page

    width, color = screen()
    names = measure_names()
    if not name:
        emit(measure_list([*filter(None, map(measure_named, names))], width=width, color=color))
        return
    found = measure_named(name)
    if found is None:
        hint = near(name, names).removeprefix("; ") or "type `stabtree tree measures` for all of them"
        raise StabtreeError("no such measure", where=clean(name, 100), hint=hint)
    emit(measure_page(found, width=width, color=color))


@tree_app.command(cls=PlainCommand)
def check(name: Name) -> None:
    """Check a tree file completely: keys, edges, cycles, measures and parameters."""
    from stabtree.tree.load import load_tree
    from stabtree.tree.model import NOTHING, SHORT

    tree = load_tree(name)
    sections = {section.id for section in tree.sections if section.tree in ("", tree.name)}
    questions = [question for question in tree.questions.values() if question.section in sections]
    homes = {question.id for question in questions}
    homes |= {group.id for group in tree.groups.values() if group.section in sections}
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of in homes and leaf.title != NOTHING]
    others = f", and it uses {', '.join(tree.uses)}" if tree.uses else ""
    emit(f"{clean(tree.name)}: no mistake in {len(questions)} questions and {len(leaves)} leaves{others}")
    long = sorted(question.id for question in questions if not question.short)
    if long:
        emit(f"note: {', '.join(long)}: no `short`, so a path shows the whole question; {SHORT} characters at most")


for _name, _address in extensions.table("TREE_COMMANDS").items():
    tree_app.command(_name, cls=PlainCommand)(extensions.load(_address))
