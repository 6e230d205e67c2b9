"""A diagnosis on one screen: what it takes to act. `--full` prints all of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stabtree.report.figure.build import figure
from stabtree.report.figure.strips import columns_for, strips
from stabtree.report.layout import Pane, fitted
from stabtree.report.model.build import report as report_of
from stabtree.report.options import DEFAULT_OPTIONS, Length, RenderOptions
from stabtree.report.page import new_page
from stabtree.report.screen.act import causes, do_now, head, last_line, log_next, meaning
from stabtree.report.screen.headline import headline
from stabtree.report.screen.healthy import healthy
from stabtree.report.screen.path import path_line
from stabtree.report.screen.quoted import quoted
from stabtree.report.screen.rest import MAX_OPEN, also, not_checked, notes
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.figure.model import Figure
    from stabtree.report.model.report import Report
    from stabtree.report.page import Page

MAX_LINES, NARROW_LINES = 25, 33  # without the plot
MIN_WIDTH = 72  # columns for which the former holds
STRIPS, ROWS_OF_PLOT = 2, 4
INDENT = 2
MORE = "more"  # the group of the lines below what to do
CAUSES = ((3, 3), (3, 2), (3, 1), (2, 1), (1, 1))  # how many, and in how many lines each
FOLDS = (
    *("causes", "also", "causes", "meaning", "rows", "path", "meaning", "causes", "rows", "notes"),
    *("causes", "rows", "meaning", "log next", "path", "also", "do now", "do now"),
)
"""What gives way first. Neither the verdict, the restart, what decides, nor the last line ever do."""


def screen(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return a diagnosis for a terminal: on one screen, or all of it."""
    if diagnosis.why_not:
        page = new_page(options)
        page.line((headline(diagnosis, options), ""))
        page.blank()
        diagnosis.why_not.show(page, diagnosis)
        return page.text()
    if options.length is Length.FULL:
        from stabtree.report.screen.full import full

        return full(diagnosis, options)
    report = report_of(diagnosis, exit_code=options.exit_code)
    if report.badge == Severity.OK:
        page = new_page(options)
        healthy(page, report)
        return page.text()
    most = MAX_LINES if options.width >= MIN_WIDTH else NARROW_LINES
    return fitted(_blocks(report, options), FOLDS, most, partial(new_page, options))


def _blocks(report: Report, options: RenderOptions) -> list[Pane]:
    """Return the parts of the screen in their order, each in its forms."""

    def forms(draw: Callable[..., None], *settings: object, of: str = "most") -> tuple[Callable[[Page], None], ...]:
        return tuple(partial(draw, report=report, **{of: setting}) for setting in settings)

    drawn = _figure(report, options)
    table: tuple[Callable[[Page], None], ...] = (_nothing,)
    if report.quoted and (report.quoted.sharp or not drawn):
        table = tuple(partial(quoted, table=report.quoted, most=rows) for rows in (6, 5, 4, 3))
    return [
        Pane("head", (partial(head, report=report),)),
        Pane("rows", table),
        Pane("strips", (partial(_strips, drawn=drawn, options=options),), free=True),
        Pane("meaning", forms(meaning, 3, 2, 1, 0, of="lines")),
        Pane("do now", forms(do_now, 4, 3, 2, of="lines")),
        Pane("causes", forms(causes, *CAUSES, of="form"), group=MORE),
        Pane("log next", (partial(log_next, report=report), _nothing), group=MORE),
        Pane("path", (*forms(path_line, 2, 1, of="lines"), _nothing), group=MORE),
        Pane("also", (*forms(also, 2, 1, of="lines"), _nothing), group=MORE),
        Pane("not checked", forms(not_checked, MAX_OPEN, 1), group=MORE),
        Pane("notes", (partial(notes, report=report), _nothing), group=MORE),
        Pane("last", (partial(last_line, report=report),)),
    ]


def _nothing(_page: Page) -> None:
    """Draw nothing: the last form of what may give way altogether."""


def _figure(report: Report, options: RenderOptions) -> Figure | None:
    """Return what moved, as far as there is room for it."""
    few = report.quoted is not None and report.quoted.few
    if not options.plots or report.finding is None or few:
        return None
    drawn = figure(report.diagnosis, report.finding, columns_for(options.width))
    return replace(drawn, strips=drawn.strips[:STRIPS]) if drawn else None


def _strips(page: Page, drawn: Figure | None, options: RenderOptions) -> None:
    if drawn:
        height = ROWS_OF_PLOT // len(drawn.strips)
        page.lines(strips(drawn, options.width - INDENT, ascii=options.ascii, height=height), indent=INDENT)
