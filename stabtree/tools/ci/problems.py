"""What is reported to a CI service, whatever its format: each finding in a few plain texts, safe to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.report.advice import do_now
from stabtree.report.words import all_clear, finding_title, step_prefix, title
from stabtree.tools.check.report import location_of
from stabtree.tools.ci.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.tree.model import Leaf

MAX_PATH = 1000
MAX_TITLE = 200
MAX_TEXT = 500
NOT_JUDGED = "not-judged"
"""The rule of a run that could not be judged; `unread` is that of a log that could not be read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding, or why there is none, as a service shows it.

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


def named(diagnosis: Diagnosis) -> Outcome:
    """Return the outcome of a run that is diagnosed alone, by the name of its log."""
    sources = diagnosis.run.sources
    return Outcome(sources[0].path if sources else diagnosis.run.name, diagnosis)


def problems(outcomes: Sequence[Outcome], *, ignored: bool = False) -> Iterator[Problem]:
    """Yield the problems of runs, by run, the worst of each first.

    A healthy run has none, though it may have notes that require nothing.

    Args:
        outcomes: the runs.
        ignored: whether to include findings that are ignored or accepted.
    """
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            problem = clean(found.problem, MAX_TITLE)
            file = clean(outcome.name, MAX_PATH)
            yield Problem(file, file, None, UNREAD, UNREAD, f"Not read: {problem}", _texts([found.hint]))
            continue
        if found.verdict == UNKNOWN:
            run, file = clean(outcome.name, MAX_PATH), _log_of(outcome.name, found)
            yield Problem(run, file, None, NOT_JUDGED, UNKNOWN, clean(title(found), MAX_TITLE))
        if not all_clear(found):
            yield from (_problem(outcome.name, found, finding) for finding in found.findings)
        if ignored:
            yield from (_problem(outcome.name, found, finding, ignored=True) for finding in found.ignored)


def _problem(name: str, diagnosis: Diagnosis, finding: Incident, *, ignored: bool = False) -> Problem:
    file, line = _log_of(name, diagnosis), None
    if diagnosis.before_run:  # a configuration may be of several files
        path, line = location_of(diagnosis, finding)
        file = clean(path, MAX_PATH) or file
    elif finding.onset_step is not None:
        line = diagnosis.run.places.get(finding.onset_step)
    return Problem(
        run=clean(name, MAX_PATH),
        file=file,
        line=line,
        rule=clean(finding.leaf.id),
        severity=str(finding.leaf.severity),
        title=describe(finding),
        actions=actions(finding),
        fingerprint=fingerprint(diagnosis, finding),
        leaf=finding.leaf,
        ignored=ignored,
        accepted=accepted(finding),
    )


def describe(finding: Incident) -> str:
    """Return what was found, and from which step on."""
    return clean(step_prefix(finding) + finding_title(finding), MAX_TITLE)


def accepted(finding: Incident) -> str:
    """Return why a finding is accepted; empty if it is not."""
    if finding.accepted:
        return clean(finding.accepted.text, MAX_TEXT)
    return ""


def actions(finding: Incident) -> tuple[str, ...]:
    """Return what to do first, and the restart; the report has the rest."""
    texts = [action.text for action in do_now(finding)]
    return _texts([*texts[:1], *(texts[1:][-1:] if finding.restart else texts[1:2])])


def _log_of(name: str, diagnosis: Diagnosis) -> str:
    """Return the first file that was read of what the user named."""
    sources = diagnosis.run.sources
    return clean(sources[0].path if sources else name, MAX_PATH)


def _texts(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(clean(text, MAX_TEXT) for text in texts if text)
