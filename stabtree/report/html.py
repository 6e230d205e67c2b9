"""A diagnosis as one page in one file: its story, the curves and what to do first; it asks nothing of the network.

Whatever comes from outside is text, wherever it is put. The page's policy allows no script but its own and uPlot, which
draw the curves; without scripts, and in print, a picture of them stands there.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.text import clean
from stabtree.report.curves import curves
from stabtree.report.model import Report
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.page import BADGES, asset
from stabtree.report.plot import whole_figure
from stabtree.report.sections import COURSE, NUMBER, PARAGRAPH, sections, story
from stabtree.report.svg import style, svg
from stabtree.report.words import accepted_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.plot import Figure
    from stabtree.report.sections import Topic

BESIDE = ("Do now", "What it means", "Causes")  # what stands beside the chart
SCRIPTS = ("uplot/uPlot.iife.min.js", "charts.js")
MAX_TEXT = 4000  # characters of one text
_CODE = re.compile(r"`([^`]+)`")


class Markup(str):
    """Text that is markup already. Only this module makes it, and `svg` is taken for it."""

    __slots__ = ()


NOTHING = Markup()


def text(value: object) -> Markup:
    """Return a value as text, without control characters and escaped; one space at each end is kept."""
    shown = str(value)
    before = " " if shown[:1].isspace() else ""
    after = " " if shown[-1:].isspace() else ""
    return escaped(f"{before}{clean(shown, MAX_TEXT)}{after}")


def escaped(shown: str) -> Markup:
    """Return a clean text as markup in which no service sees a command: these may begin with two hashes."""
    return Markup(escape(shown).replace("##", "#&#35;"))


def prose(value: str) -> Markup:
    """Return a sentence, with what is in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", text(value)))


def tag(name: str, *children: str, **attributes: str | bool) -> Markup:
    """Return an element; children that are no markup are escaped, `class_` is `class`, False omits an attribute."""
    return Markup(f"<{name}{_attributes(attributes)}>{joined(children)}</{name}>")


def kept(name: str, *children: str, **attributes: str | bool) -> Markup:
    """Return an element; nothing where there is nothing in it."""
    if not any(children):
        return NOTHING
    return tag(name, *children, **attributes)


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Return parts in a row; those that are no markup are escaped."""
    return Markup(between.join(part if isinstance(part, Markup) else text(part) for part in parts if part))


def folded(summary: str, *children: str, **attributes: str | bool) -> Markup:
    """Return something that opens at a click."""
    return tag("details", tag("summary", summary), tag("div", *children, class_="body"), **attributes)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], label: str = "Table", **more: str | bool) -> Markup:
    """Return a table that scrolls sideways where it is too wide."""
    heads = [*heads]
    head = tag("thead", tag("tr", *(kept("th", item, scope="col") or tag("td") for item in heads)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", head, body, **more), class_="wide", tabindex="0", role="region", aria_label=label)


def _attributes(attributes: dict[str, str | bool]) -> str:
    written = ""
    for name, value in attributes.items():
        if value is not False:
            written += f" {name.rstrip('_').replace('_', '-')}"
        if not isinstance(value, bool):
            written += f'="{joined([value])}"'
    return written


CLOSING = Markup("</body></html>\n")


def opening(title: str, sheet: Markup, scripts: Sequence[str] = (), others: Sequence[str] = ()) -> Markup:
    """Return a page up to what it shows, with a policy that allows nothing but its own styles and its own scripts."""
    styles = " ".join(map(_hash, (sheet, *others)))
    policy = f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"
    if scripts:
        policy += f"; script-src {' '.join(map(_hash, scripts))}"
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", sheet),
    )
    return Markup(f'<!doctype html>\n<html lang="en">{head}<body>')


def _hash(inline: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def html(diagnosis: Diagnosis, options: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the page: the story, the curves with what to do beside them, then everything else, folded."""
    report, figure = Report(diagnosis, options.exit_code), None
    if options.plots:
        figure = whole_figure(diagnosis, report.finding, options.against)
    parts, sheets, scripts = [*_body(report, figure)], [asset("style.css")], list[Markup]()
    if figure:
        sheets.insert(0, asset("uplot/uPlot.min.css"))
        data = Markup(curves(figure, diagnosis.run, options.against))
        scripts = [Markup(asset(name)) for name in SCRIPTS]
        parts += [tag("script", data, type="application/json", id="curves"), *(tag("script", one) for one in scripts)]
    title = f"{BADGES[report.badge].word} · {report.title} · {diagnosis.run.name}"
    return f"{opening(title, Markup(''.join(sheets)), scripts, (style(),))}{joined(parts)}{CLOSING}"


def _body(report: Report, figure: Figure | None) -> Iterator[Markup]:
    topics = {part.title: part for part in sections(report)}
    drawn = charts(figure, "still wide")
    beside = [_to_act(topics.pop(name)) for name in BESIDE if name in topics]
    if report.finding is None:
        beside += [_to_act(topics.pop(name)) for name in [*topics] if not topics[name].background]
    below = [headed(part.title, _entries(part), name="events") for part in [topics.pop(COURSE, None)] if part]
    if quoted := report.quoted:
        rows = ([tag("strong", cell) if line.here else cell for cell in line.texts] for line in quoted.lines)
        below.append(folded("The rows", table(quoted.heads, rows, class_="numbers quoted")))
    rest = (folded(part.title, _entries(part)) for part in topics.values())
    yield tag("a", "Skip to the report", href="#report", class_="skip")
    yield tag(
        "main",
        tag(
            "header",
            badge(report.badge),
            tag("h1", report.title),
            _paragraph(story(report), "story"),
            tag("p", report.facts, class_="facts"),
            _paragraph(report.earlier, "facts"),
            _paragraph(report.misread, "careful"),
            *(_paragraph(text, "facts") for text in accepted_notes(report.diagnosis)),
        ),
        tag(
            "div",
            drawn,
            kept("div", *beside, class_="beside"),
            kept("div", *below, class_="below"),
            class_="lead" + " alone" * (not (drawn and beside)),
        ),
        tag("p", *_closing(report), class_=f"closing {report.diagnosis.verdict}"),
        headed("Everything else", *rest, name="more"),
        id="report",
    )


def _closing(report: Report) -> Iterator[Markup]:
    """Yield the last line: the verdict, the command that explains it, and its page of the documents."""
    yield tag("strong", report.closing)
    if report.finding:
        yield tag("code", f"stabtree explain {report.node}")
    if report.finding and report.finding.leaf.page:
        yield tag("a", "about this failure", href=report.finding.leaf.page, rel="noopener")


def headed(title: str, *children: str, name: str) -> Markup:
    """Return a section with its heading; nothing where there is nothing in it."""
    if not any(children):
        return NOTHING
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


def badge(verdict: str) -> Markup:
    """Return a verdict as a word on its colour."""
    return tag("span", BADGES[verdict].word, class_=f"badge {verdict}")


def charts(figure: Figure | None, kind: str, title: str = "Charts", keys: Sequence[Markup] = ()) -> Markup:
    """Return a section with a figure of a class, below the entries of its legend; nothing without one."""
    if figure is None:
        return NOTHING
    shown = tag("div", Markup(svg(figure)), class_=kind, tabindex="0")
    return headed(title, kept("ul", *keys, class_="legend"), shown, name="charts")


def key(kind: str, words: str) -> Markup:
    """Return an entry of a legend: how something is drawn, and what it is."""
    return tag("li", tag("i", class_=f"key {kind}", aria_hidden="true"), words)


def _paragraph(text: str, kind: str) -> Markup:
    return kept("p", prose(text), class_=kind)


def _to_act(part: Topic) -> Markup:
    """Return a section beside the chart; of causes the first one, the others folded."""
    name = part.title.partition(",")[0].lower().replace(" ", "-")
    if part.title != "Causes" or len(part.entries) < 2:
        return headed(part.title, _entries(part), name=name)
    first, *others = part.entries
    rest = folded("Other causes, and what speaks against them", _entries(replace(part, entries=tuple(others))))
    title = {"possible": "First cause to check"}.get(first.style, "Likeliest cause")
    return headed(title, _entries(replace(part, entries=(first,))), rest, name=name)


def _entries(section: Topic) -> Markup:
    """Return what a section holds as a list, or as paragraphs."""
    if section.mark == PARAGRAPH:
        first, *others = section.entries
        return joined([_paragraph(first.text, "why"), *(_paragraph(entry.text, "quiet") for entry in others)])
    rows = []
    for entry in section.entries:
        before, strong, after = map(prose, entry.parts())
        shown = joined([before, kept("strong", strong), after])
        head = kept("span", entry.head, class_=f"head {entry.style.replace(' ', '-')}")
        rows.append(tag("li", head, tag("div", tag("p", shown), *(_paragraph(line, "quiet") for line in entry.below))))
    kind = "entries" + " headed" * any(entry.head for entry in section.entries)
    return tag("ol" if section.mark == NUMBER else "ul", *rows, class_=kind)
