"""What CI services are told: each finding where it belongs, and nothing that was not read or judged as passed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_runs
from stabtree.report.outputs import RenderOptions
from stabtree.tools.ci.baseline import FINGERPRINT, fingerprint
from stabtree.tools.ci.services import MAX_SHOWN, github, junit, sarif, summary
from tests.conftest import FIXTURES, make_run, recorded
from tests.tools.ci import reading

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

NAMES = sorted(path.name for path in (FIXTURES / "phase19").iterdir())
LEVELS = {"critical": "error", "warning": "warning", "note": "note"}
UNREADABLE = Outcome("runs/b.csv", StabtreeError("there is nothing in it", where="runs/b.csv", hint="log something"))


@cache
def outcome(name: str, *, ignore: tuple[str, ...] = ()) -> Outcome:
    """What becomes of a fixture."""
    (loaded,) = load_runs(str(FIXTURES / "phase19" / name))
    return Judging(ignore=ignore).outcome(loaded)


def diagnosed(name: str) -> Diagnosis:
    """The diagnosis of a fixture."""
    found = outcome(name).found
    assert isinstance(found, Diagnosis)
    return found


@cache
def short() -> Outcome:
    """A run that is too short to be judged."""
    return Outcome("runs/short.csv", Judging().diagnosed(make_run({"loss": [2.0, 1.9]})))


# ---- GitHub


def test_an_annotation_says_what_was_found_what_to_do_first_and_where_to_restart() -> None:
    """It names the line in which the finding begins, of a log that is still there."""
    found = diagnosed("nan-forward")
    (command,) = reading.commands(github(found))
    assert (command.name, command.properties["line"]) == ("error", "414")
    assert command.properties["title"] == "Step 412: The loss became inf in one step; the row before was sound"
    assert command.properties["file"].endswith("fixtures/phase19/nan-forward/metrics.csv")
    head, first, restart = command.message.split("\n")
    assert "(nan-forward)" in head
    assert first.startswith("Rerun that batch")
    assert restart.startswith("Restart from the checkpoint of step 400 with its optimizer state")
    gone = replace(found, run=replace(found.run, sources=(replace(found.run.sources[0], path="gone.csv"),)))
    assert "line" not in reading.commands(github(gone))[0].properties


def test_the_severity_decides_the_command() -> None:
    """A critical finding and an unreadable log are errors, an open verdict a warning, a lone note a notice."""
    text = github([outcome("nan-forward"), outcome("plateau"), UNREADABLE, short()])
    shown = [(one.name, one.message.split("\n")[0].rpartition("(")[2].rstrip(")")) for one in reading.commands(text)]
    assert shown == [("error", "nan-forward"), ("error", "unread"), ("warning", "not-judged"), ("notice", "plateau")]
    assert {command.name for command in reading.commands(github(diagnosed("fp16-suspected")))} == {"error"}
    (line,) = github(diagnosed("healthy")).splitlines()
    assert line.startswith("OK  ")


def test_no_more_is_shown_than_github_shows_and_the_rest_is_counted() -> None:
    """Ten errors of a step, warnings have ten of their own; and a summary holds the worst."""
    found = diagnosed("nan-forward")
    text = github([Outcome(f"runs/{place}", found) for place in range(MAX_SHOWN + 2)] + [outcome("slow-rise")])
    assert [command.name for command in reading.commands(text)] == ["error"] * MAX_SHOWN + ["warning"]
    assert "Not annotated: 2 more errors" in text
    assert text.endswith(f"{MAX_SHOWN + 3} runs: {MAX_SHOWN + 2} critical, 1 warning\n")
    assert summary([outcome("nan-forward")]).startswith("### CRITICAL: Step 412")
    many = [Outcome(f"runs/{place}", outcome("healthy").found) for place in range(100)]
    assert summary(recorded(*many, outcome("nan-forward"))).startswith(
        "### 1 of 101 runs has a warning or worse: 1 critical, 100 ok"
    )


# ---- JUnit XML


def kinds(element: ET.Element) -> dict[str, str]:
    """What became of each case, by name."""
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in element.iter("testcase")}


def suites(*outcomes: Outcome, look: RenderOptions | None = None) -> ET.Element:
    """The outcomes as a reader of JUnit XML gets them."""
    return reading.suites(junit(outcomes, look or RenderOptions()))


def test_each_section_is_a_case_and_the_counts_are_right() -> None:
    """One for each section or for each leaf that it ended at; a failure is what would fail the command."""
    for name in NAMES:
        found = diagnosed(name)
        root = reading.suites(junit(found))
        cases = kinds(root)
        for item in found.sections:
            assert any(case == item.section.heading or case.startswith(f"{item.section.heading}: ") for case in cases)
        assert int(root.get("tests", "")) == len(list(root.iter("testcase")))
        assert int(root.get("failures", "")) == len(list(root.iter("failure")))
        assert ("failure" in cases.values()) == (found.verdict in ("warning", "critical"))
        leaves = {case.rpartition(": ")[2] for case, kind in cases.items() if kind == "failure"}
        assert leaves == {one.leaf.id for one in found.reached if one.leaf.severity in ("warning", "critical")}


def test_what_fails_is_what_fail_on_says() -> None:
    """A note fails where notes do, a warning does not where only what is critical does; it is told all the same."""
    assert "failure" in kinds(suites(outcome("plateau"), look=RenderOptions(fail_on=frozenset({"note"})))).values()
    root = suites(outcome("slow-rise"), look=RenderOptions(fail_on=frozenset({"critical"})))
    assert "failure" not in kinds(root).values()
    assert any("slow-rise" in case.get("name", "") and case.find("system-out") is not None for case in root.iter())


def test_what_was_not_checked_read_or_judged_is_not_passed() -> None:
    """A section without its metric or ignored is skipped with its reason; the others are errors, or what is asked."""
    root = suites(outcome("nan-forward", ignore=("nan-forward",)))
    skipped = {case.get("name"): case[0].get("message", "") for case in root.iter("testcase") if len(case)}
    assert skipped["Dead units"] == "dead_relu_frac was not logged"
    assert skipped["§1 NaN or infinite loss: nan-forward"].startswith("ignored: Step 412")
    bad, unjudged, good = root = suites(UNREADABLE, short(), outcome("healthy"))
    assert (kinds(bad), kinds(unjudged)["verdict"], root.get("errors")) == ({"read": "error"}, "error", "2")
    assert set(kinds(good).values()) == {"passed", "skipped"}
    assert kinds(suites(short(), look=RenderOptions(accept_partial=True)))["verdict"] == "skipped"
    assert kinds(suites(short(), look=RenderOptions(fail_on=frozenset({"unknown"}))))["verdict"] == "failure"


# ---- SARIF


def test_sarif_holds_each_finding_with_its_rule_and_fingerprint() -> None:
    """Over all fixtures at once: valid, a rule for each leaf, the level of its severity, a fingerprint of its own."""
    run = reading.sarif(sarif([outcome(name) for name in NAMES], RenderOptions(exit_code=1)))
    expected = [
        (LEVELS[finding.leaf.severity], finding.leaf.id, fingerprint(found, finding))
        for found in map(diagnosed, NAMES)
        if found.verdict != "ok"
        for finding in found.findings
    ]
    results = [(one["level"], one["ruleId"], one["partialFingerprints"][FINGERPRINT]) for one in run["results"]]
    calm = {"spike-minor", "grad-skipped", "normal-backoff"}  # notes that call for nothing
    assert [one for one in results if one[1] not in calm] == [one for one in expected if one[1] not in calm]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    assert not any("{" in rule["help"]["text"] for rule in run["tool"]["driver"]["rules"])
    ignored = reading.sarif(sarif([outcome("nan-forward", ignore=("nan-forward",))], RenderOptions()))
    assert {one["ruleId"]: "suppressions" in one for one in ignored["results"]}["nan-forward"]


def test_sarif_tells_of_what_was_not_read_apart_from_what_was_found() -> None:
    """A notification each, and a tool that did not succeed: no service takes that for a clean log."""
    run = reading.sarif(sarif([UNREADABLE, short(), outcome("healthy")], RenderOptions()))
    (invocation,) = run["invocations"]
    assert (run["results"], invocation["executionSuccessful"]) == ([], False)
    notes = invocation["toolExecutionNotifications"]
    assert [note["descriptor"]["id"] for note in notes] == ["unread", "not-judged"]


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
    run = reading.sarif(sarif([Outcome(path, UNREADABLE.found)], RenderOptions()))
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
