"""A diagnosis as JSON, schema 1. What each key holds is described in `stabtree.report.json.contract`.

Steps are integers, a number that is not finite is null, and within a schema number keys are only added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.files import Input
from stabtree.common.text import masked
from stabtree.context.find import context_of
from stabtree.context.model import as_dict
from stabtree.judging.account import account, unexplained
from stabtree.report.json.fingerprint import fingerprint
from stabtree.report.json.values import number, picked, plain, written
from stabtree.report.model.run_facts import logged_at
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.answer import Evidence
    from stabtree.common.errors import StabtreeError
    from stabtree.diagnosis.judged import Decision, JudgedCause, QuotedRow
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.diagnosis.visits import Visit
    from stabtree.diagnosis.whole.near import Near
    from stabtree.facts.replay import Replay, Watch
    from stabtree.run import Run

SCHEMA = 1


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as plain values."""
    run = diagnosis.run
    return {
        "schema": SCHEMA,
        "tool": {"name": "stabtree", "version": __version__},
        "run": _run(run),
        "context": as_dict(context_of(run)),
        "tree": diagnosis.tree.name,
        "rules": _rules(diagnosis),
        "verdict": str(diagnosis.verdict),
        "misread": diagnosis.misread,
        "trees": [picked(tree, "name", "title", "walked", "why") for tree in diagnosis.trees],
        "path": [visit_dict(visit) for visit in diagnosis.path],
        "end": picked(diagnosis.end, "id", "of", "title"),
        "findings": _findings(diagnosis),
        "timeline": [picked(event, "step", "metric", "text", "first") for event in diagnosis.timeline],
        "further": [[visit_dict(visit) for visit in visits] for visits in diagnosis.further],
        "near": [_near(near) for near in diagnosis.near],
        "missing": _missing(diagnosis),
        "log_next": _log_next(diagnosis),
        "notes": _notes(diagnosis),
        "account": account_list(run),
        "monitor": _monitor(diagnosis.monitor),
        "why_not": diagnosis.why_not.to_dict() if diagnosis.why_not else None,
    }


def _notes(diagnosis: Diagnosis) -> list[str]:
    """Return all notes on the answers, the findings, the settings and the log."""
    run = diagnosis.run
    answers, accepted = diagnosis.answer_notes, diagnosis.acceptance_notes
    return [*answers, *accepted, *unexplained(run), *diagnosis.setting_notes, *run.notes]


def account_list(run: Run) -> list[dict[str, Any]]:
    """Return what became of each series and each kind of line of a run's files."""
    return [picked(entry, "kind", "name", "fate", "count", "reason", "first", "path") for entry in account(run)]


def _findings(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return the findings, then those that are ignored."""
    found = [finding_dict(finding, diagnosis.run) for finding in diagnosis.findings]
    ignored = [finding_dict(finding, diagnosis.run, ignored=True) for finding in diagnosis.ignored]
    return [*found, *ignored]


def _near(near: Near) -> dict[str, Any]:
    """Return a fact that came near to its limit."""
    text = near.visit.answer.evidence[0].text
    return {"id": near.visit.question.id, "leaf": near.leaf.id, "p": near.p, "strength": near.strength, "text": text}


def _missing(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return the questions without an answer, and what to log for them."""
    return [
        {"id": miss.id, "reason": miss.reason, "metric": list(miss.metrics), "log": miss.log}
        for miss in diagnosis.missing
    ]


def _log_next(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return what to log next time."""
    return [{"metric": list(item.names), **picked(item, "log", "unlocks", "decides")} for item in diagnosis.log_next]


def error(problem: StabtreeError) -> dict[str, Any]:
    """Return an error that the user can fix, as plain values."""
    texts = {"problem": problem.problem, "where": problem.where, "hint": problem.hint}
    return {"schema": SCHEMA, "error": {name: masked(text) for name, text in texts.items()}}


def to_json(diagnosis: Diagnosis, _options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the diagnosis as indented ASCII JSON with a final newline: no encoding and no terminal can garble it."""
    return written(to_dict(diagnosis))


def _run(run: Run) -> dict[str, Any]:
    first = min((int(s.steps[0]) for s in run.series.values() if len(s)), default=None)
    return {
        "name": run.name,
        "first_step": first,
        "last_step": run.last_step,
        "rows": sum(source.rows for source in run.sources),
        "metrics": sorted(run.series),
        "config": {key: {"value": plain(item.value), "source": item.source} for key, item in run.config.items()},
        "inputs": [
            {"path": item.path, "bytes": item.size, **picked(item, "sha256", "reason")}
            for item in run.inputs or [Input(source.path, reason="not asked for") for source in run.sources]
        ],
    }


def _rules(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the rules by which it was judged, so that the same can be asked again."""
    given = diagnosis.overrides.items()
    return {
        "version": diagnosis.tree.version,
        "sha256": fingerprint(diagnosis.tree),
        "literal": diagnosis.literal,
        "set": {id_: {key: plain(value) for key, value in params.items()} for id_, params in given},
    }


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


def visit_dict(visit: Visit) -> dict[str, Any]:
    """Return a question of a walk and its answer as plain values."""
    answer = visit.answer
    return {
        "id": visit.question.id,
        "ask": visit.question.ask,
        "answer": answer.verdict,
        "by": visit.given_by,
        "evidence": _evidence(answer.evidence),
        "reason": answer.reason if answer.verdict == UNKNOWN else "",
        "strength": answer.strength,
    }


def finding_dict(finding: Incident, run: Run, *, ignored: bool = False) -> dict[str, Any]:
    """Return a finding as plain values; `ignored` says whether it is ignored or accepted."""
    leaf, accepted = finding.leaf, finding.accepted
    return {
        **picked(leaf, "id", "of"),
        "section": finding.section,
        **picked(leaf, "severity", "title", "why"),
        "onset_step": finding.onset_step,
        "onset_time": _onset_time(finding, run),
        "last_good_step": finding.last_good_step,
        "evidence": _evidence(finding.evidence),
        "precursors": _evidence(finding.precursors),
        "causes": [_cause(judged) for judged in finding.causes],
        "fixes": list(finding.fixes),
        "first_fixes": [{"fix": fix.text, "reason": fix.reason} for fix in finding.first_fixes],
        "restart": _restart(finding.restart),
        "see": list(leaf.see),
        "page": leaf.page or None,
        "own_onset_step": finding.own_onset_step,
        "ignored": ignored,
        "accepted": picked(accepted, "reason", "since", "source") if accepted else None,
        "also": list(map(_related, finding.also)),
        "consequences": list(map(_related, finding.consequences)),
        "rows": [_row(row) for row in finding.rows],
        "decision": _decision(finding.decision),
        **picked(finding, "open", "p"),
    }


def _related(finding: Incident) -> dict[str, Any]:
    return {**picked(finding.leaf, "id", "title", "severity"), "onset_step": finding.onset_step}


def _decision(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    branches = [{"answer": answer, "do": do} for answer, do in decision.branches]
    return {"ask": decision.ask, "branches": branches, "causes": list(decision.causes)}


def _row(row: QuotedRow) -> dict[str, Any]:
    values = {metric: plain(value) for metric, value in row.values.items()}
    return {**picked(row, "step", "what"), "values": values}


def _cause(judged: JudgedCause) -> dict[str, Any]:
    return {
        "id": judged.cause.id,
        "state": str(judged.state).replace(" ", "_"),
        "text": judged.cause.text,
        "evidence": _evidence(judged.evidence),
        "reason": judged.reason,
        "fixes": list(judged.cause.fixes),
        "odds": number(judged.odds),
    }


def _onset_time(finding: Incident, run: Run) -> str | None:
    if finding.onset_step is None:
        return None
    time = logged_at(run, finding.onset_step)
    if time is None:
        return None
    return time.isoformat()


def _restart(restart: Restart | None) -> dict[str, Any] | None:
    if restart is None:
        return None
    return {
        **picked(restart, "checkpoint_step", "up_to_step"),
        "checkpoint_every": restart.every,
        **picked(restart, "assumed", "lost_steps", "fresh_step"),
        "path": None if restart.checkpoint_step is None else restart.path or None,
        **picked(restart, "before_step", "lost_hours", "take", "unit"),
    }


def _monitor(replay: Replay | None) -> dict[str, Any] | None:
    if replay is None:
        return None
    counts = picked(replay, "max_consecutive", "every", "steps_in_vain")
    series = {"loss": _watch(replay.loss), "grad_norm": _watch(replay.grad_norm)}
    return counts | series | picked(replay, "first_ranks", "first_rank_step", "other_ranks")


def _watch(watch: Watch | None) -> dict[str, Any] | None:
    if watch is None:
        return None
    steps = picked(watch, "first_step", "total", "longest", "stop_step", "returned_step")
    return steps | picked(watch, "last_good", "last_good_step")
