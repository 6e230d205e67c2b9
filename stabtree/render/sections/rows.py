"""The log's own rows around the onset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.render.figure.build import figure

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.render.page import Page
    from stabtree.run import Series

ROWS_BEFORE, ROWS_AFTER = 2, 2
COLUMN = 14
SMALLEST_FIGURE = 8


def rows_around(page: Page, diagnosis: Diagnosis, finding: Finding | None) -> None:
    """The rows around the onset of a finding: the steps, and the series of its figure."""
    onset = finding.onset_step if finding else None
    drawn = figure(diagnosis, finding, SMALLEST_FIGURE) if onset is not None else None
    if drawn is None or onset is None:
        return
    held = [diagnosis.run.series[strip.metric] for strip in drawn.strips]
    steps = held[0].steps
    place = int(np.searchsorted(steps, onset))
    near = steps[max(place - ROWS_BEFORE, 0) : place + ROWS_AFTER + 1]
    page.heading("The rows around it")
    names = [series.metric for series in held][: max((page.width - 1) // COLUMN - 1, 1)]
    page.lines([[(f"{name[: COLUMN - 2]:>{COLUMN}}", "dim") for name in (diagnosis.run.unit, *names)]], indent=1)
    for step in near.tolist():
        style = "number" if step == onset else ""
        cells = [f"{step:,}", *(_cell(diagnosis.run.series[name], step) for name in names)]
        page.lines([[(f"{cell:>{COLUMN}}", style) for cell in cells]], indent=1)


def _cell(series: Series, step: int) -> str:
    place = int(np.searchsorted(series.steps, step))
    if place == len(series.steps) or series.steps[place] != step:
        return "–"
    return f"{float(series.values[place]):.6g}"
