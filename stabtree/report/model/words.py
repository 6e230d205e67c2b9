"""The words that every form of the report shares."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.report.text import clipped, counted
from stabtree.tree.fixes import untagged
from stabtree.tree.model import BRIEF, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.judged import Fix
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.diagnosis.visits import Visit
    from stabtree.report.model.report import Action

FEW_ROWS = 40  # below that a log has no windows, and may be too short for what must be judged
NOTHING = "Nothing to do"  # how the advice of a leaf begins that needs no action
MAX_IDS = 4
MAX_ACCEPTED = 3  # accepted findings that a screen names
# These show that something is wrong, and never why.
SYMPTOMS = frozenset({"loss", "eval_loss", "reward", "throughput", "step_time", "wall_time"})
MAX_BRIEF = 90  # characters: with the words around them two lines of a screen
TOO_LITTLE = "Too little was logged to judge this run"
NOTHING_SAID = "Too few rules could be judged by what it says"


def main_finding(diagnosis: Diagnosis) -> Incident | None:
    """Return the finding that the verdict rests on; None where the run could not be judged.

    A note beside an ignored problem does not count: "The loss has settled" does not describe a loss that went NaN.
    A run of which all was judged but its end has one: that the end is not known.
    """
    if diagnosis.verdict == UNKNOWN:
        open_ = diagnosis.lacking or diagnosis.misread or diagnosis.faults
        return None if open_ else diagnosis.unended
    if diagnosis.verdict == Severity.NOTE and ignored_problems(diagnosis):
        return None
    return next(iter(diagnosis.findings), None)


def step_prefix(finding: Incident | None) -> str:
    """Return the prefix of a finding's title: the step at which it begins."""
    if finding and finding.onset_step is not None:
        return f"{finding.unit.capitalize()} {finding.onset_step:,}: "
    return ""


def earlier(diagnosis: Diagnosis, finding: Incident) -> str:
    """Describe the first thing that came before a finding and is no symptom of it; empty where nothing did.

    That is the rate, which no other series moves, or something else that was found, in another series than the loss.
    """
    seen = list(_before(diagnosis, finding))
    step, text = min(seen, default=(0, ""))
    if finding.onset_step is not None and seen and step < finding.onset_step:
        return f"Before it, at {finding.unit} {step:,}: {text}"
    return ""


def _before(diagnosis: Diagnosis, finding: Incident) -> Iterator[tuple[int, str]]:
    """Yield what may have come before a finding: its step, and what it was."""
    own = {item.metric for item in finding.evidence}
    for event in diagnosis.timeline:
        if event.metric == "lr" and event.first and event.metric not in own:
            yield event.step, event.sentence
    for other in diagnosis.findings[1:]:
        grave = other.leaf.severity.is_alarm
        if other.onset_step is not None and grave and other.metric.partition("/")[0] not in SYMPTOMS:
            yield other.onset_step, finding_title(other)


def headline(diagnosis: Diagnosis) -> str:
    """Return what was found and from which step on, as every output says it."""
    if all_clear(diagnosis) and not ignored_problems(diagnosis):
        return f"Healthy ({counted(len(diagnosis.findings), 'note')})"
    return step_prefix(main_finding(diagnosis)) + title(diagnosis)


def badge(diagnosis: Diagnosis) -> str:
    """Return the verdict beside the headline: `ok` where all that was found are notes that need no action."""
    if all_clear(diagnosis):
        return str(Severity.OK)
    return str(diagnosis.verdict)


def title(diagnosis: Diagnosis, *, named: bool = True) -> str:
    """Return what was found, in a few words, and what is ignored.

    Args:
        diagnosis: the diagnosis.
        named: whether the first ignored finding is named; else they are only counted.
    """
    if not diagnosis.ignored:
        return _title(diagnosis)
    names = ""
    if named:
        first, *others = diagnosis.ignored
        names = f": {_id_at_step(first)}"
        if others:
            names += f" and {len(others)} more"
    return f"{_title(diagnosis)} ({ignored_counts(diagnosis)}{names})"


def ignored_counts(diagnosis: Diagnosis) -> str:
    """Count the findings that are accepted or ignored, as `2 accepted, 1 ignored`; empty where none is."""
    accepted = sum(item.accepted is not None for item in diagnosis.ignored)
    counts = {"accepted": accepted, "ignored": len(diagnosis.ignored) - accepted}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def accepted_notes(diagnosis: Diagnosis, *, most: int | None = None) -> list[str]:
    """Return what is accepted and why, a line each, what that makes of the verdict, and what is out of date.

    Args:
        diagnosis: the diagnosis.
        most: how many findings are named, where there is no room for all.
    """
    accepted = [item for item in diagnosis.ignored if item.accepted]
    lines = [f"Accepted: {_id_at_step(item)}: {item.accepted.text}" for item in accepted[:most] if item.accepted]
    if len(accepted) > len(lines):
        lines.append(f"Accepted: {len(accepted) - len(lines):,} more (--full names them)")
    worst = max((item.leaf.severity for item in accepted), key=lambda severity: severity.rank, default=Severity.OK)
    if worst.is_alarm and diagnosis.verdict in (Severity.OK, Severity.NOTE, UNKNOWN):
        lines.append(f"But for what is accepted the verdict would be {worst}.")
    return [*lines, *diagnosis.acceptance_notes]


def _id_at_step(finding: Incident) -> str:
    if finding.onset_step is None:
        return finding.leaf.id
    return f"{finding.leaf.id} at {finding.unit} {finding.onset_step:,}"


def _title(diagnosis: Diagnosis) -> str:
    """Return the headline without what is ignored."""
    finding = main_finding(diagnosis)
    if diagnosis.verdict == UNKNOWN and not finding:
        return _why_unknown(diagnosis)
    if diagnosis.verdict in (Severity.OK, Severity.NOTE) and ignored_problems(diagnosis):
        return "Nothing else was found"
    if finding:
        return f"{finding_title(finding)}{_more_before_run(diagnosis)}"
    unanswered = [visit.question.id for visit in diagnosis.path if is_unasked(visit)]
    if unanswered:
        return f"{diagnosis.end.title}; not answered: {', '.join(unanswered)}"
    if diagnosis.before_run:
        return f"{diagnosis.end.title} in {counted(diagnosis.judged, 'rule')}"
    return diagnosis.end.title


def _why_unknown(diagnosis: Diagnosis) -> str:
    """Return why nothing could be judged."""
    if diagnosis.before_run:
        return NOTHING_SAID
    if diagnosis.misread:
        return f"The log was misread: {diagnosis.misread}"
    return _too_little(diagnosis)


def _more_before_run(diagnosis: Diagnosis) -> str:
    """Count the further findings in a configuration: none of them is the cause of another."""
    more = len(diagnosis.findings) - 1
    if not diagnosis.before_run or more < 1:
        return ""
    return f" (and {more} more)"


def finding_title(finding: Incident) -> str:
    """Return the leaf's headline with what was seen last on the way to it, where both are known; else its title."""
    brief = next((item.brief for item in reversed(finding.parts[0].evidence) if item.brief), "")
    if not brief or not finding.leaf.headline:
        return finding.leaf.title
    return finding.leaf.headline.replace(BRIEF, clipped(clean(brief), MAX_BRIEF))


def all_clear(diagnosis: Diagnosis) -> bool:
    """Whether all that was found are notes that need no action: healthy runs have such, or a problem is ignored."""
    if diagnosis.verdict != Severity.NOTE:
        return False
    return bool(ignored_problems(diagnosis)) or all(map(_needs_nothing, diagnosis.reached))


def _needs_nothing(finding: Incident) -> bool:
    """Whether what fits the run of a note's advice says so; of a note without advice, its first fix."""
    texts = finding.fixes or tuple(map(untagged, finding.leaf.fixes[:1]))
    return finding.leaf.severity is Severity.NOTE and any(text.startswith(NOTHING) for text in texts)


def ignored_problems(diagnosis: Diagnosis) -> list[Incident]:
    """Return the ignored findings without which the run would not be called healthy."""
    return [item for item in diagnosis.ignored if item.leaf.severity.is_alarm]


def unchecked(diagnosis: Diagnosis) -> str:
    """Count the questions that were asked and have no answer, as `3 of 20 questions`; empty where all have one."""
    if not diagnosis.missing:
        return ""
    asked = {visit.question.id for visit in chain(diagnosis.path, *diagnosis.further)}
    return f"{len(diagnosis.missing):,} of {len(asked):,} questions"


def first_ids(ids: Sequence[str]) -> str:
    """Return the first ids, and how many more there are.

    >>> first_ids(["Q1", "Q2"]), first_ids(["Q1", "Q2", "Q3", "Q4", "Q5"])
    ('Q1, Q2', 'Q1, Q2, Q3, Q4 and 1 more')
    """
    names = ", ".join(ids[:MAX_IDS])
    if len(ids) > MAX_IDS:
        return f"{names} and {len(ids) - MAX_IDS} more"
    return names


def because(actions: Iterable[Action | Fix]) -> list[str]:
    """Return the reason of each action as a clause; empty where it has none, or the same as the one before it."""
    clauses, last = [], ""
    for action in actions:
        clauses.append(f"because {action.reason}" if action.reason not in ("", last) else "")
        last = action.reason
    return clauses


def is_unasked(visit: Visit) -> bool:
    """Whether it is a question for a person that nobody answered."""
    return not visit.question.test and visit.answer.verdict == UNKNOWN


def answer_word(visit: Visit) -> str:
    """Return the answer as a word."""
    if visit.answer.verdict != UNKNOWN:
        return visit.answer.verdict.replace("_", " ")
    return "not checked"


def _too_little(diagnosis: Diagnosis) -> str:
    """Say what keeps the run from a verdict, and what could be judged."""
    if diagnosis.faults:
        return f"Not judged: {diagnosis.faults[0].reason}"
    kind = _kind_of_log(diagnosis)
    if not diagnosis.partial:
        if kind:
            return f"{kind}: {TOO_LITTLE[0].lower()}{TOO_LITTLE[1:]}"
        return TOO_LITTLE
    entries = {item.section.entry: f"§{item.section.id}" for item in diagnosis.sections}
    open_ = {entries.get(item.id) for item in diagnosis.lacking}
    judged = [f"§{section.id}" for section in diagnosis.answered if section.id[:1].isdigit()]
    judged = [name for name in judged if name not in open_]
    lacking = " and ".join(entries.get(item.id, item.id) for item in diagnosis.lacking)
    text = f"Nothing wrong in {', '.join(judged) or 'what was asked'}; {lacking} not judged"
    if kind:
        return f"{kind}. {text}"
    return f"{text}: {diagnosis.lacking[0].reason}"


def _kind_of_log(diagnosis: Diagnosis) -> str:
    """Say what is wrong with a log that can't be judged; empty where the reason must say it."""
    run = diagnosis.run
    if not run.series:
        return "No metric in the log"
    loss = run.get("loss")
    rows = 0 if loss is None else int(np.isfinite(loss.values).sum())
    if not rows and run.has("reward"):
        return ""
    if not rows:
        return "No loss in the log"
    if rows < FEW_ROWS and not any(miss.metrics for miss in diagnosis.lacking):
        return f"Log too short ({counted(rows, 'row')} of loss)"
    if len(run.series) == 1:
        return "Only the loss was logged"
    return ""
