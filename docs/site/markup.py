"""Markdown made of the texts of trees and code: escaped, with links, in tables, sections and pages.

Whatever can be linked to has a label, which is the same on every page: a node's is its id, `metric-loss` and
`measure-spike` are those of a metric and a measure.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from stabtree.measures import all_questions
from stabtree.metrics.table import by_name
from stabtree.report.markdown import table as plain_table
from stabtree.tree.load import load_known
from stabtree.tree.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.tree.model import Leaf, Severity, Tree

METRIC, MEASURE = "metric", "measure"
SITE = re.compile(r"^https?://[^/]+/[^/]+/")
ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|$~^@!:-])")
# An address, a stretch of code, the id of a node in parentheses, an option.
MARKED = re.compile(
    r"(https?://[^\s<>]*[^\s<>.,;:!?)])|``(.+?)``|`([^`]+)`|\(([A-Z][\w.-]*)\)|(?<![\w-])(--[a-z][\w-]*)"
)
LONGEST_ADDRESS = 60  # of those that are shown whole


@cache
def shipped() -> Tree:
    """Return all shipped trees as one, those of `check` as well."""
    return load_known()


@cache
def labels() -> frozenset[str]:
    """Return the labels of everything that is described on some page."""
    tree = shipped()
    nodes = [*tree.questions, *tree.groups, *tree.entries]
    nodes += [*(f"cause-{id_}" for id_ in tables().causes), *(f"action-{id_}" for id_ in tables().actions)]
    leaves = [leaf.id for leaf in tree.leaves.values() if leaf.page]
    others = [*(f"{METRIC}-{name}" for name in by_name()), *(f"{MEASURE}-{name}" for name in all_questions())]
    return frozenset(label.lower() for label in (*nodes, *leaves, *others))


def to(name: str, words: str = "", kind: str = "") -> str:
    """Return a link to where something is described, in words or under its name; without a link where it is nowhere.

    Args:
        name: the id of a node, or the name of a metric (`grad_norm/blocks` too) or a measure.
        words: what to show instead of the name.
        kind: `METRIC` or `MEASURE`; empty for a node.
    """
    label = (f"{kind}-{name.partition('/')[0]}" if kind else name).lower()
    leaf, shown = shipped().leaves.get(name), text(words) if words else code(name)
    own = leaf is not None and not kind and "#" not in leaf.page
    target = f"../{address(leaf).replace('.html', '.md')}" if leaf and own else f"#{label}"
    return f"[{shown}]({target})" if label in labels() else shown


def address(leaf: Leaf) -> str:
    """Return the address of a leaf on the site, as `failures/errors.html#cuda-oom`: the one that reports print."""
    return SITE.sub("", leaf.page)


def text(plain: str) -> str:
    """Return a text on one line, in which no character is markup."""
    return ACTIVE.sub(r"\\\1", " ".join(plain.split()))


def code(plain: str) -> str:
    """Return a text as code, whatever backticks it has."""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{pad}{plain}{pad}{ticks}"


def prose(plain: str) -> str:
    """Return a text on one line, with addresses and ids in parentheses as links, and code and options as code."""
    plain = " ".join(plain.split())
    parts, end = [], 0
    for match in MARKED.finditer(plain):
        parts.append(ACTIVE.sub(r"\\\1", plain[end : match.start()]))
        end = match.end()
        link, double, single, id_, option = match.groups()
        if link:
            shown = re.sub(r"^https?://(www\.)?", "", link).rstrip("/")
            cut = shown if len(shown) <= LONGEST_ADDRESS else f"{shown[: LONGEST_ADDRESS - 1]}…"
            parts.append(f"[{text(cut)}](<{link}>)")
        elif id_:
            parts.append(f"({to(id_)})" if id_.lower() in labels() else ACTIVE.sub(r"\\\1", match[0]))
        else:
            parts.append(code(double or single or option))
    return "".join(parts) + ACTIVE.sub(r"\\\1", plain[end:])


def sentence(plain: str) -> str:
    """Return words as a sentence, with a capital and a full stop; empty if there are none."""
    capital = "" if plain.startswith("stabtree") else plain[:1].upper()
    return prose(f"{capital}{plain[len(capital) :].removesuffix('.')}.") if plain else ""


def reference(see: str) -> str:
    """Return a cross-reference of a node: another node with its title, an address, or words."""
    return f"{to(see)} {text(shipped().title_of(see))}".rstrip() if see.lower() in labels() else prose(see)


def badge(severity: Severity) -> str:
    """Return how bad a finding is, in its colour."""
    return f"[{severity}]{{.badge .{severity}}}"


def finding(leaf: Leaf) -> str:
    """Return a leaf in a line: how bad it is, its id and its title."""
    return f"{badge(leaf.severity)} {to(leaf.id)} {text(leaf.title)}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without the columns that are empty throughout; an empty string if it has no rows."""
    rows = [*rows]
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    if not kept:
        return ""
    cells = ([re.sub(r"(?<!\\)\|", r"\\|", row[place]) for place in kept] for row in rows)
    return plain_table([heads[place] for place in kept], cells)


def terms(items: Mapping[str, tuple[str, str]], prefix: str) -> str:
    """Return names under labels of their own, each with its kind and its meaning; both are Markdown."""
    rows = [
        f"[{code(name)}]{{#{label(prefix, name)}}} {f'[{kind}]{{.type}}' if kind else ''}\n: {meaning}"
        for name, (kind, meaning) in items.items()
    ]
    return "\n\n".join([":::{div} options", *rows, ":::"])


def label(*names: str) -> str:
    """Return the label of something within something: of `inputs[].path` of the JSON `json-inputs-path`."""
    parts = (re.sub(r"\W+|_", "-", name.replace("*", "any")).strip("-").lower() for name in names)
    return "-".join(filter(None, parts))


def listed(items: Iterable[str], mark: str = "-") -> str:
    """Return a list, an item a line."""
    return "\n".join(f"{mark} {item}" for item in items)


def part(heading: str, *paragraphs: str, level: int = 2, at: str = "") -> str:
    """Return a part of a page; an empty string if it has no paragraphs.

    Args:
        heading: its heading.
        paragraphs: what it consists of; empty ones are left out.
        level: of the heading; 0 for a line of bold words.
        at: its label.
    """
    body = [paragraph for paragraph in paragraphs if paragraph]
    head = f"{'#' * level} {heading}" if level else f"**{heading}**"
    return (f"({at})=\n" if at else "") + "\n\n".join((head, *body)) if body else ""


def folded(heading: str, body: str) -> str:
    """Return what opens on a click; an empty string if there is nothing in it."""
    return f"::::{{dropdown}} {heading}\n{body}\n::::" if body else ""


def raw(html: str) -> str:
    """Return HTML that stays as it is."""
    return f"`````{{raw}} html\n{html}\n`````"


def page(title: str, *parts: str, orphan: bool = False, wide: bool = False) -> str:
    """Return a page.

    Args:
        title: its heading, as Markdown.
        parts: what follows; empty ones are left out.
        orphan: whether no table of contents has it: a hundred of these in the margin of every page would help nobody.
        wide: whether it takes the room of its list of contents as well.
    """
    front = [*(["orphan: true"] if orphan else []), *(["hide-toc: true"] if wide else [])]
    head = ["\n".join(("---", *front, "---"))] if front else []
    room = ["```{div} wide-page\n```"] if wide else []
    return "\n\n".join((*head, f"# {title}", *room, *filter(None, parts))) + "\n"
