"""The plots of a diagnosis: the loss, and the series that the main finding rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.page import Page, styled
from stabtree.render.plot import Line, plot

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Finding
    from stabtree.run import Run, Series

PLOT_ROWS = 7


def plots(page: Page, run: Run, main: Finding | None) -> None:
    """The loss and up to three more series, side by side where there is room."""
    names = ["loss"]
    for item in main.evidence if main else ():
        if item.metric and item.metric not in names and item.metric in run.series and item.metric != "batch_id":
            names.append(item.metric)
    chosen = [run.series[name] for name in names[:4] if name in run.series and len(run.series[name]) > 1]
    if not chosen:
        return
    page.blank()
    onset = main.onset_step if main else None
    wide = page.width >= 120 and len(chosen) > 1
    width = min((page.width - 4) // 2, 78) if wide else min(page.width - 2, 98)
    drawn = [
        _drawn(series, width, onset, PLOT_ROWS if place == 0 or wide else PLOT_ROWS - 3)
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


def _drawn(series: Series, width: int, onset: int | None, rows: int) -> list[Line]:
    return plot(series, width=width, height=rows, onset_step=onset)


def _beside(left: Line, right: Line, width: int) -> Line:
    used = styled(left).cell_len
    return [*left, (" " * max(0, width - used), ""), *right]
