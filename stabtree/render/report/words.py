"""The words that every form of the report shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.answer import UNKNOWN

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Finding, Visit
    from stabtree.run import Run

TOO_LITTLE = "Too little was logged to judge this run"


def main_finding(diagnosis: Diagnosis) -> Finding | None:
    """The finding that the verdict rests on; none where the run could not be judged."""
    return diagnosis.findings[0] if diagnosis.findings and diagnosis.verdict != UNKNOWN else None


def step_of(finding: Finding | None) -> str:
    """What stands before the title of a finding: the step at which it begins."""
    return f"Step {finding.onset_step:,}: " if finding and finding.onset_step is not None else ""


def title(diagnosis: Diagnosis) -> str:
    """What was found, in a few words, and how much that counts for nothing."""
    count = len(diagnosis.ignored)
    return f"{_title(diagnosis)} ({count} ignored)" if count else _title(diagnosis)


def _title(diagnosis: Diagnosis) -> str:
    if diagnosis.verdict == UNKNOWN:
        return f"The log was misread: {diagnosis.misread}" if diagnosis.misread else _too_little(diagnosis)
    finding = main_finding(diagnosis)
    if finding:
        return finding.leaf.title
    if diagnosis.end.id in [item.leaf.id for item in diagnosis.ignored]:
        return "Nothing else was found"
    open_ = [visit.question.id for visit in diagnosis.path if unasked(visit)]
    return f"{diagnosis.end.title}; not answered: {', '.join(open_)}" if open_ else diagnosis.end.title


def unasked(visit: Visit) -> bool:
    """Whether it is a question for a person that nobody answered."""
    return not visit.question.test and visit.answer.verdict == UNKNOWN


def answer_of(visit: Visit) -> str:
    """The answer as a word."""
    return visit.answer.verdict.replace("_", " ") if visit.answer.verdict != UNKNOWN else "not checked"


def facts(run: Run) -> str:
    """The run in a line: its steps, precision, optimizer and rate, and its name."""
    logged = [loss] if (loss := run.get("loss")) is not None else list(run.series.values())
    first = min((int(series.steps[0]) for series in logged if len(series)), default=None)
    parts = [] if first is None else [f"steps {first:,}-{run.last_step:,}{_of(run)}"]
    dtype, optimizer, rate = run.setting("dtype"), run.setting("optimizer"), run.setting("lr")
    parts += [str(dtype)] if dtype else []
    how = [str(optimizer)] if optimizer else []
    how += [f"lr {rate:g}"] if isinstance(rate, float | int) else []
    parts += [" ".join(how)] if how else []
    parts += [f"{len(run.ranks)} ranks"] if run.ranks else []
    return " · ".join([*parts, run.name])


def _of(run: Run) -> str:
    """How many steps it should have had, where that is known and it had fewer."""
    most = run.setting("max_steps")
    return f" of {most:,}" if isinstance(most, int) and run.last_step is not None and most > run.last_step + 1 else ""


def _too_little(diagnosis: Diagnosis) -> str:
    """What could be judged, and what keeps the run from a verdict."""
    if not diagnosis.partial:
        return TOO_LITTLE
    judged = [f"§{section.id}" for section in diagnosis.answered if section.id[:1].isdigit()]
    entries = {item.section.entry: f"§{item.section.id}" for item in diagnosis.sections}
    first, *others = diagnosis.lacking
    lacks = " and ".join([entries.get(first.id, first.id), *(entries.get(item.id, item.id) for item in others)])
    return f"Nothing wrong in {', '.join(judged) or 'what was asked'}; {lacks} not judged: {first.reason}"
