"""The one question that decides between causes with different fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.diagnosis.result import STRONG, WEAK, CauseState, Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.fixes import FixFormatter
    from stabtree.diagnosis.result import JudgedCause
    from stabtree.tree.model import Leaf

MIN_BRANCHES = 2


def decision(leaf: Leaf, causes: Sequence[JudgedCause], formatter: FixFormatter) -> Decision | None:
    """Return what to find out first; None where a cause is confirmed, or nothing is there to ask.

    A yes to the question of a cause leads to its first fix, a no to that of the next cause. Where no cause has one, the
    leaf may have.

    Args:
        leaf: the leaf.
        causes: its causes, strongest first, as `with_run_values` returns them.
        formatter: fills in the values of the run.
    """
    if any(item.state is CauseState.CONFIRMED for item in causes):
        return None
    first, second = _two_open(causes)
    if first is not None and second is not None:
        ask = first.cause.ask or second.cause.ask
        yes, no = (first, second) if first.cause.ask else (second, first)
        if ask:
            outcomes = ("yes", yes.cause.fixes[0]), ("no", no.cause.fixes[0])
            return Decision(formatter.format(ask), outcomes, (yes.cause.id, no.cause.id))
    if leaf.decide is None or formatter.is_pointless(leaf.decide.ask):
        return None
    open_ = {word: text for word, text in leaf.decide.branches.items() if not formatter.is_pointless(text)}
    branches = tuple((word, formatter.format(text)) for word, text in open_.items())
    if len(branches) < MIN_BRANCHES:
        return None
    return Decision(formatter.format(leaf.decide.ask), branches)


def _two_open(causes: Sequence[JudgedCause]) -> tuple[JudgedCause | None, JudgedCause | None]:
    """Return the two strongest causes that are open and have different fixes; None for what is not there."""
    found: list[JudgedCause] = []
    for item in causes:
        known = {other.cause.fixes[0] for other in found}
        if item.state in (*STRONG, *WEAK) and item.cause.fixes and item.cause.fixes[0] not in known:
            found.append(item)
    first, second, *_ = (*found, None, None)
    return first, second
