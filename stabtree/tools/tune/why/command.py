"""`stabtree tree test`: the tests that a tree carries itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabtree.cli.options import values
from stabtree.cli.shell.printing import emit, screen
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.codes import FOUND, UNUSABLE

Name = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="A shipped tree, or a YAML file.", autocompletion=values.trees)
]


def test(name: Name) -> None:
    """Run a tree's own tests: logs beside it, each with the leaf that it must reach.

    The exit code is 0 if all passed, 1 if one failed, 2 if the tree or a log can't be read.
    """
    from stabtree.tools.tune.why.cases import tried, untested
    from stabtree.tools.tune.why.cases_screen import cases_text
    from stabtree.tree.load import load_tree

    tree = load_tree(name)
    if not tree.tests:
        hint = "add `tests: [{run: fixtures/run.csv, reaches: LEAF}]` to it"
        raise StabtreeError("has no tests", where=clean(name), hint=hint)
    results = [tried(tree, case, Path(name).parent) for case in tree.tests]
    width, color = screen()
    emit(cases_text(tree.name, results, untested(tree), width=width, color=color))
    if not all(result.passed for result in results):
        raise typer.Exit(FOUND if any(not (result.passed or result.error) for result in results) else UNUSABLE)
