"""JUnit XML: a suite for each run, a case for each section, and one for each of what was found."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert
from stabtree.judging.levels import fails
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.render.ci.problems import MOST_PATH, MOST_TEXT, MOST_TITLE, NOT_JUDGED, accepted, actions, named, told
from stabtree.render.look import LOOK, Look
from stabtree.render.report.words import title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.answer import Answer
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.diagnosis.visits import Walked

COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """The suite of one run."""
    return several([named(diagnosis)], look)


def several(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """A suite for each run, in the order of the paths."""
    root = ET.Element("testsuites", name="stabtree")
    for outcome in outcomes:
        name = clean(outcome.name, MOST_PATH)
        suite = ET.SubElement(root, "testsuite", name=name)
        for case in _cases(outcome, look):
            case.set("classname", name)
            suite.append(case)
        _count(suite)
    _count(root)
    ET.indent(root)
    # Two hashes may begin a command of the service that prints it.
    written = ET.tostring(root, encoding="unicode").replace("##", "#&#35;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'


def _count(element: ET.Element) -> None:
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for key, name in COUNTED.items():
        element.set(key, str(sum(1 for _ in element.iter(name))))


def _cases(outcome: Outcome, look: Look) -> Iterator[ET.Element]:
    found = outcome.found
    if isinstance(found, StabtreeError):
        yield _case("read", "error", UNREAD, found.problem, found.hint)
        return
    if found.verdict == UNKNOWN:
        # An open verdict must not read as a green one, unless that was asked for.
        if fails(UNKNOWN, look.fail_on):
            kind = "failure"
        else:
            kind = "skipped" if look.accept_partial and found.partial else "error"
        yield _case("verdict", kind, NOT_JUDGED, title(found))
    answers = _answers(found)
    for item in found.sections:
        yield from _section(found, item, answers.get(item.section.entry), look)


def _section(diagnosis: Diagnosis, item: Walked, answer: Answer | None, look: Look) -> Iterator[ET.Element]:
    """A case for each leaf that the section ended at; one for the section where there is none."""
    id_, heading = item.section.id, item.section.heading
    reached = [finding for finding in diagnosis.reached if finding.section == id_]
    ignored = [finding for finding in diagnosis.ignored if finding.section == id_]
    for finding in reached:
        yield _found(diagnosis, finding, f"{heading}: {finding.leaf.id}", look)
    for finding in ignored:
        why = accepted(finding)
        said = f"{'accepted' if why else 'ignored'}: {told(finding)}"
        yield _case(f"{heading}: {finding.leaf.id}", "skipped", "", said, why)
    if reached or ignored:
        return
    if answer is None or answer.verdict == UNKNOWN:
        yield _case(heading, "skipped", "", answer.reason if answer else item.why)
    else:
        yield _case(heading)


def _found(diagnosis: Diagnosis, finding: Finding, name: str, look: Look) -> ET.Element:
    text = "\n".join(actions(diagnosis, finding))
    if fails(finding.leaf.severity, look.fail_on):
        return _case(name, "failure", str(finding.leaf.severity), told(finding), text)
    case = _case(name)
    ET.SubElement(case, "system-out").text = f"{finding.leaf.severity}: {told(finding)}"
    return case


def _case(name: str, kind: str = "", type_: str = "", message: str = "", text: str = "") -> ET.Element:
    """A case, with what became of it where that is not a pass."""
    case = ET.Element("testcase", name=clean(name, MOST_TITLE))
    if kind:
        outcome = ET.SubElement(case, kind, {"type": type_} if type_ else {}, message=clean(message, MOST_TITLE))
        outcome.text = inert("\n".join(clean(line, MOST_TEXT) for line in text.splitlines())) or None
    return case


def _answers(diagnosis: Diagnosis) -> dict[str, Answer]:
    """The answers by question."""
    visits = chain(diagnosis.path, *diagnosis.further)
    return {visit.question.id: visit.answer for visit in visits}
