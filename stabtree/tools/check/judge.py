"""A configuration judged before its run: the same walk, over a tree that needs only a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import in_words
from stabtree.judging.judge import Judging
from stabtree.run import CONFIG
from stabtree.tree.load import load_preflight, load_tree
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run
    from stabtree.tree.model import Tree

USUAL = Judging()
ENOUGH = 5  # rules: an OK that rests on fewer says nothing


def checked(run: Run, judging: Judging = USUAL) -> Diagnosis:
    """Diagnose a run before it begins, as far as its configuration shows.

    The verdict is unknown if nothing is wrong in fewer than five rules that could be judged. A setting that is missing
    has the value that its trainer gives it; if that is not known, it is not judged.

    Args:
        run: the configuration, from `load_config`.
        judging: what is set, ignored and accepted, and whose trees are walked.

    Raises:
        StabtreeError: if a tree can't be read, or something is set or ignored that does not exist.
    """
    diagnosis = judging.judged(run, rules(judging))
    missing = tuple(replace(item, log=_how_to_say(item.metrics)) for item in diagnosis.missing)
    log_next = tuple(replace(item, log=_how_to_say(item.names)) for item in diagnosis.log_next)
    verdict = diagnosis.verdict
    if verdict in (Severity.OK, Severity.NOTE) and diagnosis.judged < min(ENOUGH, len(diagnosis.tree.questions)):
        verdict = UNKNOWN
    return replace(diagnosis, missing=missing, log_next=log_next, verdict=verdict)


def rules(judging: Judging) -> Tree:
    """Return the tree to walk for a configuration: the one that is named, else ours with those of the folder.

    The project's own single tree is one for logs.
    """
    if not judging.tree:
        return load_preflight(judging.trees or judging.settings.trees or None)
    tree = load_tree(judging.tree)
    return tree if CONFIG in tree.when else replace(tree, when=(*tree.when, CONFIG))


def _how_to_say(keys: tuple[str, ...]) -> str:
    return f"say {in_words(keys)} in the configuration" if keys else ""
