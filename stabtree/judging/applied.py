"""Which settings of a project apply to the trees that are walked: one file serves logs and configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.run import CONFIG

if TYPE_CHECKING:
    from stabtree.judging.settings import Settings
    from stabtree.tree.model import Tree


def of_tree(settings: Settings, tree: Tree) -> Settings:
    """Return the settings without those that concern trees that are not walked here.

    Ids that no tree knows stay: they are mistakes, and are reported as such.
    """
    ids = _ids_of(settings)
    if not ids:
        return settings
    unknown = ids - _nodes(tree)
    if not unknown:
        return settings
    from stabtree.tree.load import load_preflight, load_trees

    folder = settings.trees or None
    if CONFIG in tree.when:
        others = load_trees(None, folder)
    else:
        others = load_preflight(folder)
    return _without(settings, unknown & _nodes(others))


def _ids_of(settings: Settings) -> set[str]:
    """Return the ids that settings concern."""
    return {*map(_node_of, settings.set), *settings.ignore, *(item.leaf for item in settings.accept)} - {""}


def _without(settings: Settings, elsewhere: set[str]) -> Settings:
    """Return the settings without those that concern some ids."""
    return replace(
        settings,
        set={key: value for key, value in settings.set.items() if _node_of(key) not in elsewhere},
        ignore=tuple(id_ for id_ in settings.ignore if id_ not in elsewhere),
        accept=tuple(item for item in settings.accept if item.leaf not in elsewhere),
    )


def _node_of(key: str) -> str:
    """Return the id in `ID.PARAM`; empty if there is none."""
    return key.rpartition(".")[0]


def _nodes(tree: Tree) -> set[str]:
    nodes = {*tree.questions, *tree.leaves, *tree.facts, *(item.id for item in tree.signatures)}
    for leaf in tree.leaves.values():
        nodes.update(cause.id for cause in leaf.causes)
    return nodes
