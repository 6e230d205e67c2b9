"""`stabtree info config`: the settings in effect, and where each is from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stabtree.cli.options.output import OutputOptions  # noqa: TC001 - Typer reads it
from stabtree.cli.options.read import ReadOptions  # noqa: TC001 - Typer reads it
from stabtree.cli.program.expand import Only
from stabtree.cli.shell.printing import emit, screen

if TYPE_CHECKING:
    from stabtree.judging.settings import Settings
    from stabtree.tree.model import Tree


def config(read: Annotated[ReadOptions, Only("config")], out: Annotated[OutputOptions, Only("json")]) -> None:
    """Show the effective settings: each key and where it is from, changed thresholds, trees.

    A changed threshold is shown beside the shipped one, and each tree with a hash of its content. The first mistake in
    the file is reported with its place.
    """
    from stabtree.diagnosis.ignored import check_ignored
    from stabtree.judging.applied import of_tree
    from stabtree.judging.judge import accepted_by
    from stabtree.judging.overrides import overrides
    from stabtree.judging.settings import read_settings
    from stabtree.report.config import config_text, effective_settings
    from stabtree.tree.load import load_preflight, load_tree, load_trees

    settings = read_settings(read.config)
    if settings.tree:
        whole = load_tree(settings.tree)
    else:
        whole = load_trees(None, settings.trees or None)
    for walked in (whole, load_preflight(settings.trees or None)):
        held = of_tree(settings, walked)
        overrides(walked, (), held)
        for key, leaves in (("ignore", held.ignore), ("accept", [item.leaf for item in held.accept])):
            with held.blamed(key):
                check_ignored(walked, leaves)
    effective = effective_settings(settings, _trees(settings), accepted_by(None, settings))
    width, color = screen()
    text = "" if out.json else config_text(effective, width=width, color=color)
    emit(text or json.dumps(effective, indent=2, allow_nan=False))


def _trees(settings: Settings) -> list[tuple[str, Tree]]:
    """Return the trees that are walked, each with its file; a shipped one has none."""
    from stabtree.tree.load import load_tree
    from stabtree.tree.shipped import DEFAULT, PREFLIGHT, shipped

    files = sorted(Path(settings.trees).iterdir()) if settings.trees else []
    own = [str(path) for path in files if path.suffix in (".yaml", ".yml")]
    names = [settings.tree] if settings.tree else [*DEFAULT, *own]
    names.append(PREFLIGHT)  # `check` walks it whatever is walked over logs
    known = shipped()
    return [("" if name in known else name, load_tree(name)) for name in names]
