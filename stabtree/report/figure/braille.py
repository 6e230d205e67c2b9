"""Strokes drawn with the dots of braille cells, or with ASCII characters: all that draws on a terminal uses this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Floats
    from stabtree.report.text import Line

Ink = list[list[int]]
"""The dots of each cell, row by row; a dot is a bit, counted down and then across."""


@dataclass(frozen=True, slots=True)
class Pen:
    """What a figure is drawn with.

    Attributes:
        across: dots of a cell from left to right.
        down: from top to bottom.
        glyphs: the dots of a cell -> the character.
        bad: drawn where a value is not finite.
        line: of a marked step.
        arrow: below the line.
        up: a value beyond the upper end of the axis.
        below: one beyond the lower end.
        first: points at the strip that moved before all others.
        cut: replaces what is left out of a long name.
    """

    across: int
    down: int
    glyphs: Mapping[int, str]
    bad: str
    line: str
    arrow: str
    up: str
    below: str
    first: str
    cut: str


def _braille(dots: int) -> str:
    bits = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)  # counted down, then across
    return chr(0x2800 + sum(bit for index, bit in enumerate(bits) if dots >> index & 1))


BRAILLE = Pen(2, 4, {dots: _braille(dots) for dots in range(1, 256)}, "×", "┊", "▲", "↑", "↓", "◀", "…")
ASCII = Pen(1, 2, {1: "'", 2: ".", 3: "*"}, "x", "|", "^", "^", "v", "<", "~")


def ink(lows: Floats, highs: Floats, rows: int, pen: Pen) -> Ink:
    """Return the dots of each cell: a stroke from the lowest to the highest level of each column of dots.

    Args:
        lows: float64 (dots,), levels from 0 at the bottom to `rows * pen.down - 1`; NaN where nothing is drawn.
        highs: the upper ends of the strokes, as long.
        rows: rows of cells.
        pen: what it is drawn with.
    """
    cells = [[0] * (len(lows) // pen.across) for _ in range(rows)]
    for dot in np.flatnonzero(~np.isnan(lows)).tolist():
        for level in range(round(lows[dot]), round(highs[dot]) + 1):
            row, down = divmod(rows * pen.down - 1 - level, pen.down)
            cells[row][dot // pen.across] |= 1 << (dot % pen.across * pen.down + down)
    return cells


def merged(line: Line) -> Line:
    """Return a line with neighbours of one style as one piece."""
    found: Line = []
    for text, style in line:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + text, style)
        else:
            found.append((text, style))
    return found
