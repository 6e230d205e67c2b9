"""How a failure is told from its neighbours: the other answers to the question before it, and runs just beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site.failures import parts
from docs.site.failures.examples import after, examples, near
from docs.site.failures.pictures import of as curve
from docs.site.failures.pictures import telling
from docs.site.markup import known as tree
from stabtree.report.explain import rule_of
from stabtree.report.tags import Markup, joined, prose, table, tag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.site.failures.examples import Near
    from stabtree.tree.model import Leaf, Question

MAX_ALIKE = 6


def neighbours(leaf: Leaf) -> Iterator[str]:
    """The parts of a page that tell a failure from others."""
    for question in parts.leading(leaf.id):
        yield parts.raw(_asked(question))
        yield parts.raw(parts.cards(_exits(question, leaf)))
    if not parts.leading(leaf.id):
        yield from _escalated(leaf)
    if beside := near(leaf.id):
        yield "\n### Runs that come close\n"
        yield "\nEach lacks one thing of this failure and has all the rest, and is told something else.\n"
        yield parts.raw(_table(beside))
    if alike := _alike(leaf):
        yield "\n### What else looks like it\n"
        yield parts.raw(parts.cards(parts.card(id_) for id_ in alike))


def _asked(question: Question) -> str:
    """The question that decides, with its rule."""
    asked = tag("p", parts.link(question.id), " ", tag("strong", question.ask), class_="ask")
    rule = rule_of(tree(), question)
    told = tag("p", tag("b", "The rule: "), prose(rule), class_="rule") if rule else Markup()
    hand = tag("p", tag("b", "By hand: "), prose(question.person), class_="rule") if question.person else Markup()
    return tag("div", asked, told, hand, class_="decides")


def _exits(question: Question, leaf: Leaf) -> Iterator[Markup]:
    """A card for each answer."""
    answers: dict[str, list[str]] = {}
    for verdict, id_ in question.go.items():
        answers.setdefault(id_, []).append(parts.said(verdict))
    for id_, said in answers.items():
        above = joined([tag("b", joined([tag("span", word) for word in said], " or "))])
        if parts.has_failure(id_):
            here = tag("span", "this page", class_="here") if id_ == leaf.id else Markup()
            yield parts.card(id_, joined([above, here]), _decided(question, id_))
        elif id_ in tree().questions:
            nxt = tree().questions[id_]
            yield parts.plain_card(above, parts.link(id_, nxt.ask), joined(["asked next: ", parts.link(id_)]))
        else:
            yield parts.plain_card(above, Markup("Nothing found"))


def _decided(question: Question, id_: str) -> Markup:
    """What answered the question in the run of a failure."""
    walks = (examples()[id_].found.path, *examples()[id_].found.further)
    visits = (visit for walk in walks for visit in walk if visit.question.id == question.id)
    visit = next((visit for visit in visits if after(visit) == id_), None)
    return parts.sentences(visit.answer.evidence[:2]) if visit else Markup()


def _escalated(leaf: Leaf) -> Iterator[str]:
    """Leaves that no question leads to: what is left once the fixes of others did not help."""
    from_ = [other for other in tree().leaves.values() if other.escalate == leaf.id]
    groups = sorted({other.of for other in from_})
    applied = joined([tag("code", f"--applied {id_}") for id_ in groups], " ")
    told = ["No question leads here. It is told in place of these where their fixes were applied and did not help: "]
    yield parts.raw(tag("p", *told, applied, "."))
    yield parts.raw(parts.cards(parts.card(other.id) for other in from_))


def _table(beside: tuple[Near, ...]) -> Markup:
    return table(
        ["inside the bar of", "its curves", "what is told instead", "what decided"], map(_row, beside), class_="near"
    )


def _row(one: Near) -> list[str]:
    finding = one.found.findings[0] if one.found.findings else None
    series = telling(one.visit) if one.visit else []
    drawn = Markup(tag("div", Markup(curve(one.found, None if series else finding, series)), class_="thumb"))
    if parts.has_failure(one.ends):
        told = joined([parts.link(one.ends, tree().leaves[one.ends].title)])
    else:
        told = parts.outcome(one.found)
    decided = parts.sentences(one.visit.answer.evidence[:2]) if one.visit else Markup("the question is not asked")
    return [Markup(prose(one.bar)), drawn, told, decided]


def _alike(leaf: Leaf) -> list[str]:
    """Failures that tell of the same kind of event, by other questions: those of its own tree first."""
    home = parts.section_of(leaf).tree
    beside = {leaf.id, *(id_ for question in parts.leading(leaf.id) for id_ in question.go.values())}
    beside |= {other.id for other in tree().leaves.values() if other.escalate == leaf.id}
    alike = [
        other
        for other in tree().leaves.values()
        if set(other.events) & set(leaf.events) and other.id not in beside and parts.has_failure(other.id)
    ]
    if home == "errors":
        return []  # what they share is that the run ends
    mild = [other for other in alike if not other.id.endswith(parts.SURVIVED)]
    ordered = sorted(
        mild, key=lambda other: (parts.section_of(other).tree != home, -len(set(other.events) & set(leaf.events)))
    )
    return [other.id for other in ordered[:MAX_ALIKE]]
