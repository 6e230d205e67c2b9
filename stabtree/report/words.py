"""The words that every form of the report shares: the headline, who the run is, and what became of each section."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, YES
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import row_of
from stabtree.common.text import clean
from stabtree.context.find import context_of
from stabtree.frameworks.load import framework
from stabtree.metrics.table import all_metrics
from stabtree.report.text import clipped, counted
from stabtree.report.verdicts import Tick
from stabtree.run import UNSCALED
from stabtree.tree.fixes import untagged
from stabtree.tree.model import BRIEF, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.context.model import Context, Known
    from stabtree.diagnosis.result import Diagnosis, Fix, Happening, Incident, Visit
    from stabtree.report.advice import Action
    from stabtree.run import Run

FEW_ROWS = 40  # below that a log has no windows, and may be too short for what must be judged
NOTHING = "Nothing to do"  # how the advice of a leaf begins that needs no action
MAX_IDS = 4
MAX_ACCEPTED = 3  # accepted findings that a screen names
MAX_BRIEF = 90  # characters: with the words around them two lines of a screen
# These show that something is wrong, and never why.
SYMPTOMS = frozenset({"loss", "eval_loss", "reward", "throughput", "step_time", "wall_time"})
TOO_LITTLE = "Too little was logged to judge this run"
FURTHER = "and further, past the first diagnosis:"
NOTHING_SAID = "Too few rules could be judged by what it says"
# What most questions need, in the order in which it helps.
WANTED = ("grad_norm", "lr", "loss_scale", "eval_loss", "weight_norm", "batch_id")
CALENDAR = (1e9, 4e9)  # seconds since 1970 in the years of training logs; what is less counts from the run's start
PARTS = {"task": "task", "phase": "phase", "trainer": "framework", "precision": "precision"}
TASKS = {
    "on-policy-rl": "on-policy reinforcement learning",
    "off-policy-rl": "off-policy reinforcement learning",
    "reinforcement": "reinforcement learning",
    "grpo": "GRPO",
    "gan": "GAN",
    "ctc": "CTC",
    "language-model": "language model",
}


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


def at_step(finding: Incident) -> str:
    """Return where a finding begins, as ` at step 340`; empty where it has no onset."""
    return "" if finding.onset_step is None else f" at {finding.unit} {finding.onset_step:,}"


def earlier(diagnosis: Diagnosis, finding: Incident) -> str:
    """Describe the first thing that came before a finding and is no symptom of it; empty where nothing did.

    That is the rate, which no other series moves, or something else that was found, in another series than the loss.
    """
    own = {item.metric for item in finding.evidence}
    seen = [
        (event.step, event.sentence)
        for event in diagnosis.timeline
        if event.metric == "lr" and event.first and event.metric not in own
    ]
    for other in diagnosis.findings[1:]:
        grave = other.leaf.severity.is_alarm
        if other.onset_step is not None and grave and other.metric.partition("/")[0] not in SYMPTOMS:
            seen.append((other.onset_step, finding_title(other)))
    step, text = min(seen, default=(0, ""))
    if finding.onset_step is not None and seen and step < finding.onset_step:
        return f"Before it, at {finding.unit} {step:,}: {text}"
    return ""


def headline(diagnosis: Diagnosis) -> str:
    """Return what was found and from which step on, as every output says it."""
    if all_clear(diagnosis) and not ignored_problems(diagnosis):
        return f"Healthy ({counted(len(diagnosis.findings), 'note')})"
    return step_prefix(main_finding(diagnosis)) + title(diagnosis)


def badge(diagnosis: Diagnosis) -> str:
    """Return the verdict beside the headline: `ok` where all that was found are notes that need no action."""
    return str(Severity.OK if all_clear(diagnosis) else diagnosis.verdict)


def title(diagnosis: Diagnosis, *, named: bool = True) -> str:
    """Return what was found, in a few words, and what is ignored.

    Args:
        diagnosis: the diagnosis.
        named: whether the first ignored finding is named; else they are only counted.
    """
    text = _title(diagnosis)
    if not diagnosis.ignored:
        return text
    names, (first, *others) = "", diagnosis.ignored
    if named:
        names = f": {first.leaf.id}{at_step(first)}" + (f" and {len(others)} more" if others else "")
    return f"{text} ({ignored_counts(diagnosis)}{names})"


def _title(diagnosis: Diagnosis) -> str:
    """Return the headline without what is ignored."""
    finding = main_finding(diagnosis)
    if diagnosis.verdict == UNKNOWN and not finding:
        if diagnosis.before_run:
            return NOTHING_SAID
        return f"The log was misread: {diagnosis.misread}" if diagnosis.misread else _too_little(diagnosis)
    if diagnosis.verdict in (Severity.OK, Severity.NOTE) and ignored_problems(diagnosis):
        return "Nothing else was found"
    if finding:
        more = len(diagnosis.findings) - 1  # of a configuration: none of them is the cause of another
        return finding_title(finding) + (f" (and {more} more)" if diagnosis.before_run and more > 0 else "")
    unanswered = [visit.question.id for visit in diagnosis.path if is_unasked(visit)]
    if unanswered:
        return f"{diagnosis.end.title}; not answered: {', '.join(unanswered)}"
    if diagnosis.before_run:
        return f"{diagnosis.end.title} in {counted(diagnosis.judged, 'rule')}"
    return diagnosis.end.title


def _too_little(diagnosis: Diagnosis) -> str:
    """Say what keeps the run from a verdict, and what could be judged."""
    if diagnosis.faults:
        return f"Not judged: {diagnosis.faults[0].reason}"
    kind = _kind_of_log(diagnosis)
    if not diagnosis.partial:
        return f"{kind}: {TOO_LITTLE[0].lower()}{TOO_LITTLE[1:]}" if kind else TOO_LITTLE
    entries = {item.section.entry: f"§{item.section.id}" for item in diagnosis.sections}
    open_ = {entries.get(item.id) for item in diagnosis.lacking}
    numbered = [f"§{section.id}" for section in diagnosis.answered if section.id[:1].isdigit()]
    judged = [name for name in numbered if name not in open_]
    lacking = " and ".join(entries.get(item.id, item.id) for item in diagnosis.lacking)
    text = f"Nothing wrong in {', '.join(judged) or 'what was asked'}; {lacking} not judged"
    return f"{kind}. {text}" if kind else f"{text}: {diagnosis.lacking[0].reason}"


def _kind_of_log(diagnosis: Diagnosis) -> str:
    """Say what is wrong with a log that can't be judged; empty where the reason must say it."""
    run = diagnosis.run
    if not run.series:
        return "No metric in the log"
    loss = run.get("loss")
    rows = 0 if loss is None else int(np.isfinite(loss.values).sum())
    if not rows:
        return "" if run.has("reward") else "No loss in the log"
    if rows < FEW_ROWS and not any(miss.metrics for miss in diagnosis.lacking):
        return f"Log too short ({counted(rows, 'row')} of loss)"
    return "Only the loss was logged" if len(run.series) == 1 else ""


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
    lines = [
        f"Accepted: {item.leaf.id}{at_step(item)}: {item.accepted.text}" for item in accepted[:most] if item.accepted
    ]
    if len(accepted) > len(lines):
        lines.append(f"Accepted: {len(accepted) - len(lines):,} more (--full names them)")
    worst = max((item.leaf.severity for item in accepted), key=lambda severity: severity.rank, default=Severity.OK)
    if worst.is_alarm and diagnosis.verdict in (Severity.OK, Severity.NOTE, UNKNOWN):
        lines.append(f"But for what is accepted the verdict would be {worst}.")
    return [*lines, *diagnosis.acceptance_notes]


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
    return f"{names} and {len(ids) - MAX_IDS} more" if len(ids) > MAX_IDS else names


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
    return "not checked" if visit.answer.verdict == UNKNOWN else visit.answer.verdict.replace("_", " ")


def ticks(diagnosis: Diagnosis) -> Iterator[tuple[str, Tick]]:
    """Yield the numbered sections of the main tree, and what became of each."""
    found = sections_found(diagnosis)
    answered = {section.id for section in diagnosis.answered}
    entered = {visit.question.section for visit in chain(diagnosis.path, *diagnosis.further)}
    entered.update(item.section.id for item in diagnosis.sections if item.walked)
    for id_ in (item.section.id for item in diagnosis.sections if item.section.id.isdigit()):
        if id_ in found:
            yield id_, Tick.FOUND
        elif id_ in answered:
            yield id_, Tick.PASSED
        else:
            yield id_, Tick.OPEN if id_ in entered else Tick.SKIPPED


def sections_found(diagnosis: Diagnosis) -> set[str]:
    """Return the sections in which something is wrong: those of all that was found, and those that the path crossed."""
    bad = (*diagnosis.reached, *diagnosis.ignored)
    found = {finding.section for finding in bad if finding.leaf.severity.is_alarm}
    if diagnosis.end.severity.is_alarm:
        # The path may cross sections: what leads on to the finding did not pass.
        found |= {visit.question.section for visit in diagnosis.path if visit.answer.verdict == YES}
    return found


def by_group(events: Iterable[Happening]) -> list[list[Happening]]:
    """Return the events of each group of series, as `weight_norm/<group>`, in the order of their first events."""
    groups: dict[str, list[Happening]] = {}
    for event in events:
        groups.setdefault(event.metric.partition("/")[0], []).append(event)
    return list(groups.values())


def in_order(events: Sequence[Happening]) -> list[tuple[Happening, str]]:
    """Return the first event of each group and what it says; nothing where the headline reports all of it."""
    groups = by_group(events)
    if len(groups) < 2:
        return []
    more = [f" and {len(group) - 1:,} more after it" if group[1:] else "" for group in groups]
    return [(group[0], group[0].sentence + text) for group, text in zip(groups, more, strict=True)]


def facts(run: Run) -> str:
    """Return the run in a line: its steps, task and trainer, precision, optimizer and rate, and its name."""
    dtype, optimizer, rate = run.setting("dtype"), run.setting("optimizer"), run.setting("lr")
    shown_rate = f"lr {figure(rate)}" if isinstance(rate, float | int) else ""
    trained = " ".join(filter(None, (str(optimizer or ""), shown_rate)))
    known = (step_range(run), _kind(context_of(run)), str(dtype or ""), trained, ranks(run))
    return " · ".join(filter(None, (*known, run.name)))


def ranks(run: Run) -> str:
    """Return how many ranks logged the run; empty where the log names none."""
    return f"{len(run.ranks)} ranks" if run.ranks else ""


def step_range(run: Run) -> str:
    """Return the steps of a run, as `steps 0-999`; empty where it has none."""
    first, planned, total = first_step(run), run.setting("max_steps"), ""
    if first is None:
        return ""
    if isinstance(planned, int) and run.last_step is not None and planned > run.last_step + 1:
        total = f" of {planned:,}"
    return f"{run.unit}s {first:,}-{run.last_step:,}{total}"


def first_step(run: Run) -> int | None:
    """Return the first step of the loss, of all series where there is no loss; None where nothing was logged."""
    loss = run.get("loss")
    logged = list(run.series.values()) if loss is None else [loss]
    return min((int(series.steps[0]) for series in logged if len(series)), default=None)


def logged_at(run: Run, step: int) -> datetime | None:
    """Return when a step was logged; None where the log has no calendar time at that step."""
    series = run.get("wall_time")
    if series is None:
        return None
    times = series.values[row_of(series.steps, step)]
    if len(times) and CALENDAR[0] <= times[0] < CALENDAR[1]:
        return datetime.fromtimestamp(float(times[0]), UTC)
    return None


def missing(run: Run) -> list[tuple[str, str]]:
    """Return the metrics that most questions need and this run lacks, each with how to log it."""
    names = {name.partition("/")[0] for name in run.series}
    if run.setting("dtype") in UNSCALED:
        names.add("loss_scale")
    logs = {metric.name: metric.log for metric in all_metrics()}
    return [(name, logs[name]) for name in WANTED if name not in names]


def identity(context: Context) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each part of a run that is known, its value, and how it is known."""
    for name, part in PARTS.items():
        known: Known[str] = getattr(context, part)
        if known.value is not None:
            yield name, _value(context, part, known.value), _how(known)
    if context.optimizer.value:
        yield "optimizer", context.optimizer.value, _how(context.optimizer)
    if context.outcome.value:
        text = str(context.outcome.value) + (f", {context.better} is better" if context.better else "")
        if context.chance.value is not None:
            text += f"; {context.chance.value:.4g} by chance ({context.chance.why})"
        yield "outcome", text, _how(context.outcome)


def unknown_parts(context: Context) -> list[str]:
    """Return the names of the parts that are not known."""
    parts = {**PARTS, "optimizer": "optimizer"}
    return [name for name, part in parts.items() if getattr(context, part).value is None]


def _kind(context: Context) -> str:
    """Return what is trained and with what, as `PPO · Stable-Baselines3`; empty where neither is known."""
    task, algorithm, trainer = context.task.value, context.algorithm.value, context.framework.value
    what = _algorithm(algorithm) if algorithm else TASKS.get(task or "", task or "")
    return " · ".join(filter(None, (what, framework(trainer).name if trainer else "")))


def _algorithm(name: str) -> str:
    return name.upper() if name.isalnum() else name


def _value(context: Context, part: str, value: str) -> str:
    if part == "framework":
        return framework(value).name
    words, algorithm = TASKS.get(value, value), context.algorithm.value
    if part == "task" and algorithm and algorithm != value:
        return f"{words} ({_algorithm(algorithm)})"
    return words


def _how(known: Known[str]) -> str:
    return f"{known.how}: {known.why}" if known.why else known.how
