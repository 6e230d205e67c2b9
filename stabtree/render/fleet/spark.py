"""The loss of a run in one small line: a shape to tell runs apart by, not a chart to read values from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.plot import Line

BLOCKS, SIGNS = "▁▂▃▄▅▆▇█", "_.-'"
CELLS = 8
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
