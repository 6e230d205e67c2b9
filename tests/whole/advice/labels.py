"""What must be true of the rows of the log that a report quotes, by what it calls them."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from stabtree.report.rows import BEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.report.rows import QuotedLine

ROWS = 50
TIMES = 10.0  # the usual step from row to row


def untrue(lines: Sequence[QuotedLine], values: Mapping[int, float], onset: int) -> Iterator[str]:
    """Yield the rows that are not what they are called; `values` are by step, and higher ones are worse."""
    since = {step: value for step, value in values.items() if step >= onset}
    for line in lines:
        value = values.get(line.step, math.nan)
        before = [held for step, held in values.items() if step < line.step and math.isfinite(held)]
        if line.note == "last good row" and not (line.step < onset and math.isfinite(value) and _usual(value, before)):
            yield f"{line.step}: {value} is not good after {before[-ROWS:]}"
        if line.note == "row before" and line.step != max(step for step in values if step < onset):
            yield f"{line.step} is not right before {onset}"
        if line.note == "last row" and line.step != max(values):
            yield f"{line.step} is not the last one"
        if line.note == "worst" and math.isfinite(value) and value < max(since.values()):
            yield f"{line.step}: {value} is not the worst since {onset}"
        if line.note == "worst" and math.isfinite(value) and _inside(value, values, onset):
            yield f"{line.step}: {value} is nothing unusual before {onset}"
        if line.note == BEST and value > min(filter(math.isfinite, values.values())):
            yield f"{line.step}: {value} is not the best"


def _usual(value: float, before: Sequence[float]) -> bool:
    """Whether a value is no worse than the rows before it, or than ten steps from row to row above their middle."""
    near = before[-ROWS:]
    if len(near) < 2:
        return not near or value <= near[0] + abs(near[0])
    step = median(abs(after - held) for held, after in pairwise(near))
    return value <= max(*near, median(near) + TIMES * step)


def _inside(value: float, values: Mapping[int, float], onset: int) -> bool:
    """Whether each of the five rows before an onset is as bad as a value."""
    before = [held for step, held in values.items() if step < onset and math.isfinite(held)][-5:]
    return bool(before) and value <= min(before)
