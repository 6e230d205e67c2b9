"""What CI services read: GitHub's annotations and summary, JUnit XML, SARIF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from stabtree._version import __version__
from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert, masked
from stabtree.judging.verdict import ORDER, UNREAD, Outcome, fails
from stabtree.report.advice import do_now
from stabtree.report.json import written
from stabtree.report.markdown import markdown
from stabtree.report.outputs import DEFAULT_OPTIONS, MARKDOWN, RenderOptions
from stabtree.report.page import BADGES, counted
from stabtree.report.words import all_clear, badge, finding_title, headline, sections_found, step_prefix, title
from stabtree.tools.check import report as preflight
from stabtree.tools.ci.baseline import FINGERPRINT, fingerprint
from stabtree.tools.fleet.outputs import several
from stabtree.tree.fixes import plain
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.common.answer import Answer
    from stabtree.diagnosis.result import Diagnosis, Incident, Walked
    from stabtree.tree.model import Leaf

    Judged = Diagnosis | Sequence[Outcome]
    """A run that is diagnosed alone, or the outcomes of several."""

MAX_PATH = 1000
MAX_TITLE = 200
MAX_TEXT = 500
NOT_JUDGED = "not-judged"
"""The rule of a run that could not be judged; `unread` is that of a log that could not be read."""


class Problem(NamedTuple):
    """A finding, or why there is none, in plain texts that are safe to show.

    Attributes:
        run: what was named, as it can be typed.
        file: the log.
        line: the line of the log in which it begins; None if unknown.
        rule: the leaf, `not-judged`, or `unread`.
        severity: that of the leaf; `unknown` or `unread` if there is none.
        title: what was found, and at which step.
        actions: what to do, in order.
        fingerprint: what identifies it; empty if nothing was found.
        leaf: the leaf itself.
        ignored: whether it is ignored or accepted.
        accepted: why it is accepted; empty for a leaf that is ignored.
        columns: the first column of the word in that line, from 1, and the one behind it, if they are known.
    """

    run: str
    file: str
    line: int | None
    rule: str
    severity: str
    title: str
    actions: tuple[str, ...] = ()
    fingerprint: str = ""
    leaf: Leaf | None = None
    ignored: bool = False
    accepted: str = ""
    columns: tuple[int, ...] = ()


def problems(judged: Judged, *, ignored: bool = False) -> Iterator[Problem]:
    """Yield the problems of runs, by run, the worst of each first.

    A healthy run has none, though it may have notes that require nothing.

    Args:
        judged: the runs.
        ignored: whether to include findings that are ignored or accepted.
    """
    for outcome in _outcomes(judged):
        name, found = clean(outcome.name, MAX_PATH), outcome.found
        if isinstance(found, StabtreeError):
            hint = (clean(found.hint, MAX_TEXT),) if found.hint else ()
            yield Problem(name, name, None, UNREAD, UNREAD, f"Not read: {clean(found.problem, MAX_TITLE)}", hint)
            continue
        sources = found.run.sources
        log = clean(sources[0].path if sources else outcome.name, MAX_PATH)
        if found.verdict == UNKNOWN:
            yield Problem(name, log, None, NOT_JUDGED, UNKNOWN, clean(title(found), MAX_TITLE))
        if not all_clear(found):
            yield from (_problem(name, log, found, finding) for finding in found.findings)
        if ignored:
            yield from (
                _problem(name, log, found, finding)._replace(ignored=True, accepted=_accepted(finding))
                for finding in found.ignored
            )


def _outcomes(judged: Judged) -> Sequence[Outcome]:
    """Return the outcomes of runs; a run that is diagnosed alone has the name of its log."""
    if isinstance(judged, Sequence):
        return judged
    sources = judged.run.sources
    return [Outcome(sources[0].path if sources else judged.run.name, judged)]


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


def github(judged: Judged, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return an annotation for each finding, the worst of all runs first, and a line with the verdict."""
    outcomes = _outcomes(judged)
    # A note beside something worse does not belong in a pull request.
    told = [one for each in outcomes for one in problems([each]) if one.severity in (each.verdict, *LOUD)]
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
    only = outcomes[0].found
    closing = _counts(outcomes)
    if len(outcomes) == 1 and not isinstance(only, StabtreeError):
        closing = f"{BADGES[badge(only)].word}  {clean(headline(only), 400)}"
    return "\n".join([*lines, inert(closing), ""])


def summary(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the job's summary: the report of one run, else that of many."""
    first = outcomes[0].found
    if not isinstance(first, StabtreeError) and first.before_run:
        return preflight.markdown(outcomes, look)
    if not isinstance(first, StabtreeError) and len(outcomes) == 1:
        return markdown(first, look)
    return several(outcomes, look, name=MARKDOWN)


def _counts(outcomes: Sequence[Outcome]) -> str:
    """Count the runs of each verdict, in a line."""
    counts = Counter(
        UNREAD if isinstance(outcome.found, StabtreeError) else badge(outcome.found) for outcome in outcomes
    )
    parts = [f"{counts[verdict]:,} {BADGES[verdict].word.lower()}" for verdict in ORDER if verdict in counts]
    return f"{counted(len(outcomes), 'run')}: {', '.join(parts)}"


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
    for outcome in _outcomes(judged):
        name = clean(outcome.name, MAX_PATH)
        suite = ET.SubElement(root, "testsuite", name=name)
        for case in _cases(outcome, look):
            case.set("classname", name)
            suite.append(case)
    for element in (root, *root):
        for count, tag in {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            element.set(count, str(sum(1 for _ in element.iter(tag))))
    ET.indent(root)
    # Two hashes may start a command of the service that prints it.
    text = ET.tostring(root, encoding="unicode").replace("##", "#&#35;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _cases(outcome: Outcome, look: RenderOptions) -> Iterator[ET.Element]:
    found = outcome.found
    if isinstance(found, StabtreeError):
        yield _case("read", "error", UNREAD, found.problem, found.hint)
        return
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
    for one in problems(judged, ignored=True):
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
