"""The JSON of `diagnose --json` and `watch --json` as classes: what each key holds. Their schema is made of them.

Schema 1 only grows: a later version may add keys, and never drops, renames or retypes one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from stabtree.common import extensions
from stabtree.common.files import Input
from stabtree.diagnosis.account import AccountEntry
from stabtree.diagnosis.result import Accepted, LogNext, QuotedRow, WalkedTree
from stabtree.measures.batches import Replay, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = 1
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "What `stabtree diagnose --json` prints, and each line of `watch --json`, schema 1"

Severity = Literal["ok", "note", "warning", "critical"]
Verdict = Literal["ok", "note", "warning", "critical", "unknown"]
VERDICTS = get_args(Verdict)
WRITTEN = (Accepted, AccountEntry, Input, LogNext, QuotedRow, Replay, WalkedTree, Watch)
"""Values that are written as they are: their own attributes are the keys."""
CauseStates = Literal["confirmed", "likely", "possible", "ruled_out"]
Scalar = str | float | bool | list[int] | None
Take = Literal["before", "unless over", "low", "best", "newest"]
How = Literal["configured", "logged", "inferred", "unknown"]
Version = Annotated[Literal[1], "The number of this contract."]


class JsonPart(msgspec.Struct):
    """A part of a document: an object that has all of its keys, and no others."""


class Tool(JsonPart):
    """What judged it."""

    name: Annotated[str, "stabtree."]
    version: Annotated[str, "Its version."]


class ConfigEntry(JsonPart):
    """A setting."""

    value: Annotated[Scalar, "A value; null for a number that is not finite."]
    source: Annotated[str, "Where it was read."]


class RunPart(JsonPart):
    """The run."""

    name: Annotated[str, "Its name."]
    first_step: Annotated[int | None, "The first step at which anything was logged."]
    last_step: Annotated[int | None, "The last one."]
    rows: Annotated[int, "How many rows were read."]
    step_unit: Annotated[Literal["step", "epoch", "row"], "What its steps count."]
    metrics: Annotated[list[str], "The names of its series."]
    config: Annotated[dict[str, ConfigEntry], "Its configuration."]
    inputs: Annotated[list[Input], "The files that it was read from."]


class ContextEntry(JsonPart):
    """A part of who the run is."""

    value: Annotated[str | float | None, "The value; null where it is not known."]
    how: Annotated[How, "How it is known."]
    why: Annotated[str, "The evidence in a few words; empty where it is not known."]


class OutcomeEntry(ContextEntry):
    """What says how well the run does."""

    better: Annotated[Literal["lower", "higher"] | None, "Where the outcome goes while the run does well."]


class ContextPart(JsonPart):
    """Who the run is."""

    task: Annotated[ContextEntry, "What it trains."]
    algorithm: Annotated[ContextEntry, "The algorithm, of tasks that have several."]
    phase: Annotated[ContextEntry, "Where its weights began."]
    framework: Annotated[ContextEntry, "The trainer."]
    precision: Annotated[ContextEntry, "The number format."]
    optimizer: Annotated[ContextEntry, "The optimizer."]
    planned_steps: Annotated[ContextEntry, "The optimizer steps that were planned."]
    peak_lr: Annotated[ContextEntry, "The highest learning rate; null where it is not known."]
    classes: Annotated[ContextEntry, "The classes, or tokens, that one guess is among."]
    outcome: Annotated[OutcomeEntry, "The metric that says how well the run does."]
    chance: Annotated[ContextEntry, "The outcome of an uninformed guess; null where it is not known."]


class RulesPart(JsonPart):
    """By what it was judged."""

    version: Annotated[str, "The version of the path's tree; empty where its file states none."]
    sha256: Annotated[str, "The hash of all trees, their words and numbers, before `set` counts."]
    literal: Annotated[bool, "Whether --literal was given."]
    set: Annotated[dict[str, dict[str, Scalar]], "What --set gave, by node and parameter."]


class EvidencePart(JsonPart):
    """One thing that was seen."""

    text: Annotated[str, "What was seen, in words."]
    metric: Annotated[str | None, "The series that it was seen in."]
    steps: Annotated[list[int], "Where, at most a handful of steps."]
    observed: Annotated[float | None, "The number that was compared; null where it is not finite or none."]
    threshold: Annotated[float | None, "What it was compared with."]


class VisitPart(JsonPart):
    """A question of a walk and its answer."""

    id: Annotated[str, "The question's id."]
    ask: Annotated[str, "The question."]
    answer: Annotated[str, "yes, no, unknown, or a label such as fp16."]
    by: Annotated[Literal["data", "person"], "Who gave the answer."]
    evidence: Annotated[list[EvidencePart], "What decided it; empty where it is unknown."]
    reason: Annotated[str, "Why it is unknown; empty where it is not."]
    strength: Annotated[float | None, "How far it is from the limit, in doublings; null where it has no degrees."]


class EndPart(JsonPart):
    """The leaf at the end of the path."""

    id: Annotated[str, "The leaf."]
    of: Annotated[str, "The node of the source document that it belongs to."]
    title: Annotated[str, "The leaf in a few words."]


class EventPart(JsonPart):
    """An event."""

    step: Annotated[int, "When."]
    metric: Annotated[str, "The series."]
    text: Annotated[str, "What it did."]
    first: Annotated[bool, "Whether it alone moved before all others."]


class CausePart(JsonPart):
    """A cause."""

    id: Annotated[str, "Its id."]
    kind: Annotated[str, "The wider cause that it is a case of; its own id where it is none."]
    state: Annotated[CauseStates, "How sure it is."]
    text: Annotated[str, "The cause."]
    evidence: Annotated[list[EvidencePart], "What speaks for it; of one that is ruled out, against it."]
    p: Annotated[float | None, "How likely it is, of all causes that explain such a finding."]


class BranchPart(JsonPart):
    """What may come out of a test."""

    answer: Annotated[str, "What may come out."]
    do: Annotated[str, "What to do then."]


class ActionPart(JsonPart):
    """Something to do."""

    id: Annotated[str, "Its id; of what only the finding's own document says, the leaf's."]
    kind: Annotated[str, "The wider action that it is a case of; its own id where it is none."]
    text: Annotated[str, "What to do, with this run's numbers."]
    cost: Annotated[Literal["glance", "minutes", "hour", "rerun"], "What it costs."]
    why: Annotated[str, "What in the log speaks for it; may be empty."]
    branches: Annotated[list[BranchPart], "Of a test, what may come out of it; else empty."]


class RestartPart(JsonPart):
    """A restart."""

    checkpoint_step: Annotated[int | None, "The checkpoint to take; null where there is none, or none is known."]
    up_to_step: Annotated[int | None, "Any checkpoint up to this step will do; the best one is nearest to it."]
    checkpoint_every: Annotated[int, "Steps between checkpoints; 0 where that is not known."]
    assumed: Annotated[bool, "Whether nothing says where the checkpoints are."]
    lost_steps: Annotated[int, "Steps that are run again."]
    fresh_step: Annotated[int | None, "A newer checkpoint that was passed over: it may hold what broke the run."]
    path: Annotated[str | None, "Where the checkpoint is; null where it was not seen."]
    before_step: Annotated[int, "The step of the trouble that it must be older than; of the best one its own."]
    lost_hours: Annotated[float | None, "Hours that went into them; null where no time was logged."]
    take: Annotated[Take, "Which checkpoint is advised."]
    unit: Annotated[Literal["step", "epoch", "row"], "What all these steps count."]


class RelatedPart(JsonPart):
    """A leaf that was found beside another."""

    id: Annotated[str, "The leaf."]
    title: Annotated[str, "The leaf in a few words."]
    severity: Annotated[Severity, "How bad it is."]
    onset_step: Annotated[int | None, "The first step of what was found."]


class FindingPart(JsonPart):
    """Something that was found: one event."""

    id: Annotated[str, "The leaf."]
    of: Annotated[str, "The node of the source document that the leaf belongs to."]
    kind: Annotated[str, "What kind of finding it is."]
    section: Annotated[str, "The section whose walk ended there."]
    severity: Annotated[Severity, "How bad it is."]
    title: Annotated[str, "The leaf in a few words."]
    why: Annotated[str, "What it means."]
    onset_step: Annotated[int | None, "The first step of what was found."]
    onset_time: Annotated[str | None, "When that was, in UTC as of ISO 8601; null where the log has no date."]
    last_good_step: Annotated[int | None, "The last logged step at which everything was at its level."]
    evidence: Annotated[list[EvidencePart], "What the questions on the way saw."]
    precursors: Annotated[list[EvidencePart], "What had left its normal course before."]
    causes: Annotated[list[CausePart], "The causes that are told, likeliest first; one that is ruled out last."]
    undecided: Annotated[bool, "Whether the log does not tell its causes apart."]
    actions: Annotated[list[ActionPart], "What to do, the most helpful first."]
    log_next: Annotated[list[str], "What was not logged and would tell the causes apart."]
    restart: Annotated[RestartPart | None, "Where to restart; null where the leaf calls for none."]
    see: Annotated[list[str], "Where to read on."]
    page: Annotated[str | None, "The address of a page on the leaf; null where its tree names none."]
    own_onset_step: Annotated[int | None, "Where its own leaf begins; the event may have begun earlier."]
    ignored: Annotated[bool, "Whether it is left out of the verdict: its leaf is ignored, or it is accepted."]
    accepted: Annotated[Accepted | None, "Why it is accepted; null where it is not."]
    also: Annotated[list[RelatedPart], "Other findings of the same event."]
    consequences: Annotated[list[RelatedPart], "Findings that followed from it."]
    rows: Annotated[list[QuotedRow], "The rows that show it, by step."]
    open: Annotated[bool, "Whether it lasts to the end of the log."]
    p: Annotated[float | None, "How likely an engineer would call the run faulty; null where not fitted."]


class NearPart(JsonPart):
    """A fact that came near to an alarm."""

    id: Annotated[str, "The question's id."]
    leaf: Annotated[str, "The leaf that it would have led to."]
    p: Annotated[float | None, "How likely an engineer would call the run faulty in this way."]
    strength: Annotated[float | None, "How far it is from the limit, in doublings; below 0."]
    text: Annotated[str, "What was seen, in words."]


class MissingPart(JsonPart):
    """A question that the log could not answer."""

    id: Annotated[str, "The question's id."]
    reason: Annotated[str, "Why it has no answer."]
    metric: Annotated[list[str], "What the run lacks for it; empty where nothing to log would help."]
    log: Annotated[str, "How to log it."]


class DiagnosisPart(JsonPart):
    """A run that was judged."""

    schema: Version
    tool: Annotated[Tool, "What judged it."]
    run: Annotated[RunPart, "The run."]
    context: Annotated[ContextPart, "Who the run is."]
    tree: Annotated[str, "The name of the tree that the path is of."]
    rules: Annotated[RulesPart, "By what it was judged."]
    verdict: Annotated[Verdict, "The worst severity; unknown where what must be judged was not."]
    head: Annotated[list[str], "What was found; then how the run ended or what state the model was in, if known."]
    misread: Annotated[str, "Why what was read of the log does not represent the run; empty where it does."]
    trees: Annotated[list[WalkedTree], "The trees that were put together."]
    path: Annotated[list[VisitPart], "The source document's own walk, up to its first leaf."]
    end: Annotated[EndPart, "The leaf at the end of the path."]
    findings: Annotated[list[FindingPart], "What was found: what leads, then the others, worst first."]
    timeline: Annotated[list[EventPart], "What happened around the onset of the first finding."]
    further: Annotated[list[list[VisitPart]], "The walks of the later sections, past the first leaf."]
    near: Annotated[list[NearPart], "What came near to an alarm without reaching it, likeliest first."]
    missing: Annotated[list[MissingPart], "Questions that the log could not answer."]
    log_next: Annotated[list[LogNext], "What to log next time, the most useful first."]
    notes: Annotated[list[str], "Notes on answers, on accepted findings, and on all that reading the log changed."]
    account: Annotated[list[AccountEntry], "What became of all that the files hold."]
    monitor: Annotated[Replay | None, "What the NaN monitor would have done; null where the loss is finite."]


class JudgedRun(DiagnosisPart):
    """A run that was judged, as alone."""

    source: Annotated[str, "The run's path as it was named, with the run's name where it holds several."]


class ErrorPart(JsonPart):
    """Something that the user can fix."""

    problem: Annotated[str, "What is wrong."]
    where: Annotated[str, "The file, line or option that it is about; may be empty."]
    hint: Annotated[str, "What to do next; may be empty."]


class Failure(JsonPart):
    """Nothing could be read; the exit code is 2."""

    schema: Version
    error: Annotated[ErrorPart, "Something that the user can fix."]


class UnreadRun(Failure):
    """A log that can't be read."""

    source: Annotated[str, "The run's path as it was named, with the run's name where it holds several."]
    path: Annotated[str, "The same."]


class RunsPart(JsonPart):
    """Several runs."""

    schema: Version
    verdict: Annotated[Verdict, "The worst of all; unknown also where that is a log that can't be read."]
    runs: Annotated[list[Any], "The runs, in the order of their paths."]
    varied: Annotated[list[dict[str, str]], "The settings that differ, each `key` with how it splits the runs."]


def schema() -> dict[str, Any]:
    """Return the schema as plain values, draft 2020-12."""
    events: tuple[type, ...] = extensions.function("watch_contract")()
    documents = (DiagnosisPart, RunsPart, Failure, *events)
    kinds = (*documents, JudgedRun, UnreadRun)
    refs, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    # One of two kinds of objects, which the library can't tell apart without a tag.
    parts["RunsPart"]["properties"]["runs"]["items"] = {"anyOf": list(refs[-2:])}
    every: tuple[type[msgspec.Struct], ...] = (*WRITTEN, *_all_parts(JsonPart))
    for kind in every:
        part = parts.get(kind.__name__, {})
        keys: dict[str, Any] = part.get("properties", {})
        part |= {"required": [*keys], "additionalProperties": False}  # each is always written, and nothing else
        hints = get_type_hints(kind, include_extras=True)
        for field in msgspec.structs.fields(kind):
            if held := keys.get(field.encode_name):
                held["description"] = hints[field.name].__metadata__[0]
                held.pop("default", None)
    named = {_key(name): part for name, part in parts.items()}  # `finding_event` of the class `FindingEvent`
    whole = {"$schema": DRAFT, "title": TITLE, "anyOf": refs[: len(documents)], "$defs": named}
    text = json.dumps(whole)
    plain: dict[str, Any] = json.loads(re.sub(r"(?<=#/\$defs/)\w+", lambda found: _key(found[0]), text))
    return plain


def _all_parts(kind: type[JsonPart]) -> Iterator[type[JsonPart]]:
    """Yield a kind of part and all that are made of it, those of tools too."""
    yield kind
    for inner in kind.__subclasses__():
        yield from _all_parts(inner)


def _key(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Part")).lower()
