"""What must hold between the nodes of a tree, and between a tree and the predicates."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.text import near, stays_inside
from stabtree.facts import FACTS
from stabtree.facts.circumstances import WORDS
from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named, predicate_names
from stabtree.run import OTHERS
from stabtree.tree import fixes
from stabtree.tree.model import (
    BRIEF,
    EVENTS,
    SHORT,
    SHORT_CAUSE,
    SHORT_FIX,
    Cause,
    FactParams,
    Question,
    Signature,
    Tree,
)
from stabtree.tree.params import Asking, asking, fact_params, facts_behind, liked, mistakes, resolved, settable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stabtree.predicates import Predicate
    from stabtree.tree.document import Case, Group

Mistake = tuple[int, str]
ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]\\`]+")  # stands in pages and in Markdown
FORMATS = ("", "g", ".0%")  # what a rule may format a number with; a width could fill the memory


def check(tree: Tree, places: Mapping[str, int], *, whole: bool = True) -> list[Mistake]:
    """All mistakes in a tree as (line, text).

    Args:
        tree: the tree.
        places: the line of each id, sections as `§id`, and of each of its keys as `id.key`.
        whole: whether all nodes could be read: else nothing is said of what leads where.
    """
    nodes = {**tree.questions, **tree.leaves}
    found: list[Mistake] = []
    for question in tree.questions.values():
        line = places.get(question.id, 1)
        found += [(places.get(f"{question.id}.{key}", line), text) for key, text in _question(tree, question, nodes)]
    for leaf in tree.leaves.values():
        line = places.get(leaf.id, 1)
        found += [(line, f"leaf {leaf.id} {text}") for text in _leaf(tree, leaf.id)]
        for cause in leaf.causes:
            texts = (*_predicate(tree, cause), *_holds(cause), *_fixes(cause.fixes), *_shorts(cause))
            found += [(line, f"cause {cause.id} {text}") for text in texts]
    for item in tree.signatures:
        texts = (*_predicate(tree, item), *_holds(item), *_fixes(item.fixes), *_shorts(item))
        found += [(places.get(item.id, 1), f"cause {item.id} {text}") for text in texts]
    for group in tree.groups.values():
        found += [(places.get(group.id, 1), f"group {group.id} {text}") for text in _group(tree, group)]
    for stated in tree.facts.values():
        found += [(places.get(f"fact {stated.id}", 1), text) for text in _fact(stated)]
    for entry in tree.entries.values():
        if not entry.fixes or not entry.source:
            found.append((places.get(entry.id, 1), f"entry {entry.id} lacks a fix or a source"))
    for place, case in enumerate(tree.tests):
        found += [(places.get(f"test {place}", 1), f"the test of {case.run!r} {text}") for text in _case(tree, case)]
    found += _sections(tree, places)
    walked = tree.sections and tree.questions and tree.leaves
    if not walked and not ((tree.entries or tree.signatures) and not tree.questions):
        found.append((1, "a tree needs at least one section, one question and one leaf"))
    return found or (_shape(tree, places) if whole else [])


def _sections(tree: Tree, places: Mapping[str, int]) -> Iterator[Mistake]:
    for section in tree.sections:
        line = places.get(f"§{section.id}", 1)
        for name in _strangers(section.when):
            text = f"section {section.id} waits for the metric {name!r}, which is not known{near(name, by_name())}"
            yield line, text
        if section.entry not in tree.questions:
            text = f"section {section.id} enters at {section.entry}, which is not a question"
            yield line, text + near(section.entry, tree.questions)
    for name in _strangers(tree.when):
        yield 1, f"the tree waits for the metric {name!r}, which is not known{near(name, by_name())}"


def _strangers(when: Iterable[str]) -> Iterator[str]:
    """The names to wait for that are no metric and nothing else that a run may have."""
    return (name for name in when if name not in OTHERS and name.partition("/")[0] not in by_name())


def _question(tree: Tree, question: Question, nodes: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The mistakes in a question, each with the key that it stands under."""
    name = f"question {question.id}"
    if question.id in FACTS:
        yield "id", f"{name} is called what a fact is called"
    if question.section not in {section.id for section in tree.sections}:
        yield "section", f"{name} is in section {question.section!r}, which does not exist"
    if not question.source:
        yield "source", f"{name} lacks a source"
    if len(question.short) > SHORT:
        yield "short", f"{name} has a short of {len(question.short)} characters; {SHORT} is the most"
    yield from (("against", f"{name} {text}") for text in _against(tree, question))
    yield from (("go", f"{name} {text}") for text in _edges(question, nodes))
    predicate = predicate_named(question.test)
    under = "test" if predicate is None else "params"
    yield from ((under, f"{name} {text}") for text in _predicate(tree, question))
    if predicate is not None:
        yield from (("go", f"{name} {text}") for text in _verdicts(question, predicate))
        yield from (("rule", f"{name} {text}") for text in _templates(question, predicate))


def _edges(question: Question, nodes: Mapping[str, object]) -> Iterator[str]:
    for verdict, target in question.go.items():
        if target not in nodes:
            yield f"goes to {target!r} on {verdict}, which does not exist{near(target, nodes)}"
    for word, verdict in question.words.items():
        if verdict not in question.go:
            yield f"takes {word!r} for {verdict!r}, which has no edge{near(verdict, question.go)}"
    if UNKNOWN not in question.go and NO not in question.go:
        yield "has no edge for 'unknown' and none for 'no' to go on along"


def _against(tree: Tree, question: Question) -> Iterator[str]:
    for word, told in question.against.items():
        if word not in question.go:
            yield f"has {word!r} under against, which has no edge{near(word, question.go)}"
        id_, _, verdict = told.partition("=")
        if id_ not in tree.questions:
            yield f"stands against {id_!r}, which is no question{near(id_, tree.questions)}"
        elif verdict not in tree.questions[id_].go:
            yield f"stands against {told!r}, but {id_} has no edge for that{near(verdict, tree.questions[id_].go)}"


def _verdicts(question: Question, predicate: Predicate) -> Iterator[str]:
    for verdict in predicate.verdicts:
        if verdict not in question.go and verdict != UNKNOWN:
            yield f"has no edge for {verdict!r}, which {predicate.name} may answer"
    for verdict in question.go:
        if verdict not in predicate.verdicts:
            hint = near(verdict, predicate.verdicts)
            yield f"has an edge for {verdict!r}, which {predicate.name} never answers{hint}"


def _predicate(tree: Tree, node: Asking) -> Iterator[str]:
    mistake = _like(tree, node)
    if mistake:
        yield mistake
        return
    if not node.test:
        keys = [key for key in ("params", "advanced", "literal", "like") if getattr(node, key, None)]
        if keys:
            yield f"has {keys[0]} but no test"
        return
    if both := node.params.keys() & node.advanced.keys():
        yield f"states {min(both)!r} under params and under advanced"
    predicate = predicate_named(node.test)
    if predicate is None:
        yield f"asks the predicate {node.test!r}, which does not exist{near(node.test, predicate_names())}"
        return
    literal = dict(node.literal) if isinstance(node, Question) else {}
    names = {key: item for key, (_, item) in settable(predicate).items()}
    wrong = list(mistakes(names, predicate.name, {**node.params, **node.advanced, **literal}))
    yield from wrong
    for key in predicate.params.keys() - resolved(tree, node).keys():
        yield f"lacks the parameter {key!r} of {predicate.name}"
    for name in () if wrong else facts_behind(predicate):
        if name not in tree.facts and FACTS[name].params:
            yield f"asks for the fact {name}, of which nothing is stated under 'facts'"


def _holds(cause: Cause | Signature) -> Iterator[str]:
    if cause.moves and cause.moves not in by_name():
        yield f"moves {cause.moves!r}, which is no metric{near(cause.moves, by_name())}"
    for key, words in cause.holds.items():
        if key not in WORDS:
            yield f"holds for {key!r}, which is not a circumstance{near(key, WORDS)}; those are {', '.join(WORDS)}"
            continue
        for word in words:
            if word not in WORDS[key]:
                yield f"holds for {key} {word!r}{near(word, WORDS[key])}; known are {', '.join(WORDS[key])}"
        if not words:
            yield f"holds for no {key} at all"


def _fact(stated: FactParams) -> Iterator[str]:
    fact = FACTS.get(stated.id)
    if fact is None:
        yield f"there is no fact {stated.id!r}{near(stated.id, FACTS)}"
        return
    if both := stated.params.keys() & stated.advanced.keys():
        yield f"fact {stated.id} states {min(both)!r} under params and under advanced"
    said = {**stated.params, **stated.advanced}
    yield from (f"fact {stated.id} {text}" for text in mistakes(fact.params, stated.id, {**said, **stated.literal}))
    for key, item in fact.params.items():
        if key not in said and item.default is None:
            yield f"fact {stated.id} lacks the parameter {key!r}"


def _like(tree: Tree, node: Asking) -> str:
    """What is wrong with the nodes that a node takes its parameters from, empty where nothing is."""
    seen = [node.id]
    while node.like:
        if node.like in seen:
            return f"is like itself: {' → '.join([*seen, node.like])}"
        try:
            node = liked(tree, node.like)
        except KeyError:
            known = [item.id for item in asking(tree)]
            return f"is like {node.like!r}, which is neither a question nor a cause{near(node.like, known)}"
        seen.append(node.id)
    return ""


def _templates(question: Question, predicate: Predicate) -> Iterator[str]:
    names = settable(predicate)
    quick = (question.quick.threshold, question.quick.letter) if question.quick else ()
    for text in (question.rule, *quick):
        try:
            parts = [part for part in string.Formatter().parse(text) if part[1] is not None]
        except ValueError:
            yield f"has braces that don't close in {text!r}"
            continue
        for _, name, form, conversion in parts:
            if name not in names:
                hint = near(str(name), names)
                yield f"names {{{name}}} in its rule, which {predicate.name} does not have{hint}"
            elif form not in FORMATS or conversion:
                yield f"formats {{{name}}} as {form!r}; leave it out or use one of {', '.join(filter(None, FORMATS))}"


def _group(tree: Tree, group: Group) -> Iterator[str]:
    """What is wrong with the numbers that a group's rule takes from facts, as in `{spike[sigma]}`."""
    try:
        names = [part[1] for part in string.Formatter().parse(group.rule) if part[1] is not None]
        group.rule.format_map(fact_params(tree))
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        yield f"has a rule that names no parameter of a fact: {group.rule!r}"
        return
    for name in names:
        if not re.fullmatch(r"\w+\[\w+\]", name):
            yield f"names {{{name}}} in its rule; a parameter of a fact is named as {{spike[sigma]}}"


def _leaf(tree: Tree, id_: str) -> Iterator[str]:
    leaf = tree.leaves[id_]
    if not leaf.fixes:
        yield "lacks a fix"
    yield from _fixes(leaf.fixes)
    if not leaf.source:
        yield "lacks a source"
    if leaf.headline and leaf.headline.count(BRIEF) != 1:
        yield f"has a headline without {BRIEF}, or with more than one"
    if leaf.of not in tree.questions and leaf.of not in tree.groups:
        yield f"is of {leaf.of!r}, neither a question nor a group{near(leaf.of, [*tree.questions, *tree.groups])}"
    if leaf.escalate and leaf.escalate not in tree.leaves:
        yield f"escalates to {leaf.escalate!r}, which is not a leaf{near(leaf.escalate, tree.leaves)}"
    for event in leaf.events:
        if event not in EVENTS:
            yield f"tells of the event {event!r}{near(event, EVENTS)}; known are {', '.join(EVENTS)}"
    if leaf.page and not ADDRESS.fullmatch(leaf.page):
        yield f"has the page {leaf.page!r}; an address begins with https:// or http:// and holds no blank or quote"
    if leaf.lasting and not leaf.events:
        yield "is lasting, but tells of no event"
    for need in leaf.needs:
        if need not in tree.questions:
            yield f"needs {need!r}, which is not a question{near(need, tree.questions)}"


def _fixes(texts: Iterable[str]) -> Iterator[str]:
    return (text for fix in texts for text in fixes.mistakes(fix))


def _shorts(cause: Cause | Signature) -> Iterator[str]:
    for key, text, most in (("short", cause.short, SHORT_CAUSE), ("mend", cause.mend, SHORT_FIX)):
        if len(text) > most:
            yield f"has a {key} of {len(text)} characters; {most} is the most"
    if cause.mend and not cause.fixes:
        yield "has a mend, and no fix that it would be the short form of"


def _case(tree: Tree, case: Case) -> Iterator[str]:
    if not stays_inside(case.run):
        yield "leads out of the tree's folder"
    if case.reaches not in tree.leaves:
        yield f"expects {case.reaches!r}, which is not a leaf{near(case.reaches, tree.leaves)}"
    for id_, verdict in case.answers.items():
        question = tree.questions.get(id_)
        if question is None:
            yield f"answers {id_!r}, which is not a question{near(id_, tree.questions)}"
        elif verdict not in (known := [*question.go, *question.words, UNKNOWN]):
            yield f"answers {id_} with {verdict!r}, which is not an answer to it{near(verdict, known)}"


def _shape(tree: Tree, lines: Mapping[str, int]) -> list[Mistake]:
    """Cycles, and nodes that no walk reaches; asked only once all edges exist."""
    mistakes: list[Mistake] = []
    places = {id_: lines.get(id_, 1) for id_ in (*tree.questions, *tree.leaves)}
    state: dict[str, int] = {}
    for section in tree.sections:
        stack: list[tuple[str, Iterator[str]]] = [(section.entry, iter(_next(tree, section.entry)))]
        state.setdefault(section.entry, 1)
        while stack:
            id_, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                state[id_] = 2
                stack.pop()
            elif state.get(target) == 1 and target in {step for step, _ in stack}:
                loop = [step for step, _ in stack]
                circle = " → ".join([*loop[loop.index(target) :], target])
                mistakes.append((places[id_], f"the walk can go round in a circle: {circle}"))
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(_next(tree, target))))
    mistakes += [(places[id_], f"{id_} can't be reached from any section") for id_ in places if id_ not in state]
    return mistakes


def _next(tree: Tree, id_: str) -> tuple[str, ...]:
    if id_ in tree.questions:
        return tuple(tree.questions[id_].go.values())
    return tuple(filter(None, [tree.leaves[id_].escalate]))
