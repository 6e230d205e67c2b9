"""A diagnosis as JSON, schema 1. What each key holds is described in `stabtree.report.contract`.

Steps are integers, a number that is not finite is null, and within a schema number keys are only added.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.files import Input
from stabtree.common.lazy import np
from stabtree.common.text import masked
from stabtree.context.find import context_of
from stabtree.context.model import as_dict
from stabtree.diagnosis.account import account, unexplained
from stabtree.report import contract
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.words import logged_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.answer import Evidence
    from stabtree.common.errors import StabtreeError
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Decision, Diagnosis, Incident, JudgedCause, Visit
    from stabtree.facts.batches import Replay
    from stabtree.run import Run
    from stabtree.tree.model import Tree

_HASHED: deque[tuple[Tree, str]] = deque(maxlen=8)
_HIDDEN = re.compile(
    "(?<=#)#|[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)  # controls, and what turns text around
_Part = TypeVar("_Part", bound=contract.JsonPart)


def written(value: Any, indent: int | None = 2) -> str:
    """Return plain values as ASCII JSON with a final newline, in which no service sees a command."""
    return inert(json.dumps(value, indent=indent, allow_nan=False)) + "\n"


def inert(text: str) -> str:
    """Return JSON with the same values, in which no service sees a command, and a terminal shows nothing hidden."""
    # `##[...]` and `##vso[...]` are commands to GitHub and Azure anywhere in a line.
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float | None) -> float | None:
    """Return a number fit for JSON: None where it is not finite."""
    return float(value) if value is not None and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Return a value fit for JSON; computed ones are often numbers of numpy."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return number(value)
    return str(value) if isinstance(value, StrEnum) else value


def picked(item: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a value by name, fit for JSON."""
    return {name: plain(getattr(item, name)) for name in names}


def taken(kind: type[_Part], item: object, **given: Any) -> _Part:
    """Return a part of the document: what is given, and the other keys from the attributes of the same name."""
    names = kind.__struct_fields__
    return kind(**{name: given[name] if name in given else plain(getattr(item, name)) for name in names})


def to_json(diagnosis: Diagnosis, _options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the diagnosis as indented ASCII JSON with a final newline: no encoding and no terminal can garble it."""
    return written(to_dict(diagnosis))


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as plain values."""
    run = diagnosis.run
    ignored = [_finding(finding, run, ignored=True) for finding in diagnosis.ignored]
    answers, accepted = diagnosis.answer_notes, diagnosis.acceptance_notes
    document = taken(
        contract.DiagnosisPart,
        diagnosis,
        schema=contract.SCHEMA,
        tool=contract.Tool("stabtree", __version__),
        run=_run(run),
        context=as_dict(context_of(run)),
        tree=diagnosis.tree.name,
        rules=_rules(diagnosis),
        trees=[taken(contract.TreePart, tree) for tree in diagnosis.trees],
        path=list(map(_visit, diagnosis.path)),
        end=taken(contract.EndPart, diagnosis.end),
        findings=[*(_finding(finding, run) for finding in diagnosis.findings), *ignored],
        timeline=[taken(contract.EventPart, event) for event in diagnosis.timeline],
        further=[list(map(_visit, visits)) for visits in diagnosis.further],
        near=[
            taken(
                contract.NearPart,
                near,
                id=near.visit.question.id,
                leaf=near.leaf.id,
                text=near.visit.answer.evidence[0].text,
            )
            for near in diagnosis.near
        ],
        missing=[taken(contract.MissingPart, miss, metric=list(miss.metrics)) for miss in diagnosis.missing],
        log_next=[taken(contract.LogNextPart, item, metric=list(item.names)) for item in diagnosis.log_next],
        notes=[*answers, *accepted, *unexplained(run), *diagnosis.setting_notes, *run.notes],
        account=[taken(contract.AccountPart, entry) for entry in account(run)],
        monitor=_monitor(diagnosis.monitor),
    )
    return _as_dict(document)


def _as_dict(part: contract.JsonPart) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(part)
    return found


def error(problem: StabtreeError) -> dict[str, Any]:
    """Return an error that the user can fix, as plain values."""
    texts = [masked(text) for text in (problem.problem, problem.where, problem.hint)]
    return _as_dict(contract.Failure(1, contract.ErrorPart(*texts)))


def visit_dict(visit: Visit) -> dict[str, Any]:
    """Return a question of a walk and its answer as plain values."""
    return _as_dict(_visit(visit))


def finding_dict(finding: Incident, run: Run) -> dict[str, Any]:
    """Return a finding as plain values."""
    return _as_dict(_finding(finding, run))


def _run(run: Run) -> contract.RunPart:
    inputs = run.inputs or [Input(source.path, reason="not asked for") for source in run.sources]
    return taken(
        contract.RunPart,
        run,
        first_step=min((int(series.steps[0]) for series in run.series.values() if len(series)), default=None),
        rows=sum(source.rows for source in run.sources),
        metrics=sorted(run.series),
        config={key: taken(contract.ConfigEntry, item) for key, item in run.config.items()},
        inputs=[taken(contract.InputFile, item, bytes=item.size) for item in inputs],
    )


def _rules(diagnosis: Diagnosis) -> contract.RulesPart:
    """Return the rules by which it was judged, so that the same can be asked again."""
    given = diagnosis.overrides.items()
    return contract.RulesPart(
        version=diagnosis.tree.version,
        sha256=fingerprint(diagnosis.tree),
        literal=diagnosis.literal,
        set={id_: {key: plain(value) for key, value in params.items()} for id_, params in given},
    )


def _evidence(items: Sequence[Evidence]) -> list[contract.EvidencePart]:
    return [
        contract.EvidencePart(
            item.text,
            item.metric or None,
            [int(step) for step in item.steps],
            number(item.observed),
            number(item.threshold),
        )
        for item in items
    ]


def _visit(visit: Visit) -> contract.VisitPart:
    answer = visit.answer
    return taken(
        contract.VisitPart,
        visit.question,
        answer=answer.verdict,
        by=visit.given_by,
        evidence=_evidence(answer.evidence),
        reason=answer.reason if answer.verdict == UNKNOWN else "",
        strength=answer.strength,
    )


def _finding(finding: Incident, run: Run, *, ignored: bool = False) -> contract.FindingPart:
    """Return a finding; `ignored` says whether it is ignored or accepted."""
    leaf, time = finding.leaf, None
    if finding.onset_step is not None:
        time = logged_at(run, finding.onset_step)
    return taken(
        contract.FindingPart,
        finding,
        id=leaf.id,
        of=leaf.of,
        severity=str(leaf.severity),
        title=leaf.title,
        why=leaf.why,
        onset_time=time.isoformat() if time else None,
        evidence=_evidence(finding.evidence),
        precursors=_evidence(finding.precursors),
        causes=list(map(_cause, finding.causes)),
        first_fixes=[contract.FixPart(fix.text, fix.reason) for fix in finding.first_fixes],
        restart=_restart(finding.restart),
        see=list(leaf.see),
        page=leaf.page or None,
        ignored=ignored,
        accepted=taken(contract.AcceptedPart, finding.accepted) if finding.accepted else None,
        also=list(map(_related, finding.also)),
        consequences=list(map(_related, finding.consequences)),
        rows=[
            taken(contract.RowPart, row, values={metric: plain(value) for metric, value in row.values.items()})
            for row in finding.rows
        ],
        decision=_decision(finding.decision),
    )


def _related(finding: Incident) -> contract.RelatedPart:
    return taken(contract.RelatedPart, finding.leaf, onset_step=finding.onset_step)


def _decision(decision: Decision | None) -> contract.DecisionPart | None:
    if decision is None:
        return None
    branches = [contract.BranchPart(answer, do) for answer, do in decision.branches]
    return taken(contract.DecisionPart, decision, branches=branches)


def _cause(judged: JudgedCause) -> contract.CausePart:
    return taken(
        contract.CausePart,
        judged.cause,
        state=str(judged.state).replace(" ", "_"),
        evidence=_evidence(judged.evidence),
        reason=judged.reason,
        odds=number(judged.odds),
    )


def _restart(restart: Restart | None) -> contract.RestartPart | None:
    if restart is None:
        return None
    path = None if restart.checkpoint_step is None else restart.path or None
    return taken(contract.RestartPart, restart, checkpoint_every=restart.every, path=path)


def _monitor(replay: Replay | None) -> contract.MonitorPart | None:
    if replay is None:
        return None
    norm = taken(contract.WatchPart, replay.grad_norm) if replay.grad_norm else None
    return taken(contract.MonitorPart, replay, loss=taken(contract.WatchPart, replay.loss), grad_norm=norm)


def fingerprint(tree: Tree) -> str:
    """Return the hash of all that a tree says, by which reports name the rules; its version alone changes nothing."""
    for known, hashed in [*_HASHED]:
        if known is tree:
            return hashed
    content = msgspec.json.encode(replace(tree, version=""), order="sorted")
    hashed = hashlib.sha256(content).hexdigest()
    _HASHED.append((tree, hashed))
    return hashed
