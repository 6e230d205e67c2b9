"""What to do now: the restart, then what mends this run, then what tests the cause, then what to log.

Where there is nothing to go back to, or what to go back to is in doubt, the restart comes after what settles that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import STRONG
from stabtree.facts.checkpoints import Told
from stabtree.render.report.model import Action
from stabtree.render.report.restart import AT_BEST, restart_line
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Finding, Happening, Restart

MOST_TO_DO = 3
SAME = 0.7  # of the words of the shorter of two fixes: with so many in both, they say the same
FEWEST_WORDS = 4
MENDS, TESTS, LOGS, LAST = range(4)
_TESTS = re.compile(
    r"(?:Assert|Check|Compare|Count|Diagnose|Dump|Evaluate(?! and save)|Find|Keep|List|Look|Overfit|Plot|Print|Profile"
    r"|Prove|Read|Reload|Run|Test|Time|To)\b"
)
_LOGS = re.compile(r"(?:Log|Write)\b")
_LOOKS_AT_BATCH = re.compile(r"\bis ?finite\b")
_READS_SAMPLES = re.compile(r"\b(?:training|fifty) samples\b")
_SUPPOSED = re.compile(r"If [^:]+: ")  # how the fix of a cause begins that only may be
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


def do_now(finding: Finding, events: Sequence[Happening], *, doubtful: bool = False) -> tuple[Action, ...]:
    """What to do about a finding, nothing of it twice, and never more than is read when it matters.

    Args:
        finding: the finding.
        events: what happened around its onset, in order.
        doubtful: whether the checkpoint where the run was at its best may be none.
    """
    restart = finding.restart
    far = restart is not None and _before_all(restart, events)
    fixes = [
        Action(_without_restart(fix.text, far=far) if restart else fix.text, fix.reason, fix=fix.text)
        for fix in finding.advice
    ]
    shown = {fix for judged in finding.causes if judged.state in STRONG for fix in judged.cause.fixes}
    told = [*_once(_ordered([action for action in fixes if action.text], shown))]
    if restart is None:
        return tuple(told[:MOST_TO_DO])
    back = Action("".join(text for text, _ in restart_line(restart)), strong=_strong(restart))
    if doubtful:
        told.sort(key=lambda action: not _READS_SAMPLES.search(action.text))
        first = sum(bool(_READS_SAMPLES.search(action.text)) for action in told)
        back = Action(back.text.replace(AT_BEST, ""), strong=back.strong)
        return (*told[: min(first, MOST_TO_DO - 1)], back, *told[first:])[:MOST_TO_DO]
    if not _from_the_start(restart):
        return (back, *told)[:MOST_TO_DO]
    # The same run from the start breaks again: what finds or mends the cause goes first, above all a look at the batch.
    told.sort(key=lambda action: not _LOOKS_AT_BATCH.search(action.text))
    return (*told[: MOST_TO_DO - 1], back)


def _from_the_start(restart: Restart) -> bool:
    """Whether no checkpoint is left to go back to."""
    return restart.checkpoint_step is None and restart.take is not Take.BEST and restart.told is not Told.UNCOUNTED


def _strong(restart: Restart) -> str:
    return next((text for text, style in restart_line(restart) if style), "")


def _before_all(restart: Restart, events: Sequence[Happening]) -> bool:
    """Whether the restart goes back to before whatever moved first."""
    step = restart.checkpoint_step
    return step is None or restart.take is not Take.BEFORE or all(step < event.step for event in events)


def _without_restart(text: str, *, far: bool) -> str:
    """A fix without what the restart says; nothing where that is all of it."""
    if far and _FURTHER_BACK.match(text):
        return ""
    left = _ENDS_BACK.sub("", _LEADS_BACK.sub("", text, count=1))
    return left[:1].upper() + left[1:] if left != text else text


def _ordered(actions: list[Action], shown: set[str]) -> Iterator[Action]:
    """What mends, then what tests, then what to log, each in the order in which to try it.

    The fixes of a cause that the log shows come first of all, and only one of a cause that may be comes before what to
    log. A fix that goes on where the one before it ends stays behind that.
    """
    groups: list[list[Action]] = []
    for action in actions:
        goes_on = _GOES_ON.match(action.text) and not _SUPPOSED.match(action.text)
        if groups and goes_on:
            groups[-1].append(action)
        else:
            groups.append([action])
    supposed = [group[0] for group in groups if _SUPPOSED.match(group[0].text)]
    kinds = {action.fix: LAST for action in supposed[1:]} | dict.fromkeys(shown, MENDS)
    for group in sorted(groups, key=lambda group: kinds.get(group[0].fix, _kind(group[0].text))):
        yield from group


def _kind(text: str) -> int:
    return LOGS if _LOGS.match(text) else TESTS if _TESTS.match(text) or _SUPPOSED.match(text) else MENDS


def _once(actions: Iterable[Action]) -> Iterator[Action]:
    """The actions without those that change what an earlier one changes, or say it in other words."""
    changed: set[str] = set()
    said: list[set[str]] = []
    for action in actions:
        changes, words = set(_CHANGE.findall(action.text)), _words(action.text)
        if (changes and changes <= changed) or any(_same(words, other) for other in said):
            continue
        changed |= changes
        said.append(words)
        yield action


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_SUPPOSED.sub("", text).lower())) - _FILLERS


def _same(one: set[str], other: set[str]) -> bool:
    least = min(len(one), len(other))
    return least >= FEWEST_WORDS and len(one & other) >= SAME * least
