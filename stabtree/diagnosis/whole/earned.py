"""What a path that reassures has to earn: progress that the log shows, and nothing near its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.visits import Missing, Visit
from stabtree.diagnosis.whole.near import asking
from stabtree.facts.progress import FEW_ROWS, Learned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.walker import Walker, Way
    from stabtree.diagnosis.whole.near import Near
    from stabtree.tree.model import Leaf, Tree

    End = tuple[tuple[Visit, ...], Leaf]


def earned(walk: Walker, ends: Sequence[End], near: Sequence[Near]) -> End:
    """Return the leaf that the path ends at, and what led there: another one where it has not earned its own.

    Beside an alarm it needs to earn nothing, and the rules of the documents, taken literally, know of no such thing.

    Args:
        walk: the walk.
        ends: each walk that ended at a leaf, the path first.
        near: what came near its limit.
    """
    path, end = ends[0]
    if walk.options.literal or any(leaf.severity.is_alarm for _, leaf in ends):
        return path, end
    leaves = walk.tree.leaves
    if end.unproven:
        shown = walk.facts.get("progress")
        if isinstance(shown, Learned) and not shown.shown:
            return (Visit(path[-1].question, shown.answer),), leaves[end.unproven]
    if end.near and near:
        return tuple(fact.as_visit for fact in near), asking(leaves[end.near], near)
    return path, end


def too_few(walk: Walker, path: tuple[Visit, ...], end: Leaf) -> tuple[Missing, ...]:
    """Return why a run of a few rows can't be called healthy; nothing of one that has enough, or a finding."""
    unproven = end.unproven or any(leaf.unproven == end.id for leaf in walk.tree.leaves.values())
    shown = walk.facts.get("progress") if unproven and not walk.options.literal else None
    if not isinstance(shown, Learned) or not 0 < shown.rows < FEW_ROWS:
        return ()
    reason = f"{shown.metric} has {shown.rows} finite rows, at least {FEW_ROWS} are needed to tell"
    entry = walk.tree.section(path[-1].question.section).entry
    return (Missing(entry, reason, (), ""),)


def worth_saying(tree: Tree, ends: Iterable[Way]) -> list[End]:
    """Return the ends of all walks at a leaf; beside an alarm without those that only keep a run from being healthy.

    Args:
        tree: the tree.
        ends: each walk with the leaf that it ended at, None where it ended between two questions.
    """
    found = [(visits, leaf) for visits, leaf in ends if leaf is not None]
    if not any(leaf.severity.is_alarm for _, leaf in found):
        return found
    stand_ins = {name for leaf in tree.leaves.values() for name in (leaf.near, leaf.unproven)}
    return [(visits, leaf) for visits, leaf in found if leaf.id not in stand_ins]
