"""SARIF and GitLab's code quality report: what was found as a list, known again from run to run."""

from __future__ import annotations

import json

import pytest

from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.verdict import Outcome
from stabtree.report.outputs import RenderOptions
from stabtree.tools.ci.baseline import FINGERPRINT, fingerprint
from stabtree.tools.ci.services import gitlab, sarif
from tests.conftest import FIXTURES
from tests.tools.ci import reading
from tests.tools.ci.runs import UNREADABLE, outcome, short

NAMES = sorted(path.name for path in (FIXTURES / "phase19").iterdir())
LEVELS = {"critical": "error", "warning": "warning", "note": "note"}


def test_sarif_holds_each_finding_with_its_rule_and_fingerprint() -> None:
    """Over all fixtures at once: valid, a rule for each leaf, the level of its severity, a fingerprint of its own."""
    outcomes = [outcome(name) for name in NAMES]
    run = reading.sarif(sarif(outcomes, RenderOptions(exit_code=1)))
    found = [
        (LEVELS[finding.leaf.severity], finding.leaf.id, fingerprint(each.found, finding))
        for each in outcomes
        if isinstance(each.found, Diagnosis) and each.found.verdict != "ok"
        for finding in each.found.findings
    ]
    told = [(one["level"], one["ruleId"], one["partialFingerprints"][FINGERPRINT]) for one in run["results"]]
    calm = {"spike-minor", "grad-skipped", "normal-backoff"}  # notes that call for nothing
    assert [one for one in told if one[1] not in calm] == [one for one in found if one[1] not in calm]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    assert not any("{" in rule["help"]["text"] for rule in run["tool"]["driver"]["rules"])


def test_sarif_tells_of_what_was_not_read_apart_from_what_was_found() -> None:
    """A notification each, and a tool that did not succeed: no service takes that for a clean log."""
    run = reading.sarif(sarif([UNREADABLE, short(), outcome("healthy")], RenderOptions()))
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    notes = invocation["toolExecutionNotifications"]
    assert [note["descriptor"]["id"] for note in notes] == ["unread", "not-judged"]


def test_sarif_shows_what_is_ignored_as_suppressed() -> None:
    """It is still in the log, and counts for nothing."""
    run = reading.sarif(sarif([outcome("nan-forward", ignore=("nan-forward",))], RenderOptions()))
    assert {one["ruleId"]: "suppressions" in one for one in run["results"]}["nan-forward"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("runs/a b#1.csv", "runs/a%20b%231.csv"),
        ("/data/é.csv", "file:///data/%C3%A9.csv"),
        ("C:\\runs\\a.csv", "C%3A/runs/a.csv"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
    ],
)
def test_a_path_is_a_uri_and_no_scheme_of_its_own(path: str, uri: str) -> None:
    """Blanks, marks and letters are encoded; a colon begins no scheme."""
    unread = Outcome(path, UNREADABLE.found)
    run = reading.sarif(sarif([unread], RenderOptions()))
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_gitlab_lists_each_with_a_fingerprint_of_its_own() -> None:
    """Also where two folders hold copies of one log; the keys are those that GitLab asks for."""
    found = outcome("nan-forward").found
    copies = [Outcome("a/run", found), Outcome("b/run", found), UNREADABLE, short()]
    issues = json.loads(gitlab(copies, RenderOptions()))
    assert [issue["severity"] for issue in issues] == ["critical", "critical", "major", "minor"]
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert all(
        set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        and issue["location"]["lines"]["begin"] >= 1
        for issue in issues
    )
    assert json.loads(gitlab([outcome("healthy")], RenderOptions())) == []
