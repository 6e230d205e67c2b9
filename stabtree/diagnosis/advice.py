"""What to do about an incident: its fixes in order, and the one question that decides between causes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.diagnosis.result import STRONG, WEAK, CauseState, Decision, Fix
from stabtree.tree.fixes import tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.causes import FixFormatter
    from stabtree.diagnosis.result import JudgedCause
    from stabtree.tree.model import Leaf

MIN_BRANCHES = 2
LONG_CAUSE = 110
# A verb before any word that begins a clause within a noun: `all labels are masked`, not `labels that are masked`.
_CLAUSE = re.compile(
    r"(?:(?!\b(?:that|which|whose|where|since|so|by|from)\b)[^(,])*?\b(?:is|are|was|were|holds?|has|had|earns?|differ)\b"
)
_CHANGE = re.compile(r"\(([^()]* → [^()]*)\)")


def with_run_values(causes: Sequence[JudgedCause], formatter: FixFormatter) -> tuple[JudgedCause, ...]:
    """Fill this run's numbers into the fixes of causes."""
    found = []
    for judged in causes:
        cause = judged.cause
        fixes, short = _open(cause.fixes, formatter), cause.short_fix
        # It is the short form of the first fix, and of what says the same to another kind of run.
        if cause.fixes and formatter.is_pointless(cause.fixes[0]) and not (fixes and tags(cause.fixes[0])):
            short = ""
        found.append(replace(judged, cause=replace(cause, fixes=fixes, short_fix=short)))
    return tuple(found)


def ranked_fixes(
    leaf: Leaf,
    causes: Sequence[JudgedCause],
    evidence: Sequence[Evidence],
    formatter: FixFormatter,
    others: Iterable[Fix] = (),
) -> tuple[Fix, ...]:
    """Return the fixes in the order in which to try them.

    First come those of causes that the log shows, then the leaf's, then those of causes that may be, each once; a fix
    that only repeats the changes of earlier ones comes last. A fix without a point is left out unless the leaf has no
    other.

    Args:
        leaf: the leaf.
        causes: its causes, strongest first, as `with_run_values` returns them.
        evidence: what led to the leaf.
        formatter: fills in the values of the run.
        others: fixes of other leaves that describe the same event; they come after these.
    """
    found: dict[str, Fix] = {}
    own = leaf_fixes(leaf, evidence, formatter)
    for fix in (*_of_causes(causes, STRONG), *own, *_of_causes(causes, WEAK), *others):
        found.setdefault(fix.text, fix)
    first: list[Fix] = []
    repeats: list[Fix] = []
    advised: set[str] = set()
    for fix in found.values():
        changes = set(_CHANGE.findall(fix.text))
        if changes and changes <= advised:
            repeats.append(fix)
        else:
            first.append(fix)
        advised |= changes
    return (*first, *repeats)


def leaf_fixes(leaf: Leaf, evidence: Sequence[Evidence], formatter: FixFormatter) -> list[Fix]:
    """Return a leaf's own fixes; the first piece of evidence is the reason for each."""
    texts = _open(leaf.fixes, formatter) or tuple(map(formatter.format, filter(formatter.fits, leaf.fixes)))
    return [Fix(text, evidence[0].text if evidence else "") for text in texts]


def _open(fixes: Sequence[str], formatter: FixFormatter) -> tuple[str, ...]:
    """Return the fixes that are still to do, filled in."""
    return tuple(formatter.format(fix) for fix in fixes if not formatter.is_pointless(fix))


def _of_causes(causes: Sequence[JudgedCause], states: tuple[CauseState, ...]) -> Iterator[Fix]:
    for judged in causes:
        if judged.state not in states:
            continue
        reason = judged.evidence[0].text if judged.evidence else judged.reason
        for fix in judged.cause.fixes:
            if judged.state in STRONG:
                yield Fix(fix, reason, cause=judged.cause.id)
            else:
                # A capital may begin a name, unless small letters follow.
                lower = fix[0].lower() + fix[1:] if re.match(r"[A-Z][a-z]+ ", fix) else fix
                text = f"If {_condition(judged.cause.text)}: {lower}"
                yield Fix(text, conditional=True, cause=judged.cause.id)


def _condition(text: str) -> str:
    """Return a cause as it reads after 'if': a clause as it is, a noun as the cause; with no colon of its own."""
    condition, _, rest = text.partition(": ")
    if rest and "(" not in text and len(text) <= LONG_CAUSE:
        condition = f"{condition} ({rest})"
    if _CLAUSE.match(condition):
        return condition
    return f"the cause is {condition}"


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
    rivals: dict[str, JudgedCause] = {}
    for item in causes:
        if item.state in (*STRONG, *WEAK) and item.cause.fixes:
            rivals.setdefault(item.cause.fixes[0], item)
    if len(rivals) >= MIN_BRANCHES:
        first, second = [*rivals.values()][:2]
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
