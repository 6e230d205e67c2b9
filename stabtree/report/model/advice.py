"""What to do now: the restart, then what fixes this run, then what tests the cause, then what to log.

Where there is nothing to go back to, or what to go back to is in doubt, the restart comes after what settles that.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import STRONG
from stabtree.report.model.report import Action
from stabtree.report.model.restart import AT_BEST, restart_line
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Happening, Incident

MAX_TO_DO = 3
SAME_SHARE = 0.7  # of the words of the shorter of two fixes: with so many in both, they say the same
MIN_WORDS = 4
FIXES, TESTS, LOGS, LAST = range(4)
_TESTS = re.compile(
    r"(?:Assert|Check|Compare|Count|Diagnose|Dump|Evaluate(?! and save)|Find|Keep|List|Look|Overfit|Plot|Print|Profile"
    r"|Prove|Read|Reload|Run|Test|Time|To)\b"
)
_LOGS = re.compile(r"(?:Log|Write)\b")
_LOOKS_AT_BATCH = re.compile(r"\bis ?finite\b")
_READS_SAMPLES = re.compile(r"\b(?:training|fifty) samples\b")
_CONDITIONAL = re.compile(r"If [^:]+: ")  # how the fix of a merely possible cause begins
_GOES_ON = re.compile(r"(?:If|Or|Else|Then|Until|Otherwise)\b|\w+ (?:it|them|this|these)\b")
_CHANGE = re.compile(r"\(([^()]* → [^()]*)\)")
_WORD = re.compile(r"[a-z_]{3,}")
_FILLERS = frozenset(
    ("the", "and", "that", "with", "for", "from", "its", "one", "are", "not", "before", "after", "every")
)

# Going back is what the restart says, with its checkpoint and the steps that it costs.
_BACK = r"(?:Take|Keep|Reload|Roll back to|Go back to|Restart from) (?:the|a|that|before)\b"
_LEADS_BACK = re.compile(rf"{_BACK}(?:(?! and | with | at |[,;:]|\. ).)*(?:, and |; |\. |\.$)")
_ENDS_BACK = re.compile(r"(?:,? and|;) restart from (?:before|a checkpoint before) [^;.:]*(?=[;.])")
_FURTHER_BACK = re.compile(r"Go back to before [^,;.]*, not only [^;.]*\.$")


def do_now(finding: Incident, *, doubtful: bool = False) -> tuple[Action, ...]:
    """Return what to do about a finding, nothing of it twice, and at most `MAX_TO_DO` actions.

    Args:
        finding: the finding.
        doubtful: whether the best checkpoint may not be the best.
    """
    restart = finding.restart
    shown = set(chain.from_iterable(judged.cause.fixes for judged in finding.causes if judged.state in STRONG))
    actions = list(_unique(_ordered(_fixes(finding), shown)))
    if restart is None:
        return tuple(actions[:MAX_TO_DO])
    pieces = restart_line(restart)
    text = "".join(text for text, _ in pieces)
    back = Action(text, strong=next((text for text, style in pieces if style), ""))
    if doubtful:
        actions.sort(key=lambda action: not _READS_SAMPLES.search(action.text))
        first = min(sum(bool(_READS_SAMPLES.search(action.text)) for action in actions), MAX_TO_DO - 1)
        back = Action(text.replace(AT_BEST, ""), strong=back.strong)
        return (*actions[:first], back, *actions[first:])[:MAX_TO_DO]
    if not _from_the_start(restart):
        return (back, *actions)[:MAX_TO_DO]
    # The same run from the start breaks again: what finds or fixes the cause goes first, above all a look at the batch.
    actions.sort(key=lambda action: not _LOOKS_AT_BATCH.search(action.text))
    return (*actions[: MAX_TO_DO - 1], back)


def _from_the_start(restart: Restart) -> bool:
    """Whether no checkpoint is left to go back to."""
    return not restart.has_older and restart.take is not Take.BEST


def _fixes(finding: Incident) -> list[Action]:
    """Return the fixes as actions, without what the restart says."""
    restart = finding.restart
    if restart is None:
        return [Action(fix.text, fix.reason, fix=fix.text) for fix in finding.advice if fix.text]
    far = _before_all(restart, finding.departures)
    actions = [Action(_without_restart(fix.text, far=far), fix.reason, fix=fix.text) for fix in finding.advice]
    return [action for action in actions if action.text]


def _before_all(restart: Restart, events: Sequence[Happening]) -> bool:
    """Whether the restart goes back to before whatever moved first."""
    step = restart.up_to_step if restart.checkpoint_step is None else restart.checkpoint_step
    return step is None or restart.take is not Take.BEFORE or all(step < event.step for event in events)


def _without_restart(text: str, *, far: bool) -> str:
    """Return a fix without what the restart says; empty where that is all of it."""
    if far and _FURTHER_BACK.match(text):
        return ""
    left = _ENDS_BACK.sub("", _LEADS_BACK.sub("", text, count=1))
    if left != text:
        return left[:1].upper() + left[1:]
    return text


def _ordered(actions: list[Action], shown: set[str]) -> Iterator[Action]:
    """Yield what fixes, then what tests, then what to log, each in the order in which to try it.

    The fixes of a cause that the log shows come first of all, and only one of a merely possible cause comes before what
    to log. A fix that continues the one before it stays behind that.
    """
    groups: list[list[Action]] = []
    for action in actions:
        if groups and _GOES_ON.match(action.text) and not _CONDITIONAL.match(action.text):
            groups[-1].append(action)
        else:
            groups.append([action])
    conditional = [group[0] for group in groups if _CONDITIONAL.match(group[0].text)]
    kinds = {action.fix: LAST for action in conditional[1:]} | dict.fromkeys(shown, FIXES)
    for group in sorted(groups, key=lambda group: kinds.get(group[0].fix, _kind(group[0].text))):
        yield from group


def _kind(text: str) -> int:
    if _LOGS.match(text):
        return LOGS
    if _TESTS.match(text) or _CONDITIONAL.match(text):
        return TESTS
    return FIXES


def _unique(actions: Iterable[Action]) -> Iterator[Action]:
    """Yield the actions without those that change what an earlier one changes, or repeat it in other words."""
    changed: set[str] = set()
    earlier: list[set[str]] = []
    for action in actions:
        changes, words = set(_CHANGE.findall(action.text)), _words(action.text)
        if (changes and changes <= changed) or any(_same(words, other) for other in earlier):
            continue
        changed |= changes
        earlier.append(words)
        yield action


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_CONDITIONAL.sub("", text).lower())) - _FILLERS


def _same(one: set[str], other: set[str]) -> bool:
    shorter = min(len(one), len(other))
    return shorter >= MIN_WORDS and len(one & other) >= SAME_SHARE * shorter
