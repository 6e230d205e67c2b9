"""GitHub's workflow commands: an annotation for each of what was found, and the summary of a job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, inert
from stabtree.judging.outcome import ORDER, UNREAD, Outcome
from stabtree.render.ci.problems import Problem, named, problems
from stabtree.render.look import LOOK, Look
from stabtree.render.markdown import preflight
from stabtree.render.markdown.page import markdown
from stabtree.render.markdown.text import escape, paged, table
from stabtree.render.report.words import badge, counted, headline
from stabtree.render.verdicts import LOOKS
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis

MOST_SHOWN = 10  # of each command and step: GitHub drops the rest without a word
MOST_RUNS = 200  # rows of a summary, which may hold 1 MiB for each step
LOUD = (Severity.CRITICAL, Severity.WARNING)
COMMANDS = {
    Severity.CRITICAL: "error",
    UNREAD: "error",
    Severity.WARNING: "warning",
    UNKNOWN: "warning",
    Severity.NOTE: "notice",
}


def github(diagnosis: Diagnosis, _look: Look = LOOK) -> str:
    """A command for each of what was found, and the verdict in a line."""
    word = LOOKS[badge(diagnosis)].word
    return _written([named(diagnosis)], f"{word}  {clean(headline(diagnosis), 400)}")


def several(outcomes: Sequence[Outcome], _look: Look = LOOK) -> str:
    """The same for several runs, what is worst in any of them first."""
    return _written(outcomes, _runs(outcomes))


def summary(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """The job's summary: the report of one run, else a table of the worst."""
    first = outcomes[0].found
    if len(outcomes) == 1 and not isinstance(first, StabtreeError):
        return preflight.markdown(outcomes, look) if first.before_run else markdown(first, look)
    ordered = sorted(outcomes, key=lambda one: ORDER.index(_badge(one)))
    more = len(ordered) - len(ordered[:MOST_RUNS])
    return paged(
        f"### {_runs(outcomes)}",
        table(("verdict", "run", "what was found"), map(_row, ordered[:MOST_RUNS])),
        f"and {more:,} more" if more else "",
    )


def _row(outcome: Outcome) -> list[str]:
    found = outcome.found
    told = found.problem if isinstance(found, StabtreeError) else headline(found)
    return [_word(_badge(outcome)), escape(outcome.name), escape(told)]


def _runs(outcomes: Sequence[Outcome]) -> str:
    """How many runs there are of each verdict, in a line."""
    told = Counter(_badge(outcome) for outcome in outcomes)
    parts = [f"{told[verdict]:,} {_word(verdict)}" for verdict in ORDER if verdict in told]
    return f"{counted(len(outcomes), 'run')}: {', '.join(parts)}"


def _badge(outcome: Outcome) -> str:
    return UNREAD if isinstance(outcome.found, StabtreeError) else badge(outcome.found)


def _word(verdict: str) -> str:
    return "not read" if verdict == UNREAD else LOOKS[verdict].word.lower()


def _written(outcomes: Sequence[Outcome], closing: str) -> str:
    # A note beside something worse is no matter for a pull request.
    told = [one for outcome in outcomes for one in problems([outcome]) if one.severity in (outcome.verdict, *LOUD)]
    found = sorted(told, key=lambda one: ORDER.index(one.severity))
    return "\n".join([*_commands(found), inert(closing), ""])


def _commands(found: Sequence[Problem]) -> Iterator[str]:
    shown: Counter[str] = Counter()
    for one in found:
        command = COMMANDS[one.severity]
        shown[command] += 1
        if shown[command] <= MOST_SHOWN:
            yield _command(command, one)
    for command, count in shown.items():
        if count > MOST_SHOWN:
            more = counted(count - MOST_SHOWN, f"more {command}")
            yield f"Not annotated: {more}, as GitHub shows {MOST_SHOWN} a step."


def _command(command: str, problem: Problem) -> str:
    values = {"file": problem.file, "line": problem.line, "title": problem.title}
    properties = ",".join(f"{key}={_property(value)}" for key, value in values.items() if value not in (None, ""))
    message = "\n".join([f"{problem.run} ({problem.rule})", *problem.actions])
    return f"::{command} {properties}::{_data(message)}"


def _data(text: str) -> str:
    """What stands after the second `::`."""
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    """A property's value, which a comma or `::` would end."""
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")
