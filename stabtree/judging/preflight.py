"""A configuration judged before its run: the same walk, over a tree that waits for nothing but a configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.text import in_words
from stabtree.judging.judge import Judging
from stabtree.run import CONFIG
from stabtree.tree.load import load_preflight, load_tree, load_trees

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.settings import Settings
    from stabtree.run import Run
    from stabtree.tree.model import Tree

USUAL = Judging()


def checked(run: Run, judging: Judging = USUAL) -> Diagnosis:
    """What is wrong with a run before it begins, as far as its configuration tells.

    The verdict is unknown where no rule could be judged: a setting that is not said is never taken for a default.

    Args:
        run: the configuration, from `load_config`.
        judging: what is set, ignored and accepted, and whose trees are walked.

    Raises:
        StabtreeError: where a tree can't be read, or something is set or ignored that does not exist.
    """
    found = judging.judged(run, rules(judging))
    missing = tuple(replace(item, log=_how_to_say(item.metrics)) for item in found.missing)
    open_ = tuple(replace(item, log=_how_to_say(item.names)) for item in found.log_next)
    return replace(found, missing=missing, log_next=open_)


def rules(judging: Judging) -> Tree:
    """The tree that a configuration is walked through: the one that is named, else ours with those of the folder.

    The project's own single tree is one for logs.
    """
    if judging.tree:
        tree = load_tree(judging.tree)
        return tree if CONFIG in tree.when else replace(tree, when=(*tree.when, CONFIG))
    return load_preflight(judging.trees or judging.settings.trees or None)


def of_tree(settings: Settings, tree: Tree) -> Settings:
    """The settings without what they say of trees that are not walked here: one file serves logs and configurations."""
    ids = {*(key.rpartition(".")[0] for key in settings.set), *settings.ignore, *(one.leaf for one in settings.accept)}
    strange = {id_ for id_ in ids if id_ and id_ not in _nodes(tree)}
    if not strange:
        return settings
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


def _how_to_say(keys: tuple[str, ...]) -> str:
    return f"say {in_words(keys)} in the configuration" if keys else ""
