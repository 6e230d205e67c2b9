"""What CI services read: GitHub's annotations and summary, JUnit XML, SARIF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert, masked
from stabtree.judging.verdict import ORDER, UNREAD, Outcome, fails
from stabtree.loaders.paths.stored import with_places
from stabtree.report.advice import do_now
from stabtree.report.json import written
from stabtree.report.markdown import markdown
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, counted
from stabtree.report.words import all_clear, badge, finding_title, headline, sections_found, step_prefix, title
from stabtree.tools.check import report as preflight
from stabtree.tools.ci.baseline import FINGERPRINT, fingerprint
from stabtree.tools.fleet import outputs as fleet
from stabtree.tree.fixes import plain
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.common.answer import Answer
    from stabtree.diagnosis.result import Diagnosis, Incident, Walked
    from stabtree.tools.fleet.record import Record
    from stabtree.tree.model import Leaf

    Judged = Diagnosis | Sequence[Outcome] | Sequence[Record]
    """A run that is diagnosed alone, or what became of several."""

MAX_PATH = 1000
MAX_TITLE = 200
MAX_TEXT = 500
NOT_JUDGED = "not-judged"
"""The rule of a run that could not be judged; `unread` is that of a log that could not be read."""


class Problem(NamedTuple):
    """A finding, or why there is none, in plain texts that are safe to show."""

    run: str  # what was named, as it can be typed
    file: str  # the log
    line: int | None  # the line of the log in which it begins; None if unknown
    rule: str  # the leaf, `not-judged`, or `unread`
    severity: str  # that of the leaf; `unknown` or `unread` if there is none
    title: str  # what was found, and at which step
    actions: tuple[str, ...] = ()  # what to do, in order
    fingerprint: str = ""  # what identifies it; empty if nothing was found
    leaf: Leaf | None = None  # the leaf itself
    ignored: bool = False  # whether it is ignored or accepted
    accepted: str = ""  # why it is accepted; empty for a leaf that is ignored
    columns: tuple[int, ...] = ()  # the first column of the word in that line, from 1, and the one behind it


class Told(NamedTuple):
    """What services are told of a run, in values that another process can send."""

    name: str  # what was named, as it can be typed
    verdict: str  # the verdict
    badge: str  # the verdict that is shown
    headline: str  # the verdict in a line
    problems: tuple[Problem, ...]  # its findings, the worst first, and those that are ignored or accepted
    cases: tuple[ET.Element, ...]  # what became of each section


def tell(outcome: Outcome, look: RenderOptions = DEFAULT_OPTIONS) -> Told:
    """Return what services are told of a run, with the lines of its log in which findings begin."""
    name, found = clean(outcome.name, MAX_PATH), outcome.found
    if isinstance(found, StabtreeError):
        hint = (clean(found.hint, MAX_TEXT),) if found.hint else ()
        problem = Problem(name, name, None, UNREAD, UNREAD, f"Not read: {clean(found.problem, MAX_TITLE)}", hint)
        case = _case("read", "error", UNREAD, found.problem, found.hint)
        return Told(name, UNREAD, UNREAD, problem.title, (problem,), (case,))
    if not found.before_run:
        steps = {one.onset_step for one in (*found.findings, *found.ignored) if one.onset_step is not None}
        found = replace(found, run=with_places(found.run, steps))
    problems = (*_problems(name, found),)
    return Told(name, str(found.verdict), badge(found), clean(headline(found), 400), problems, (*_cases(found, look),))


def _problems(name: str, found: Diagnosis) -> Iterator[Problem]:
    """Yield the problems of a run; a healthy one has none, though it may have notes that require nothing."""
    log = clean(next((source.path for source in found.run.sources), name), MAX_PATH)
    if found.verdict == UNKNOWN:
        yield Problem(name, log, None, NOT_JUDGED, UNKNOWN, clean(title(found), MAX_TITLE))
    if not all_clear(found):
        yield from (_problem(name, log, found, finding) for finding in found.findings)
    for finding in found.ignored:
        yield _problem(name, log, found, finding)._replace(ignored=True, accepted=_accepted(finding))


def _told(judged: Judged, look: RenderOptions) -> list[Told]:
    """Return what is told of each run; one that is diagnosed alone has the name of its log."""
    if not isinstance(judged, Sequence):
        judged = [Outcome(next((source.path for source in judged.run.sources), judged.run.name), judged)]
    return [tell(run, look) if isinstance(run, Outcome) else run.told for run in judged]


def _problem(name: str, log: str, found: Diagnosis, finding: Incident) -> Problem:
    leaf, onset, mark = finding.leaf, finding.onset_step, fingerprint(found, finding)
    told = _describe(finding), _actions(finding), mark, leaf
    problem = Problem(name, log, None, clean(leaf.id), str(leaf.severity), *told)
    if onset is not None:
        return problem._replace(line=found.run.places.get(onset))
    place = preflight.place_of(found, finding)
    if place is None:
        return problem
    file, columns = clean(masked(place.path), MAX_PATH), (place.start + 1, place.end + 1)
    return problem._replace(file=file, line=place.line, columns=columns)  # a configuration may be of several files


def _describe(finding: Incident) -> str:
    """Return what was found, and from which step on."""
    return clean(step_prefix(finding) + finding_title(finding), MAX_TITLE)


def _actions(finding: Incident) -> tuple[str, ...]:
    """Return what to do first, and the restart; the report has the rest."""
    texts = [action.text for action in do_now(finding)]
    second = texts[1:][-1:] if finding.restart else texts[1:2]
    return tuple(clean(text, MAX_TEXT) for text in (*texts[:1], *second) if text)


def _accepted(finding: Incident) -> str:
    return clean(finding.accepted.text, MAX_TEXT) if finding.accepted else ""


# ---- GitHub: workflow commands, an annotation for each finding, and the summary of a job

MAX_SHOWN = 10  # annotations per command and step: GitHub drops the rest silently
LOUD = (Severity.CRITICAL, Severity.WARNING)
COMMANDS = {
    Severity.CRITICAL: "error",
    UNREAD: "error",
    Severity.WARNING: "warning",
    UNKNOWN: "warning",
    Severity.NOTE: "notice",
}


def github(judged: Judged, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return an annotation for each finding, the worst of all runs first, and a line with the verdict."""
    runs, told = _told(judged, look), list[Problem]()
    for run in runs:  # a note beside something worse does not belong in a pull request
        told += (one for one in run.problems if one.severity in (run.verdict, *LOUD) and not one.ignored)
    lines: list[str] = []
    shown: Counter[str] = Counter()
    for one in sorted(told, key=lambda one: ORDER.index(one.severity)):
        command = COMMANDS[one.severity]
        shown[command] += 1
        if shown[command] <= MAX_SHOWN:
            columns = zip(("col", "endColumn"), one.columns, strict=False)
            values = [("file", one.file), ("line", one.line), *columns, ("title", one.title)]
            properties = ",".join(f"{key}={_property(value)}" for key, value in values if value not in (None, ""))
            message = "\n".join([f"{one.run} ({one.rule})", *one.actions])
            lines.append(f"::{command} {properties}::{_data(message)}")
    for command, count in shown.items():
        if count > MAX_SHOWN:
            more = counted(count - MAX_SHOWN, f"more {command}")
            lines.append(f"Not annotated: {more}, as GitHub shows {MAX_SHOWN} a step.")
    closing = _counts(runs)
    if len(runs) == 1 and runs[0].badge != UNREAD:
        closing = f"{BADGES[runs[0].badge].word}  {runs[0].headline}"
    return "\n".join([*lines, inert(closing), ""])


def summary(runs: Sequence[Outcome] | Sequence[Record], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the job's summary: the report of one run, else that of many."""
    outcomes = [run for run in runs if isinstance(run, Outcome)]
    if not outcomes:
        return "".join(fleet.markdown(run for run in runs if not isinstance(run, Outcome)))
    first = outcomes[0].found
    if not isinstance(first, StabtreeError) and not first.before_run:
        return markdown(first, look)
    return preflight.markdown(outcomes, look)


def _counts(runs: Sequence[Told]) -> str:
    """Count the runs of each verdict, in a line."""
    counts = Counter(run.badge for run in runs)
    parts = [f"{counts[verdict]:,} {BADGES[verdict].word.lower()}" for verdict in ORDER if verdict in counts]
    return f"{counted(len(runs), 'run')}: {', '.join(parts)}"


def _data(text: str) -> str:
    """Escape what follows the second `::`."""
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    """Escape a property's value, which a comma or `::` would end."""
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")


# ---- JUnit XML: a suite for each run, with a case for each finding and for each section without one


def junit(judged: Judged, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a suite for each run, in the order of the paths."""
    root = ET.Element("testsuites", name="stabtree")
    for run in _told(judged, look):
        suite = ET.SubElement(root, "testsuite", name=run.name)
        for case in run.cases:
            case.set("classname", run.name)
            suite.append(case)
    for element in (root, *root):
        for count, tag in {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            element.set(count, str(sum(1 for _ in element.iter(tag))))
    ET.indent(root)
    # Two hashes may start a command of the service that prints it.
    text = ET.tostring(root, encoding="unicode").replace("##", "#&#35;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _cases(found: Diagnosis, look: RenderOptions) -> Iterator[ET.Element]:
    if found.verdict == UNKNOWN:
        # An open verdict must not read as a green one, unless that was asked for.
        kind = "skipped" if look.accept_partial and found.partial else "error"
        yield _case("verdict", "failure" if fails(UNKNOWN, look.fail_on) else kind, NOT_JUDGED, title(found))
    answers = {visit.question.id: visit.answer for visit in chain(found.path, *found.further)}
    for item in found.sections:
        heading = item.section.heading
        cases = [_reached(heading, one, look) for one in found.reached if one.section == item.section.id]
        for one in found.ignored:
            if one.section == item.section.id:
                why = _accepted(one)
                message = f"{'accepted' if why else 'ignored'}: {_describe(one)}"
                cases.append(_case(f"{heading}: {one.leaf.id}", "skipped", "", message, why))
        yield from cases or [_checked(found, item, answers.get(item.section.entry), look)]


def _reached(heading: str, finding: Incident, look: RenderOptions) -> ET.Element:
    """Return the case of a leaf that a section ended at."""
    severity, name = str(finding.leaf.severity), f"{heading}: {finding.leaf.id}"
    if fails(severity, look.fail_on):
        return _case(name, "failure", severity, _describe(finding), "\n".join(_actions(finding)))
    case = _case(name)
    ET.SubElement(case, "system-out").text = f"{severity}: {_describe(finding)}"
    return case


def _checked(found: Diagnosis, item: Walked, answer: Answer | None, look: RenderOptions) -> ET.Element:
    """Return the case of a section in which nothing was found, or that was not checked."""
    heading, end = item.section.heading, found.end
    if item.section.id in sections_found(found) and fails(end.severity, look.fail_on):
        return _case(f"{heading}: {end.id}", "failure", str(end.severity), f"{end.title} ({end.id})")
    if answer is None:
        return _case(heading, "skipped", "", item.why)
    return _case(heading, *(("skipped", "", answer.reason) if answer.verdict == UNKNOWN else ()))


def _case(name: str, kind: str = "", type_: str = "", message: str = "", text: str = "") -> ET.Element:
    """Return a case, with its outcome if that is not a pass."""
    case = ET.Element("testcase", name=clean(name, MAX_TITLE))
    if kind:
        outcome = ET.SubElement(case, kind, {"type": type_} if type_ else {})
        outcome.set("message", clean(message, MAX_TITLE))
        outcome.text = inert("\n".join(clean(line, MAX_TEXT) for line in text.splitlines())) or None
    return case


# ---- SARIF

SARIF = {command: command.replace("notice", "note") for command in COMMANDS.values()}
_LINK = re.compile(r"\](?=\()|\{(?=\d+\})")


def sarif(judged: Judged, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return SARIF 2.1.0, which code scanning services read: to it all runs are one run of the tool."""
    rules: dict[str, dict[str, Any]] = {}
    results, failed = [], []
    for one in chain.from_iterable(run.problems for run in _told(judged, look)):
        path = one.file.replace("\\", "/")
        # GitHub rejects a result without a line.
        physical = {
            "artifactLocation": {"uri": f"file://{quote(path)}" if path.startswith("/") else quote(path)},
            "region": {"startLine": one.line or 1} | dict(zip(("startColumn", "endColumn"), one.columns, strict=False)),
        }
        shared = {
            "level": SARIF[COMMANDS[one.severity]],
            # A blank breaks links and placeholders: a message may hold no other markup.
            "message": {"text": _unlinked("\n".join([f"{one.title} ({one.run})", *one.actions]))},
            "locations": [
                {"physicalLocation": physical, "logicalLocations": [{"name": one.run, "kind": "resource"}]},
            ],
        }
        if one.leaf is None:  # what could not be read or judged is no result
            failed.append({"descriptor": {"id": one.rule}, **shared})
            continue
        leaf = one.leaf
        why = clean(leaf.why, 2 * MAX_TEXT) or clean(leaf.title)
        rules[one.rule] = {
            "id": one.rule,
            "shortDescription": {"text": clean(leaf.title)},
            "fullDescription": {"text": why},
            "help": {"text": "\n".join(filter(None, [why, clean(plain(leaf.fix), MAX_TEXT)]))},
            "defaultConfiguration": {"level": SARIF[COMMANDS[leaf.severity]]},
            **({"helpUri": leaf.page} if leaf.page else {}),
        }
        why_accepted = {"justification": _unlinked(one.accepted)} if one.accepted else {}
        results.append(
            {
                "ruleId": one.rule,
                "ruleIndex": [*rules].index(one.rule),
                **shared,
                # GitHub identifies a result by the second one alone.
                "partialFingerprints": {FINGERPRINT: one.fingerprint, "primaryLocationLineHash": one.fingerprint},
                **({"suppressions": [{"kind": "external", **why_accepted}]} if one.ignored else {}),
            }
        )
    unread = any(one["descriptor"] == {"id": UNREAD} for one in failed)
    invocation: dict[str, Any] = {"executionSuccessful": not unread}
    if look.exit_code is not None:
        invocation["exitCode"] = look.exit_code
    if failed:
        invocation["toolExecutionNotifications"] = failed
    tool = {"driver": {"name": "stabtree", "version": __version__, "rules": [*rules.values()]}}
    run = {"tool": tool, "invocations": [invocation], "columnKind": "unicodeCodePoints", "results": results}
    return written({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]})


def _unlinked(text: str) -> str:
    return _LINK.sub(lambda found: f"{found[0]} ", text)
