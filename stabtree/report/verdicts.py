"""The badge of each verdict, and the signs of causes and sections: one place for words, styles and colours."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.result import CauseState
from stabtree.judging.verdict import UNREAD
from stabtree.tree.model import Severity


class Badge(NamedTuple):
    """How a verdict is shown: what a report calls it, and how rich writes the word."""

    word: str
    style: str


BADGES: dict[str, Badge] = {
    Severity.OK: Badge("OK", "bold color(231) on color(28)"),
    Severity.NOTE: Badge("NOTE", "bold color(231) on color(25)"),
    Severity.WARNING: Badge("WARNING", "bold color(16) on color(178)"),
    Severity.CRITICAL: Badge("CRITICAL", "bold color(231) on color(160)"),
    UNKNOWN: Badge("NOT JUDGED", "bold color(231) on color(240)"),
    UNREAD: Badge("NOT READ", "bold color(231) on color(90)"),
}

CAUSE_SIGNS = {
    CauseState.CONFIRMED: "●",
    CauseState.LIKELY: "◐",
    CauseState.POSSIBLE: "○",
    CauseState.NOT_CONFIRMED: "·",
    CauseState.NOT_CHECKABLE: "?",
    CauseState.RULED_OUT: "–",
}


class Tick(StrEnum):
    """What became of a section of the tree."""

    PASSED = "passed"
    FOUND = "found"
    OPEN = "open"  # it applies, and its entry question has no answer
    SKIPPED = "skipped"  # it does not apply to this run


TICK_SIGNS = {Tick.PASSED: "✓", Tick.FOUND: "✗", Tick.OPEN: "?", Tick.SKIPPED: "–"}
