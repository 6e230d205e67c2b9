"""`--fail-on LEVEL`: from which verdict on the exit code is 1."""

from __future__ import annotations

from stabtree.answer import UNKNOWN
from stabtree.errors import StabtreeError
from stabtree.tree.model import Severity

LEVELS = tuple(level for level in Severity if level is not Severity.OK)
NEVER = "never"


def levels_of(fail_on: list[str] | None) -> frozenset[str]:
    """The levels that `--fail-on` names, split at commas; critical where it names none.

    Raises:
        StabtreeError: for a word that is no level, and for never beside another one.
    """
    chosen = [word for item in fail_on or [] for word in item.split(",")]
    for word in chosen:
        if word not in (*LEVELS, UNKNOWN, NEVER):
            hint = f"{', '.join(LEVELS)}, {UNKNOWN} or {NEVER}"
            raise StabtreeError(f"{word!r} is no level", where="--fail-on", hint=hint)
    if NEVER in chosen and len(set(chosen)) > 1:
        raise StabtreeError("never goes with no other level", where="--fail-on", hint="type --fail-on never alone")
    return frozenset(chosen if set(chosen) - {UNKNOWN} else [*chosen, Severity.CRITICAL])


def fails(verdict: str, levels: frozenset[str]) -> bool:
    """Whether a verdict is at or above one of the levels."""
    if verdict == UNKNOWN:
        return UNKNOWN in levels
    bars = [level.rank for level in LEVELS if level in levels]
    return bool(bars) and Severity(verdict).rank >= min(bars)
