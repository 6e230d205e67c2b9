"""The words that every form of the report shares."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.lazy import np
from stabtree.common.text import clean, in_words
from stabtree.render.sections.fit import clipped
from stabtree.tree.model import BRIEF, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Diagnosis, Finding, Happening
    from stabtree.diagnosis.visits import Visit
    from stabtree.run import Run

FEW_ROWS = 40  # below that a log has no windows, and may be too short for what must be judged
NOTHING = "Nothing to do"  # how the advice of a leaf begins that is as it should be
CALENDAR = (1e9, 4e9)  # seconds since 1970 in the years of training logs; what is less counts from the run's start
MOST_IDS = 4
MOST_KNOWN = 3  # findings that a screen names of those that are accepted
# What is seen in these shows that something is wrong, and never why.
SYMPTOMS = frozenset({"loss", "eval_loss", "reward", "throughput", "step_time", "wall_time"})
MOST_BRIEF = 90  # characters: with the words around them two lines of a screen
TOO_LITTLE = "Too little was logged to judge this run"
NOTHING_SAID = "No rule could be judged by what it says"


def main_finding(diagnosis: Diagnosis) -> Finding | None:
    """The finding that the verdict rests on; none where the run could not be judged.

    A note beside something worse that is ignored is none: "The loss has settled" is no word for a loss that went NaN.
    """
    if diagnosis.verdict == UNKNOWN or (diagnosis.verdict == Severity.NOTE and waived(diagnosis)):
        return None
    return diagnosis.findings[0] if diagnosis.findings else None


def step_of(finding: Finding | None) -> str:
    """What stands before the title of a finding: the step at which it begins."""
    return f"{finding.unit.capitalize()} {finding.onset_step:,}: " if finding and finding.onset_step is not None else ""


def earlier(diagnosis: Diagnosis, finding: Finding) -> str:
    """What came before a finding and is no symptom of it: the first such thing, as the log tells; empty where none did.

    That is the rate, which no other series moves, or something else that was found, in another series than the loss.
    """
    onset = finding.onset_step
    if onset is None:
        return ""
    own = {item.metric for item in finding.evidence}
    seen = [
        (event.step, event.sentence)
        for event in diagnosis.timeline
        if event.metric == "lr" and event.first and event.metric not in own
    ]
    seen += [
        (other.onset_step, other.leaf.title)
        for other in diagnosis.findings[1:]
        if other.onset_step is not None
        and other.leaf.severity.rank >= Severity.WARNING.rank
        and other.metric.partition("/")[0] not in SYMPTOMS
    ]
    step, told = min(seen, default=(onset, ""))
    return f"Before it, at step {step:,}: {told}" if step < onset else ""


def headline(diagnosis: Diagnosis) -> str:
    """What was found and from which step on, as every output says it."""
    if calm(diagnosis) and not waived(diagnosis):
        return f"Healthy ({counted(len(diagnosis.findings), 'note')})"
    return step_of(main_finding(diagnosis)) + title(diagnosis)


def badge(diagnosis: Diagnosis) -> str:
    """The verdict that the headline wears: `ok` where what was found are notes that call for nothing."""
    return str(Severity.OK if calm(diagnosis) else diagnosis.verdict)


def title(diagnosis: Diagnosis, *, named: bool = True) -> str:
    """What was found, in a few words, and what counts for nothing.

    Args:
        diagnosis: the diagnosis.
        named: whether the first of what counts for nothing is named; else all of it is counted.
    """
    if not diagnosis.ignored:
        return _title(diagnosis)
    first, *others = diagnosis.ignored
    more = f" and {len(others)} more" if others else ""
    names = f": {_at(first)}{more}" if named else ""
    return f"{_title(diagnosis)} ({passed_over(diagnosis)}{names})"


def passed_over(diagnosis: Diagnosis) -> str:
    """How much counts for nothing, and by what; empty where all of it counts."""
    accepted = sum(item.accepted is not None for item in diagnosis.ignored)
    counts = {"accepted": accepted, "ignored": len(diagnosis.ignored) - accepted}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def known(diagnosis: Diagnosis, *, most: int | None = None) -> list[str]:
    """What is accepted and why, a line each, what that makes of the verdict, and what of it no longer holds.

    Args:
        diagnosis: the diagnosis.
        most: how many findings are named, where there is no room for all.
    """
    accepted = [item for item in diagnosis.ignored if item.accepted]
    lines = [f"Accepted: {_at(item)}: {item.accepted.text}" for item in accepted[:most] if item.accepted]
    if len(accepted) > len(lines):
        lines.append(f"Accepted: {len(accepted) - len(lines):,} more (--full names them)")
    worst = max((item.leaf.severity for item in accepted), key=lambda severity: severity.rank, default=Severity.OK)
    if worst.rank >= Severity.WARNING.rank and diagnosis.verdict in (Severity.OK, Severity.NOTE, UNKNOWN):
        lines.append(f"But for what is accepted the verdict would be {worst}.")
    return [*lines, *diagnosis.outdated]


def _at(finding: Finding) -> str:
    return finding.leaf.id + (f" at step {finding.onset_step:,}" if finding.onset_step is not None else "")


def _title(diagnosis: Diagnosis) -> str:
    if diagnosis.verdict == UNKNOWN:
        if diagnosis.before_run:
            return NOTHING_SAID
        return f"The log was misread: {diagnosis.misread}" if diagnosis.misread else _too_little(diagnosis)
    if diagnosis.verdict in (Severity.OK, Severity.NOTE) and waived(diagnosis):
        return "Nothing else was found"
    finding = main_finding(diagnosis)
    if finding and diagnosis.before_run:
        return briefed(finding) + (f" (and {len(diagnosis.findings) - 1} more)" if diagnosis.findings[1:] else "")
    if finding:
        return briefed(finding)
    open_ = [visit.question.id for visit in diagnosis.path if unasked(visit)]
    return f"{diagnosis.end.title}; not answered: {', '.join(open_)}" if open_ else diagnosis.end.title


def briefed(finding: Finding) -> str:
    """The leaf's headline with what was seen, where both are known; else its title."""
    brief = next((item.brief for item in finding.parts[0].evidence if item.brief), "")
    if not brief or not finding.leaf.headline:
        return finding.leaf.title
    return finding.leaf.headline.replace(BRIEF, clipped(clean(brief), MOST_BRIEF))


def calm(diagnosis: Diagnosis) -> bool:
    """Whether all that was found are notes that call for nothing: healthy runs have such, or something is ignored."""
    return diagnosis.verdict == Severity.NOTE and (
        bool(waived(diagnosis))
        or all(
            finding.leaf.severity is Severity.NOTE
            and finding.leaf.fixes[:1]
            and finding.leaf.fixes[0].startswith(NOTHING)
            for finding in diagnosis.reached
        )
    )


def waived(diagnosis: Diagnosis) -> list[Finding]:
    """What is ignored and would have made the run no healthy one."""
    return [item for item in diagnosis.ignored if item.leaf.severity.rank >= Severity.WARNING.rank]


def grouped(events: Iterable[Happening]) -> list[tuple[Happening, int]]:
    """The first event of each group of series, and how many of its group did as much after it.

    What several series did at one step in the same words is one event.
    """
    groups: dict[str, list[Happening]] = {}
    for event in events:
        groups.setdefault(event.metric.partition("/")[0], []).append(event)
    same: dict[tuple[int, str], list[list[Happening]]] = {}
    for found in groups.values():
        same.setdefault((found[0].step, found[0].text), []).append(found)
    told = []
    for alike in same.values():
        names = [found[0].metric for found in alike]
        metric = in_words(names)
        first = any(found[0].first for found in alike)
        told.append((replace(alike[0][0], metric=metric, first=first), sum(len(found) - 1 for found in alike)))
    return told


def unchecked(diagnosis: Diagnosis) -> str:
    """How many of the questions that were asked have no answer."""
    asked = len({visit.question.id for visits in (diagnosis.path, *diagnosis.further) for visit in visits})
    return f"{len(diagnosis.missing):,} of {asked:,} questions"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "note"), counted(2, "note")
    ('1 note', '2 notes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are.

    >>> some(["Q1", "Q2"]), some(["Q1", "Q2", "Q3", "Q4", "Q5"])
    ('Q1, Q2', 'Q1, Q2, Q3, Q4 and 1 more')
    """
    told = ", ".join(ids[:MOST_IDS])
    return f"{told} and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else told


def unasked(visit: Visit) -> bool:
    """Whether it is a question for a person that nobody answered."""
    return not visit.question.test and visit.answer.verdict == UNKNOWN


def answer_of(visit: Visit) -> str:
    """The answer as a word."""
    return visit.answer.verdict.replace("_", " ") if visit.answer.verdict != UNKNOWN else "not checked"


def facts(run: Run) -> str:
    """The run in a line: its steps, precision, optimizer and rate, and its name."""
    parts = [steps] if (steps := span(run)) else []
    dtype, optimizer, rate = run.setting("dtype"), run.setting("optimizer"), run.setting("lr")
    parts += [str(dtype)] if dtype else []
    how = [str(optimizer)] if optimizer else []
    how += [f"lr {rate:g}"] if isinstance(rate, float | int) else []
    parts += [" ".join(how)] if how else []
    parts += [f"{len(run.ranks)} ranks"] if run.ranks else []
    return " · ".join([*parts, run.name])


def span(run: Run) -> str:
    """The steps of a run; empty where it has none."""
    logged = [loss] if (loss := run.get("loss")) is not None else list(run.series.values())
    first = min((int(series.steps[0]) for series in logged if len(series)), default=None)
    return "" if first is None else f"{run.unit}s {first:,}-{run.last_step:,}{_of(run)}"


def _of(run: Run) -> str:
    """How many steps it should have had, where that is known and it had fewer."""
    most = run.setting("max_steps")
    return f" of {most:,}" if isinstance(most, int) and run.last_step is not None and most > run.last_step + 1 else ""


def _too_little(diagnosis: Diagnosis) -> str:
    """What kind of log keeps the run from a verdict, and what could be judged."""
    kind = _kind(diagnosis)
    if not diagnosis.partial:
        return f"{kind}: {TOO_LITTLE[0].lower()}{TOO_LITTLE[1:]}" if kind else TOO_LITTLE
    judged = [f"§{section.id}" for section in diagnosis.answered if section.id[:1].isdigit()]
    entries = {item.section.entry: f"§{item.section.id}" for item in diagnosis.sections}
    first, *others = diagnosis.lacking
    lacks = " and ".join([entries.get(first.id, first.id), *(entries.get(item.id, item.id) for item in others)])
    told = f"Nothing wrong in {', '.join(judged) or 'what was asked'}; {lacks} not judged"
    return f"{kind}. {told}" if kind else f"{told}: {first.reason}"


def clock(run: Run, step: int) -> datetime | None:
    """When a step was logged; None where no time of the calendar stands at that step."""
    series = run.get("wall_time")
    times = [float(value) for value in series.values[series.steps == step]] if series is not None else []
    return datetime.fromtimestamp(times[0], UTC) if times and CALENDAR[0] <= times[0] < CALENDAR[1] else None


def _kind(diagnosis: Diagnosis) -> str:
    """Which kind of log it is that can't be judged; empty where the reason must say it."""
    run = diagnosis.run
    if not run.series:
        return "No metric in the log"
    loss = run.get("loss")
    rows = int(np.isfinite(loss.values).sum()) if loss is not None else 0
    if not rows:
        return "" if run.has("reward") else "No loss in the log"
    if rows < FEW_ROWS and not any(miss.metrics for miss in diagnosis.lacking):
        return f"Log too short ({counted(rows, 'row')} of loss)"
    return "Only the loss was logged" if len(run.series) == 1 else ""
