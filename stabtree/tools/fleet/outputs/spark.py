"""The loss of a run as one small line: a shape to tell runs apart by, not a chart to read values from."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.report.text import Line

BLOCKS, SIGNS = "▁▂▃▄▅▆▇█", "_.-'"
CELLS = 8
HEIGHT, FOOT = 26, 27
BOX = f"0 0 15 {FOOT + 1}"  # of `paths`: 16 stretches
WIDE = 50.0  # times from the lowest to the highest: more than that is drawn by orders of magnitude


def levels(values: Sequence[float | None], count: int) -> list[int | None]:
    """Return values as whole levels from 0 to `count` - 1; None stays None."""
    finite = [value for value in values if value is not None]
    if not finite:
        return [None] * len(values)
    low, high = min(finite), max(finite)
    scaled: Callable[[float], float] = float
    if low > 0 and high / low > WIDE:
        scaled = math.log
    low, high = scaled(low), scaled(high)
    top, span = count - 1, high / 2 - low / 2  # halves: the span of two floats may be no float

    def level(value: float) -> int:
        if span > 0:
            return min(top, int((scaled(value) / 2 - low / 2) / span * top + 0.5))
        return top // 2

    return [value if value is None else level(value) for value in values]


def spark(values: Sequence[float | None], mark: int | None = None, *, ascii: bool = False) -> Line:  # noqa: A002 - as in `RenderOptions`
    """Return the line in `CELLS` characters: up to the finding, and from there on; a cross where nothing was finite."""
    if not values:
        return [(" " * CELLS, "")]
    signs, not_finite = BLOCKS, "×"
    if ascii:
        signs, not_finite = SIGNS, "x"
    drawn = levels(values, len(signs))
    cells, begins = [], CELLS
    for cell in range(CELLS):
        start = cell * len(values) // CELLS
        stretch = drawn[start : max(start + 1, (cell + 1) * len(values) // CELLS)]
        heights = [level for level in stretch if level is not None]
        if len(heights) < len(stretch):
            cells.append(not_finite)
        else:
            cells.append(signs[max(heights)])
        if mark is not None and start + len(stretch) > mark:
            begins = min(begins, cell)
    text = "".join(cells)
    return [(text[:begins], "curve"), (text[begins:], "mark")]


def paths(values: Sequence[float | None], mark: int | None = None) -> tuple[str, str]:
    """Return the line as two SVG paths in a box of `BOX`: up to the finding, and from there on.

    Each is a band from the lowest to the highest value of a stretch; a stroke at its foot is a stretch in which
    nothing was finite.
    """
    drawn = levels(values, HEIGHT)
    begins = len(drawn)
    if mark is not None:
        begins = mark // 2
    bands: dict[bool, list[str]] = {False: [], True: []}
    points: list[tuple[int, int, int]] = []
    late = False
    for x, (one, other) in enumerate(zip(drawn[::2], drawn[1::2], strict=True)):
        if one is None or other is None:
            bands[late].append(_band(points))
            bands[True].append(f"M{x} {FOOT}h.8")
            points = []
            continue
        point = (x, HEIGHT - max(one, other), HEIGHT - min(one, other))
        if x >= begins and not late:
            bands[False].append(_band(points))
            points, late = points[-1:], True
        points.append(point)
    bands[late].append(_band(points))
    return "".join(bands[False]), "".join(bands[True])


def _band(points: Sequence[tuple[int, int, int]]) -> str:
    """Return a closed path over the upper ends and back below the lower ones, in as few characters as there can be."""
    if not points:
        return ""
    corners = [*((x, high) for x, high, _ in points), *((x, low) for x, _, low in reversed(points))]
    steps = [f"{b[0] - a[0]}{b[1] - a[1]:+}".replace("+", " ") for a, b in pairwise(corners)]
    return f"M{corners[0][0]} {corners[0][1]}l{' '.join(steps)}z"
