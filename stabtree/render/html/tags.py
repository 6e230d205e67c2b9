"""Markup from text: whatever comes from outside is text, wherever it stands."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TEXT = 4000  # characters of one text
_CODE = re.compile(r"`([^`]+)`")


class Markup(str):
    """Text that is markup already. Only this module makes it, and `svg` is taken for it."""

    __slots__ = ()


NOTHING = Markup()


def text(value: object) -> Markup:
    """A value as text, without control characters and escaped; a space at its ends stays, for it parts words."""
    told = str(value)
    before, after = (" " * told[place].isspace() if told else "" for place in (0, -1))
    return escaped(f"{before}{clean(told, MOST_TEXT)}{after}")


def escaped(told: str) -> Markup:
    """A clean text as markup, in which no service that prints it sees a command: these may begin with two hashes."""
    return Markup(escape(told).replace("##", "#&#35;"))


def prose(value: str) -> Markup:
    """A sentence, with what stands in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", text(value)))


def tag(name: str, *children: str, **attributes: str | bool) -> Markup:
    """An element; children that are no markup are escaped, `class_` is `class`, False leaves an attribute out."""
    return Markup(f"<{name}{_attributes(attributes)}>{joined(children)}</{name}>")


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Parts in a row; those that are no markup are escaped."""
    return Markup(between.join(part if isinstance(part, Markup) else text(part) for part in parts if part))


def folded(summary: str, *children: str, **attributes: str | bool) -> Markup:
    """Something that opens at a click."""
    return tag("details", tag("summary", summary), tag("div", *children, class_="body"), **attributes)


def items(name: str, texts: Iterable[str], **attributes: str | bool) -> Markup:
    """A list, empty where there is nothing to list."""
    rows = [tag("li", prose(item) if not isinstance(item, Markup) else item) for item in texts]
    return tag(name, *rows, **attributes) if rows else NOTHING


def fields(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Names with what belongs to each; those with nothing are left out."""
    rows = [joined([tag("dt", name), tag("dd", told)]) for name, told in pairs if told]
    return tag("dl", *rows) if rows else NOTHING


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], **attributes: str | bool) -> Markup:
    """A table that scrolls sideways where it is too wide."""
    head = tag("thead", tag("tr", *(tag("th", item, scope="col") for item in heads)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag(
        "div", tag("table", head, body, **attributes), class_="wide", tabindex="0", role="region", aria_label="Table"
    )


def _attributes(attributes: dict[str, str | bool]) -> str:
    told = [
        f" {name.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{value if isinstance(value, Markup) else text(value)}"')
        for name, value in attributes.items()
        if value is not False
    ]
    return "".join(told)
