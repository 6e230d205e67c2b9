"""A diagnosis as JSON, schema 1. What each key holds is said in `stabtree.render.data.contract`.

Steps are integers, a number that is not finite is null, and within a schema number keys are only added.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.lazy import np
from stabtree.render.look import LOOK, Look
from stabtree.render.report.words import clock
from stabtree.run import Input

if TYPE_CHECKING:
    from stabtree.common.answer import Evidence
    from stabtree.common.errors import StabtreeError
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.diagnosis.visits import Visit
    from stabtree.diagnosis.why.model import Flip, Stage, WhyNot
    from stabtree.facts.replay import Replay, Watch
    from stabtree.run import Run
    from stabtree.tree.model import Tree

SCHEMA = 1
_HIDDEN = re.compile(
    "(?<=#)#|[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)  # controls, and what turns text around


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "stabtree", "version": __version__},
        "run": _run(diagnosis.run),
        "tree": diagnosis.tree.name,
        "rules": _rules(diagnosis),
        "verdict": str(diagnosis.verdict),
        "misread": diagnosis.misread,
        "trees": [
            {"name": tree.name, "title": tree.title, "walked": tree.walked, "why": tree.why} for tree in diagnosis.trees
        ],
        "path": [_visit(visit) for visit in diagnosis.path],
        "end": {"id": diagnosis.end.id, "of": diagnosis.end.of, "title": diagnosis.end.title},
        "findings": [
            *(finding_dict(finding, diagnosis.run) for finding in diagnosis.findings),
            *(finding_dict(finding, diagnosis.run, ignored=True) for finding in diagnosis.ignored),
        ],
        "timeline": [
            {"step": event.step, "metric": event.metric, "text": event.text, "first": event.first}
            for event in diagnosis.timeline
        ],
        "further": [[_visit(visit) for visit in visits] for visits in diagnosis.further],
        "missing": [
            {"id": miss.id, "reason": miss.reason, "metric": list(miss.metrics), "log": miss.log}
            for miss in diagnosis.missing
        ],
        "log_next": [
            {"metric": list(item.names), "log": item.log, "unlocks": list(item.unlocks), "decides": list(item.decides)}
            for item in diagnosis.log_next
        ],
        "notes": [*diagnosis.said, *diagnosis.outdated, *diagnosis.run.notes],
        "monitor": _monitor(diagnosis.monitor) if diagnosis.monitor else None,
        "why_not": _why_not(diagnosis.why_not) if diagnosis.why_not else None,
    }


def error(problem: StabtreeError) -> dict[str, Any]:
    """Something that the user can mend, as plain values."""
    return {"schema": SCHEMA, "error": {"problem": problem.problem, "where": problem.where, "hint": problem.hint}}


def to_json(diagnosis: Diagnosis, _look: Look = LOOK) -> str:
    """The diagnosis as indented ASCII JSON with a final newline: no encoding and no terminal can garble it."""
    return written(to_dict(diagnosis))


def written(value: Any, indent: int | None = 2) -> str:
    """Plain values as ASCII JSON with a final newline, in which no service that prints it sees a command."""
    return inert(json.dumps(value, indent=indent, allow_nan=False)) + "\n"


def inert(text: str) -> str:
    """JSON with the same values, in which no service that prints it sees a command, and a terminal nothing hidden."""
    # `##[...]` and `##vso[...]` are commands to GitHub and Azure wherever they stand in a line.
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float | None) -> float | None:
    """A number fit for JSON: None where it is not finite."""
    return float(value) if value is not None and math.isfinite(value) else None


def _run(run: Run) -> dict[str, Any]:
    first = min((int(s.steps[0]) for s in run.series.values() if len(s)), default=None)
    return {
        "name": run.name,
        "first_step": first,
        "last_step": run.last_step,
        "rows": sum(source.rows for source in run.sources),
        "metrics": sorted(run.series),
        "config": {key: {"value": _plain(item.value), "source": item.source} for key, item in run.config.items()},
        "inputs": [
            {"path": item.path, "bytes": item.size, "sha256": item.sha256, "reason": item.reason}
            for item in run.inputs or [Input(source.path, reason="not asked for") for source in run.sources]
        ],
    }


def _rules(diagnosis: Diagnosis) -> dict[str, Any]:
    """By what it was judged, so that the same can be asked again."""
    given = diagnosis.overrides.items()
    return {
        "version": diagnosis.tree.version,
        "sha256": fingerprint(diagnosis.tree),
        "literal": diagnosis.literal,
        "set": {id_: {key: _plain(value) for key, value in params.items()} for id_, params in given},
    }


def _plain(value: Any) -> Any:
    """A setting or a parameter fit for JSON; computed ones are often numbers of numpy's."""
    plain = value.item() if isinstance(value, np.generic) else value
    return number(plain) if isinstance(plain, float) else plain


_HASHED: deque[tuple[Tree, str]] = deque(maxlen=8)
"""The last trees with their hashes: many runs are judged by one tree, and hashing takes as long as judging."""


def fingerprint(tree: Tree) -> str:
    """A hash of all that a tree says; its version alone changes nothing."""
    for known, hashed in [*_HASHED]:
        if known is tree:
            return hashed
    hashed = _hash(tree)
    _HASHED.append((tree, hashed))
    return hashed


def _hash(tree: Tree) -> str:
    said = json.dumps(_content(replace(tree, version="")), sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _content(value: Any) -> Any:
    """A tree, or a part of it, as plain values."""
    if is_dataclass(value):
        return {item.name: _content(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: _content(held) for key, held in value.items()}
    return [_content(held) for held in value] if isinstance(value, tuple) else value


def _evidence(items: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [
        {
            "text": item.text,
            "metric": item.metric or None,
            "steps": [int(step) for step in item.steps],
            "observed": number(item.observed),
            "threshold": number(item.threshold),
        }
        for item in items
    ]


def _visit(visit: Visit) -> dict[str, Any]:
    answer = visit.answer
    return {
        "id": visit.question.id,
        "ask": visit.question.ask,
        "answer": answer.verdict,
        "by": visit.given_by,
        "evidence": _evidence(answer.evidence),
        "reason": answer.reason if answer.verdict == UNKNOWN else "",
    }


def finding_dict(finding: Finding, run: Run, *, ignored: bool = False) -> dict[str, Any]:
    """A finding as plain values; `ignored` says whether it counts for nothing."""
    leaf, restart, known = finding.leaf, finding.restart, finding.accepted
    time = clock(run, finding.onset_step) if finding.onset_step is not None else None
    return {
        "id": leaf.id,
        "of": leaf.of,
        "section": finding.section,
        "severity": str(leaf.severity),
        "title": leaf.title,
        "why": leaf.why,
        "onset_step": finding.onset_step,
        "onset_time": time.isoformat() if time else None,
        "last_good_step": finding.last_good_step,
        "evidence": _evidence(finding.evidence),
        "precursors": _evidence(finding.precursors),
        "causes": [
            {
                "id": judged.cause.id,
                "state": str(judged.state).replace(" ", "_"),
                "text": judged.cause.text,
                "evidence": _evidence(judged.evidence),
                "reason": judged.reason,
                "fixes": list(judged.cause.fixes),
            }
            for judged in finding.causes
        ],
        "fixes": list(finding.fixes),
        "first_fixes": [{"fix": fix.text, "reason": fix.reason} for fix in finding.first_fixes],
        "restart": {
            "checkpoint_step": restart.checkpoint_step,
            "checkpoint_every": restart.every,
            "assumed": restart.assumed,
            "lost_steps": restart.lost_steps,
            "fresh_step": restart.fresh_step,
            "path": (restart.path or None) if restart.checkpoint_step is not None else None,
            "before_step": restart.before_step,
            "lost_hours": number(restart.lost_hours),
            "take": str(restart.take),
            "unit": restart.unit,
        }
        if restart
        else None,
        "see": list(leaf.see),
        "page": leaf.page or None,
        "own_onset_step": finding.own_onset_step,
        "ignored": ignored,
        "accepted": {"reason": known.reason, "since": known.since, "source": known.source} if known else None,
        "also": [
            {
                "id": item.leaf.id,
                "title": item.leaf.title,
                "severity": str(item.leaf.severity),
                "onset_step": item.onset_step,
            }
            for item in finding.also
        ],
    }


def _why_not(told: WhyNot) -> dict[str, Any]:
    return {
        "node": told.node,
        "title": told.title,
        "came": str(told.came).replace(" ", "_"),
        "why": told.why,
        "way": [_stage(stage) for stage in told.stages],
        "set": [_flip(flip) for flip in told.settings],
        "log": [{"metric": name, "log": how} for name, how in told.lacks],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    margin = stage.margin
    return {
        **_visit(stage.visit),
        "walked": stage.walked,
        "wanted": list(stage.wanted),
        "to": stage.target,
        "agrees": stage.agrees,
        "margin": {
            "metric": margin.evidence.metric or None,
            "steps": [int(step) for step in margin.evidence.steps],
            "observed": number(margin.value),
            "threshold": number(margin.threshold),
            "missed_by": number(margin.missed),
            "decides": margin.decides,
        }
        if margin
        else None,
        "set": [_flip(flip) for flip in stage.flips],
        "log": [{"metric": name, "log": how} for name, how in stage.lacks],
        "by_hand": stage.person,
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {"key": flip.key, "now": _plain(flip.now), "value": _plain(flip.value)}


def _monitor(replay: Replay) -> dict[str, Any]:
    return {
        "max_consecutive": replay.max_consecutive,
        "every": replay.every,
        "steps_in_vain": replay.steps_in_vain,
        "loss": _watch(replay.loss),
        "grad_norm": _watch(replay.grad_norm) if replay.grad_norm else None,
        "first_ranks": list(replay.first_ranks),
        "first_rank_step": replay.first_rank_step,
        "other_ranks": list(replay.other_ranks),
    }


def _watch(watch: Watch) -> dict[str, Any]:
    return {
        "first_step": watch.first_step,
        "total": watch.total,
        "longest": watch.longest,
        "stop_step": watch.stop_step,
        "returned_step": watch.returned_step,
        "last_good": number(watch.last_good),
        "last_good_step": watch.last_good_step,
    }
