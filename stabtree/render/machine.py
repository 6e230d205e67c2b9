"""A diagnosis as JSON, schema 1.

`{"schema": 1, "run": {"name", "first_step", "last_step", "rows", "metrics", "config"}, "tree", "verdict", "misread",
"path": [{"id", "ask", "answer", "by", "evidence": [{"text", "metric", "steps", "observed", "threshold"}],
"reason"}], "trees": [{"name", "title", "walked", "why"}], "end": {"id", "of", "title"},
"findings": [{"id", "of", "section", "severity", "title",
"onset_step", "last_good_step", "evidence", "precursors", "causes": [{"id", "state", "text", "evidence", "reason",
"fixes"}], "fixes", "first_fixes": [{"fix", "reason"}],
"restart": {"checkpoint_step", "checkpoint_every", "assumed", "lost_steps", "fresh_step",
"path", "before_step", "lost_hours", "take", "unit"}, "see",
"own_onset_step", "ignored", "also": [{"id", "title", "severity", "onset_step"}]}],
"timeline": [{"step", "metric", "text", "first"}],
"further": [[...visits as in path]], "missing": [{"id", "reason", "metric", "log"}],
"log_next": [{"metric", "log", "unlocks", "decides"}], "notes": [...],
"monitor": {"max_consecutive", "every", "steps_in_vain", "loss": {"first_step", "total", "longest", "stop_step",
"returned_step", "last_good", "last_good_step"}, "grad_norm": {...as loss} or null, "first_ranks",
"first_rank_step", "other_ranks"}}`; the monitor is null where the loss is finite throughout.

A finding is an event; `also` is what else tells of it, and `own_onset_step` where its own leaf begins.
What is `ignored` counts for nothing, and stands last.
`timeline` is what happened around the onset of the first finding, by step; `first` moved before all others.
`misread` says why what was read of the log does not stand for the run, and is empty where it does.
Steps are integers, a number that is not finite is null, and within a schema number keys are only added.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from stabtree.answer import UNKNOWN
from stabtree.render.look import LOOK, Look

if TYPE_CHECKING:
    from stabtree.answer import Evidence
    from stabtree.diagnosis.result import Diagnosis, Finding, Visit
    from stabtree.errors import StabtreeError
    from stabtree.facts.replay import Replay, Watch
    from stabtree.run import Run

SCHEMA = 1


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values."""
    return {
        "schema": SCHEMA,
        "run": _run(diagnosis.run),
        "tree": diagnosis.tree.name,
        "verdict": str(diagnosis.verdict),
        "misread": diagnosis.misread,
        "trees": [
            {"name": tree.name, "title": tree.title, "walked": tree.walked, "why": tree.why} for tree in diagnosis.trees
        ],
        "path": [_visit(visit) for visit in diagnosis.path],
        "end": {"id": diagnosis.end.id, "of": diagnosis.end.of, "title": diagnosis.end.title},
        "findings": [
            *(_finding(finding) for finding in diagnosis.findings),
            *(_finding(finding, ignored=True) for finding in diagnosis.ignored),
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
        "notes": [*diagnosis.said, *diagnosis.run.notes],
        "monitor": _monitor(diagnosis.monitor) if diagnosis.monitor else None,
    }


def error(problem: StabtreeError) -> dict[str, Any]:
    """Something that the user can mend, as plain values."""
    return {"schema": SCHEMA, "error": {"problem": problem.problem, "where": problem.where, "hint": problem.hint}}


def to_json(diagnosis: Diagnosis, _look: Look = LOOK) -> str:
    """The diagnosis as indented ASCII JSON with a final newline: no encoding and no terminal can garble it."""
    return json.dumps(to_dict(diagnosis), indent=2, allow_nan=False) + "\n"


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
        "config": {key: {"value": item.value, "source": item.source} for key, item in run.config.items()},
    }


def _evidence(items: tuple[Evidence, ...]) -> list[dict[str, Any]]:
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


def _finding(finding: Finding, *, ignored: bool = False) -> dict[str, Any]:
    leaf, restart = finding.leaf, finding.restart
    return {
        "id": leaf.id,
        "of": leaf.of,
        "section": finding.section,
        "severity": str(leaf.severity),
        "title": leaf.title,
        "why": leaf.why,
        "onset_step": finding.onset_step,
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
            "unit": "epoch" if restart.by_epoch else "step",
        }
        if restart
        else None,
        "see": list(leaf.see),
        "own_onset_step": finding.own_onset_step,
        "ignored": ignored,
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
