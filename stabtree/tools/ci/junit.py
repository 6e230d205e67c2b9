"""JUnit XML: a suite for each run, with a case for each finding and for each section without one."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert
from stabtree.judging.levels import fails
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.words import sections_found, title
from stabtree.tools.ci.problems import MAX_PATH, MAX_TEXT, MAX_TITLE, NOT_JUDGED, accepted, actions, describe, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.answer import Answer
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.diagnosis.visits import Walked

COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(diagnosis: Diagnosis, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the suite of one run."""
    return several([named(diagnosis)], look)


def several(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a suite for each run, in the order of the paths."""
    root = ET.Element("testsuites", name="stabtree")
    for outcome in outcomes:
        name = clean(outcome.name, MAX_PATH)
        suite = ET.SubElement(root, "testsuite", name=name)
        for case in _cases(outcome, look):
            case.set("classname", name)
            suite.append(case)
        _count(suite)
    _count(root)
    ET.indent(root)
    # Two hashes may start a command of the service that prints it.
    written = ET.tostring(root, encoding="unicode").replace("##", "#&#35;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'


def _count(element: ET.Element) -> None:
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for key, name in COUNTED.items():
        element.set(key, str(sum(1 for _ in element.iter(name))))


def _cases(outcome: Outcome, look: RenderOptions) -> Iterator[ET.Element]:
    found = outcome.found
    if isinstance(found, StabtreeError):
        yield _case("read", "error", UNREAD, found.problem, found.hint)
        return
    if found.verdict == UNKNOWN:
        # An open verdict must not read as a green one, unless that was asked for.
        if fails(UNKNOWN, look.fail_on):
            kind = "failure"
        elif look.accept_partial and found.partial:
            kind = "skipped"
        else:
            kind = "error"
        yield _case("verdict", kind, NOT_JUDGED, title(found))
    answers = _answers(found)
    for item in found.sections:
        yield from _section(found, item, answers.get(item.section.entry), look)


def _section(diagnosis: Diagnosis, item: Walked, answer: Answer | None, look: RenderOptions) -> Iterator[ET.Element]:
    """Yield a case for each leaf that the section ended at; one for the section if there is none."""
    id_, heading = item.section.id, item.section.heading
    reached = [finding for finding in diagnosis.reached if finding.section == id_]
    ignored = [finding for finding in diagnosis.ignored if finding.section == id_]
    for finding in reached:
        yield _found(finding, f"{heading}: {finding.leaf.id}", look)
    for finding in ignored:
        why = accepted(finding)
        message = f"{'accepted' if why else 'ignored'}: {describe(finding)}"
        yield _case(f"{heading}: {finding.leaf.id}", "skipped", "", message, why)
    if reached or ignored:
        return
    end = diagnosis.end
    if id_ in sections_found(diagnosis) and fails(end.severity, look.fail_on):
        yield _case(f"{heading}: {end.id}", "failure", str(end.severity), f"{end.title} ({end.id})")
    elif answer is None or answer.verdict == UNKNOWN:
        yield _case(heading, "skipped", "", answer.reason if answer else item.why)
    else:
        yield _case(heading)


def _found(finding: Incident, name: str, look: RenderOptions) -> ET.Element:
    text = "\n".join(actions(finding))
    if fails(finding.leaf.severity, look.fail_on):
        return _case(name, "failure", str(finding.leaf.severity), describe(finding), text)
    case = _case(name)
    ET.SubElement(case, "system-out").text = f"{finding.leaf.severity}: {describe(finding)}"
    return case


def _case(name: str, kind: str = "", type_: str = "", message: str = "", text: str = "") -> ET.Element:
    """Return a case, with its outcome if that is not a pass."""
    case = ET.Element("testcase", name=clean(name, MAX_TITLE))
    if kind:
        outcome = ET.SubElement(case, kind)
        if type_:
            outcome.set("type", type_)
        outcome.set("message", clean(message, MAX_TITLE))
        outcome.text = inert("\n".join(clean(line, MAX_TEXT) for line in text.splitlines())) or None
    return case


def _answers(diagnosis: Diagnosis) -> dict[str, Answer]:
    """Return the answers by question."""
    visits = chain(diagnosis.path, *diagnosis.further)
    return {visit.question.id: visit.answer for visit in visits}
