"""A diagnosis as a report."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, YES
from stabtree.common.text import in_words
from stabtree.render.report.advice import MOST_TO_DO, do_now
from stabtree.render.report.model import Action, CauseRow, Open, Report, Tick, Turn, Walk
from stabtree.render.report.plainly import doubts, recovered, unlogged
from stabtree.render.report.words import answer_of, badge, earlier, facts, headline, main_finding, passed_over, waived
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Leaf, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.diagnosis.visits import Missing, Visit

MEND = "`stabtree inspect` shows which; write the log again with plain numbers in these places, and diagnose that."


def report(diagnosis: Diagnosis, *, exit_code: int | None = None) -> Report:
    """What to say of a diagnosis.

    Args:
        diagnosis: what was found.
        exit_code: the code that the command will end with, for the last line.
    """
    finding = main_finding(diagnosis)
    also = diagnosis.findings[1:] if finding else diagnosis.findings
    least = Severity.WARNING if diagnosis.verdict != Severity.NOTE or waived(diagnosis) else Severity.NOTE
    doubted = doubts(diagnosis.run, finding) if finding else ""
    told = tuple(f for f in also if f.leaf.severity.rank >= least.rank)
    return Report(
        diagnosis=diagnosis,
        verdict=str(diagnosis.verdict),
        badge=badge(diagnosis),
        title=headline(diagnosis),
        finding=finding,
        facts=facts(diagnosis.run),
        why=finding.leaf.why if finding else "",
        earlier=earlier(diagnosis, finding) if finding else "",
        plainly=(recovered(diagnosis.run, finding) or unlogged(diagnosis.run, finding) or doubted) if finding else "",
        careful=f"{diagnosis.misread}. {MEND}" if diagnosis.misread else "",
        seen_as=tuple(_seen_as(finding)) if finding else (),
        do_now=_with_second(do_now(finding, diagnosis.timeline, doubtful=bool(doubted)), finding, told)
        if finding
        else (),
        events=diagnosis.timeline,
        causes=tuple(_causes(finding)) if finding else (),
        walks=tuple(_walks(diagnosis, finding)),
        also=told,
        notes=len(also) - len(told),
        open=tuple(_open(diagnosis)),
        ticks=tuple(_ticks(diagnosis)),
        closing=_closing(diagnosis, finding, exit_code),
    )


def _with_second(actions: tuple[Action, ...], finding: Finding, also: tuple[Finding, ...]) -> tuple[Action, ...]:
    """The actions, the last of them what else must be mended: what a crash hides, or a critical one that was first."""
    crashed = finding.leaf.of.startswith("E.")
    second = next((item for item in also if crashed or _was_first(item, finding)), None)
    if second is None or not second.advice:
        return actions
    title, fix = second.leaf.title, second.advice[0]
    told = Action(f"Before the restart: {title[:1].lower()}{title[1:]}. {fix.text}", reason=fix.reason, fix=fix.text)
    kept = actions[: MOST_TO_DO - 1]
    last = [action for action in actions[MOST_TO_DO - 1 :] if action.strong]  # a restart is always told
    return (*kept[: len(kept) - len(last)], told, *last)


def _was_first(other: Finding, finding: Finding) -> bool:
    """Whether another critical finding began before the main one, and so is not what that led to."""
    begun = other.onset_step is not None and finding.onset_step is not None and other.onset_step < finding.onset_step
    return begun and other.leaf.severity is Severity.CRITICAL


def _seen_as(finding: Finding) -> Iterator[str]:
    """What shows the event in other series, or dates it, and where; notes only of a note."""
    least = min(finding.leaf.severity.rank, Severity.WARNING.rank)
    series = {item.metric for item in finding.parts[0].evidence}
    moved = finding.own_onset_step != finding.onset_step
    for item in finding.also:
        dates = moved and item.onset_step == finding.onset_step
        if item.leaf.severity.rank >= least and (dates or not {own.metric for own in item.evidence} <= series):
            yield f"{item.leaf.id}{_at(item)}"


def _at(finding: Finding) -> str:
    return f" at {finding.unit} {finding.onset_step:,}" if finding.onset_step is not None else ""


def _causes(finding: Finding) -> Iterator[CauseRow]:
    for judged in finding.causes:
        why = judged.evidence[0].text if judged.evidence else judged.reason
        yield CauseRow(judged, why, judged.cause.fixes)


def _walks(diagnosis: Diagnosis, finding: Finding | None) -> Iterator[Walk]:
    """The path, and the walk that the verdict rests on where that is another."""
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
    return Walk(tuple(turn_of(visit) for visit in visits), ends, end.of, end.id)


def turn_of(visit: Visit) -> Turn:
    """What a visit tells."""
    answer, question = visit.answer, visit.question
    checked = answer.verdict != UNKNOWN
    evidence = tuple(item.text for item in answer.evidence) if checked else (answer.reason,)
    return Turn(
        id=question.id,
        section=question.section,
        short=question.short or question.ask,
        ask=question.ask,
        answer=answer_of(visit),
        number=evidence[0].partition("; ")[0] if evidence else "",
        evidence=evidence,
        checked=checked,
        by_person=visit.given_by == "person",
    )


def _open(diagnosis: Diagnosis) -> Iterator[Open]:
    """What was not checked: what to log, and why nothing to log would answer the rest.

    What keeps the run from a verdict and is no matter of logging goes first.
    """
    vital = {miss.id for miss in diagnosis.lacking}
    reasons = _reasons(diagnosis, vital)
    first = [Open(reason, tuple(ids)) for reason, ids in reasons.items() if not vital.isdisjoint(ids)]
    yield from first
    for item in diagnosis.log_next:
        yield Open(in_words(item.names), item.unlocks, item.log, item.decides)
    yield from (Open(reason, tuple(ids)) for reason, ids in reasons.items() if vital.isdisjoint(ids))


def _reasons(diagnosis: Diagnosis, vital: set[str]) -> dict[str, list[str]]:
    """The questions that nothing to log would answer, by reason; those that keep the run from a verdict first."""
    found: dict[str, list[str]] = {}
    for miss in sorted(diagnosis.missing, key=lambda miss: miss.id not in vital):
        if not miss.metrics:
            found.setdefault(_reason(diagnosis, miss), []).append(miss.id)
    return found


def _reason(diagnosis: Diagnosis, miss: Missing) -> str:
    if not diagnosis.tree.questions[miss.id].test:
        return f"{miss.reason}; --interactive asks it, --answer ID=WORD answers it"
    return f"nothing to log would help: {miss.reason}"


def _ticks(diagnosis: Diagnosis) -> Iterator[tuple[str, Tick]]:
    """The numbered sections of the main tree, and what became of each."""
    told = (*diagnosis.findings, *diagnosis.ignored)
    found = {finding.section for finding in told if finding.leaf.severity.rank >= Severity.WARNING.rank}
    if diagnosis.end.severity.rank >= Severity.WARNING.rank:
        # The path may cross sections: what leads on to the finding did not pass.
        found |= {visit.question.section for visit in diagnosis.path if visit.answer.verdict == YES}
    answered = {section.id for section in diagnosis.answered}
    seen = {visit.question.section for visit in chain(diagnosis.path, *diagnosis.further)}
    for item in diagnosis.sections:
        id_ = item.section.id
        if not id_.isdigit():
            continue
        if id_ in found:
            yield id_, Tick.FOUND
        elif id_ in answered:
            yield id_, Tick.PASSED
        else:
            yield id_, Tick.OPEN if item.walked or id_ in seen else Tick.SKIPPED


def _closing(diagnosis: Diagnosis, finding: Finding | None, exit_code: int | None) -> str:
    word = LOOKS[badge(diagnosis)].word.lower()
    parts = [word]
    if finding:
        parts = [f"{word}: {finding.leaf.id}{_at(finding)}"]
        restart = finding.restart
        if restart and restart.checkpoint_step is not None:
            parts.append(f"restart from {restart.checkpoint_step:,}")
    parts += [passed_over(diagnosis)] if diagnosis.ignored else []
    return " · ".join([*parts, *([f"exit {exit_code}"] if exit_code is not None else [])])
