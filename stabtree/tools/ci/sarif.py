"""SARIF 2.1.0, which code scanning services read: findings as results, each leaf as a rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.report.json import written
from stabtree.report.markdown import escape, listed
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.tools.ci.fingerprint import VERSION
from stabtree.tools.ci.problems import MAX_TEXT, Problem, named, problems
from stabtree.tree.fixes import plain
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Leaf

LEVELS = {
    Severity.CRITICAL: "error",
    UNREAD: "error",
    Severity.WARNING: "warning",
    UNKNOWN: "warning",
    Severity.NOTE: "note",
}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LINK = re.compile(r"\](?=\()|\{(?=\d+\})")


def sarif(diagnosis: Diagnosis, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the log of one run."""
    return several([named(diagnosis)], look)


def several(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return one log of several runs: to SARIF all of them are one run of the tool."""
    found = list(problems(outcomes, ignored=True))
    leaves = {problem.rule: problem.leaf for problem in found if problem.leaf}
    indexes = {id_: index for index, id_ in enumerate(leaves)}
    results = [_result(problem, indexes[problem.rule]) for problem in found if problem.leaf]
    rules = [_rule(id_, leaf) for id_, leaf in leaves.items()]
    driver = {"name": "stabtree", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation([problem for problem in found if not problem.leaf], look)],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return written({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _invocation(failed: Sequence[Problem], look: RenderOptions) -> dict[str, Any]:
    """Return how the tool ended, and what it could not read or judge, which are not results."""
    invocation: dict[str, Any] = {"executionSuccessful": all(problem.rule != UNREAD for problem in failed)}
    if look.exit_code is not None:
        invocation["exitCode"] = look.exit_code
    if failed:
        invocation["toolExecutionNotifications"] = [
            {
                "descriptor": {"id": problem.rule},
                "level": LEVELS[problem.severity],
                "message": _message(problem),
                "locations": [_location(problem)],
            }
            for problem in failed
        ]
    return invocation


def _rule(id_: str, leaf: Leaf) -> dict[str, Any]:
    fixes = [clean(plain(fix), MAX_TEXT) for fix in leaf.fixes]
    why = clean(leaf.why, 2 * MAX_TEXT) or clean(leaf.title)
    rule: dict[str, Any] = {
        "id": id_,
        "shortDescription": {"text": clean(leaf.title)},
        "fullDescription": {"text": why},
        "help": {
            "text": "\n".join([why, *fixes]),
            "markdown": "\n\n".join([escape(why), listed(map(escape, fixes), "1.")]),
        },
        "defaultConfiguration": {"level": LEVELS[leaf.severity]},
        "properties": {"tags": [clean(leaf.of)]},
    }
    if leaf.page:
        rule["helpUri"] = leaf.page
    return rule


def _result(problem: Problem, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": LEVELS[problem.severity],
        "message": _message(problem),
        "locations": [_location(problem)],
        # GitHub identifies a result by the second one alone.
        "partialFingerprints": {VERSION: problem.fingerprint, "primaryLocationLineHash": problem.fingerprint},
    }
    if problem.ignored:
        suppression = {"kind": "external"}
        if problem.accepted:
            suppression["justification"] = _without_markup(problem.accepted)
        result["suppressions"] = [suppression]
    return result


def _message(problem: Problem) -> dict[str, str]:
    return {"text": _without_markup("\n".join([f"{problem.title} ({problem.run})", *problem.actions]))}


def _without_markup(text: str) -> str:
    """Break links and placeholders with a blank: a message may hold no other markup."""
    return _LINK.sub(lambda found: f"{found[0]} ", text)


def _location(problem: Problem) -> dict[str, Any]:
    path = problem.file.replace("\\", "/")
    uri = quote(path)
    if path.startswith("/"):
        uri = f"file://{uri}"
    # GitHub rejects a result without a line.
    physical = {"artifactLocation": {"uri": uri}, "region": {"startLine": problem.line or 1}}
    return {"physicalLocation": physical, "logicalLocations": [{"name": problem.run, "kind": "resource"}]}
