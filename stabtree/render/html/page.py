"""A diagnosis as one page in one file: it asks nothing of the network, and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from stabtree.render.figure.theme import style
from stabtree.render.html import first
from stabtree.render.html.charts import charts
from stabtree.render.html.folded import everything_else
from stabtree.render.html.tags import NOTHING, Markup, tag
from stabtree.render.look import LOOK, Look
from stabtree.render.report.build import report
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.report.model import Report


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
    script = tag("script", _script())
    return f"<!doctype html>\n{tag('html', _head(told), tag('body', skip, main, script), lang='en')}\n"


def _head(told: Report) -> Markup:
    policy = (
        "default-src 'none'; "
        f"style-src '{_hash(_style())}' '{_hash(style(dark=None))}'; script-src '{_hash(_script())}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"{LOOKS[told.badge].word} · {told.title} · {told.diagnosis.run.name}"
    return tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", _style()),
    )


def _hash(inline: str) -> str:
    digest = hashlib.sha256(inline.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _style() -> Markup:
    return Markup(_asset("uplot/uPlot.min.css") + _asset("style.css"))


@cache
def _script() -> Markup:
    """The plotting library with its licence, and what draws the charts with it."""
    return Markup(f"/*\n{_asset('uplot/LICENSE')}*/\n{_asset('uplot/uPlot.iife.min.js')}\n{_asset('script.js')}")


def _asset(name: str) -> str:
    return files("stabtree.render.html").joinpath(name).read_text("utf-8")
