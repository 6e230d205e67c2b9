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
from stabtree.report.page import Page, new_page
from stabtree.report.screen.act import FEW_EVENTS, MAX_EVENTS, do_now, events, head, last_line
from stabtree.report.screen.causes import FEW_CAUSES, LINES_OF_A_CAUSE, MAX_CAUSES, causes
from stabtree.report.screen.headline import headline
from stabtree.report.screen.healthy import healthy
from stabtree.report.screen.path import path_chain, path_rows
from stabtree.report.screen.rest import MAX_NOTES, MAX_OPEN, also, not_checked, notes
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.figure.model import Figure
    from stabtree.report.model.report import Report

MAX_LINES = 40
LINES_OF_A_PATH = 6
STRIPS = (4, 2)
ONE_ROW = "Nothing is drawn: no series that would show it has more than one row."
INDENT = 2
FORMS_OF_CAUSES = ((MAX_CAUSES, LINES_OF_A_CAUSE), (MAX_CAUSES, 1), (FEW_CAUSES, 1))
FOLDS = (
    *("head", "notes", "path", "strips", "causes", "path", "do now"),
    *("path", "not checked", "strips", "also", "causes", "events", "path"),
)
"""What gives way first. Neither the verdict, the restart, the questions of the path nor the last line ever do."""


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
    return fitted(_blocks(report, options), FOLDS, MAX_LINES, partial(new_page, options))


def _blocks(report: Report, options: RenderOptions) -> list[Pane]:
    """Return the parts of the screen in their order, each in its forms."""

    def forms(draw: Callable[..., None], *settings: Mapping[str, int]) -> tuple[Callable[[Page], None], ...]:
        return tuple(partial(draw, report=report, **setting) for setting in settings)

    roomy = ({"room": True}, {"room": False})
    path = (
        *forms(path_rows, {"lines": 2}, {"lines": 1}),
        *forms(path_chain, {"shorts": True, "number": True}, {"shorts": True, "number": False}),
        *forms(path_chain, {"shorts": False, "number": False}),
    )
    return [
        Pane("head", forms(head, *roomy)),
        Pane("do now", forms(do_now, *roomy)),
        Pane("events", forms(events, {"most": MAX_EVENTS}, {"most": FEW_EVENTS})),
        Pane("strips", tuple(partial(_strips, drawn=one, options=options) for one in _figures(report, options))),
        Pane("causes", forms(causes, *({"most": most, "lines": lines} for most, lines in FORMS_OF_CAUSES))),
        Pane("path", path, close=bool(report.causes), most=LINES_OF_A_PATH),
        Pane("also", forms(also, {"named": True}, {"named": False}), close=True),
        Pane("not checked", forms(not_checked, {"most": MAX_OPEN}, {"most": 1}), close=True),
        Pane("notes", forms(notes, {"most": MAX_NOTES}, {"most": 0}), close=True),
        Pane("last", forms(last_line, {})),
    ]


def _figures(report: Report, options: RenderOptions) -> list[Figure | str]:
    """Return the figure with ever fewer strips, at last none; or why nothing of a finding is drawn."""
    if not options.plots:
        return [""]
    drawn = figure(report.diagnosis, report.finding, columns_for(options.width))
    if drawn:
        return [*(replace(drawn, strips=drawn.strips[:most]) for most in STRIPS), ""]
    if report.finding and report.diagnosis.run.series:
        return [ONE_ROW]
    return [""]


def _strips(page: Page, drawn: Figure | str, options: RenderOptions) -> None:
    if isinstance(drawn, str):
        page.line((drawn, ""), indent=INDENT)
    else:
        page.lines(strips(drawn, options.width - INDENT, ascii=options.ascii), indent=INDENT)
