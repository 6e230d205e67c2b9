"""A figure as a small SVG, for where scripts are off and for paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.render.html.tags import Markup, tag

if TYPE_CHECKING:
    from stabtree.render.figure.model import Figure, Strip

LEFT, WIDTH, STRIP, GAP = 110.0, 860.0, 64.0, 20.0


def svg(drawn: Figure) -> str:
    """The strips below one another, with what is marked."""
    height = len(drawn.strips) * (STRIP + GAP) + GAP
    marks = [_mark(drawn, step=mark.step, kind=mark.kind, height=height) for mark in drawn.marks]
    strips = [_strip(strip, place * (STRIP + GAP) + GAP / 2, drawn.columns) for place, strip in enumerate(drawn.strips)]
    ends = [
        tag("text", f"{drawn.first_step:,}", x=f"{LEFT:g}", y=f"{height - 4:g}"),
        tag("text", f"{drawn.last_step:,}", x=f"{LEFT + WIDTH:g}", y=f"{height - 4:g}", text_anchor="end"),
    ]
    names = ", ".join(strip.metric for strip in drawn.strips)
    return tag(
        "svg", *marks, *strips, *ends, viewBox=f"0 0 {LEFT + WIDTH + 10:g} {height:g}", role="img", aria_label=names
    )


def _mark(drawn: Figure, *, step: int, kind: str, height: float) -> str:
    x = LEFT + WIDTH * (step - drawn.first_step) / (drawn.last_step - drawn.first_step)
    return tag("path", d=f"M{x:.1f} 0V{height - GAP:g}", class_=f"mark {kind}")


def _strip(strip: Strip, top: float, columns: int) -> str:
    points, wide = [], WIDTH / columns
    for column, (low, high) in enumerate(zip(strip.lows.tolist(), strip.highs.tolist(), strict=True)):
        if math.isfinite(low):
            x, join = LEFT + (column + 0.5) * wide, "L" if strip.joined[column] else "M"
            points.append(f"{join}{x:.1f} {_y(strip, low, top):.1f}V{_y(strip, high, top):.1f}")
    bad = [f"M{LEFT + (c + 0.5) * wide:.1f} {top - 4:g}v6" for c in range(columns) if strip.bad[c]]
    return tag(
        "g",
        tag("text", strip.metric, x="0", y=f"{top + STRIP / 2:g}", class_="name"),
        tag("text", f"{strip.high:.4g}", x=f"{LEFT - 6:g}", y=f"{top + 10:g}", text_anchor="end"),
        tag("text", f"{strip.low:.4g}", x=f"{LEFT - 6:g}", y=f"{top + STRIP:g}", text_anchor="end"),
        tag("path", d=Markup("".join(points)), class_="curve"),
        tag("path", d=Markup("".join(bad)), class_="bad"),
    )


def _y(strip: Strip, value: float, top: float) -> float:
    low, high, at = strip.low, strip.high, min(max(value, strip.low), strip.high)
    if strip.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    half = high / 2 - low / 2
    return top + STRIP * (1 - ((at / 2 - low / 2) / half if half else 0.5))
