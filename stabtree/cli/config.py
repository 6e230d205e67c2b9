"""`stabtree config`: what is in force here, and where it is from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.cli.options import ConfigOpt, Json  # noqa: TC001 - read when the command is made
from stabtree.cli.shell.printing import emit, screen
from stabtree.render.look import LOOK

if TYPE_CHECKING:
    from stabtree.judging.settings import Settings
    from stabtree.tree.model import Tree


def config(config: ConfigOpt = None, json: Json = False) -> None:
    """Show what is in force here: each key of the settings and where it is from, changed thresholds, trees.

    A threshold that is set stands beside the shipped one, and each tree has a hash of what it says. The first mistake
    in the file is shown with its place.
    """
    from stabtree.diagnosis.ignored import check_ignored
    from stabtree.judging.applied import of_tree
    from stabtree.judging.judge import accepted_by
    from stabtree.judging.overrides import overrides
    from stabtree.judging.settings import read_settings
    from stabtree.render.trees.config import config_json, config_text, in_force
    from stabtree.tree.load import load_preflight, load_tree, load_trees

    settings = read_settings(config)
    whole = load_tree(settings.tree) if settings.tree else load_trees(None, settings.trees or None)
    for walked in (whole, load_preflight(settings.trees or None)):
        held = of_tree(settings, walked)
        overrides(walked, (), held)
        for key, leaves in (("ignore", held.ignore), ("accept", [item.leaf for item in held.accept])):
            with held.blamed(key):
                check_ignored(walked, leaves)
    told = in_force(settings, _trees(settings), accepted_by(None, settings))
    width, color = screen()
    emit(config_json(told) if json else config_text(told, replace(LOOK, width=width, color=color)))


def _trees(settings: Settings) -> list[tuple[str, Tree]]:
    """The trees that are walked, each with its file; no file for one that is shipped."""
    from stabtree.tree.load import DEFAULT, PREFLIGHT, load_tree, shipped

    files = sorted(Path(settings.trees).iterdir()) if settings.trees else []
    own = [str(path) for path in files if path.suffix in (".yaml", ".yml")]
    names = [settings.tree] if settings.tree else [*DEFAULT, *own]
    names.append(PREFLIGHT)  # `check` walks it whatever is walked over logs
    known = shipped()
    return [("" if name in known else name, load_tree(name)) for name in names]
