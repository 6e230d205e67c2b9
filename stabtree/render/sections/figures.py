"""The plots of the whole report: the series of its figure, larger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.figure.build import chosen_series
from stabtree.render.page import Page, styled
from stabtree.render.plot import Line, plot

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.run import Series

PLOT_ROWS = 7


def plots(page: Page, diagnosis: Diagnosis, main: Finding | None) -> None:
    """The loss and up to three more series over the same steps, side by side where there is room."""
    chosen = chosen_series(diagnosis, main)
    if not chosen:
        return
    page.blank()
    onset = main.onset_step if main else None
    wide = page.width >= 120 and len(chosen) > 1
    width = min((page.width - 4) // 2, 78) if wide else min(page.width - 2, 98)
    span = min(int(series.steps[0]) for series in chosen), max(int(series.steps[-1]) for series in chosen)
    drawn = [
        _drawn(series, width, span, onset, PLOT_ROWS if place == 0 or wide else PLOT_ROWS - 3)
        for place, series in enumerate(chosen)
    ]
    if not wide:
        for lines in drawn:
            page.lines(lines, indent=1)
        return
    for left, right in zip(drawn[::2], [*drawn[1::2], []], strict=False):
        rows = max(len(left), len(right))
        padded_left = [[("", "")]] * (rows - len(left)) + left
        padded_right = [[("", "")]] * (rows - len(right)) + right
        page.lines([_beside(a, b, width + 2) for a, b in zip(padded_left, padded_right, strict=True)], indent=1)


def _drawn(series: Series, width: int, span: tuple[int, int], onset: int | None, rows: int) -> list[Line]:
    return plot(series, width=width, height=rows, span=span, onset_step=onset)


def _beside(left: Line, right: Line, width: int) -> Line:
    used = styled(left).cell_len
    return [*left, (" " * max(0, width - used), ""), *right]
