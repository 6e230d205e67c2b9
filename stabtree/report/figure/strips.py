"""A figure for the terminal: strips of two text rows over one axis of steps."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.report.figure.axis import LONGEST, ends, levels, short
from stabtree.report.figure.braille import ASCII, BRAILLE, Ink, Pen, ink, merged
from stabtree.report.figure.model import column_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.report.figure.model import Figure, Strip
    from stabtree.report.text import Line, Piece

    CellMark = tuple[int, str, str]
    """A mark on the terminal: its cell, its style and its label."""

ROWS = 2  # text rows of a strip
MIN_NAME, MAX_NAME, NUMBER = 12, 18, LONGEST  # columns of a name, and of a number at the axis
MIN_CELLS = 10
LINES = {"onset": "mark", "restart": "restart", "parting": "parting"}  # the kind of a mark -> its style
# The words before the step of a mark, by its style: the first of these that leaves room for all of them.
WORDS: tuple[Mapping[str, str], ...] = (
    {"mark": "onset", "restart": "restart", "parting": "they part at"},
    {"restart": "restart"},
    {"mark": "onset"},
    {},
)


def columns_for(width: int) -> int:
    """Return into how many columns a figure is to be cut for a screen of that width."""
    return BRAILLE.across * _cells(width, MIN_NAME)


def strips(figure: Figure, width: int, *, ascii: bool = False, height: int = ROWS) -> list[Line]:  # noqa: A002 - as in `RenderOptions`
    """Draw the strips, each as high as asked, and a last row with the steps.

    A column shows the range of the values that fall into it. Styles: `title`, `axis`, `curve`; `mark` for an onset
    and for values that are not finite, `restart`, and `first` for what moved before all others.

    Args:
        figure: what to draw.
        width: columns in all, names and numbers included.
        ascii: draw with nothing but ASCII characters.
        height: text rows of a strip.
    """
    pen = ASCII if ascii else BRAILLE
    room = max(MIN_NAME, min(MAX_NAME, max(len(strip.metric) for strip in figure.strips), width // 4))
    cells = _cells(width, room)
    marks = _marks(figure, cells)
    styles = {cell: style for cell, style, _ in marks}
    still = {cell: style for cell, style in styles.items() if style != LINES["onset"]}
    lines: list[Line] = []
    for strip in figure.strips:
        left = _left(strip, room, height, pen)
        right = _rows(strip, cells, styles if strip.moved else still, height, pen)
        lines += [[*label, *drawn] for label, drawn in zip(left, right, strict=True)]
    lines.append([(" " * (room + NUMBER + 2), ""), *_steps(figure, marks, cells, pen)])
    return lines


def _cells(width: int, room: int) -> int:
    return max(MIN_CELLS, width - room - NUMBER - 2)


def _marks(figure: Figure, cells: int) -> list[CellMark]:
    """Return the marks; the strip that moved first is named beside itself."""
    steps = np.array([mark.step for mark in figure.marks], np.int64)
    columns = column_of(steps, figure.first_step, figure.last_step, cells)
    marks = zip(columns.tolist(), figure.marks, strict=True)
    return [(cell, LINES[mark.kind], mark.label) for cell, mark in marks if mark.kind in LINES]


def _left(strip: Strip, room: int, height: int, pen: Pen) -> list[Line]:
    """Return its name and the upper end of its axis; below, its notes and the lower end."""
    low, high = ends(strip.low, strip.high)
    if np.isnan(strip.highs).all():
        low = high = ""
    elif strip.low == strip.high:
        low = ""
    first = f"{pen.first} first " if strip.first else ""
    note = " ".join(_notes(strip))[: room - len(first)]
    empty: Line = [(" " * (room + NUMBER + 2), "")]
    return [
        [(f"{_name(strip, room, pen):<{room}} ", "title"), (f"{high:>{NUMBER}} ", "axis")],
        *[empty] * (height - 2),
        [(first, "first"), (f"{note:<{room - len(first)}} ", "axis"), (f"{low:>{NUMBER}} ", "axis")],
    ]


def _name(strip: Strip, room: int, pen: Pen) -> str:
    name = clean(strip.metric)
    if len(name) > room:
        kept = room - 1
        name = name[: kept // 2] + pen.cut + name[len(name) - (kept - kept // 2) :]
    if pen is ASCII:
        return name.encode("ascii", "replace").decode()
    return name


def _notes(strip: Strip) -> list[str]:
    notes = []
    if strip.clipped is not None:
        notes.append(f"max {short(strip.clipped)}")
    if strip.clipped_low is not None:
        notes.append(f"min {short(strip.clipped_low)}")
    if strip.log:
        notes.append("(log)")
    return notes


def _rows(strip: Strip, cells: int, marks: Mapping[int, str], height: int, pen: Pen) -> list[Line]:
    """Draw the rows of a strip: the curve, over it what is not finite or beyond the axis, behind it marked steps."""
    columns = np.arange(len(strip.lows)) * cells // len(strip.lows)
    rows: list[dict[int, Piece]] = [{cell: (pen.line, style) for cell, style in marks.items()} for _ in range(height)]
    if strip.behind:
        _draw(rows, _dotted(_ink(strip.behind, cells, height, pen), pen), pen, "behind")
    _draw(rows, _ink(strip, cells, height, pen), pen, "curve")
    rows[-1].update(dict.fromkeys(columns[strip.lows < strip.low].tolist(), (pen.below, "curve")))
    rows[0].update(dict.fromkeys(columns[strip.highs > strip.high].tolist(), (pen.up, "curve")))
    rows[0].update(dict.fromkeys(columns[strip.bad].tolist(), (pen.bad, "mark")))
    return [merged([row.get(cell, (" ", "")) for cell in range(cells)]) for row in rows]


def _draw(rows: Sequence[dict[int, Piece]], dots: Ink, pen: Pen, style: str) -> None:
    for row, codes in zip(rows, dots, strict=True):
        row.update({cell: (pen.glyphs[code], style) for cell, code in enumerate(codes) if code})


def _dotted(dots: Ink, pen: Pen) -> Ink:
    """Keep every second column of dots, so that a curve behind another looks different without colours too."""
    if pen.across > 1:
        kept = (1 << pen.down) - 1
        return [[code & kept for code in row] for row in dots]
    return [[code * (cell % 2) for cell, code in enumerate(row)] for row in dots]


def _ink(strip: Strip, cells: int, height: int, pen: Pen) -> Ink:
    lows, highs = _strokes(strip, cells * pen.across, height * pen.down)
    return ink(lows, highs, height, pen)


def _strokes(strip: Strip, dots: int, height: int) -> tuple[Floats, Floats]:
    """Return the ends of the stroke in each column of dots, lines between what is joined included: (dots,) each."""
    filled = np.flatnonzero(~np.isnan(strip.highs))
    columns = filled * dots // len(strip.highs)
    lows, highs = np.full(dots, np.nan), np.full(dots, np.nan)
    low = levels(strip.lows[filled], strip.low, strip.high, log=strip.log) * (height - 1)
    high = levels(strip.highs[filled], strip.low, strip.high, log=strip.log) * (height - 1)
    np.fmin.at(lows, columns, low)
    np.fmax.at(highs, columns, high)
    middles = (low + high) / 2
    for at in np.flatnonzero(strip.joined[filled]).tolist():
        left, right = int(columns[at - 1]), int(columns[at])
        edges = np.clip(np.arange(left, right + 2) - 0.5, left, right)
        line = np.interp(edges, (left, right), (middles[at - 1], middles[at]))
        between = slice(left, right + 1)
        lows[between] = np.fmin(lows[between], np.minimum(line[:-1], line[1:]))
        highs[between] = np.fmax(highs[between], np.maximum(line[:-1], line[1:]))
    return lows, highs


def _steps(figure: Figure, marks: Sequence[CellMark], cells: int, pen: Pen) -> Line:
    """Return the first step, what is marked, and the last step; an end gives way to a mark, a word to a number."""
    first, last = f"{figure.first_step:,}", f"{figure.last_step:,}"
    shown = ((first, last), ("", last), (first, ""), ("", ""))
    tries = [
        _laid_out([_worded(mark, words) for mark in marks], cells, pen, *both) for words, both in product(WORDS, shown)
    ]
    return min(tries, key=lambda tried: tried[0])[1]


def _worded(mark: CellMark, words: Mapping[str, str]) -> CellMark:
    cell, style, label = mark
    return cell, style, f"{words.get(style, '')} {label}".lstrip()


def _laid_out(marks: Sequence[CellMark], cells: int, pen: Pen, first: str, last: str) -> tuple[int, Line]:
    """Return how many labels found no room in the row with these ends, and the row."""
    row: Line = [(" ", "")] * cells
    ends_fit = _put(row, 0, first, "axis") and _put(row, cells - len(last), last, "axis")
    lacking = 0 if ends_fit else len(marks) + 1
    for cell, style, _ in marks:
        lacking += any(style == "axis" for _, style in row[max(0, cell - 1) : cell + 2])
        row[cell] = (pen.arrow, style)
    for cell, style, label in marks:
        sides = [cell + 2, cell - 1 - len(label)]
        if style == "restart":
            sides.reverse()
        lacking += not any(_put(row, start, label, style) for start in sides)
    return lacking, merged(row)


def _put(row: Line, start: int, text: str, style: str) -> bool:
    """Write a text where it touches no other; return whether it found room."""
    end = start + len(text)
    if start < 0 or end > len(row) or any(char != " " for char, _ in row[max(0, start - 1) : end + 1]):
        return not text
    row[start:end] = [(char, style) for char in text]
    return True
