"""Texts of trees and code as Markdown: their code stays code, their addresses are links; and tables, pages, badges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docs.site.markup import ACTIVE, code, has_page, text, to
from stabtree.report.markdown import table as whole_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.facts.registry import Param
    from stabtree.tree.model import Severity

# An address, a stretch of code, the id of a node in parentheses, an option.
MARKED = re.compile(
    r"(https?://[^\s<>]*[^\s<>.,;:!?)])|``(.+?)``|`([^`]+)`|\(([A-Z][\w.-]*)\)|(?<![\w-])(--[a-z][a-z-]+)"
)
LONGEST_ADDRESS = 60  # of one that is shown whole


def prose(plain: str) -> str:
    """A text with its addresses as links, its code as code and ids in parentheses as links; on one line."""
    plain = " ".join(plain.split())
    found, end = [], 0
    for match in MARKED.finditer(plain):
        found.append(_escaped(plain[end : match.start()]))
        end = match.end()
        address, double, single, id_, option = match.groups()
        if address:
            found.append(link(address))
        elif double or single or option:
            found.append(code(double or single or option))
        else:
            found.append(f"({to(id_)})" if has_page(id_) else _escaped(match[0]))
    return "".join(found) + _escaped(plain[end:])


def _escaped(plain: str) -> str:
    """No letter of it is markup; unlike `text` it keeps the blanks at its ends."""
    return ACTIVE.sub(r"\\\1", plain)


def link(address: str) -> str:
    """A link to an address of another site; a long one is shown shortened."""
    shown = re.sub(r"^https?://(www\.)?", "", address).rstrip("/")
    short = shown if len(shown) <= LONGEST_ADDRESS else f"{shown[: LONGEST_ADDRESS - 1]}…"
    return f"[{text(short)}](<{address}>)"


def reference(see: str, title: str = "") -> str:
    """A cross-reference of a node: another node with its title, an address, or words."""
    if has_page(see):
        return f"{to(see)} {text(title)}".rstrip()
    return prose(see)


def shown(value: Param | None) -> str:
    """A value of a parameter, as one types it."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(f"{value:g}" if isinstance(value, float) else str(value))


def badge(severity: Severity) -> str:
    """How bad a finding is, in its colour."""
    return f"[{severity}]{{.badge .{severity}}}"


def cell(markdown: str) -> str:
    """Markdown that does not end a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", markdown)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty where it has no rows. A column of which every cell is empty is left out."""
    rows = [*rows]
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    if not kept:
        return ""
    return whole_table([head[place] for place in kept], ([cell(row[place]) for place in kept] for row in rows))


def listed(items: Iterable[str]) -> str:
    """A list, one item a line."""
    return "\n".join(f"- {item}" for item in items)


def console(*commands: str) -> str:
    """Commands to type, in a block."""
    return "\n".join(("```console", *(f"$ {command}" for command in commands), "```"))


def part(heading: str, *paragraphs: str, level: int = 2) -> str:
    """A part of a page; empty where it holds nothing."""
    told = [paragraph for paragraph in paragraphs if paragraph]
    return "\n\n".join((f"{'#' * level} {heading}", *told)) if told else ""


def folded(heading: str, body: str) -> str:
    """What opens on a click; empty where it holds nothing."""
    return f"::::{{dropdown}} {heading}\n{body}\n::::" if body else ""


def page(title: str, *parts: str, listed_elsewhere: bool = True, wide: bool = False) -> str:
    """A page.

    Args:
        title: its heading, as Markdown.
        parts: its parts; empty ones are left out.
        listed_elsewhere: whether an index links to it and no table of contents does: hundreds of these in the margin of
            every page would be of no use to anyone.
        wide: whether it takes the room of its list of contents as well.
    """
    said = [*(["orphan: true"] if listed_elsewhere else []), *(["hide-toc: true"] if wide else [])]
    front = ["\n".join(("---", *said, "---"))] if said else []
    room = ["```{div} wide-page\n```"] if wide else []
    return "\n\n".join((*front, f"# {title}", *room, *(each for each in parts if each))) + "\n"
