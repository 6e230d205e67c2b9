"""Markdown that is made of texts of trees and code: escaped, and with links between generated pages.

Every generated page lies one folder deep (`failures/fp16-overflow.md`), so that a link from one to another is the same
wherever it stands.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from stabtree.metrics.table import by_name
from stabtree.predicates import PREDICATES
from stabtree.tree.load import file_of, load_known
from stabtree.tree.model import NOTHING

if TYPE_CHECKING:
    from stabtree.tree.model import Tree

FAILURES, NODES, METRIC_PAGES, PREDICATE_PAGES = "failures", "nodes", "metrics", "predicates"
METRIC_NAMES = set(by_name())
ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|$~^@!:-])")


@cache
def known() -> Tree:
    """All shipped trees, those of `check` as well."""
    return load_known()


def text(plain: str) -> str:
    """A text of which no letter is markup, on one line."""
    return ACTIVE.sub(r"\\\1", " ".join(plain.split()))


def code(plain: str) -> str:
    """A text as code, whatever ticks it holds."""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{pad}{plain}{pad}{ticks}"


def has_page(id_: str) -> str:
    """The folder in which an id of a tree has its page; empty where it has none."""
    tree = known()
    if id_ in tree.leaves:
        return FAILURES if tree.leaves[id_].title != NOTHING else ""
    nodes = (tree.questions, tree.groups, tree.entries, {item.id for item in tree.signatures})
    return NODES if any(id_ in held for held in nodes) else ""


def to(id_: str, words: str = "") -> str:
    """A link to an id's page, with words or the id itself; mere code where it has no page."""
    folder = has_page(id_)
    return f"[{text(words) if words else code(id_)}](../{folder}/{file_of(id_)}.md)" if folder else code(words or id_)


def to_metric(name: str) -> str:
    """A link to a metric's page, also for one of its groups (`grad_norm/blocks`)."""
    home = name.split("/", maxsplit=1)[0]
    return f"[{code(name)}](../{METRIC_PAGES}/{file_of(home)}.md)" if home in METRIC_NAMES else code(name)


def to_predicate(name: str) -> str:
    """A link to a predicate's page."""
    return f"[{code(name)}](../{PREDICATE_PAGES}/{file_of(name)}.md)" if name in PREDICATES else code(name)
