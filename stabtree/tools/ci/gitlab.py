"""GitLab's code quality report: a list of findings, which a merge request shows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from stabtree.common.answer import UNKNOWN
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.report.json import written
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.tools.ci.problems import Problem, named, problems
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis

SEVERITIES = {
    Severity.CRITICAL: "critical",
    UNREAD: "major",
    Severity.WARNING: "major",
    UNKNOWN: "minor",
    Severity.NOTE: "info",
}


def gitlab(diagnosis: Diagnosis, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the report of one run."""
    return several([named(diagnosis)], look)


def several(outcomes: Sequence[Outcome], _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the report of several runs."""
    return written([_issue(problem) for problem in problems(outcomes)])


def _issue(problem: Problem) -> dict[str, Any]:
    # Copies of a log in two folders are two issues, and GitLab shows one of each fingerprint.
    identity = "\n".join([problem.run, problem.rule, problem.fingerprint])
    return {
        "description": " · ".join([problem.title, *problem.actions]),
        "check_name": problem.rule,
        "fingerprint": hashlib.sha256(identity.encode()).hexdigest(),
        "severity": SEVERITIES[problem.severity],
        "location": {"path": problem.file, "lines": {"begin": problem.line or 1}},  # GitLab requires a line
    }
