"""`--fail-on LEVEL`: the verdicts from which on the exit code is 1, and the other exit codes."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.judging.codes import FOUND, NOT_JUDGED, PRECEDENCE, UNUSABLE
from stabtree.judging.outcome import UNREAD
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

LEVELS = tuple(level for level in Severity if level is not Severity.OK)
NEVER = "never"
NOT_PARTIAL = "not-partial"
WORDS = (*LEVELS, UNKNOWN, NEVER, NOT_PARTIAL)
"""The words that `--fail-on` takes."""


def levels_of(fail_on: list[str] | None) -> frozenset[str]:
    """Return the levels that `--fail-on` names, split at commas; warning if it names none.

    Raises:
        StabtreeError: for a word that is not a level, and for never beside another level.
    """
    words = _words(fail_on or ())
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
    codes = {_code(verdict, levels) for verdict in verdicts}
    return next((code for code in PRECEDENCE if code in codes), 0)


def _code(verdict: str, levels: frozenset[str]) -> int:
    if verdict == UNREAD:
        return UNUSABLE
    if fails(verdict, levels):
        return FOUND
    if verdict == UNKNOWN and NEVER not in levels:
        return NOT_JUDGED
    return 0
