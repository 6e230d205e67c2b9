"""How each verdict looks: the one place for the word, the style on a screen and the colour in a graph."""

from __future__ import annotations

from typing import NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.judging.outcome import UNREAD
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
    Severity.OK: Badge("OK", "bold color(231) on color(28)", "#d6f5d6"),
    Severity.NOTE: Badge("NOTE", "bold color(231) on color(25)", "#d6e6fa"),
    Severity.WARNING: Badge("WARNING", "bold color(16) on color(178)", "#fff0b8"),
    Severity.CRITICAL: Badge("CRITICAL", "bold color(231) on color(160)", "#f9d0d0"),
    UNKNOWN: Badge("NOT JUDGED", "bold color(231) on color(240)", "#e0e0e0"),
    UNREAD: Badge("NOT READ", "bold color(231) on color(90)", "#ecd9f2"),
}
