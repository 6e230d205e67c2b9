"""A diagnosis as one page in one file: it asks nothing of the network, and runs nothing but its own script."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from stabtree.render.figure.theme import style
from stabtree.render.html import first
from stabtree.render.html.charts import charts
from stabtree.render.html.document import CLOSING, asset, opening
from stabtree.render.html.folded import everything_else
from stabtree.render.html.tags import NOTHING, Markup, joined, tag
from stabtree.render.look import LOOK, Look
from stabtree.render.report.build import report
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis


def html(diagnosis: Diagnosis, look: Look = LOOK) -> str:
    """The page: what the screen tells, in its order, then everything else, folded."""
    told = report(diagnosis, exit_code=look.exit_code)
    main = tag(
        "main",
        first.verdict(told),
        first.do_now(told),
        first.events(told),
        charts(told) if look.plots else NOTHING,
        first.causes(told),
        first.path(told),
        first.also(told),
        first.not_checked(told),
        first.closing(told),
        everything_else(told),
        id="report",
    )
    skip = tag("a", "Skip to the report", href="#report", class_="skip")
    title = f"{LOOKS[told.badge].word} · {told.title} · {told.diagnosis.run.name}"
    opens = opening(title, _style(), _script(), others=(style(dark=None),))
    return f"{opens}{joined([skip, main, tag('script', _script())])}{CLOSING}"


@cache
def _style() -> Markup:
    return Markup(asset("uplot/uPlot.min.css") + asset("style.css"))


@cache
def _script() -> Markup:
    """The plotting library with its licence, and what draws the charts with it."""
    return Markup(f"/*\n{asset('uplot/LICENSE')}*/\n{asset('uplot/uPlot.iife.min.js')}\n{asset('script.js')}")
