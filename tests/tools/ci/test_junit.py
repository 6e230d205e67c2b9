"""JUnit XML: every section is a case, and none that was not checked reads as passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.result import Diagnosis
from stabtree.report.outputs import RenderOptions
from stabtree.tools.ci.services import junit
from tests.conftest import FIXTURES
from tests.tools.ci.reading import suites
from tests.tools.ci.runs import UNREADABLE, outcome, short

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from stabtree.judging.verdict import Outcome

NAMES = sorted(path.name for path in (FIXTURES / "phase19").iterdir())


def kinds(element: ET.Element) -> dict[str, str]:
    """What became of each case, by name."""
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in element.iter("testcase")}


def read(*outcomes: Outcome, look: RenderOptions | None = None) -> ET.Element:
    """The outcomes as a reader of JUnit XML gets them."""
    return suites(junit(outcomes, look or RenderOptions()))


@pytest.mark.parametrize("name", NAMES)
def test_each_section_is_a_case_and_the_counts_are_right(name: str) -> None:
    """One for each section or for each leaf that it ended at; a failure is what would fail the command."""
    found = outcome(name).found
    assert isinstance(found, Diagnosis)
    root = suites(junit(found))
    told = kinds(root)
    for item in found.sections:
        assert any(case == item.section.heading or case.startswith(f"{item.section.heading}: ") for case in told)
    assert int(root.get("tests", "")) == len(list(root.iter("testcase")))
    assert int(root.get("failures", "")) == len(list(root.iter("failure")))
    assert ("failure" in told.values()) == (found.verdict in ("warning", "critical"))
    leaves = {case.rpartition(": ")[2] for case, kind in told.items() if kind == "failure"}
    assert leaves == {one.leaf.id for one in found.reached if one.leaf.severity in ("warning", "critical")}


def test_what_fails_is_what_fail_on_says() -> None:
    """A note fails where notes do, a warning does not where only what is critical does; it is told all the same."""
    told = kinds(read(outcome("plateau"), look=RenderOptions(fail_on=frozenset({"note"}))))
    assert "failure" in told.values()
    root = read(outcome("slow-rise"), look=RenderOptions(fail_on=frozenset({"critical"})))
    assert "failure" not in kinds(root).values()
    assert any("slow-rise" in case.get("name", "") and case.find("system-out") is not None for case in root.iter())


def test_a_section_that_was_not_checked_is_skipped_with_its_reason() -> None:
    """Neither one whose metric lacks nor one that is ignored reads as passed."""
    root = read(outcome("nan-forward", ignore=("nan-forward",)))
    skipped = {case.get("name"): case[0].get("message", "") for case in root.iter("testcase") if len(case)}
    assert skipped["Dead units"] == "dead_relu_frac was not logged"
    assert skipped["§1 NaN or infinite loss: nan-forward"].startswith("ignored: Step 412")


def test_a_log_that_can_not_be_read_and_an_open_verdict_are_errors() -> None:
    """No green suite for what was not read or not judged, unless a partial verdict is accepted."""
    root = read(UNREADABLE, short(), outcome("healthy"))
    bad, unjudged, good = root
    assert kinds(bad) == {"read": "error"}
    assert kinds(unjudged)["verdict"] == "error"
    assert set(kinds(good).values()) == {"passed", "skipped"}
    assert root.get("errors") == "2"
    assert kinds(read(short(), look=RenderOptions(accept_partial=True)))["verdict"] == "skipped"
    assert kinds(read(short(), look=RenderOptions(fail_on=frozenset({"unknown", "warning"}))))["verdict"] == "failure"
