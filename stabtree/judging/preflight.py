"""A configuration judged before its run: the same walk, over a tree that waits for nothing but a configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.text import in_words
from stabtree.judging.judge import Judging
from stabtree.run import CONFIG
from stabtree.tree.load import load_preflight, load_tree

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
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


def _how_to_say(keys: tuple[str, ...]) -> str:
    return f"say {in_words(keys)} in the configuration" if keys else ""
