"""A figure for the terminal: strips of two text rows over one axis of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.render.figure.levels import levels
from stabtree.render.figure.model import column_of
from stabtree.render.figure.numbers import LONGEST, ends, short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.render.figure.model import Figure, Strip
    from stabtree.render.plot import Line

ROWS = 2  # text rows of a strip
NAME, NAME_MOST, NUMBER = 12, 18, LONGEST  # columns of a name, at least and at most, and of a number at the axis
LEAST_CELLS = 10


@dataclass(frozen=True, slots=True)
class Pen:
    """What a figure is drawn with.

    Attributes:
        across: dots of a cell from left to right.
        down: from top to bottom.
        glyphs: the dots of a cell -> the character; a dot is a bit, counted down and then across.
        bad: stands where a value is not finite.
        line: of a marked step.
        arrow: below the line.
        up: a value beyond the upper end of the axis.
        below: one beyond the lower end.
        first: points at the strip that moved before all others.
        cut: stands for what is left out of a long name.
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


_BITS = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)  # of a braille cell: counted down, then across
_BRAILLE = {
    dots: chr(0x2800 + sum(bit for place, bit in enumerate(_BITS) if dots >> place & 1)) for dots in range(1, 256)
}
BRAILLE = Pen(2, 4, _BRAILLE, "×", "┊", "▲", "↑", "↓", "◀", "…")
ASCII = Pen(1, 2, {1: "'", 2: ".", 3: "*"}, "x", "|", "^", "^", "v", "<", "~")
LINES = {"onset": "mark", "restart": "restart", "parting": "parting"}  # the kind of a mark -> its style
# What stands before the step of a mark, by its style: the first of these that leaves room for all of them.
WORDS: tuple[Mapping[str, str], ...] = (
    {"mark": "onset", "restart": "restart", "parting": "they part at"},
    {"restart": "restart"},
    {"mark": "onset"},
    {},
)


def columns_for(width: int) -> int:
    """Into how many columns a figure is to be cut for a screen of that width."""
    return BRAILLE.across * _cells(width, NAME)


def strips(figure: Figure, width: int, *, ascii: bool = False) -> list[Line]:  # noqa: A002 - as in `Look`
    """The strips, two rows each, and a last row with the steps.

    A column shows the range of the values that fall into it. Styles: `title`, `axis`, `curve`; `mark` for an onset
    and for values that are not finite, `restart`, and `first` for what moved before all others.

    Args:
        figure: what to draw.
        width: columns in all, names and numbers included.
        ascii: draw with nothing but ASCII characters.
    """
    pen = ASCII if ascii else BRAILLE
    room = max(NAME, min(NAME_MOST, max(len(strip.metric) for strip in figure.strips), width // 4))
    cells = _cells(width, room)
    marks = _marks(figure, cells)
    at = {cell: style for cell, style, _ in marks}
    lines: list[Line] = []
    for strip in figure.strips:
        left = _left(strip, room, pen)
        right = _drawn(strip, cells, at, pen)
        lines += [[*label, *drawn] for label, drawn in zip(left, right, strict=True)]
    lines.append([(" " * (room + NUMBER + 2), ""), *_steps(figure, marks, cells, pen)])
    return lines


def _cells(width: int, room: int) -> int:
    return max(LEAST_CELLS, width - room - NUMBER - 2)


def _marks(figure: Figure, cells: int) -> list[tuple[int, str, str]]:
    """The cell, style and label of each mark; the strip that moved first says so itself."""
    places = column_of(
        np.array([mark.step for mark in figure.marks], np.int64), figure.first_step, figure.last_step, cells
    )
    marks = zip(places.tolist(), figure.marks, strict=True)
    return [(cell, LINES[mark.kind], mark.label) for cell, mark in marks if mark.kind in LINES]


def _left(strip: Strip, room: int, pen: Pen) -> tuple[Line, Line]:
    """Its name and the upper end of its axis; below, what is to be said of it, and the lower end."""
    low, high = ("", "") if np.isnan(strip.highs).all() else ends(strip.low, strip.high)
    low = "" if strip.low == strip.high else low
    notes = [f"max {short(strip.clipped)}"] if strip.clipped is not None else []
    notes += [f"min {short(strip.clipped_low)}"] if strip.clipped_low is not None else []
    notes += ["(log)"] if strip.log else []
    name = clean(strip.metric)
    if len(name) > room:
        kept = room - 1
        name = name[: kept // 2] + pen.cut + name[len(name) - (kept - kept // 2) :]
    if not name.isascii() and pen is ASCII:
        name = name.encode("ascii", "replace").decode()
    first = f"{pen.first} first " if strip.first else ""
    note = " ".join(notes)[: room - len(first)]
    return (
        [(f"{name:<{room}} ", "title"), (f"{high:>{NUMBER}} ", "axis")],
        [(first, "first"), (f"{note:<{room - len(first)}} ", "axis"), (f"{low:>{NUMBER}} ", "axis")],
    )


def _drawn(strip: Strip, cells: int, marks: Mapping[int, str], pen: Pen) -> list[Line]:
    """The rows of a strip: the curve, over it what is not finite or beyond the axis, behind it the marked steps."""
    ink = _ink(strip, cells, pen)
    back = _dotted(_ink(strip.behind, cells, pen), pen) if strip.behind else [[0] * cells] * ROWS
    places = np.arange(len(strip.lows)) * cells // len(strip.lows)
    bad = set(places[strip.bad].tolist())
    above = set(places[strip.highs > strip.high].tolist())
    beneath = set(places[strip.lows < strip.low].tolist())
    rows: list[Line] = []
    for row in range(ROWS):
        line: Line = []
        for cell in range(cells):
            if row == 0 and cell in bad:
                line.append((pen.bad, "mark"))
            elif row == 0 and cell in above:
                line.append((pen.up, "curve"))
            elif row == ROWS - 1 and cell in beneath:
                line.append((pen.below, "curve"))
            elif dots := ink[row][cell]:
                line.append((pen.glyphs[dots], "curve"))
            elif dots := back[row][cell]:
                line.append((pen.glyphs[dots], "behind"))
            else:
                line.append((pen.line, marks[cell]) if cell in marks else (" ", ""))
        rows.append(_runs(line))
    return rows


def _dotted(ink: list[list[int]], pen: Pen) -> list[list[int]]:
    """Every second column of dots, so that without colours too a course behind another is told from it."""
    kept = (1 << pen.down) - 1
    return [[dots & kept if pen.across > 1 or cell % 2 else 0 for cell, dots in enumerate(row)] for row in ink]


def _runs(line: Line) -> Line:
    """Neighbours of one style as one piece."""
    found: Line = []
    for text, style in line:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + text, style)
        else:
            found.append((text, style))
    return found


def _ink(strip: Strip, cells: int, pen: Pen) -> list[list[int]]:
    """The dots of each cell: a stroke from the lowest to the highest value of each column of dots."""
    lows, highs = _strokes(strip, cells * pen.across, ROWS * pen.down)
    ink = [[0] * cells for _ in range(ROWS)]
    for dot in np.flatnonzero(~np.isnan(lows)).tolist():
        for level in range(round(lows[dot]), round(highs[dot]) + 1):
            row, down = divmod(ROWS * pen.down - 1 - level, pen.down)
            ink[row][dot // pen.across] |= 1 << (dot % pen.across * pen.down + down)
    return ink


def _strokes(strip: Strip, dots: int, height: int) -> tuple[Floats, Floats]:
    """The lower and the upper end of the stroke in each column of dots, lines between what is joined included."""
    filled = np.flatnonzero(~np.isnan(strip.highs))
    places = filled * dots // len(strip.highs)
    lows, highs = np.full(dots, np.nan), np.full(dots, np.nan)
    low = levels(strip.lows[filled], strip) * (height - 1)
    high = levels(strip.highs[filled], strip) * (height - 1)
    np.fmin.at(lows, places, low)
    np.fmax.at(highs, places, high)
    middles = (low + high) / 2
    for at in np.flatnonzero(strip.joined[filled]).tolist():
        left, right = int(places[at - 1]), int(places[at])
        edges = np.clip(np.arange(left, right + 2) - 0.5, left, right)
        line = np.interp(edges, (left, right), (middles[at - 1], middles[at]))
        columns = slice(left, right + 1)
        lows[columns] = np.fmin(lows[columns], np.minimum(line[:-1], line[1:]))
        highs[columns] = np.fmax(highs[columns], np.maximum(line[:-1], line[1:]))
    return lows, highs


def _steps(figure: Figure, marks: Sequence[tuple[int, str, str]], cells: int, pen: Pen) -> Line:
    """The first step, what is marked, and the last step; an end gives way to a mark, and a word to a number."""
    first, last = f"{figure.first_step:,}", f"{figure.last_step:,}"
    tries = [
        _laid([_worded(mark, words) for mark in marks], cells, pen, *both)
        for words in WORDS
        for both in ((first, last), ("", last), (first, ""), ("", ""))
    ]
    return min(tries, key=lambda tried: tried[0])[1]


def _worded(mark: tuple[int, str, str], words: Mapping[str, str]) -> tuple[int, str, str]:
    cell, style, label = mark
    return cell, style, f"{words[style]} {label}" if style in words else label


def _laid(marks: Sequence[tuple[int, str, str]], cells: int, pen: Pen, first: str, last: str) -> tuple[int, Line]:
    """The row with these ends, and how many labels found no room in it."""
    row: Line = [(" ", "")] * cells
    ends_fit = _put(row, 0, first, "axis") and _put(row, cells - len(last), last, "axis")
    lacking = 0 if ends_fit else len(marks) + 1
    for cell, style, _ in marks:
        lacking += any(style == "axis" for _, style in row[max(0, cell - 1) : cell + 2])
        row[cell] = (pen.arrow, style)
    for cell, style, label in marks:
        sides = [cell + 2, cell - 1 - len(label)]
        sides = sides[::-1] if style == "restart" else sides
        lacking += not any(_put(row, start, label, style) for start in sides)
    return lacking, _runs(row)


def _put(row: Line, start: int, text: str, style: str) -> bool:
    """Write a text where it touches no other."""
    end = start + len(text)
    if start < 0 or end > len(row) or any(char != " " for char, _ in row[max(0, start - 1) : end + 1]):
        return not text
    row[start:end] = [(char, style) for char in text]
    return True
