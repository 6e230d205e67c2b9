"""The outcomes of runs, the verdicts from which on a command fails (`--fail-on LEVEL`), and its exit codes."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import FOUND, NOT_JUDGED, PRECEDENCE, UNUSABLE, StabtreeError
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Diagnosis

UNREAD = "unread"
ORDER = (Severity.CRITICAL, Severity.WARNING, UNREAD, UNKNOWN, Severity.NOTE, Severity.OK)
"""The verdicts, worst first; a log that can't be read may hide anything."""
LEVELS = tuple(level for level in Severity if level is not Severity.OK)
NEVER = "never"
NOT_PARTIAL = "not-partial"
WORDS = (*LEVELS, UNKNOWN, NEVER, NOT_PARTIAL)
"""The words that `--fail-on` takes."""


class Outcome(NamedTuple):
    """The outcome of one of several runs: its name, and its diagnosis or why it can't be read."""

    name: str
    found: Diagnosis | StabtreeError

    @property
    def verdict(self) -> str:
        """The verdict, `unread` for a log that can't be read."""
        if isinstance(self.found, StabtreeError):
            return UNREAD
        return str(self.found.verdict)

    @property
    def partial(self) -> bool:
        """Whether every check that could run passed."""
        return not isinstance(self.found, StabtreeError) and self.found.partial


def worst(outcomes: Sequence[Outcome]) -> str:
    """Return the worst verdict of several runs."""
    return min((outcome.verdict for outcome in outcomes), key=ORDER.index)


def levels_of(fail_on: Iterable[str]) -> frozenset[str]:
    """Return the levels that `--fail-on` names, split at commas; warning if it names none.

    Raises:
        StabtreeError: for a word that is not a level, and for never beside another level.
    """
    words = _words(fail_on)
    for word in words:
        if word not in WORDS:
            hint = f"{', '.join(WORDS[:-1])} or {WORDS[-1]}"
            raise StabtreeError(f"{word!r} is not a level", where="--fail-on", hint=hint)
    levels = set(words) - {NOT_PARTIAL}
    if NEVER in levels and len(levels) > 1:
        raise StabtreeError(
            "never can't be combined with another level", where="--fail-on", hint="type --fail-on never alone"
        )
    if not levels - {UNKNOWN}:
        levels.add(Severity.WARNING)
    return frozenset(levels)


def accepts_partial(fail_on: Iterable[str]) -> bool:
    """Return whether `--fail-on` lets a run pass if every check that could run passed."""
    return NOT_PARTIAL in _words(fail_on)


def _words(fail_on: Iterable[str]) -> list[str]:
    return list(chain.from_iterable(item.split(",") for item in fail_on))


def fails(verdict: str, levels: frozenset[str]) -> bool:
    """Return whether a verdict is at or above one of the levels."""
    if verdict == UNKNOWN:
        return UNKNOWN in levels
    bars = [level.rank for level in LEVELS if level in levels]
    return bool(bars) and Severity(verdict).rank >= min(bars)


def exit_code(verdicts: Iterable[str], levels: frozenset[str]) -> int:
    """Return the exit code that the verdicts of all runs add up to; `unread` is a log that could not be read."""
    codes = set()
    for verdict in verdicts:
        if verdict == UNREAD:
            codes.add(UNUSABLE)
        elif fails(verdict, levels):
            codes.add(FOUND)
        elif verdict == UNKNOWN and NEVER not in levels:
            codes.add(NOT_JUDGED)
    return next((code for code in PRECEDENCE if code in codes), 0)
