"""SARIF 2.1.0: what was found as results, each leaf as a rule; code scanning services read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.judging.fingerprint import VERSION
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.render.ci.problems import MOST_TEXT, Problem, named, problems
from stabtree.render.data.machine import written
from stabtree.render.look import LOOK, Look
from stabtree.render.markdown.text import escape, listed
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


def sarif(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """The log of one run."""
    return several([named(diagnosis)], look)


def several(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """One log of several runs: to SARIF all of them are one run of the tool."""
    found = [*problems(outcomes, ignored=True)]
    leaves = {problem.rule: problem.leaf for problem in found if problem.leaf}
    results = [_result(problem, [*leaves].index(problem.rule)) for problem in found if problem.leaf]
    rules = [_rule(id_, leaf) for id_, leaf in leaves.items()]
    driver = {"name": "stabtree", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation([problem for problem in found if not problem.leaf], look)],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return written({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _invocation(failed: Sequence[Problem], look: Look) -> dict[str, Any]:
    """How the tool ended, and what it could not read or judge: nothing of that is a result."""
    told: dict[str, Any] = {"executionSuccessful": all(problem.rule != UNREAD for problem in failed)}
    if look.exit_code is not None:
        told["exitCode"] = look.exit_code
    if failed:
        told["toolExecutionNotifications"] = [
            {
                "descriptor": {"id": problem.rule},
                "level": LEVELS[problem.severity],
                "message": _message(problem),
                "locations": [_location(problem)],
            }
            for problem in failed
        ]
    return told


def _rule(id_: str, leaf: Leaf) -> dict[str, Any]:
    fixes = [clean(plain(fix), MOST_TEXT) for fix in leaf.fixes]
    why = clean(leaf.why, 2 * MOST_TEXT) or clean(leaf.title)
    return {
        "id": id_,
        "shortDescription": {"text": clean(leaf.title)},
        "fullDescription": {"text": why},
        "help": {
            "text": "\n".join([why, *fixes]),
            "markdown": "\n\n".join([escape(why), listed(map(escape, fixes), "1.")]),
        },
        "defaultConfiguration": {"level": LEVELS[leaf.severity]},
        "properties": {"tags": [clean(leaf.of)]},
        **({"helpUri": leaf.page} if leaf.page else {}),
    }


def _result(problem: Problem, index: int) -> dict[str, Any]:
    told = {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": LEVELS[problem.severity],
        "message": _message(problem),
        "locations": [_location(problem)],
        # GitHub knows a result again by the second one alone.
        "partialFingerprints": {VERSION: problem.fingerprint, "primaryLocationLineHash": problem.fingerprint},
    }
    if not problem.ignored:
        return told
    why = {"justification": _LINK.sub(_parted, problem.accepted)} if problem.accepted else {}
    return {**told, "suppressions": [{"kind": "external", **why}]}


def _message(problem: Problem) -> dict[str, str]:
    """The text, in which no link and no placeholder is left: these are all the markup that a message may hold."""
    text = "\n".join([f"{problem.title} ({problem.run})", *problem.actions])
    return {"text": _LINK.sub(_parted, text)}


def _parted(found: re.Match[str]) -> str:
    return f"{found[0]} "


def _location(problem: Problem) -> dict[str, Any]:
    path = problem.file.replace("\\", "/")
    uri = f"{'file://' if path.startswith('/') else ''}{quote(path)}"
    # GitHub takes no result without a line.
    physical = {"artifactLocation": {"uri": uri}, "region": {"startLine": problem.line or 1}}
    return {"physicalLocation": physical, "logicalLocations": [{"name": problem.run, "kind": "resource"}]}
