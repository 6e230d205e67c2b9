"""What the pages of failures are put together from: raw markup in a page, links, badges and cards."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from docs.site.failures.examples import examples
from docs.site.failures.pictures import thumbnail
from docs.site.markup import FAILURES, PREDICATE_PAGES, has_page
from docs.site.markup import known as tree
from stabtree.common.answer import UNKNOWN
from stabtree.predicates import PREDICATES
from stabtree.report.page import BADGES
from stabtree.report.tags import Markup, joined, prose, tag
from stabtree.run import CONFIG
from stabtree.tree.load import file_of
from stabtree.tree.model import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Leaf, Question, Section

SURVIVED = "-survived"  # the milder leaf of a message that did not end the run


def raw(markup: str) -> str:
    """Markup in a page as it is."""
    ticks = "`" * (1 + max([2, *(len(run) for run in re.findall("`+", markup))]))
    return f"{ticks}{{raw}} html\n{markup}\n{ticks}\n"


def address(id_: str) -> str:
    """Where the page of a node lies, from a page of a failure; empty where it has none."""
    folder = has_page(id_)
    return f"../{folder}/{file_of(id_)}.html" if folder else ""


def link(id_: str, words: str = "", **attributes: str | bool) -> Markup:
    """A link to a node, under its id or in words; these alone where it has no page."""
    shown = prose(words) if words else tag("code", id_)
    return tag("a", shown, href=address(id_), **attributes) if address(id_) else shown


def predicate_link(name: str, words: str) -> Markup:
    """A link to a predicate's page."""
    return tag("a", prose(words), href=f"../{PREDICATE_PAGES}/{file_of(name)}.html") if name in PREDICATES else Markup()


def badge(severity: str) -> Markup:
    """The word for how bad something is, in its colour."""
    return tag("span", BADGES[severity].word.lower(), class_=f"badge {severity}")


def said(verdict: str) -> str:
    """An answer in words."""
    return "can't be told" if verdict == UNKNOWN else verdict.replace("_", " ")


def headline(leaf: Leaf) -> str:
    """The title of a failure's page: its own, with what tells it from others that are called the same."""
    alone = sum(other.title == leaf.title for other in tree().leaves.values()) == 1
    return leaf.title if alone or f"{leaf.id}{SURVIVED}" in tree().leaves else f"{leaf.title} ({leaf.id})"


def question_of(leaf: Leaf) -> Question | None:
    """The question that leads to a failure first."""
    return next(iter(leading(leaf.id)), None)


def leading(id_: str) -> list[Question]:
    """The questions that lead to a failure."""
    return [question for question in tree().questions.values() if id_ in question.go.values()]


def section_of(leaf: Leaf) -> Section:
    """The section that a failure belongs to."""
    held = tree().questions.get(leaf.of) or tree().groups[leaf.of]
    return tree().section(held.section)


def before_run(leaf: Leaf) -> bool:
    """Whether a configuration alone is judged, before its run."""
    home = section_of(leaf).tree
    return CONFIG in next(part.when for part in tree().parts if part.name == home)


def card(id_: str, above: str = "", below: str = "", **attributes: str | bool) -> Markup:
    """A failure as a picture with its title, all of it one link.

    Args:
        id_: the failure.
        above: what stands above its picture.
        below: what stands under its title.
        attributes: further ones of the element.
    """
    leaf, page = tree().leaves[id_], f"{file_of(id_)}.html"
    parts = [
        tag("div", Markup(above), class_="above") if above else Markup(),
        tag("div", _thumb(id_), class_="thumb"),
        tag("a", leaf.title, href=page, class_="title"),
        tag("div", badge(leaf.severity), tag("code", id_), class_="meta"),
        tag("div", Markup(below), class_="below") if below else Markup(),
    ]
    return tag("article", *parts, class_=f"fail {leaf.severity}", **attributes)


@cache
def _thumb(id_: str) -> Markup:
    return Markup(thumbnail(examples()[id_]))


def plain_card(above: str, title: str, below: str = "") -> Markup:
    """An exit that leads to no failure: to the next question, or to nothing."""
    parts = [tag("div", Markup(above), class_="above"), tag("div", Markup(title), class_="title")]
    return tag("article", *parts, tag("div", Markup(below), class_="below") if below else Markup(), class_="fail plain")


def cards(held: Iterable[str], *, close: bool = False) -> Markup:
    """Cards beside and below each other; close ones are beside each other on a phone too."""
    return tag("div", *held, class_="fails close" if close else "fails")


def sentences(evidence: Iterable[Evidence]) -> Markup:
    """What was seen, a sentence each."""
    return joined([tag("span", prose(item.text), class_="seen") for item in evidence])


def has_failure(id_: str) -> bool:
    """Whether a leaf is one with a page."""
    return has_page(id_) == FAILURES


def healthy(id_: str) -> bool:
    """Whether a leaf says that nothing was found."""
    return id_ in tree().leaves and tree().leaves[id_].title == NOTHING


def outcome(found: Diagnosis) -> Markup:
    """What a run is told as a whole."""
    if not found.findings:
        return Markup("nothing found")
    main = found.findings[0].leaf
    return joined([link(main.id, main.title)])
