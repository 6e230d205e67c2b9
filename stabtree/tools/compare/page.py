"""A comparison as one page in one file: what the screen says, in its order, with the runs over one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.html import CLOSING, asset, badge, charts, headed, key, opening
from stabtree.report.outputs import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.svg import COLUMNS, style
from stabtree.report.tags import NOTHING, Markup, folded, joined, table, tag
from stabtree.tools.compare import report as words
from stabtree.tools.compare.outputs import headline, overlay
from stabtree.tools.compare.result import Parted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.tools.compare.result import Comparison

MAX_ROWS = 8  # partings, settings and series that are left out, above the fold
MAX_STRIPS = 5


def page(comparison: Comparison, look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the page."""
    main = tag(
        "main",
        _header(comparison),
        _partings(comparison),
        _charts(comparison) if look.plots else NOTHING,
        _settings(comparison),
        _verdicts(comparison),
        _left_out(comparison),
        _closing(comparison),
        id="report",
    )
    skip = tag("a", "Skip to the comparison", href="#report", class_="skip")
    own = Markup(asset("style.css") + asset("page.css", "stabtree.tools.compare"))
    opens = opening(headline(comparison), own, others=(style(),))
    return f"{opens}{joined([skip, main])}{CLOSING}"


def _header(comparison: Comparison) -> Markup:
    word, kind = words.WORDS[comparison.parted]
    texts = filter(None, (words.basis(comparison), *comparison.notes))
    return tag(
        "header",
        tag("span", word, class_=f"badge {kind}"),
        tag("h1", _title(comparison)),
        *(tag("p", text, class_="facts") for text in texts),
    )


def _title(comparison: Comparison) -> str:
    """Return the title of the screen as a sentence of its own."""
    title = words.title(comparison)
    if comparison.parted is Parted.NO:
        return f"They don't part {title}"
    return _sentence(title)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> list[Markup]:
    """Return rows as a table; those beyond the first few are folded."""
    parts = [table(heads, rows[:MAX_ROWS], class_=kind)] if rows else []
    rest = rows[MAX_ROWS:]
    if rest:
        parts.append(folded(f"and {len(rest):,} more", table(heads, rest, class_=kind)))
    return parts


def _partings(comparison: Comparison) -> Markup:
    rows = [[row.at, tag("code", row.metric), row.good, row.bad, row.how] for row in words.partings(comparison)]
    if rows:
        first = rows[0]
        first[1] = joined([first[1], " ", tag("span", "◀ first", class_="first")])
    heads = ("where", "series", "good", "bad", "")
    return headed("Who parted first", *_rows(heads, rows, "partings"), name="partings")


def _charts(comparison: Comparison) -> Markup:
    *good, bad = words.short_names(comparison.names)
    behind = f"good: {good[0]}"
    if len(good) > 1:
        behind = f"the {len(good)} good runs, from the lowest to the highest"
    keys = (key("line", f"bad: {bad}"), key("line behind", behind))
    return charts(overlay(comparison, COLUMNS, MAX_STRIPS), "One over the other", keys)


def _settings(comparison: Comparison) -> Markup:
    rows = [
        [tag("code", name), good, tag("strong", bad)] for name, good, bad in map(words.setting, comparison.settings)
    ]
    return headed("Settings that differ", *_rows(("", "good", "bad"), rows, "settings"), name="settings")


def _verdicts(comparison: Comparison) -> Markup:
    rows = [[badge(row.badge), tag("strong", row.name), row.text] for row in words.verdicts(comparison)]
    parts = _rows(("verdict", "run", "what was found"), rows, "verdicts")
    apart = words.findings_apart(comparison)
    if apart:
        parts.append(tag("p", _sentence(apart), class_="quiet"))
    return headed("Verdict of each run", *parts, name="verdicts")


def _left_out(comparison: Comparison) -> Markup:
    rows = [[tag("code", metric), why] for metric, why in comparison.left_out]
    return headed("Not compared", *_rows(("series", "why"), rows, "left-out"), name="left-out")


def _closing(comparison: Comparison) -> Markup:
    _, kind = words.WORDS[comparison.parted]
    return tag(
        "p",
        tag("span", words.closing(comparison)),
        tag("code", words.next_command(comparison)),
        class_=f"closing {kind}",
    )
