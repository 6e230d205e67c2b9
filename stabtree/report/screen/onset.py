"""The course of a run around the onset, as `--full` shows it: larger plots, and the log's own rows."""

from __future__ import annotations

from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

from stabtree.report.figure.build import chosen_series
from stabtree.report.figure.plot import plot
from stabtree.report.model.run_facts import steps_around, value_at
from stabtree.report.page import styled

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.page import Page
    from stabtree.report.text import Line
    from stabtree.run import Series

PLOT_ROWS, FEW_ROWS = 7, 4
ROWS_BEFORE, ROWS_AFTER = 2, 2
COLUMN = 14  # at the least; a longer name takes its own room


def plots(page: Page, diagnosis: Diagnosis, finding: Incident | None) -> None:
    """Add the loss and up to three more series over the same steps, side by side where there is room."""
    chosen = chosen_series(diagnosis, finding)
    if not chosen:
        return
    page.blank()
    onset = finding.onset_step if finding else None
    span = min(int(series.steps[0]) for series in chosen), max(int(series.steps[-1]) for series in chosen)
    if page.width >= 120 and len(chosen) > 1:
        width = min((page.width - 4) // 2, 78)
        drawn = [plot(series, width=width, height=PLOT_ROWS, span=span, onset_step=onset) for series in chosen]
        none: list[Line] = []
        for left, right in zip_longest(drawn[::2], drawn[1::2], fillvalue=none):
            page.lines(_side_by_side(left, right, width + 2), indent=1)
        return
    height = PLOT_ROWS
    for series in chosen:
        lines = plot(series, width=min(page.width - 2, 98), height=height, span=span, onset_step=onset)
        page.lines(lines, indent=1)
        height = FEW_ROWS


def _side_by_side(left: list[Line], right: list[Line], width: int) -> list[Line]:
    """Return two plots as one, the shorter one with empty lines above it."""
    rows = max(len(left), len(right))
    empty: list[Line] = [[("", "")]]
    pairs = zip(empty * (rows - len(left)) + left, empty * (rows - len(right)) + right, strict=True)
    return [[*one, (" " * max(0, width - styled(one).cell_len), ""), *other] for one, other in pairs]


def rows_around(page: Page, diagnosis: Diagnosis, finding: Incident | None) -> None:
    """Add the rows around the onset of a finding and those that show it: the steps, and the series of its figure."""
    if finding is None or finding.onset_step is None:
        return
    chosen = chosen_series(diagnosis, finding)
    if not chosen:
        return
    page.heading("The rows around it")
    widths = _fitting_widths(page, chosen)
    heads = [(f"{name:>{width}}", "dim") for name, width in widths.items()]
    page.lines([[(f"{diagnosis.run.unit:>{COLUMN}}", "dim"), *heads]], indent=1)
    around = steps_around(chosen[0], finding.onset_step, ROWS_BEFORE, ROWS_AFTER).tolist()
    for step in sorted({*around, *(row.step for row in finding.rows)}):
        style = ""
        if step == finding.onset_step:
            style = "number"
        page.lines([_row(diagnosis, step, widths, style)], indent=1)


def _fitting_widths(page: Page, chosen: list[Series]) -> dict[str, int]:
    """Return the series that fit beside the steps, each with the width of its column."""
    widths = {series.metric: max(COLUMN, len(page.plain(series.metric)) + 2) for series in chosen}
    ends = accumulate(widths.values())
    return {name: widths[name] for name, end in zip(widths, ends, strict=True) if end < page.width - COLUMN}


def _row(diagnosis: Diagnosis, step: int, widths: dict[str, int], style: str) -> Line:
    """Return a step with the values of the series there."""
    cells: Line = [(f"{step:>{COLUMN},}", style)]
    for name, width in widths.items():
        series = diagnosis.run.find(name)
        value = value_at(series, step, "–") if series else "–"
        cells.append((f"{value:>{width}}", style))
    return cells
