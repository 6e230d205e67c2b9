"""What a notebook shows of a result: a card of a few kilobytes, in the colours of the notebook itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean
from stabtree.judging.verdict import UNREAD
from stabtree.report.html import NOTHING, Markup, prose, tag
from stabtree.report.model import MAX_TO_DO, Report
from stabtree.report.page import BADGES, clipped
from stabtree.report.plot import figure
from stabtree.report.svg import svg
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.plot import Figure

COLUMNS = 180
MAX_LINE = 400  # characters of an action
# Mixed with the colour of the text, a colour is darker on a light page and lighter on a dark one.
MIX = "color-mix(in srgb,{} 70%,currentColor)"
INKS = {"curve": "#0a6ebd", "bad": "#c9252d", "good": "#1a7f37", "behind": "#7b8490", "soft": "#6b7480"}
PICTURE = (
    "display:block;width:100%;max-width:880px;height:auto;"
    "--fig-back:transparent;--fig-ink:currentColor;--fig-grid:#8883;--fig-frame:#88888812;--fig-band:#4a90d94d;"
    + "".join(f"--fig-{name}:{MIX.format(colour)};" for name, colour in INKS.items())
)
CARD = "font:14px/1.5 system-ui,sans-serif;max-width:900px;padding:10px 14px;border:1px solid #8888;border-radius:8px"
BADGE = "font-weight:700;padding:2px 8px;margin-right:8px;border-radius:4px;white-space:nowrap;"
COLOURS = {
    Severity.OK: "background:#008700;color:#fff",
    Severity.NOTE: "background:#005faf;color:#fff",
    Severity.WARNING: "background:#d7af00;color:#000",
    Severity.CRITICAL: "background:#d70000;color:#fff",
    UNKNOWN: "background:#585858;color:#fff",
    UNREAD: "background:#870087;color:#fff",
}


def card(
    verdict: str,
    title: str,
    facts: str,
    *,
    opens: str,
    word: str = "",
    drawn: Figure | None = None,
    listed: Sequence[str] = (),
) -> str:
    """Return a result as a card.

    Args:
        verdict: the verdict, for its colour.
        title: what was found.
        facts: of what.
        opens: what shows the whole, with commands in backticks.
        word: what the badge says, if it is not the verdict's own word.
        drawn: what to draw, of which one strip is shown: the loss, else the first one.
        listed: what to do, or what there is, a line each.
    """
    picture = NOTHING
    if drawn is not None:
        strip = next((strip for strip in drawn.strips if strip.metric == "loss"), drawn.strips[0])
        picture = Markup(svg(replace(drawn, strips=(strip,))).replace("<svg ", f'<svg style="{PICTURE}" ', 1))
    badge = tag("span", word or BADGES[verdict].word, style=BADGE + COLOURS[verdict])
    rows = [tag("li", prose(clipped(clean(line, 2 * MAX_LINE), MAX_LINE))) for line in listed]
    return tag(
        "div",
        tag("div", badge, tag("strong", clean(title, MAX_LINE))),
        tag("div", clean(facts, MAX_LINE), style="opacity:.8"),
        picture,
        tag("ol", *rows, style="margin:6px 0;padding-left:24px") if rows else NOTHING,
        tag("div", prose(opens), style="opacity:.8"),
        style=CARD,
    )


def of_run(diagnosis: Diagnosis) -> str:
    """Return the card of a diagnosis: the verdict, the loss, what to do, and where to restart."""
    report, sources = Report(diagnosis), diagnosis.run.sources
    opens = "On one screen: `print(diagnosis)`"
    if sources:
        opens = f"Whole report: `stabtree {shlex.quote(clean(sources[0].path, MAX_LINE))} -o report.html`. {opens}"
    actions = [action.text for action in report.do_now[:MAX_TO_DO]]
    drawn = figure(diagnosis, report.finding, COLUMNS)
    return card(report.badge, report.title, report.facts, opens=opens, drawn=drawn, listed=actions)
