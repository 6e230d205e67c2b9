"""A diagnosis as a report."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import in_words
from stabtree.facts.registry import any_floats
from stabtree.judging.account import unexplained
from stabtree.report.model.advice import MAX_TO_DO, changes_of, do_now, repeats, whole
from stabtree.report.model.logged import log_next
from stabtree.report.model.monitor import sentences
from stabtree.report.model.plainly import better_meanwhile, doubts, led_to, recovered, stayed_up, unlogged
from stabtree.report.model.quoted import quoted
from stabtree.report.model.report import Action, CauseRow, Open, Report, Turn, Walk
from stabtree.report.model.run_facts import facts
from stabtree.report.model.ticks import ticks
from stabtree.report.model.words import (
    answer_word,
    badge,
    earlier,
    headline,
    ignored_counts,
    ignored_problems,
    is_unasked,
    main_finding,
    unchecked,
)
from stabtree.report.verdicts import BADGES
from stabtree.tree.model import Leaf, Severity, Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.diagnosis.visits import Missing, Visit

FIX_OF_MISREAD = (
    "`stabtree inspect` shows which; write the log again with plain numbers in these places, and diagnose that."
)


def report(diagnosis: Diagnosis, *, exit_code: int | None = None) -> Report:
    """Return what to say about a diagnosis.

    Args:
        diagnosis: what was found.
        exit_code: the code that the command will end with, for the last line.
    """
    with any_floats(diagnosis.run):
        return _report(diagnosis, exit_code)


def _report(diagnosis: Diagnosis, exit_code: int | None) -> Report:
    finding = main_finding(diagnosis)
    others = tuple(item for item in diagnosis.findings if item is not finding)
    also = tuple(item for item in others if item.leaf.severity.rank >= _min_severity(diagnosis).rank)
    actions = _actions(diagnosis, finding, also)
    causes = tuple(_causes(finding, actions))
    return Report(
        diagnosis=diagnosis,
        verdict=str(diagnosis.verdict),
        badge=badge(diagnosis),
        title=headline(diagnosis),
        finding=finding,
        facts=facts(diagnosis.run),
        why=finding.leaf.why if finding else "",
        quoted=quoted(diagnosis.run, finding) if finding else None,
        earlier=earlier(diagnosis, finding) if finding else "",
        plainly=_plainly(diagnosis, finding),
        misread=_misread(diagnosis),
        seen_as=tuple(_seen_as(finding)),
        do_now=actions,
        events=diagnosis.timeline,
        causes=causes,
        walks=tuple(_walks(diagnosis, finding)),
        also=also,
        notes=len(others) - len(also),
        unexplained=unexplained(diagnosis.run),
        unchecked=unchecked(diagnosis),
        log_next=log_next(diagnosis, causes),
        open=tuple(_open(diagnosis)),
        monitor=_monitor(diagnosis),
        ticks=tuple(ticks(diagnosis)),
        closing=_closing(diagnosis, finding, exit_code),
    )


def _min_severity(diagnosis: Diagnosis) -> Severity:
    """Return from which severity on a further finding is named: notes only beside notes."""
    if diagnosis.verdict != Severity.NOTE or ignored_problems(diagnosis):
        return Severity.WARNING
    return Severity.NOTE


def _actions(diagnosis: Diagnosis, finding: Incident | None, also: tuple[Incident, ...]) -> tuple[Action, ...]:
    """Return what to do now; nothing where nothing was found."""
    if finding is None:
        return ()
    doubtful = bool(doubts(diagnosis.run, finding))
    return _with_second(do_now(finding, doubtful=doubtful), finding, also)


def _plainly(diagnosis: Diagnosis, finding: Incident | None) -> str:
    """Return what must be known of the finding beside its leaf; empty where there is nothing."""
    if finding is None:
        return ""
    run = diagnosis.run
    ways = (recovered, stayed_up, better_meanwhile, unlogged, doubts)
    own = next(filter(None, (way(run, finding) for way in ways)), "")
    return " ".join(filter(None, (own, led_to(finding))))


def _misread(diagnosis: Diagnosis) -> str:
    """Return how the log was misread, and what helps; empty where it was not."""
    if not diagnosis.misread:
        return ""
    return f"{diagnosis.misread}. {FIX_OF_MISREAD}"


def _with_second(actions: tuple[Action, ...], finding: Incident, also: tuple[Incident, ...]) -> tuple[Action, ...]:
    """Put last what else must be fixed: what a crash hides, or a critical finding that was first."""
    crashed = finding.leaf.of.startswith("E.")
    followed = {item.leaf.id for item in finding.consequences}
    others = [item for item in also if item.leaf.id not in followed]
    second = next((item for item in others if crashed or _was_first(item, finding)), None)
    if second is None or not second.advice or repeats(second.advice[0].text, actions):
        return actions
    title, fix = second.leaf.title, second.advice[0]
    text = f"Before the restart: {title[:1].lower()}{title[1:]}. {fix.text}"
    kept = actions[: MAX_TO_DO - 1]
    last = [action for action in actions[MAX_TO_DO - 1 :] if action.strong]  # a restart is always named
    return (*kept[: len(kept) - len(last)], Action(text, reason=fix.reason, fix=fix.text), *last)


def _was_first(other: Incident, finding: Incident) -> bool:
    """Whether another critical finding began before the main one, and so is not what that led to."""
    begun = other.onset_step is not None and finding.onset_step is not None and other.onset_step < finding.onset_step
    return begun and other.leaf.severity is Severity.CRITICAL


def _monitor(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what the NaN monitor would have done; nothing where the loss is finite throughout."""
    if diagnosis.monitor is None:
        return ()
    return tuple(sentences(diagnosis.monitor, diagnosis.run.unit))


def _seen_as(finding: Incident | None) -> Iterator[str]:
    """Yield what shows the event in other series, or dates it, and where; notes only of a note."""
    if finding is None:
        return
    min_rank = min(finding.leaf.severity.rank, Severity.WARNING.rank)
    series = {item.metric for item in finding.parts[0].evidence}
    moved = finding.own_onset_step != finding.onset_step
    for item in finding.also:
        dates = moved and item.onset_step == finding.onset_step
        if item.leaf.severity.rank >= min_rank and (dates or not {own.metric for own in item.evidence} <= series):
            yield f"{item.leaf.id}{_at(item)}"


def _at(finding: Incident) -> str:
    if finding.onset_step is None:
        return ""
    return f" at {finding.unit} {finding.onset_step:,}"


def _causes(finding: Incident | None, actions: Iterable[Action]) -> Iterator[CauseRow]:
    """Yield the causes beside their fixes, without those that give a setting another value than an earlier one."""
    if finding is None:
        return
    advised: dict[str, str] = {}
    for action in actions:
        advised |= changes_of(whole(action))
    for judged in finding.causes:
        why = judged.reason
        if judged.evidence:
            why = judged.evidence[0].text
        fixes = []
        for fix in judged.cause.fixes:
            changes = changes_of(fix)
            if changes | advised == advised | changes:
                advised |= changes
                fixes.append(fix)
        yield CauseRow(judged, why, tuple(fixes))


def _walks(diagnosis: Diagnosis, finding: Incident | None) -> Iterator[Walk]:
    """Yield the path, and the walk that the verdict rests on where that is another."""
    yield _walk(diagnosis, diagnosis.path, diagnosis.end)
    if finding and finding.leaf is not diagnosis.end:
        walks = [v for v in diagnosis.further if v and v[-1].question.section == finding.section]
        # A walk from a person's answer shares its section with another one.
        visits = next((v for v in walks if finding.leaf.id in v[-1].question.go.values()), walks[0])
        yield _walk(diagnosis, visits, finding.leaf)


def _walk(diagnosis: Diagnosis, visits: tuple[Visit, ...], end: Leaf) -> Walk:
    ends = end.title
    blind = any(visit.question.id in end.needs and visit.answer.verdict == UNKNOWN for visit in visits)
    if end.severity is Severity.OK and (diagnosis.verdict == UNKNOWN or blind):
        ends = "nothing wrong in the little that could be checked"
    elif end.severity is Severity.OK and diagnosis.findings and diagnosis.findings[0].leaf.severity.rank > 1:
        ends = f"nothing wrong on this path; found on another one: {diagnosis.findings[0].leaf.title}"
    return Walk(tuple(_groups(visits)), ends, end.of, end.id)


def _groups(visits: Iterable[Visit]) -> Iterator[tuple[Turn, ...]]:
    """Yield the turns one by one, neighbouring questions for a person that nobody answered together."""
    for unasked, group in groupby(visits, key=is_unasked):
        turns = tuple(map(turn_of, group))
        if unasked:
            yield turns
        else:
            yield from ((turn,) for turn in turns)


def turn_of(visit: Visit) -> Turn:
    """Return a visit as a turn."""
    answer, question = visit.answer, visit.question
    checked = answer.verdict != UNKNOWN
    evidence: tuple[str, ...] = (answer.reason,)
    if checked:
        evidence = tuple(item.text for item in answer.evidence)
    return Turn(
        id=question.id,
        section=question.section,
        short=question.short or question.ask,
        ask=question.ask,
        answer=answer_word(visit),
        number=next(iter(evidence), "").partition("; ")[0],
        evidence=evidence,
        checked=checked,
        source=" (answered by a person)" if visit.given_by == "person" else "",
    )


def _open(diagnosis: Diagnosis) -> Iterator[Open]:
    """Yield what was not checked: what to log, and why nothing to log would answer the rest.

    What keeps the run from a verdict and can't be logged goes first.
    """
    vital = {miss.id for miss in diagnosis.lacking}
    reasons = [Open(reason, tuple(ids)) for reason, ids in _reasons(diagnosis, vital).items()]
    yield from (item for item in reasons if not vital.isdisjoint(item.unlocks))
    for item in diagnosis.log_next:
        yield Open(in_words(item.names), item.unlocks, item.log, item.decides)
    yield from (item for item in reasons if vital.isdisjoint(item.unlocks))


def _reasons(diagnosis: Diagnosis, vital: set[str]) -> dict[str, list[str]]:
    """Return the questions that logging would not answer, by reason; those that keep the run from a verdict first."""
    found: dict[str, list[str]] = {}
    for miss in sorted(diagnosis.missing, key=lambda miss: miss.id not in vital):
        if not miss.metrics:
            found.setdefault(_reason(diagnosis, miss), []).append(miss.id)
    return found


def _reason(diagnosis: Diagnosis, miss: Missing) -> str:
    if not diagnosis.tree.questions[miss.id].test:
        return f"{miss.reason}; --interactive asks it, --answer ID=WORD answers it"
    return f"nothing to log would help: {miss.reason}"


def _going_back(restart: Restart) -> str:
    return "use" if restart.take is Take.BEST else "restart from"


def _closing(diagnosis: Diagnosis, finding: Incident | None, exit_code: int | None) -> str:
    parts = [BADGES[badge(diagnosis)].word.lower()]
    if finding:
        parts[0] += f": {finding.leaf.id}{_at(finding)}"
        if finding.restart and finding.restart.checkpoint_step is not None:
            parts.append(f"{_going_back(finding.restart)} {finding.restart.checkpoint_step:,}")
        elif finding.restart and finding.restart.take is Take.BEST and finding.restart.has_older:
            parts.append(f"use a checkpoint near {finding.restart.up_to_step:,}")
        elif finding.restart and finding.restart.has_older:
            parts.append(f"restart from {finding.restart.up_to_step:,} or before")
    if diagnosis.ignored:
        parts.append(ignored_counts(diagnosis))
    if exit_code is not None:
        parts.append(f"exit {exit_code}")
    return " · ".join(parts)
