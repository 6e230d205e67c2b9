"""What a service is told of a run, whatever its format: each finding in a few plain texts, safe to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.fingerprint import fingerprint
from stabtree.judging.outcome import UNREAD, Outcome
from stabtree.render.report.advice import do_now
from stabtree.render.report.preflight import place_of
from stabtree.render.report.words import briefed, calm, step_of, title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.tree.model import Leaf

MOST_PATH = 1000
MOST_TITLE = 200
MOST_TEXT = 500
MOST_ACTIONS = 2  # the restart and what to do first; the report has the rest
NOT_JUDGED = "not-judged"
"""What stands for a leaf where a run could not be judged; `unread` where it could not be read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is to be looked at.

    Attributes:
        run: what was named, as it can be typed.
        file: the log.
        line: the line of the log in which it begins; None where that is not known.
        rule: the leaf, `not-judged`, or `unread`.
        severity: that of the leaf; `unknown` or `unread` where there is none.
        title: what was found, and at which step.
        actions: what to do, the first thing first.
        fingerprint: what it is known by again; empty where nothing was found.
        leaf: the leaf itself.
        ignored: whether it counts for nothing.
        accepted: why, where it is accepted; empty for a leaf that is ignored.
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
    """The outcome of a run that is diagnosed alone, by the name of its log."""
    sources = diagnosis.run.sources
    return Outcome(sources[0].path if sources else diagnosis.run.name, diagnosis)


def problems(outcomes: Sequence[Outcome], *, ignored: bool = False) -> Iterator[Problem]:
    """What is to be looked at in some runs, by run, the worst of each first.

    A healthy run has none, though it may have notes that call for nothing.

    Args:
        outcomes: the runs.
        ignored: whether to name what counts for nothing too.
    """
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            told = clean(found.problem, MOST_TITLE)
            file = clean(outcome.name, MOST_PATH)
            yield Problem(file, file, None, UNREAD, UNREAD, f"Not read: {told}", _texts([found.hint]))
            continue
        if found.verdict == UNKNOWN:
            run, file = _places(outcome.name, found)
            yield Problem(run, file, None, NOT_JUDGED, UNKNOWN, clean(title(found), MOST_TITLE))
        if not calm(found):
            yield from (_problem(outcome.name, found, finding) for finding in found.findings)
        if ignored:
            yield from (_problem(outcome.name, found, finding, ignored=True) for finding in found.ignored)


def _problem(name: str, diagnosis: Diagnosis, finding: Finding, *, ignored: bool = False) -> Problem:
    run, file = _places(name, diagnosis)
    line = diagnosis.run.places.get(finding.onset_step) if finding.onset_step is not None else None
    if diagnosis.before_run:  # a configuration may be of several files
        place, line = place_of(diagnosis, finding)
        file = clean(place, MOST_PATH) if place else file
    return Problem(
        run=run,
        file=file,
        line=line,
        rule=clean(finding.leaf.id),
        severity=str(finding.leaf.severity),
        title=told(finding),
        actions=actions(diagnosis, finding),
        fingerprint=fingerprint(diagnosis, finding),
        leaf=finding.leaf,
        ignored=ignored,
        accepted=accepted(finding),
    )


def told(finding: Finding) -> str:
    """What was found, and from which step on."""
    return clean(step_of(finding) + briefed(finding), MOST_TITLE)


def accepted(finding: Finding) -> str:
    """Why it is accepted; empty for one that is not."""
    return clean(finding.accepted.text, MOST_TEXT) if finding.accepted else ""


def actions(diagnosis: Diagnosis, finding: Finding) -> tuple[str, ...]:
    """The restart, and what to do first."""
    return _texts([action.text for action in do_now(finding, diagnosis.timeline)[:MOST_ACTIONS]])


def _places(name: str, diagnosis: Diagnosis) -> tuple[str, str]:
    """What the user named, and the file that was read of it."""
    sources = diagnosis.run.sources
    return clean(name, MOST_PATH), clean(sources[0].path if sources else name, MOST_PATH)


def _texts(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(clean(text, MOST_TEXT) for text in texts if text)
