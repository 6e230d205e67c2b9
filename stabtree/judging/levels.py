"""`--fail-on LEVEL`: from which verdict on the exit code is 1; and what the other exit codes say."""

from __future__ import annotations

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


def levels_of(fail_on: list[str] | None) -> frozenset[str]:
    """The levels that `--fail-on` names, split at commas; warning where it names none.

    Raises:
        StabtreeError: for a word that is no level, and for never beside another one.
    """
    chosen = [word for item in fail_on or [] for word in item.split(",")]
    for word in chosen:
        if word not in (*LEVELS, UNKNOWN, NEVER):
            hint = f"{', '.join(LEVELS)}, {UNKNOWN} or {NEVER}"
            raise StabtreeError(f"{word!r} is not a level", where="--fail-on", hint=hint)
    if NEVER in chosen and len(set(chosen)) > 1:
        raise StabtreeError("never goes with no other level", where="--fail-on", hint="type --fail-on never alone")
    return frozenset(chosen if set(chosen) - {UNKNOWN} else [*chosen, Severity.WARNING])


def fails(verdict: str, levels: frozenset[str]) -> bool:
    """Whether a verdict is at or above one of the levels."""
    if verdict == UNKNOWN:
        return UNKNOWN in levels
    bars = [level.rank for level in LEVELS if level in levels]
    return bool(bars) and Severity(verdict).rank >= min(bars)


def exit_code(verdicts: Iterable[str], levels: frozenset[str]) -> int:
    """What the verdicts of all runs make of the exit code; `unread` stands for a log that could not be read."""
    codes = {
        FOUND
        if verdict != UNREAD and fails(verdict, levels)
        else {UNREAD: UNUSABLE, UNKNOWN: NOT_JUDGED}.get(verdict, 0)
        for verdict in verdicts
    }
    return next((code for code in PRECEDENCE if code in codes), 0)
