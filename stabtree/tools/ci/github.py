"""GitHub's workflow commands: an annotation for each finding, and the summary of a job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert
from stabtree.judging.outcome import ORDER, UNREAD, Outcome
from stabtree.report.markdown import escape, markdown, paged, table
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.text import counted
from stabtree.report.verdicts import BADGES
from stabtree.report.words import badge, headline
from stabtree.tools.check import markdown as preflight
from stabtree.tools.ci.problems import Problem, named, problems
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis

MAX_SHOWN = 10  # annotations per command and step: GitHub drops the rest silently
MAX_RUNS = 200  # rows of a summary, which may hold 1 MiB for each step
LOUD = (Severity.CRITICAL, Severity.WARNING)
COMMANDS = {
    Severity.CRITICAL: "error",
    UNREAD: "error",
    Severity.WARNING: "warning",
    UNKNOWN: "warning",
    Severity.NOTE: "notice",
}


def github(diagnosis: Diagnosis, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a command for each finding, and the verdict in a line."""
    word = BADGES[badge(diagnosis)].word
    return _written([named(diagnosis)], f"{word}  {clean(headline(diagnosis), 400)}")


def several(outcomes: Sequence[Outcome], _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the same for several runs, the worst finding of all first."""
    return _written(outcomes, _runs(outcomes))


def summary(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the job's summary: the report of one run, else a table of the worst."""
    first = outcomes[0].found
    if len(outcomes) == 1 and not isinstance(first, StabtreeError):
        if first.before_run:
            return preflight.markdown(outcomes, look)
        return markdown(first, look)
    ordered = sorted(outcomes, key=lambda one: ORDER.index(_badge(one)))
    more = max(len(ordered) - MAX_RUNS, 0)
    return paged(
        f"### {_runs(outcomes)}",
        table(("verdict", "run", "what was found"), map(_row, ordered[:MAX_RUNS])),
        f"and {more:,} more" if more else "",
    )


def _row(outcome: Outcome) -> list[str]:
    found = outcome.found
    text = found.problem if isinstance(found, StabtreeError) else headline(found)
    return [_word(_badge(outcome)), escape(outcome.name), escape(text)]


def _runs(outcomes: Sequence[Outcome]) -> str:
    """Count the runs of each verdict, in a line."""
    counts = Counter(map(_badge, outcomes))
    parts = [f"{counts[verdict]:,} {_word(verdict)}" for verdict in ORDER if verdict in counts]
    return f"{counted(len(outcomes), 'run')}: {', '.join(parts)}"


def _badge(outcome: Outcome) -> str:
    if isinstance(outcome.found, StabtreeError):
        return UNREAD
    return badge(outcome.found)


def _word(verdict: str) -> str:
    if verdict == UNREAD:
        return "not read"
    return BADGES[verdict].word.lower()


def _written(outcomes: Sequence[Outcome], closing: str) -> str:
    found: list[Problem] = []
    for outcome in outcomes:
        # A note beside something worse does not belong in a pull request.
        found += (one for one in problems([outcome]) if one.severity in (outcome.verdict, *LOUD))
    found.sort(key=lambda one: ORDER.index(one.severity))
    return "\n".join([*_commands(found), inert(closing), ""])


def _commands(found: Sequence[Problem]) -> Iterator[str]:
    shown: Counter[str] = Counter()
    for one in found:
        command = COMMANDS[one.severity]
        shown[command] += 1
        if shown[command] <= MAX_SHOWN:
            yield _command(command, one)
    for command, count in shown.items():
        if count > MAX_SHOWN:
            more = counted(count - MAX_SHOWN, f"more {command}")
            yield f"Not annotated: {more}, as GitHub shows {MAX_SHOWN} a step."


def _command(command: str, problem: Problem) -> str:
    values = {"file": problem.file, "line": problem.line, "title": problem.title}
    properties = ",".join(f"{key}={_property(value)}" for key, value in values.items() if value not in (None, ""))
    message = "\n".join([f"{problem.run} ({problem.rule})", *problem.actions])
    return f"::{command} {properties}::{_data(message)}"


def _data(text: str) -> str:
    """Escape what follows the second `::`."""
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    """Escape a property's value, which a comma or `::` would end."""
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")
