"""Markup from text: whatever comes from outside is text, wherever it is put."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Return parts in a row; those that are no markup are escaped."""
    return Markup(between.join(part if isinstance(part, Markup) else text(part) for part in parts if part))


def folded(summary: str, *children: str, **attributes: str | bool) -> Markup:
    """Return something that opens at a click."""
    return tag("details", tag("summary", summary), tag("div", *children, class_="body"), **attributes)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], **attributes: str | bool) -> Markup:
    """Return a table that scrolls sideways where it is too wide."""
    head = tag("thead", tag("tr", *(tag("th", item, scope="col") for item in heads)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag(
        "div", tag("table", head, body, **attributes), class_="wide", tabindex="0", role="region", aria_label="Table"
    )


def _attributes(attributes: dict[str, str | bool]) -> str:
    written = ""
    for name, value in attributes.items():
        if value is not False:
            written += f" {name.rstrip('_').replace('_', '-')}"
        if not isinstance(value, bool):
            written += f'="{joined([value])}"'
    return written
