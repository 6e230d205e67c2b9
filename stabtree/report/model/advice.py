"""What to do now: what decides between causes, then the fixes in their order, and the restart last."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.diagnosis.judged import SILENT
from stabtree.report.model.report import Action
from stabtree.report.model.restart import AT_BEST, restart_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.diagnosis.judged import Decision, Fix
    from stabtree.diagnosis.result import Incident
    from stabtree.tree.document import Cause

MAX_TO_DO = 3
SAME_SHARE = 0.7  # of the words of the shorter of two fixes: with so many in both, they say the same
MIN_WORDS = 4
STOP = "Stop the run"
_CHANGE = re.compile(r"(\w+) (\S+ → [^;,() ]*[^;,.() ])")
_WORD = re.compile(r"[a-z_]{3,}")
_FILLERS = frozenset(
    ("the", "and", "that", "with", "for", "from", "its", "one", "are", "not", "before", "after", "every")
)


def do_now(finding: Incident, *, doubtful: bool = False) -> tuple[Action, ...]:
    """Return what to do about a finding, nothing of it twice, and at most `MAX_TO_DO` actions.

    Args:
        finding: the finding.
        doubtful: whether the best checkpoint may not be the best.
    """
    decision, restart = finding.decision, finding.restart
    fixes = [Action(fix.text, fix.reason, fix=fix.text) for fix in _in_order(finding)]
    first: list[Action] = []
    if decision is not None:
        first = [Action(decision.ask, branches=decision.branches)]
    actions = [_ended(action) for action in _unique([*first, *fixes])]
    if restart is None:
        return tuple(actions[:MAX_TO_DO])
    pieces = restart_line(restart)
    text = "".join(text for text, _ in pieces)
    if doubtful:
        text = text.replace(AT_BEST, "")
    text = f"{text.removesuffix('.')}."
    back = Action(text, strong=next((text for text, style in pieces if style), ""))
    return (*actions[: MAX_TO_DO - 1], back)


def _in_order(finding: Incident) -> list[Fix]:
    """Return the fixes that need no merely possible cause, and before them that of the first cause."""
    sure = [fix for fix in finding.advice if fix.text and not fix.conditional]
    if not sure and finding.decision is None:
        sure = [*finding.advice[:1]]
    first = _of_first_cause(finding, sure)
    if first is None:
        return sure
    rest = [fix for fix in sure if fix is not first]
    stops = [fix for fix in rest[:1] if fix.text.startswith(STOP)]  # nothing comes before that
    return [*stops, first, *rest[len(stops) :]]


def _of_first_cause(finding: Incident, sure: Iterable[Fix]) -> Fix | None:
    """Return the fix of the first cause, or the leaf's that says the same; None where what decides leads to it."""
    cause = next((judged.cause for judged in finding.causes if judged.state not in SILENT), None)
    if cause is None or (finding.decision and _leads_to(finding.decision, cause)):
        return None
    own = next((fix for fix in finding.advice if fix.cause == cause.id), None)
    if own is None:
        return None
    wanted = _words(cause.fixes[0])
    return next((fix for fix in sure if len(_words(fix.text) & wanted) >= SAME_SHARE * len(wanted)), own)


def _leads_to(decision: Decision, cause: Cause) -> bool:
    """Return whether an answer to what decides leads to the fix of a cause."""
    branches = (_words(text) for _, text in decision.branches)
    wanted = _words(" ".join(cause.fixes[:1]))
    return cause.id in decision.causes or any(_same(words, wanted) for words in branches)


def repeats(text: str, actions: Iterable[Action]) -> bool:
    """Return whether one of the actions says this already."""
    wanted = _words(text)
    return any(_same(wanted, _words(whole(action))) for action in actions)


def _ended(action: Action) -> Action:
    """Return an action whose sentences end as sentences do."""
    branches = tuple((word, _stopped(text)) for word, text in action.branches)
    return replace(action, text=_stopped(action.text), branches=branches)


def _stopped(text: str) -> str:
    """Return a text with a full stop, where it ends without any."""
    return text if not text or text.rstrip(")\"'").endswith((".", "?", "!", ":")) else f"{text}."


def whole(action: Action) -> str:
    """Return an action with what to do in each of its branches."""
    return " ".join((action.text, *(text for _, text in action.branches)))


def changes_of(text: str) -> dict[str, str]:
    """Return the settings that a text changes, each with its value now and the advised one."""
    return dict(_CHANGE.findall(text))


def _unique(actions: Iterable[Action]) -> Iterator[Action]:
    """Yield the actions without those that repeat an earlier one, or give a setting another value than it did."""
    changed: dict[str, str] = {}
    branches: set[str] = set()
    earlier: list[set[str]] = []
    for action in actions:
        said = whole(action)
        changes, words = changes_of(said), _words(said)
        if (
            action.text in branches
            or not changed.keys().isdisjoint(changes)
            or any(_same(words, other) for other in earlier)
        ):
            continue
        changed |= changes
        earlier.append(words)
        branches.update(text for _, text in action.branches)
        yield action


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _FILLERS


def _same(one: set[str], other: set[str]) -> bool:
    shorter = min(len(one), len(other))
    return shorter >= MIN_WORDS and len(one & other) >= SAME_SHARE * shorter
