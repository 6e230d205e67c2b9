"""The words that every form of the report shares: the headline, who the run is, what to doubt, what was checked."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, YES
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import row_of, rows_upto
from stabtree.common.stats import median
from stabtree.common.text import clean, counting
from stabtree.context.find import context_of
from stabtree.diagnosis.missing import ENDING, ending_questions
from stabtree.frameworks.load import framework
from stabtree.measures.nonfinite import which_terms
from stabtree.measures.registry import finite
from stabtree.metrics.table import all_metrics, by_name
from stabtree.report.page import Tick, clipped, counted
from stabtree.run import UNSCALED
from stabtree.tree.model import BRIEF, Severity, Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context, Known
    from stabtree.diagnosis.result import Diagnosis, Happening, Incident, Visit
    from stabtree.measures.batches import Replay
    from stabtree.report.advice import Action
    from stabtree.run import Run

ENOUGH_ROWS = 20  # with fewer a run is not called healthy
FEW_ROWS = 40  # below that a log has no windows, and may be too short for what must be judged
NOTHING = "Nothing to do"  # how the advice of a leaf begins that needs no action
MAX_BRIEF = 90  # characters: with the words around them two lines of a screen
# These show that something is wrong, and never why.
SYMPTOMS = frozenset({"loss", "eval_loss", "reward", "throughput", "step_time", "wall_time"})
TOO_LITTLE = "Too little was logged to judge this run"
FURTHER = "and further, past the first diagnosis:"
NOTHING_SAID = "Too few rules could be judged by what it says"
# What most questions need, in the order in which it helps.
WANTED = ("grad_norm", "lr", "loss_scale", "eval_loss", "weight_norm", "batch_id")
CALENDAR = (1e9, 4e9)  # seconds since 1970 in the years of training logs; what is less counts from the run's start
PARTS = {"task": "task", "phase": "phase", "trainer": "framework", "precision": "precision", "optimizer": "optimizer"}
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
    """
    if diagnosis.verdict == UNKNOWN:
        return None
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
    events = [event for event in diagnosis.timeline if event.metric == "lr" and event.first]
    seen = [(event.step, event.sentence) for event in events if "lr" not in own]
    for other in diagnosis.findings[1:]:
        symptom = other.metric.partition("/")[0] in SYMPTOMS
        if other.onset_step is not None and other.leaf.severity.is_alarm and not symptom:
            seen.append((other.onset_step, finding_title(other)))
    step, text = min(seen, default=(math.inf, ""))
    if finding.onset_step is not None and step < finding.onset_step:
        return f"Before it, at {finding.unit} {step:,}: {text}"
    return ""


def headline(diagnosis: Diagnosis) -> str:
    """Return what was found and from which step on, as every output says it."""
    if not all_clear(diagnosis) or ignored_problems(diagnosis):
        return step_prefix(main_finding(diagnosis)) + title(diagnosis)
    text = so_far(diagnosis) or "Healthy"
    if notes := [item for item in diagnosis.findings if not item.leaf.unended]:
        text += f" ({counted(len(notes), 'note')})"
    return text


def badge(diagnosis: Diagnosis) -> str:
    """Return the verdict beside the headline: `ok` where all that was found are notes that need no action."""
    return str(Severity.OK if all_clear(diagnosis) else diagnosis.verdict)


def title(diagnosis: Diagnosis) -> str:
    """Return what was found, in a few words, and what is ignored: counted, and the first one named."""
    text = _title(diagnosis)
    if not diagnosis.ignored:
        return text
    first, *others = diagnosis.ignored
    named = f"{ignored_counts(diagnosis)}: {first.leaf.id}{at_step(first)}"
    if others:
        named += f" and {len(others)} more"
    return f"{text} ({named})"


def _title(diagnosis: Diagnosis) -> str:
    """Return the headline without what is ignored."""
    finding, end = main_finding(diagnosis), diagnosis.end.title
    if diagnosis.verdict == UNKNOWN:
        return _not_judged(diagnosis)
    if diagnosis.verdict in (Severity.OK, Severity.NOTE) and ignored_problems(diagnosis):
        return "Nothing else was found"
    if finding:
        text, more = finding_title(finding), len(diagnosis.findings) - 1
        if diagnosis.before_run and more:  # of a configuration none is the cause of another
            text += f" (and {more} more)"
        return text
    if unanswered := [visit.question.id for visit in diagnosis.path if is_unasked(visit)]:
        return f"{end}; not answered: {', '.join(unanswered)}"
    if diagnosis.before_run:
        return f"{end} in {counted(diagnosis.judged, 'rule')}"
    if diagnosis.end.severity is Severity.OK:
        return so_far(diagnosis) or end
    return end


def so_far(diagnosis: Diagnosis) -> str:
    """Say that no fault shows yet in a log that is short, or stops before its planned end; empty of any other."""
    run = diagnosis.run
    if diagnosis.unended is not None:
        return f"No fault so far, {run.reached}"
    rows = max(len(_finite(run, name)) for name in ("loss", "eval_loss", context_of(run).outcome.value or ""))
    if not 0 < rows < ENOUGH_ROWS or diagnosis.before_run or (run.last_step or 0) >= run.planned_step:
        return ""
    return f"No fault so far, {counted(rows, 'row')}"


def _finite(run: Run, name: str) -> Floats:
    """Return the finite values of a series; none where it was not logged."""
    series = run.find(name)
    return np.empty(0) if series is None else finite(series)[1]


def other_half(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return what the headline leaves out, after a word for it: how the run ended, or what state the model was in."""
    main, found = main_finding(diagnosis), diagnosis.findings
    if main is not None and ENDING in main.leaf.events:
        for state in found:
            if state.is_alarm and ENDING not in state.leaf.events:
                return "State: ", step_prefix(state) + finding_title(state)
        moved = progress(diagnosis.run)
        return "State: ", f"no other fault; {moved}" * bool(moved)
    parts = chain.from_iterable(item.parts for item in found)
    end = next((part for part in parts if ENDING in part.leaf.events), None)
    if end is None or (end.leaf.unended and main is None):  # the headline tells it
        return "", ""
    return "Ended: ", finding_title(end)


def progress(run: Run) -> str:
    """Say how the outcome moved up to the end; empty where it has too few rows to tell."""
    name = context_of(run).outcome.value or "loss"
    values = _finite(run, name)
    if len(values) < 2:
        return ""
    moved = f"from {figure(values[0])} to {figure(values[-1])} in {counted(len(values), 'row')}"
    return f"the {name.replace('_', ' ')} went {moved}"


def _not_judged(diagnosis: Diagnosis) -> str:
    """Say what keeps the run from a verdict, and what could be judged."""
    if diagnosis.before_run:
        return NOTHING_SAID
    if diagnosis.misread:
        return f"The log was misread: {diagnosis.misread}"
    how = ending_questions(diagnosis.tree)
    reasons = [fault.reason for fault in diagnosis.faults]
    reasons += [miss.reason for miss in diagnosis.lacking if miss.id in how]
    if reasons:
        return f"Not judged: {reasons[0]}"
    kind = _kind_of_log(diagnosis)
    if not diagnosis.partial:
        return f"{kind}: {TOO_LITTLE[0].lower()}{TOO_LITTLE[1:]}" if kind else TOO_LITTLE
    entries = {item.section.entry: f"§{item.section.id}" for item in diagnosis.sections}
    lacking = [entries.get(item.id, item.id) for item in diagnosis.lacking]
    numbered = [f"§{section.id}" for section in diagnosis.answered if section.id[:1].isdigit()]
    text = TOO_LITTLE
    if judged := [name for name in numbered if name not in lacking]:
        text = f"Nothing wrong in {', '.join(judged)}; {' and '.join(lacking)} not judged"
    return f"{kind}. {text}" if kind else f"{text}: {diagnosis.lacking[0].reason}"


def _kind_of_log(diagnosis: Diagnosis) -> str:
    """Say what is wrong with a log that does not suffice; empty where the reason must say it."""
    run = diagnosis.run
    rows = len(_finite(run, "loss"))
    if not run.series:
        return "No metric in the log"
    if not rows and not run.has("reward"):
        return "No loss in the log"
    if 0 < rows < FEW_ROWS and not any(miss.metrics for miss in diagnosis.lacking):
        return f"Log too short ({counted(rows, 'row')} of loss)"
    return "Only the loss was logged" if len(run.series) == 1 and rows else ""


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
    notes = (item.leaf for item in diagnosis.reached if item.leaf.severity is Severity.NOTE)
    idle = [leaf for leaf in notes if leaf.unended or leaf.fix.startswith(NOTHING)]
    return len(idle) == len(diagnosis.reached) or bool(ignored_problems(diagnosis))


def restart_brief(finding: Incident) -> str:
    """Return which checkpoint to take, in a few words; empty where there is none."""
    restart = finding.restart
    if restart is None or not restart.has_older:
        return ""
    best = restart.take is Take.BEST
    if restart.checkpoint_step is not None:
        return f"{'use' if best else 'restart from'} {restart.checkpoint_step:,}"
    step = f"{restart.up_to_step:,}"
    return f"use a checkpoint near {step}" if best else f"restart from {step} or before"


def ignored_problems(diagnosis: Diagnosis) -> list[Incident]:
    """Return the ignored findings without which the run would not be called healthy."""
    return [item for item in diagnosis.ignored if item.leaf.severity.is_alarm]


def ignored_counts(diagnosis: Diagnosis) -> str:
    """Count the findings that are accepted or ignored, as `2 accepted, 1 ignored`; empty where none is."""
    accepted = sum(item.accepted is not None for item in diagnosis.ignored)
    counts = {"accepted": accepted, "ignored": len(diagnosis.ignored) - accepted}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def accepted_notes(diagnosis: Diagnosis) -> list[str]:
    """Return what is accepted and why, a line each, what that makes of the verdict, and what is out of date."""
    accepted = [(item, item.accepted.text) for item in diagnosis.ignored if item.accepted]
    lines = [f"Accepted: {item.leaf.id}{at_step(item)}: {why}" for item, why in accepted]
    worst = max((item.leaf.severity for item, _ in accepted), key=lambda severity: severity.rank, default=Severity.OK)
    if worst.is_alarm and diagnosis.verdict in (Severity.OK, Severity.NOTE, UNKNOWN):
        lines.append(f"But for what is accepted the verdict would be {worst}.")
    return [*lines, *diagnosis.acceptance_notes]


def because(actions: Iterable[Action]) -> list[str]:
    """Return the reason of each action as a clause; empty where it has none, or the same as the one before it."""
    clauses, last = [], ""
    for action in actions:
        clauses.append(f"because {action.why}" if action.why not in ("", last) else "")
        last = action.why
    return clauses


def is_unasked(visit: Visit) -> bool:
    """Whether it is a question for a person that nobody answered."""
    return not visit.question.test and visit.answer.verdict == UNKNOWN


def answer_word(visit: Visit) -> str:
    """Return the answer as a word."""
    return "not checked" if visit.answer.verdict == UNKNOWN else visit.answer.verdict.replace("_", " ")


def seen(visit: Visit) -> tuple[str, ...]:
    """Return what decided an answer; why there is none."""
    unknown = visit.answer.verdict == UNKNOWN
    return (visit.answer.reason,) if unknown else tuple(item.text for item in visit.answer.evidence)


def ticks(diagnosis: Diagnosis) -> Iterator[tuple[str, Tick]]:
    """Yield the numbered sections of the main tree, and what became of each."""
    visits = chain(diagnosis.path, *diagnosis.further)
    walked = (item.section.id for item in diagnosis.sections if item.walked)
    ids = {  # the last of these that a section is among holds
        Tick.OPEN: chain((visit.question.section for visit in visits), walked),
        Tick.PASSED: (section.id for section in diagnosis.answered),
        Tick.FOUND: sections_found(diagnosis),
    }
    became = {id_: tick for tick, sections in ids.items() for id_ in sections}
    for id_ in (item.section.id for item in diagnosis.sections if item.section.id.isdigit()):
        yield id_, became.get(id_, Tick.SKIPPED)


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
    more = (f" and {len(group) - 1:,} more after it" * bool(group[1:]) for group in groups)
    return [(group[0], group[0].sentence + text) for group, text in zip(groups, more, strict=True)]


def facts(run: Run) -> str:
    """Return the run in a line: its steps, task and trainer, precision, optimizer and rate, and its name."""
    context, optimizer, rate = context_of(run), run.setting("optimizer"), run.setting("lr")
    trained, kind, trainer, ranks = [str(optimizer or "")], context.task.value or "", "", ""
    kind = TASKS.get(kind, kind)
    if isinstance(rate, float | int):
        trained.append(f"lr {figure(rate)}")
    if context.algorithm.value:
        kind = _algorithm(context.algorithm.value)
    if context.framework.value:
        trainer = framework(context.framework.value).name
    if run.ranks:
        ranks = f"{len(run.ranks)} ranks"
    parts = (step_range(run), kind, trainer, str(run.setting("dtype") or ""), " ".join(filter(None, trained)), ranks)
    return " · ".join(filter(None, (*parts, run.name)))


def step_range(run: Run) -> str:
    """Return the steps of a run, as `steps 0-999`; empty where it has none."""
    first, planned, total = run.first_step, run.setting("max_steps"), ""
    if first is None:
        return ""
    if isinstance(planned, int) and run.last_step is not None and planned > run.last_step:
        total = f" of {planned:,}"
    return f"{run.unit}s {first:,}-{run.last_step:,}{total}"


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
    for name, part in {**PARTS, "outcome": "outcome"}.items():
        known: Known[str] = getattr(context, part)
        if known.value is not None:
            how = known.how
            if known.why:
                how += f": {known.why}"
            yield name, _value(context, part, known.value), how


def _value(context: Context, part: str, value: str) -> str:
    """Return the value of a part of a run in words."""
    if part == "outcome":
        if context.better:
            value += f", {context.better} is better"
        if context.chance.value is not None:
            value += f"; {context.chance.value:.4g} by chance ({context.chance.why})"
    elif part == "framework":
        return framework(value).name
    elif part == "task" and (algorithm := context.algorithm.value) not in (None, value):
        return f"{TASKS.get(value, value)} ({_algorithm(algorithm)})"
    return TASKS.get(value, value)


def unknown_parts(context: Context) -> list[str]:
    """Return the names of the parts that are not known."""
    return [name for name, part in PARTS.items() if getattr(context, part).value is None]


def _algorithm(name: str) -> str:
    return name.upper() if name.isalnum() else name


SPIKES = ("Q2.3", "Q2.4")  # the nodes of a spike, which the loss came back from or not
WHICH_NAN = "Q1.4"  # the node of a loss that is not finite
RISES = "Q4.5"  # the node of a rise that nothing explains
MIN_ROWS = 3  # that make a level
ROWS_OF_END = 5  # whose middle is where a series ends
NAMES = {"lr": "learning rate", "eval_quality": "held-out quality", "grad_norm": "gradient norm"}


def sentences(*texts: str) -> str:
    """Return clauses as sentences; empty ones are left out."""
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in texts if text)


def plainly(run: Run, finding: Incident) -> str:
    """Return what must be known of a finding beside its leaf: whether it is over, and what followed; may be empty."""
    texts = [_outlook(run, finding) or doubts(run, finding)]
    followed = [f"{item.leaf.title} ({item.unit} {item.onset_step:,})" for item in finding.consequences]
    if followed:
        texts.append(f"What followed: {'; '.join(followed)}.")
    return " ".join(filter(None, texts))


def _outlook(run: Run, finding: Incident) -> str:
    """Return which part broke first, or whether a loss came back; empty of a finding that neither is said of."""
    node, onset = finding.leaf.of, finding.onset_step
    if onset is None:
        return ""
    if node == WHICH_NAN:
        return sentences(which_terms(run, onset))
    if node in SPIKES:
        return sentences(ended(run, finding))
    if node == RISES and context_of(run).outcome.value != finding.metric:
        return sentences(progress(run))
    return ""


def ended(run: Run, finding: Incident) -> str:
    """Say where the series of a finding was at its last good step, and where it ends; empty where it has no such."""
    series, good = run.find(finding.metric), finding.last_good_step
    if series is None or good is None or finding.turns:
        return ""
    steps, values = finite(series)
    before, after = values[: rows_upto(steps, good)], values[rows_upto(steps, good) :]
    if not len(before) or len(after) < ROWS_OF_END:
        return ""
    was, ends = figure(median(before[-ROWS_OF_END:])), figure(median(after[-ROWS_OF_END:]))
    return f"{named(finding.metric)} was {was} before, and ends at {ends}" * (was != ends)


def named(metric: str) -> str:
    """Return a series as a sentence calls it: one that nobody knows by the name that it has."""
    family, _, part = metric.partition("/")
    if family not in by_name():
        return f"`{clean(metric)}`"
    return f"the {NAMES.get(family, family.replace('_', ' '))}" + f" of `{clean(part)}`" * bool(part)


def doubts(run: Run, finding: Incident) -> str:
    """Say why the lowest eval loss may not be the best of a run; empty where nothing speaks against it."""
    values = _finite(run, "eval_loss")
    if finding.leaf.take is not Take.BEST or len(values) < MIN_ROWS:
        return ""
    chance, texts, lowest, at = context_of(run).chance, [], float(values.min()), int(values.argmin())
    rise = median(values[-max(MIN_ROWS, len(values) // 3) :]) - lowest
    swing = float(np.abs(np.diff(values[at:])).max(initial=0.0))
    if at == 0:
        texts.append("The eval loss is lowest at its very first evaluation: it never got better.")
    elif swing > rise:
        change = f"swings by up to {figure(swing)} between evaluations; its final rise is {figure(rise)}"
        texts.append(f"The eval loss {change}.")
    if chance.value is not None and context_of(run).better == "lower" and lowest >= chance.value:
        texts.append(f"It never was below {chance.value:.3g}, the loss of a guess.")
    return " ".join(texts)


def monitor_sentences(replay: Replay, unit: str) -> list[str]:
    """Return what the NaN monitor would have done over a log of such units, the most important sentence first."""
    loss, most, norm = replay.loss, replay.max_consecutive, replay.grad_norm
    stopped = f"would not have stopped the run: never {most} rows in a row without a finite loss"
    if loss.stop_step is not None:
        where = f"at step {loss.stop_step:,}, after {most} rows in a row without a finite loss"
        stopped = f"would have stopped the run {where}; {_after_stop(replay)}"
    good = "no row was good before"
    if loss.last_good is not None and loss.last_good_step is not None:
        good = f"last good loss {figure(loss.last_good, 4)} at step {loss.last_good_step:,}"
    rows = f"{counted(loss.total, 'row')} without a finite loss, from step {loss.first_step:,} on"
    texts = [stopped, f"{rows}, at most {loss.longest:,} in a row; {good}"]
    if norm and norm.stop_step is not None and norm.stop_step < (loss.stop_step or math.inf):
        begins = f"grad_norm is not finite from step {norm.first_step:,} on"
        texts.append(f"{begins}: check_gradients would have stopped the run at step {norm.stop_step:,}")
    if replay.every > 1:
        counts = "inside the training loop it counts steps, and stops after"
        texts.append(f"counted in rows, logged every {replay.every:,} steps; {counts} {most} of them")
    return [counting(text, unit) for text in texts]


def _after_stop(replay: Replay) -> str:
    """Say what came after the step at which the monitor would have stopped the run."""
    if replay.loss.returned_step is not None:
        return f"the loss came back for good at step {replay.loss.returned_step:,}"
    if replay.steps_in_vain:
        return f"{counted(replay.steps_in_vain, 'step')} after that ran in vain"
    return "the log ends there"
