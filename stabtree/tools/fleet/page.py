"""Many runs as one page in one file: counts, causes, and a table, worst first; without a script, or the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._version import __version__
from stabtree.judging.verdict import ORDER
from stabtree.report.html import CLOSING, NOTHING, Markup, badge, opening, tag
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import asset, counted
from stabtree.tools.fleet.record import levels
from stabtree.tools.fleet.table import Summary, next_command
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.tools.fleet.record import Record
    from stabtree.tools.fleet.table import RunGroup

MAX_ROWS, MAX_GROUPS = 2000, 60
HEADS = ("verdict", "run", "loss", "from step", "what was found", "restart", "last step")
HEIGHT = 26  # of a small line


def page(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield the page in pieces, each a line or more, of the runs, worst first."""
    summary = Summary(records)
    rows = summary.records[:MAX_ROWS]
    rest = len(summary.records) - len(rows)
    left_out = f"and {rest:,} more runs, none worse than these: --output csv=runs.csv"
    closing = [tag("strong", summary.headline), tag("code", next_command(rows[0]) if rows else "")]
    sheet = Markup(asset("style.css") + asset("page.css", "stabtree.tools.fleet"))
    pieces = [
        opening(f"{summary.headline} · stabtree", sheet, ""),
        tag("a", "Skip to the runs", href="#runs", class_="skip"),
        Markup('<main id="report">'),
        _header(summary),
        _causes(summary),
        Markup('<section aria-labelledby="runs">'),
        tag("h2", "Runs", id="runs"),
        tag("p", left_out, class_="careful") if rest else NOTHING,
        Markup('<div class="list"><table><thead>'),
        tag("tr", *(tag("th", head, scope="col") for head in HEADS)),
        Markup("</thead><tbody>"),
        *(_row(summary, record) for record in rows),
        Markup("</tbody></table></div></section>"),
        tag("p", *closing, class_="closing"),
        Markup("</main>"),
        CLOSING,
    ]
    for piece in filter(None, pieces):
        yield f"{piece}\n"


def _header(summary: Summary) -> Markup:
    total, calling = len(summary.records), len(summary.calling)
    title = f"Not healthy: {calling:,} of {counted(total, 'run')}"
    if not calling:
        title = f"Healthy: {counted(total, 'run')}"
    counts = [
        tag("li", badge(verdict), " ", tag("b", f"{summary.counts[verdict]:,}"))
        for verdict in ORDER
        if summary.counts[verdict]
    ]
    return tag(
        "header",
        badge(min(summary.counts, key=ORDER.index, default=Severity.OK)),
        tag("h1", title),
        tag("p", " · ".join(filter(None, (summary.where, f"judged by stabtree {__version__}"))), class_="facts"),
        tag("ul", *counts, class_="counts", aria_label="Runs by verdict"),
        *(tag("p", note, class_="quiet") for note in summary.notes),
    )


def _causes(summary: Summary) -> Markup:
    groups = [group for group in summary.groups if group.badge != Severity.OK]
    if not groups:
        return NOTHING
    shown = tag("ol", *(_group(summary, group) for group in groups[:MAX_GROUPS]), class_="groups")
    return tag("section", tag("h2", "Causes", id="causes"), shown, aria_labelledby="causes")


def _group(summary: Summary, group: RunGroup) -> Markup:
    share = f"{summary.share(group)} runs, from step {group.steps}".removesuffix(", from step ")
    return tag(
        "li",
        badge(group.badge),
        " ",
        tag("b", group.heading),
        " ",
        tag("span", group.leaf, class_="id"),
        tag("p", share, class_="share"),
        tag("p", group.examples(summary.name), class_="names"),
        tag("p", tag("b", "First: "), group.first) if group.first else NOTHING,
    )


def _row(summary: Summary, record: Record) -> Markup:
    steps = ["" if step is None else f"{step:,}" for step in (record.restart_step, record.last_step)]
    return tag(
        "tr",
        tag("td", badge(record.badge)),
        tag("td", summary.name(record), class_="run"),
        tag("td", _line(record)),
        tag("td", record.onset, class_="num"),
        tag("td", record.title, " ", tag("span", record.others, class_="id")),
        *(tag("td", step, class_="num") for step in steps),
    )


def _line(record: Record) -> Markup:
    """Return the loss as a small line, another colour from the finding on, with a dash below what was not finite."""
    drawn = levels(record.spark, HEIGHT)
    paths = {"curve": "", "mark": ""}
    for x, level in enumerate(drawn):
        path = "mark" if record.mark is not None and x >= record.mark else "curve"
        if level is None:
            paths["mark"] += f"M{x} {HEIGHT + 1}h1"
        else:
            begins = x in (0, record.mark) or drawn[x - 1] is None
            paths[path] += f"{'M' if begins else 'L'}{x} {HEIGHT - level}"
    lines = [tag("path", d=path, class_=name) for name, path in paths.items() if path]
    box = f"0 0 {max(len(drawn), 1)} {HEIGHT + 2}"
    shown = tag("svg", *lines, class_="spark", viewBox=box, preserveAspectRatio="none", aria_hidden="true")
    return shown if lines else NOTHING
