"""What of a project's settings applies to the trees that are walked: one file serves logs and configurations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.run import CONFIG

if TYPE_CHECKING:
    from stabtree.judging.settings import Settings
    from stabtree.tree.model import Tree


def of_tree(settings: Settings, tree: Tree) -> Settings:
    """The settings without what they say of trees that are not walked here.

    What no tree knows stays in them: it is a mistake, and told as one.
    """
    ids = {*(key.rpartition(".")[0] for key in settings.set), *settings.ignore, *(one.leaf for one in settings.accept)}
    strange = ids - {""} - (_nodes(tree) if ids else set())
    if not strange:
        return settings
    from stabtree.tree.load import load_preflight, load_trees

    folder = settings.trees or None
    others = load_trees(None, folder) if CONFIG in tree.when else load_preflight(folder)
    theirs = strange & _nodes(others)
    return replace(
        settings,
        set={key: value for key, value in settings.set.items() if key.rpartition(".")[0] not in theirs},
        ignore=tuple(id_ for id_ in settings.ignore if id_ not in theirs),
        accept=tuple(one for one in settings.accept if one.leaf not in theirs),
    )


def _nodes(tree: Tree) -> set[str]:
    causes = {cause.id for leaf in tree.leaves.values() for cause in leaf.causes}
    return {*tree.questions, *tree.leaves, *tree.facts, *causes, *(item.id for item in tree.signatures)}
