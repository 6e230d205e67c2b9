"""A diagnosis as one page in one file: it asks nothing of the network, and runs nothing but its own script."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from stabtree.report.figure.theme import style
from stabtree.report.html import first
from stabtree.report.html.charts import charts
from stabtree.report.html.document import CLOSING, asset, opening
from stabtree.report.html.folded import everything_else
from stabtree.report.html.tags import NOTHING, Markup, joined, tag
from stabtree.report.model.build import report as report_of
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis


def html(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the page: what the screen says, in its order, then everything else, folded."""
    report = report_of(diagnosis, exit_code=options.exit_code)
    main = tag(
        "main",
        first.verdict(report),
        first.rows(report),
        charts(report) if options.plots else NOTHING,
        first.meaning(report),
        first.do_now(report),
        first.causes(report),
        first.log_next(report),
        first.path(report),
        first.also(report),
        first.not_checked(report),
        first.closing(report),
        everything_else(report),
        id="report",
    )
    skip = tag("a", "Skip to the report", href="#report", class_="skip")
    title = f"{BADGES[report.badge].word} · {report.title} · {report.diagnosis.run.name}"
    opens = opening(title, sheet(), script(), others=(style(dark=None),))
    return f"{opens}{joined([skip, main, tag('script', script())])}{CLOSING}"


@cache
def sheet() -> Markup:
    """Return the style sheet of pages with charts."""
    return Markup(asset("uplot/uPlot.min.css") + asset("style.css"))


@cache
def script() -> Markup:
    """Return the plotting library with its licence, and what draws the charts with it."""
    return Markup(f"/*\n{asset('uplot/LICENSE')}*/\n{asset('uplot/uPlot.iife.min.js')}\n{asset('script.js')}")
