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
from stabtree.report.plot import column_of, levels, linear_ticks, log_ticks, short, step_ticks
from stabtree.report.plot import figure as figure_of
from stabtree.report.words import headline, main_finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.plot import Figure, Strip

WIDTH, LEFT, RIGHT = 880, 76, 28
PLOT = WIDTH - LEFT - RIGHT
COLUMNS = PLOT // 2
TOP, HEAD, STRIP, SPACE, FOOT = 20, 22, 88, 12, 46  # heights: margin, a strip's name, the strip, below it, the axis
TITLE, SUBTITLE, LABEL = 28, 20, 17  # of the lines above: both titles, and the label of a mark
INSET = 6  # between the ends of an axis and the frame
CROSS = 4  # half the width of a cross
WORDS = {"onset": "onset at step", "restart": "restart from step", "worse": "worse from", "differs": "differs at"}
MAX_TITLE, MAX_SUBTITLE = 78, 110  # characters


def svg_report(diagnosis: Diagnosis, _options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the picture of a diagnosis under its title; with the title alone where there is nothing to draw."""
    title, found = headline(diagnosis), figure_of(diagnosis, main_finding(diagnosis), COLUMNS)
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
    top, pitch = head + LABEL * len(labelled), HEAD + STRIP + SPACE
    bottom = top + pitch * len(figure.strips)
    tops = [top + pitch * index + HEAD for index in range(len(figure.strips))]
    grid = step_ticks(figure.first_step, figure.last_step, 8)
    parts = [_text(_x(figure, step), bottom + 8, f"{step:,}", "axis", "middle") for step in grid]
    parts.append(_text(WIDTH - RIGHT, bottom + 26, figure.unit, "axis", "end"))
    for at, strip in zip(tops, figure.strips, strict=True):
        parts += _strip(figure, strip, grid, at)
    # Of an onset the line crosses only the strips that moved, where not all did.
    moved = [(at - HEAD + 4, at + STRIP) for at, strip in zip(tops, figure.strips, strict=True) if strip.moved]
    for index, mark in enumerate(labelled):
        stretches = [(head + LABEL * index + 1, bottom - SPACE)]
        if mark.kind == "onset" and 0 < len(moved) < len(tops):
            stretches = moved
        # The line with its step above, in a row of its own.
        at_mark, y = _x(figure, mark.step), head + LABEL * index + 10
        line = "".join(f"M{at_mark:g} {start}V{end}" for start, end in stretches)
        parts.append(f'<path class="{mark.kind}-line" d="{line}"/>')
        left = at_mark > LEFT + PLOT * 0.75
        parts.append(_beside(at_mark, y, f"{WORDS[mark.kind]} {mark.label}", mark.kind, gap=6, left=left))
    parts += [_name(figure, strip, at - 7) for at, strip in zip(tops, figure.strips, strict=True)]
    x, y = LEFT, bottom + FOOT - 8
    if any(strip.bad.any() for strip in figure.strips):
        parts += [_cross(x + CROSS, y - CROSS), _text(x + 14, y, "NaN or infinite", "axis")]
        x += 124
    if any(strip.clipped is not None or strip.clipped_low is not None for strip in figure.strips):
        parts.append(f'<path class="edge" d="M{x + 3} {y - 8}l-4 7h8Z"/>')
        parts.append(_text(x + 14, y, "beyond the axis", "axis"))
    return _page(title, subtitle, _description(figure), parts, bottom + FOOT)


def _page(title: str, subtitle: str, description: str, parts: Iterable[str], height: int) -> str:
    heads = []
    if title:
        heads.append(_text(LEFT, TOP + 8, _cut(title, MAX_TITLE), "title"))
    if subtitle:
        heads.append(_text(LEFT, TOP + TITLE * bool(title), _cut(subtitle, MAX_SUBTITLE), "axis"))
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


def _cut(text: str, max_length: int) -> str:
    text = clean(text)
    return text if len(text) <= max_length else f"{text[: max_length - 1].rstrip()}…"


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _x(figure: Figure, step: int) -> float:
    """Return where a step is: in the middle of the column that its values are drawn in."""
    column = column_of(np.array([step]), figure.first_step, figure.last_step, figure.columns)
    return float(_across(column, figure)[0])


def _across(columns: Ints, figure: Figure) -> Floats:
    found: Floats = np.round(LEFT + (columns + 0.5) * (PLOT / figure.columns), 1)
    return found


def _down(values: Floats, strip: Strip, top: int) -> Floats:
    heights = levels(values, strip.low, strip.high, log=strip.log)
    found: Floats = np.round(top + STRIP - INSET - heights * (STRIP - 2 * INSET), 1)
    return found


def _strip(figure: Figure, strip: Strip, grid: Iterable[int], top: int) -> Iterator[str]:
    yield f'<rect class="frame" x="{LEFT}" y="{top}" width="{PLOT}" height="{STRIP}" rx="3"/>'
    yield f'<path class="grid" d="{"".join(f"M{_x(figure, step):g} {top}v{STRIP}" for step in grid)}"/>'
    if not np.isnan(strip.highs).all():
        yield from _value_axis(strip, top)
    lead = next((mark for mark in figure.marks if mark.kind == "first"), None)
    if strip.first and lead:
        yield f'<path class="lead" d="M{_x(figure, lead.step):g} {top}V{top + STRIP}"/>'
    yield from _bad(figure, strip.bad, top)
    if strip.behind is not None and (others := " ".join(_curve(figure, strip.behind, top))):
        yield f'<path class="behind" d="{others}"/>'
    if curve := " ".join(_curve(figure, strip, top)):
        yield f'<path class="curve" d="{curve}"/>'
    if strip.clipped is not None:
        yield from _beyond(figure, strip.highs - strip.high, strip.clipped, top, 1)
    if strip.clipped_low is not None:
        yield from _beyond(figure, strip.low - strip.lows, strip.clipped_low, top + STRIP, -1)


def _name(figure: Figure, strip: Strip, y: int) -> str:
    notes, lead = "", next((mark for mark in figure.marks if mark.kind == "first"), None)
    if strip.log:
        notes += '<tspan class="axis" dx="8">log scale</tspan>'
    if strip.first:
        at = escape(f", at {figure.unit} {lead.label}") if lead else ""
        notes += f'<tspan class="mark" dx="8">moved first{at}</tspan>'
    return f'<text class="name" x="{LEFT}" y="{y}">{escape(clean(strip.metric, 60))}{notes}</text>'


def _value_axis(strip: Strip, top: int) -> Iterator[str]:
    marks = (log_ticks if strip.log else linear_ticks)(strip.low, strip.high, 4)
    heights = _down(np.array(marks), strip, top).tolist()
    # As many digits as it takes for them to differ.
    tries = ([short(mark, digits) for mark in marks] for digits in range(3, 8))
    names = next((names for names in tries if len(set(names)) == len(names)), [])
    for height, name in zip(heights, names, strict=False):
        yield f'<path class="grid" d="M{LEFT} {height:g}h{PLOT}"/>'
        yield _text(LEFT - 8, height + 4, name, "axis", "end")


def _curve(figure: Figure, strip: Strip, top: int) -> Iterator[str]:
    """Yield the band between the lowest and the highest values, a closed path for each stretch that is joined."""
    filled = np.flatnonzero(~np.isnan(strip.highs))
    xs = _across(filled, figure).tolist()
    upper = _down(strip.highs[filled], strip, top).tolist()
    lower = _down(strip.lows[filled], strip, top).tolist()
    starts = [0, *(np.flatnonzero(~strip.joined[filled][1:]) + 1).tolist(), len(filled)]
    for start, end in pairwise(starts):
        there = [f"{x:g} {y:g}" for x, y in zip(xs[start:end], upper[start:end], strict=True)]
        back = [f"{x:g} {y:g}" for x, y in zip(xs[start:end], lower[start:end], strict=True)]
        if there:
            yield f"M{'L'.join([*there, *reversed(back)])}Z"


def _bad(figure: Figure, bad: Bools, top: int) -> Iterator[str]:
    """Yield a band behind each stretch with values that are not finite, and crosses above it that don't touch."""
    wide = PLOT / figure.columns
    last = -np.inf
    for start, end in stretches(bad):
        x, width = LEFT + start * wide, (end - start) * wide
        yield f'<rect class="lost" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{STRIP}"/>'
        for column in range(start, end):
            middle = LEFT + (column + 0.5) * wide
            if middle - last >= 3 * CROSS:
                last = middle
                yield _cross(middle, top + INSET + CROSS)


def _cross(x: float, y: float) -> str:
    sides = f"l{2 * CROSS} {2 * CROSS}m0 {-2 * CROSS}l{-2 * CROSS} {2 * CROSS}"
    return f'<path class="cross" d="M{x - CROSS:.1f} {y - CROSS:g}{sides}"/>'


def _beyond(figure: Figure, excess: Floats, extreme: float, edge: int, down: int) -> Iterator[str]:
    """Yield a triangle at the edge where each stretch beyond the axis is farthest out, and the farthest number."""
    excess = np.nan_to_num(excess, nan=-1.0)
    peaks = [start + int(np.argmax(excess[start:end])) for start, end in stretches(excess > 0)]
    xs = _across(np.array(peaks), figure).tolist()
    yield f'<path class="edge" d="{"".join(f"M{x:g} {edge - 2 * down}l-4 {7 * down}h8Z" for x in xs)}"/>'
    x = xs[int(np.argmax(excess[peaks]))]
    y = edge + 19 if down > 0 else edge - 12
    yield _beside(x, y, short(extreme), "beyond", gap=8, left=x > WIDTH / 2)


def _beside(x: float, y: float, text: str, kind: str, *, gap: int, left: bool) -> str:
    """Return a text on one side of a point."""
    return _text(x - gap, y, text, kind, "end") if left else _text(x + gap, y, text, kind)


def _description(figure: Figure) -> str:
    """Say what the picture shows, for whoever can't see it."""
    names = ", ".join(clean(strip.metric) for strip in figure.strips)
    parts = [f"{names} over {figure.unit}s {figure.first_step:,} to {figure.last_step:,}."]
    if any(strip.behind is not None for strip in figure.strips):
        parts.append("The course of the good runs is drawn behind that of the bad one.")
    parts += [f"{clean(strip.metric)} moved first." for strip in figure.strips if strip.first]
    parts += [f"{WORDS[mark.kind].capitalize()} {mark.label}." for mark in figure.marks if mark.kind in WORDS]
    parts += [f"{clean(strip.metric)} is NaN or infinite in places." for strip in figure.strips if strip.bad.any()]
    return " ".join(parts)


def style() -> str:
    """Return the style sheet of pictures, of variables that follow what the reader prefers.

    A page restyles the picture by setting the variables (`--fig-ink`, ...) on `svg.stabtree`.
    """
    return asset("figure.css").replace("\n", "")
