"""The log's own rows around the onset."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.render.figure.build import chosen_series

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.render.page import Page
    from stabtree.run import Series

ROWS_BEFORE, ROWS_AFTER = 2, 2
COLUMN = 14  # at the least; a longer name takes its own room


def rows_around(page: Page, diagnosis: Diagnosis, finding: Finding | None) -> None:
    """The rows around the onset of a finding: the steps, and the series of its figure."""
    onset = finding.onset_step if finding else None
    held = chosen_series(diagnosis, finding)
    if not held or onset is None:
        return
    steps = held[0].steps
    place = int(np.searchsorted(steps, onset))
    near = steps[max(place - ROWS_BEFORE, 0) : place + ROWS_AFTER + 1]
    page.heading("The rows around it")
    names = [series.metric for series in held]
    widths = {name: max(COLUMN, len(page.plain(name)) + 2) for name in names}
    shown = [name for name, end in zip(widths, accumulate(widths.values()), strict=True) if end < page.width - COLUMN]
    heads = [(f"{diagnosis.run.unit:>{COLUMN}}", "dim"), *((f"{name:>{widths[name]}}", "dim") for name in shown)]
    page.lines([heads], indent=1)
    for step in near.tolist():
        style = "number" if step == onset else ""
        cells = [f"{_cell(diagnosis.run.series[name], step):>{widths[name]}}" for name in shown]
        page.lines([[(f"{step:>{COLUMN},}", style), *((cell, style) for cell in cells)]], indent=1)


def _cell(series: Series, step: int) -> str:
    place = int(np.searchsorted(series.steps, step))
    if place == len(series.steps) or series.steps[place] != step:
        return "–"
    return f"{float(series.values[place]):.6g}"
