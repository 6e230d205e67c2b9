"""How each verdict looks: the one place for the word, the style on a screen and the colour in a graph."""

from __future__ import annotations

from typing import NamedTuple

from stabtree.answer import UNKNOWN
from stabtree.tree.model import Severity


class Badge(NamedTuple):
    """A verdict's looks.

    Attributes:
        word: what a report calls it.
        style: how rich writes the word.
        fill: the background of a node in a graph.
    """

    word: str
    style: str
    fill: str


LOOKS: dict[str, Badge] = {
    Severity.OK: Badge("OK", "bold white on green4", "#d6f5d6"),
    Severity.NOTE: Badge("NOTE", "bold white on dodger_blue3", "#d6e6fa"),
    Severity.WARNING: Badge("WARNING", "bold black on yellow3", "#fff0b8"),
    Severity.CRITICAL: Badge("CRITICAL", "bold white on red3", "#f9d0d0"),
    UNKNOWN: Badge("NOT JUDGED", "bold white on grey42", "#e0e0e0"),
}
