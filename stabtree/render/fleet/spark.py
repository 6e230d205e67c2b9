"""The loss of a run as one small line: a shape to tell runs apart by, not a chart to read values from."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.plot import Line

BLOCKS, SIGNS = "▁▂▃▄▅▆▇█", "_.-'"
CELLS = 8
HEIGHT, FOOT = 26, 27
BOX = f"0 0 15 {FOOT + 1}"  # of `paths`: 16 stretches
WIDE = 50.0  # times from the lowest to the highest: more than that is drawn by orders of magnitude


def levels(values: Sequence[float | None], count: int) -> list[int | None]:
    """Values as whole levels from 0 to `count` - 1; None stays None."""
    finite = [value for value in values if value is not None]
    if not finite:
        return [None] * len(values)
    low, high = min(finite), max(finite)
    if low > 0 and high / low > WIDE:
        values = [None if value is None else math.log(value) for value in values]
        low, high = math.log(low), math.log(high)
    half, span = count - 1, high / 2 - low / 2  # halves: the span of two floats may be no float
    if not span > 0:
        return [None if value is None else half // 2 for value in values]
    return [None if value is None else min(half, int((value / 2 - low / 2) / span * half + 0.5)) for value in values]


def spark(values: Sequence[float | None], mark: int | None = None, *, ascii: bool = False) -> Line:  # noqa: A002 - as in `Look`
    """The line in `CELLS` characters: up to the finding, and from there on; a cross where nothing was finite."""
    if not values:
        return [(" " * CELLS, "")]
    signs = SIGNS if ascii else BLOCKS
    drawn = levels(values, len(signs))
    cells, begins = [], CELLS
    for cell in range(CELLS):
        start = cell * len(values) // CELLS
        held = drawn[start : max(start + 1, (cell + 1) * len(values) // CELLS)]
        heights = [level for level in held if level is not None]
        cells.append(("x" if ascii else "×") if len(heights) < len(held) else signs[max(heights)])
        if mark is not None and start + len(held) > mark:
            begins = min(begins, cell)
    text = "".join(cells)
    return [(text[:begins], "curve"), (text[begins:], "mark")]


def paths(values: Sequence[float | None], mark: int | None = None) -> tuple[str, str]:
    """The line as two SVG paths in a box of `BOX`: up to the finding, and from there on.

    Each is a band from the lowest to the highest value of a stretch; a stroke at its foot stands for a stretch in which
    nothing was finite.
    """
    drawn = levels(values, HEIGHT)
    begins = len(drawn) if mark is None else mark // 2
    bands: dict[bool, list[str]] = {False: [], True: []}
    held: list[tuple[int, int, int]] = []
    late = False
    for place, (one, other) in enumerate(zip(drawn[::2], drawn[1::2], strict=True)):
        if one is None or other is None:
            bands[late].append(_band(held))
            bands[True].append(f"M{place} {FOOT}h.8")
            held = []
            continue
        point = (place, HEIGHT - max(one, other), HEIGHT - min(one, other))
        if place >= begins and not late:
            bands[False].append(_band(held))
            held, late = held[-1:], True
        held.append(point)
    bands[late].append(_band(held))
    return "".join(bands[False]), "".join(bands[True])


def _band(points: Sequence[tuple[int, int, int]]) -> str:
    """A closed path over the upper ends and back below the lower ones, in as few characters as there can be."""
    if not points:
        return ""
    corners = [*((x, high) for x, high, _ in points), *((x, low) for x, _, low in reversed(points))]
    steps = [f"{b[0] - a[0]}{b[1] - a[1]:+}".replace("+", " ") for a, b in pairwise(corners)]
    return f"M{corners[0][0]} {corners[0][1]}l{' '.join(steps)}z"
