"""A diagnosis as JSON, schema 1. What each key holds is described in `stabtree.report.contract`.

Steps are integers, a number that is not finite is null, and within a schema number keys are only added.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

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
from stabtree.report.advice import do_now
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.words import headline, logged_at, other_half

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.errors import StabtreeError
    from stabtree.diagnosis.result import Diagnosis, Incident
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


def plain(value: Any) -> Any:
    """Return a value fit for JSON: a number of numpy as Python's, None for one that is not finite."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, StrEnum) else value


def picked(item: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a value by name, fit for JSON."""
    return {name: plain(getattr(item, name)) for name in names}


@cache
def _parts(kind: type[contract.JsonPart]) -> dict[str, Any]:
    """Return the keys of a part that hold parts or lists of parts, each with the kind of these."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        kinds = (part for part in (hint, *get_args(hint)) if isinstance(part, type))
        found[name] = next((part for part in kinds if issubclass(part, contract.JsonPart)), None)
    return found


def _fit(part: Any, value: Any) -> Any:
    """Return a value fit for JSON; of a kind of part, a part or a list of parts made of it."""
    if part is None or value is None or isinstance(value, dict | contract.JsonPart):
        return plain(value)
    if isinstance(value, Sequence) and not hasattr(value, "_fields"):  # a named tuple is one thing
        return [item if isinstance(item, contract.JsonPart) else taken(part, item) for item in value]
    return taken(part, value)


def taken(kind: type[_Part], item: Any, /, **given: Any) -> _Part:
    """Return a part of the document: what is given, and the other keys from the attributes of the same name."""
    given = {**(OF_OTHER_NAMES[kind](item) if kind in OF_OTHER_NAMES else {}), **given}
    parts = _parts(kind)
    keys = ((name, given[name] if name in given else getattr(item, name)) for name in kind.__struct_fields__)
    return kind(**{name: _fit(parts.get(name), value) for name, value in keys})


OF_OTHER_NAMES: dict[type[contract.JsonPart], Callable[[Any], dict[str, Any]]] = {
    contract.EvidencePart: lambda item: {
        "metric": item.metric or None,
        "steps": [int(step) for step in item.steps],
        "observed": plain(item.observed),
        "threshold": plain(item.threshold),
    },
    contract.VisitPart: lambda visit: {
        "id": visit.question.id,
        "ask": visit.question.ask,
        "answer": visit.answer.verdict,
        "by": visit.given_by,
        "evidence": visit.answer.evidence,
        "reason": visit.answer.reason if visit.answer.verdict == UNKNOWN else "",
        "strength": visit.answer.strength,
    },
    contract.NearPart: lambda near: {
        "id": near.visit.question.id,
        "leaf": near.leaf.id,
        "text": near.visit.answer.evidence[0].text,
    },
    contract.CausePart: lambda judged: {
        "id": judged.cause.id,
        "kind": judged.cause.wider,
        "text": judged.cause.says,
        "state": str(judged.state).replace(" ", "_"),
        "p": plain(judged.p),
    },
    contract.ActionPart: lambda action: {
        "branches": [contract.BranchPart(answer, do) for answer, do in action.branches],
    },
    contract.RelatedPart: lambda finding: {
        "id": finding.leaf.id,
        "title": finding.leaf.title,
        "severity": finding.leaf.severity,
    },
    contract.RestartPart: lambda restart: {
        "checkpoint_every": restart.every,
        "path": None if restart.checkpoint_step is None else restart.path or None,
    },
    contract.MissingPart: lambda miss: {"metric": miss.metrics},
}
"""What the attributes of a part are made of where its keys have other names."""


def to_json(diagnosis: Diagnosis, _options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the diagnosis as indented ASCII JSON with a final newline: no encoding and no terminal can garble it."""
    return written(to_dict(diagnosis))


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as plain values."""
    run, tree = diagnosis.run, diagnosis.tree
    ignored = [_finding(finding, run, ignored=True) for finding in diagnosis.ignored]
    overrides = {id_: {key: plain(value) for key, value in given.items()} for id_, given in diagnosis.overrides.items()}
    notes = (diagnosis.answer_notes, diagnosis.acceptance_notes, unexplained(run), diagnosis.setting_notes, run.notes)
    document = taken(
        contract.DiagnosisPart,
        diagnosis,
        schema=contract.SCHEMA,
        tool=contract.Tool("stabtree", __version__),
        run=taken(
            contract.RunPart,
            run,
            rows=sum(source.rows for source in run.sources),
            step_unit=run.unit,
            metrics=sorted(run.series),
            config={key: taken(contract.ConfigEntry, item) for key, item in run.config.items()},
            inputs=run.inputs or [Input(source.path, reason="not asked for") for source in run.sources],
        ),
        context=as_dict(context_of(run)),
        head=list(filter(None, (headline(diagnosis), "".join(other_half(diagnosis))))),
        tree=tree.name,
        # By which the same can be asked again.
        rules=contract.RulesPart(tree.version, fingerprint(tree), diagnosis.literal, overrides),
        findings=[*(_finding(finding, run) for finding in diagnosis.findings), *ignored],
        further=[[taken(contract.VisitPart, visit) for visit in visits] for visits in diagnosis.further],
        notes=list(chain.from_iterable(notes)),
        account=account(run),
    )
    return _as_dict(document)


def _as_dict(part: contract.JsonPart) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(part)
    return found


def error(problem: StabtreeError) -> dict[str, Any]:
    """Return an error that the user can fix, as plain values."""
    texts = [masked(text) for text in (problem.problem, problem.where, problem.hint)]
    return _as_dict(contract.Failure(1, contract.ErrorPart(*texts)))


def finding_dict(finding: Incident, run: Run) -> dict[str, Any]:
    """Return a finding as plain values."""
    return _as_dict(_finding(finding, run))


def _finding(finding: Incident, run: Run, *, ignored: bool = False) -> contract.FindingPart:
    """Return a finding; `ignored` says whether it is ignored or accepted."""
    leaf, time = finding.leaf, None
    if finding.onset_step is not None:
        time = logged_at(run, finding.onset_step)
    return taken(
        contract.FindingPart,
        finding,
        **picked(leaf, "id", "of", "kind", "severity", "title", "why", "see"),
        actions=do_now(finding),
        onset_time=time.isoformat() if time else None,
        page=leaf.page or None,
        ignored=ignored,
    )


def fingerprint(tree: Tree) -> str:
    """Return the hash of all that a tree says, by which reports name the rules; its version alone changes nothing."""
    for known, hashed in [*_HASHED]:
        if known is tree:
            return hashed
    content = msgspec.json.encode(replace(tree, version=""), order="sorted")
    hashed = hashlib.sha256(content).hexdigest()
    _HASHED.append((tree, hashed))
    return hashed
