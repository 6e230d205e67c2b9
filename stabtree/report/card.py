"""What a notebook shows of a result: a card of a few kilobytes, in the colours of the notebook itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.text import clean
from stabtree.report.html import NOTHING, Markup, prose, tag
from stabtree.report.model import MAX_TO_DO, Report
from stabtree.report.page import BADGES, clipped
from stabtree.report.plot import figure
from stabtree.report.svg import svg

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.plot import Figure

COLUMNS = 180
MAX_LINE = 400  # characters
FRAME = "font:14px/1.5 system-ui,sans-serif;max-width:900px;padding:10px 14px;border:1px solid #8888;border-radius:8px"
BADGE = "font-weight:700;padding:2px 8px;margin-right:8px;border-radius:4px;white-space:nowrap;color:#fff;background:"
COLOURS = dict(zip(BADGES, ("#070", "#05a", "#850", "#c00", "#555", "#808"), strict=True))
# Mixed with the colour of the text, these are darker on a light page and lighter on a dark one.
INKS = {"curve": "#0a6ebd", "bad": "#c9252d", "good": "#1a7f37", "behind": "#7b8490", "soft": "#6b7480"}
PICTURE = "display:block;width:100%;height:auto;--fig-ink:currentColor;--fig-back:transparent;--fig-grid:#8883;"
PICTURE += "--fig-frame:#88888812;--fig-band:#4a90d94d" + "".join(
    f";--fig-{name}:color-mix(in srgb,{colour} 70%,currentColor)" for name, colour in INKS.items()
)


def card(verdict: str, titles: Iterable[str], drawn: Figure | None, listed: Iterable[str], more: str) -> str:
    """Return a card: a badge, one strip of a figure (the loss, else the first), a list, and what shows more.

    The titles are the word of the badge, empty for that of the verdict, then what was found, and of what.
    """
    word, title, facts = (clean(text, MAX_LINE) for text in titles)
    picture = NOTHING
    if drawn is not None:
        strip = next((strip for strip in drawn.strips if strip.metric == "loss"), drawn.strips[0])
        picture = Markup(svg(replace(drawn, strips=(strip,))).replace("<svg ", f'<svg style="{PICTURE}" ', 1))
    badge = tag("span", word or BADGES[verdict].word, style=BADGE + COLOURS[verdict])
    rows = [tag("li", prose(clipped(clean(line, 2 * MAX_LINE), MAX_LINE))) for line in listed]
    below = tag("ol", *rows, style="margin:6px 0;padding-left:24px") if rows else NOTHING
    about, last = (tag("div", text, style="opacity:.8") for text in (facts, prose(more)))
    return tag("div", tag("div", badge, tag("strong", title)), about, picture, below, last, style=FRAME)


def of_run(diagnosis: Diagnosis) -> str:
    """Return the card of a diagnosis: the verdict, the loss, what to do, and where to restart."""
    report, more = Report(diagnosis), "On one screen: `print(diagnosis)`"
    if sources := diagnosis.run.sources:
        more = f"Whole report: `stabtree {shlex.quote(clean(sources[0].path, MAX_LINE))} -o report.html`. {more}"
    actions, drawn = report.do_now[:MAX_TO_DO], figure(diagnosis, report.finding, COLUMNS)
    return card(report.badge, ("", report.title, report.facts), drawn, [action.text for action in actions], more)
