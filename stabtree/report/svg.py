"""A figure as SVG: one self-contained picture, for a file, a page or a notebook."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import stretches
from stabtree.common.text import clean
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import asset
from stabtree.report.plot import (
    COLUMNS,
    apart,
    column_of,
    levels,
    linear_ticks,
    log_ticks,
    short,
    step_ticks,
    whole_figure,
)
from stabtree.report.words import headline, main_finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.plot import Figure, Strip

PLOT, LEFT, RIGHT = 2 * COLUMNS, 76, 28
WIDTH = LEFT + PLOT + RIGHT
TOP, HEAD, STRIP, TALL, SPACE = 16, 22, 88, 220, 12  # heights: margin, a strip's name, strips, below one
ENTRY = 18  # the height of a row of the legend
TITLE, SUBTITLE, LABEL = 28, 20, 17  # of the lines above: both titles, and the label of a mark
INSET = 6  # between the ends of an axis and the frame
CROSS = 4  # half the width of a cross
DOT = 8  # the radius of a numbered event
LETTER = 7  # about how wide a letter is
# Each sign as a path around its point, and what it is.
SIGNS = {
    "cross": ("m-4 -4l8 8m0 -8l-8 8", "NaN or infinite"),
    "edge": ("m0 -4l-4 7h8Z", "beyond the axis"),
    "doubt": ("m-5 -5h10v10h-10Z", "last good to first bad"),
    "trouble": ("m-5 -5h10v10h-10Z", "from there on"),
    "checkpoint": ("m0 -3l-4 6h8Z", "checkpoint"),
}
WORDS = {"onset": "onset at {}", "restart": "restart from {}", "worse": "worse from", "differs": "differs at"}
MAX_TITLE, MAX_SUBTITLE = 78, 110  # characters
Box = tuple[int, int]
"""Where a strip begins from above, and where it ends."""


def svg_report(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the picture of a diagnosis under its title; with the title alone where there is nothing to draw."""
    title, found = headline(diagnosis), whole_figure(diagnosis, main_finding(diagnosis), options.against)
    if found is None:
        return _page(title, diagnosis.run.name, "Nothing to draw.", [], TOP + TITLE + SUBTITLE)
    return svg(found, title=title, subtitle=diagnosis.run.name)


def svg(figure: Figure, *, title: str = "", subtitle: str = "") -> str:
    """Return a figure as a picture, in the colours that the reader prefers.

    A page restyles it by setting `--fig-ink` and its like on `svg.stabtree`.

    Args:
        figure: what to draw.
        title: the text above it, and its name.
        subtitle: the text below that.
    """
    labelled = [mark for mark in figure.marks if mark.kind in WORDS]
    head = TOP + TITLE * bool(title) + SUBTITLE * bool(subtitle)
    bottom, parts, above = head + LABEL * len(labelled), list[str](), list[str]()
    grid = step_ticks(figure.first_step, figure.last_step, PLOT // 95)
    for strip in figure.strips:
        box = (bottom + HEAD, bottom + HEAD + (TALL if strip.tall else STRIP))
        parts += _strip(figure, strip, grid, box)
        above += [_name(strip, box[0] - 7), *_events(figure, strip, box)]
        bottom = box[1] + SPACE
    parts += [_text(_x(figure, step), bottom + 8, f"{step:,}", "axis", "middle") for step in grid]
    parts.append(_text(LEFT + PLOT, bottom + 26, figure.unit, "axis", "end"))
    # The line of a mark with its step above, in a row of its own.
    for y, mark in enumerate(labelled):
        x, top, words = _x(figure, mark.step), head + LABEL * y, f"{WORDS[mark.kind].format(figure.unit)} {mark.label}"
        left = x + LETTER * len(words) > LEFT + PLOT
        parts.append(f'<path class="{mark.kind}-line" d="M{x:g} {top + 1}V{bottom - SPACE}"/>')
        parts.append(_beside(x, top + 10, words, mark.kind, gap=6, left=left))
    for mark in figure.marks:
        if mark.kind == "checkpoint":
            parts.append(_sign("checkpoint", _x(figure, mark.step), bottom - SPACE + 3))
    entries, bottom = _legend(figure, bottom + 26)
    return _page(title, subtitle, _description(figure), [*parts, *above, *entries], bottom + 12)


def _legend(figure: Figure, y: int) -> tuple[list[str], int]:
    """Return the entries beside and below the unit that say what the signs are, and where the last row stands."""
    used = {mark.kind for mark in figure.marks}
    for strip in figure.strips:
        used |= {"cross"} if strip.bad.any() else set()
        used |= {"edge"} if strip.clipped is not None or strip.clipped_low is not None else set()
    parts, x, last = [], LEFT, LEFT + PLOT - LETTER * len(figure.unit)
    for kind in filter(used.__contains__, SIGNS):
        wide = 14 + LETTER * len(SIGNS[kind][1])
        if x > LEFT and x + wide > last:
            x, y = LEFT, y + ENTRY
        parts += [_sign(kind, x + CROSS, y - CROSS), _text(x + 14, y, SIGNS[kind][1], "axis")]
        x += wide + 8
    return parts, y


def _sign(kind: str, x: float, y: float) -> str:
    return f'<path class="{kind}" d="M{x:.5g} {y:g}{SIGNS[kind][0]}"/>'


def _page(title: str, subtitle: str, description: str, parts: Iterable[str], height: int) -> str:
    heads = []
    if title:
        heads.append(_text(LEFT, TOP + 8, clean(title, MAX_TITLE), "title"))
    if subtitle:
        heads.append(_text(LEFT, TOP + TITLE * bool(title), clean(subtitle, MAX_SUBTITLE), "axis"))
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    name = ": ".join(filter(None, [clean(subtitle), clean(title)])) or "A training run"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stabtree" role="img" {size}>',
        f"<title>{escape(name)}</title>",
        f"<desc>{escape(description)}</desc>",
        f"<style>{style()}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}"/>',
        *heads,
        *parts,
        "</svg>\n",
    ]
    return "\n".join(lines).replace("##", "#&#35;")  # which may begin a command of a service that prints it


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _x(figure: Figure, step: int) -> float:
    """Return where a step is: in the middle of the column that its values are drawn in."""
    column = column_of(np.array([step]), figure.first_step, figure.last_step, figure.columns)
    return float(_across(column, figure)[0])


def _across(columns: Ints, figure: Figure) -> Floats:
    found: Floats = np.round(LEFT + (columns + 0.5) * (PLOT / figure.columns), 1)
    return found


def _down(values: Floats, strip: Strip, box: Box) -> Floats:
    top, bottom = box
    heights = levels(values, strip.low, strip.high, log=strip.log)
    found: Floats = np.round(bottom - INSET - heights * (bottom - top - 2 * INSET), 1)
    return found


def _strip(figure: Figure, strip: Strip, grid: Iterable[int], box: Box) -> Iterator[str]:
    top, height = box[0], box[1] - box[0]
    yield f'<rect class="frame" x="{LEFT}" y="{top}" width="{PLOT}" height="{height}" rx="3"/>'
    for mark in (mark for mark in figure.marks if mark.until):
        x = _x(figure, mark.step)
        wide = max(_x(figure, mark.until) - x, 2)
        yield f'<rect class="{mark.kind}" x="{x:g}" y="{top}" width="{wide:g}" height="{height}"/>'
    yield f'<path class="grid" d="{"".join(f"M{_x(figure, step):g} {top}v{height}" for step in grid)}"/>'
    if not np.isnan(strip.highs).all():
        yield from _value_axis(strip, box)
    yield from _bad(figure, strip.bad, box)
    for drawn, kind in ((strip.behind, "behind"), (strip, "curve")):
        if drawn is not None and (curve := " ".join(_curve(figure, drawn, box))):
            yield f'<path class="{kind}" d="{curve}"/>'
    if strip.clipped is not None:
        yield from _beyond(figure, strip.highs - strip.high, strip.clipped, top, 1)
    if strip.clipped_low is not None:
        yield from _beyond(figure, strip.low - strip.lows, strip.clipped_low, box[1], -1)


def _events(figure: Figure, strip: Strip, box: Box) -> Iterator[str]:
    """Yield the numbers of the events of a series, each on its curve: where that is cut, at the last row before."""
    filled = np.flatnonzero(~np.isnan(strip.highs))
    for mark in figure.marks:
        if mark.kind == "event" and mark.metric == strip.metric and len(filled):
            column = column_of(np.array([mark.step]), figure.first_step, figure.last_step, figure.columns)
            at = filled[max(int(np.searchsorted(filled, column[0], side="right")) - 1, 0)]
            x, y = _x(figure, mark.step), float(_down(strip.highs[at : at + 1], strip, box)[0])
            y = min(max(y, box[0] + DOT), box[1] - DOT)
            circle = f'<circle cx="{x:g}" cy="{y:g}" r="{DOT}"/>'
            yield f'<g class="event">{circle}{_text(x, y + 4, mark.label, "number", "middle")}</g>'


def _name(strip: Strip, y: int) -> str:
    notes = ""
    if strip.log:
        notes += '<tspan class="axis" dx="8">log scale</tspan>'
    if strip.first:
        notes += '<tspan class="mark" dx="8">moved first</tspan>'
    name = escape(clean(strip.metric, PLOT // 2 // LETTER))
    return f'<text class="name" x="{LEFT}" y="{y}">{name}{notes}</text>'


def _value_axis(strip: Strip, box: Box) -> Iterator[str]:
    marks = (log_ticks if strip.log else linear_ticks)(strip.low, strip.high, 3 + (box[1] - box[0]) // 70)
    heights = _down(np.array(marks), strip, box).tolist()
    for height, name in zip(heights, apart(marks), strict=False):
        yield f'<path class="grid" d="M{LEFT} {height:g}h{PLOT}"/>'
        yield _text(LEFT - 8, height + 4, name, "axis", "end")


def _curve(figure: Figure, strip: Strip, box: Box) -> Iterator[str]:
    """Yield the band between the lowest and the highest values, a closed path for each stretch that is joined."""
    filled = np.flatnonzero(~np.isnan(strip.highs))
    xs = _across(filled, figure).tolist()
    upper = _down(strip.highs[filled], strip, box).tolist()
    lower = _down(strip.lows[filled], strip, box).tolist()
    starts = [0, *(np.flatnonzero(~strip.joined[filled][1:]) + 1).tolist(), len(filled)]
    for start, end in pairwise(starts):
        there = [f"{x:g} {y:g}" for x, y in zip(xs[start:end], upper[start:end], strict=True)]
        back = [f"{x:g} {y:g}" for x, y in zip(xs[start:end], lower[start:end], strict=True)]
        if there:
            yield f"M{'L'.join([*there, *reversed(back)])}Z"


def _bad(figure: Figure, bad: Bools, box: Box) -> Iterator[str]:
    """Yield a band behind each stretch with values that are not finite, and crosses above it that don't touch."""
    wide = PLOT / figure.columns
    last = -np.inf
    for start, end in stretches(bad):
        x, width = LEFT + start * wide, (end - start) * wide
        yield f'<rect class="lost" x="{x:.1f}" y="{box[0]}" width="{width:.1f}" height="{box[1] - box[0]}"/>'
        for column in range(start, end):
            middle = LEFT + (column + 0.5) * wide
            if middle - last >= 3 * CROSS:
                last = middle
                yield _sign("cross", middle, box[0] + INSET + CROSS)


def _beyond(figure: Figure, excess: Floats, extreme: float, edge: int, down: int) -> Iterator[str]:
    """Yield a triangle at the edge where each stretch beyond the axis is farthest out, and the farthest number."""
    excess = np.nan_to_num(excess, nan=-1.0)
    peaks = [start + int(np.argmax(excess[start:end])) for start, end in stretches(excess > 0)]
    xs = _across(np.array(peaks), figure).tolist()
    yield f'<path class="edge" d="{"".join(f"M{x:g} {edge - 2 * down}l-4 {7 * down}h8Z" for x in xs)}"/>'
    x = xs[int(np.argmax(excess[peaks]))]
    y = edge + 19 if down > 0 else edge - 12
    yield _beside(x, y, short(extreme), "beyond", gap=8, left=x > LEFT + PLOT / 2)


def _beside(x: float, y: float, text: str, kind: str, *, gap: int, left: bool) -> str:
    """Return a text on one side of a point."""
    return _text(x - gap, y, text, kind, "end") if left else _text(x + gap, y, text, kind)


def _description(figure: Figure) -> str:
    """Say what the picture shows, for whoever can't see it."""
    names = ", ".join(clean(strip.metric) for strip in figure.strips)
    parts = [f"{names} over {figure.unit}s {figure.first_step:,} to {figure.last_step:,}."]
    parts += [f"{clean(strip.metric)} moved first." for strip in figure.strips if strip.first]
    named = [mark for mark in figure.marks if mark.kind in WORDS]
    parts += [f"{WORDS[mark.kind].format(figure.unit).capitalize()} {mark.label}." for mark in named]
    parts += [f"{clean(strip.metric)} is NaN or infinite in places." for strip in figure.strips if strip.bad.any()]
    return " ".join(parts)


def style() -> str:
    """Return the style sheet of pictures, of variables that follow what the reader prefers.

    A page restyles the picture by setting the variables (`--fig-ink`, ...) on `svg.stabtree`.
    """
    return asset("figure.css").replace("\n", "")
