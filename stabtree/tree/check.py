"""Checks what must hold between the nodes of a tree, and between a tree and the measures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.text import near, stays_inside
from stabtree.measures import MEASURES, all_values, measure_named, measure_names
from stabtree.metrics.table import by_name
from stabtree.run import OTHERS
from stabtree.tree import fixes
from stabtree.tree.model import BRIEF, EVENTS, FactParams, Leaf, Question, Tree
from stabtree.tree.params import (
    facts_behind,
    group_problems,
    like_problem,
    mistakes,
    resolved,
    rule_problems,
    settable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stabtree.measures.registry import Measure
    from stabtree.tree.model import Case

Mistake = tuple[str, str, str]
"""The name of a node, as `§1`, `fact spike`, `test 0` or its id; the key that it is about, if any; the text."""

ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]\\`]+")  # it is written into pages and into Markdown


def check(tree: Tree) -> list[Mistake]:
    """Return the mistakes in the nodes of a tree; what leads where is for `check_reach`, where there are none."""
    found = [*_nodes(tree), *_others(tree), *_sections(tree)]
    is_walked = tree.sections and tree.questions and tree.leaves
    is_read_only = tree.entries and not tree.questions
    if not is_walked and not is_read_only:
        found.append(("", "", "a tree needs at least one section, one question and one leaf"))
    return found


def _nodes(tree: Tree) -> Iterator[Mistake]:
    """Yield the mistakes in questions and leaves."""
    for question in tree.questions.values():
        yield from _of(question.id, f"question {question.id} ", _question(tree, question))
    for leaf in tree.leaves.values():
        yield from _of(leaf.id, f"leaf {leaf.id} ", _leaf(tree, leaf))


def _others(tree: Tree) -> Iterator[Mistake]:
    """Yield the mistakes in what is no node of a walk."""
    for group in tree.groups.values():
        yield from _of(group.id, f"group {group.id} ", _at("rule", group_problems(tree, group)))
    for stated in tree.facts.values():
        yield from _of(f"fact {stated.id}", "", _at("", _fact(stated)))
    for entry in tree.entries.values():
        if not entry.fixes or not entry.source:
            yield entry.id, "", f"entry {entry.id} lacks a fix or a source"
    for index, case in enumerate(tree.tests):
        yield from _of(f"test {index}", f"the test of {case.run!r} ", _at("", _case(tree, case)))


def _of(name: str, prefix: str, found: Iterable[tuple[str, str]]) -> Iterator[Mistake]:
    """Yield each text with the node that it belongs to and how it is called."""
    return ((name, key, prefix + text) for key, text in found)


def _at(key: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each text with the key that it belongs to."""
    return ((key, text) for text in texts)


def _sections(tree: Tree) -> Iterator[Mistake]:
    for section in tree.sections:
        yield from _of(f"§{section.id}", f"section {section.id} ", _at("when", _metrics(section.when)))
        if section.entry not in tree.questions:
            text = f"section {section.id} enters at {section.entry}, which is not a question"
            yield f"§{section.id}", "entry", text + near(section.entry, tree.questions)
    yield from _of("", "the tree ", _at("when", _metrics(tree.when)))


def _metrics(when: Iterable[str]) -> Iterator[str]:
    """Yield a mistake for each name that is no metric, and nothing else that a run may have."""
    for name in when:
        if name not in OTHERS and name.partition("/")[0] not in by_name():
            yield f"waits for the metric {name!r}, which is not known{near(name, by_name())}"


def _question(tree: Tree, question: Question) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in a question, each with the key that it belongs to."""
    if question.id in MEASURES:
        yield "id", "has the name of a fact"
    if question.section not in {section.id for section in tree.sections}:
        yield "section", f"is in section {question.section!r}, which does not exist"
    if not question.source:
        yield "source", "lacks a source"
    yield from _at("against", _against(tree, question))
    yield from _at("go", _edges(question, {**tree.questions, **tree.leaves}))
    yield from _test(tree, question)
    measure = measure_named(question.test)
    if measure is not None:
        yield from _at("go", _verdicts(question, measure))
        yield from _at("rule", rule_problems(question, measure))


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
    for word, opposite in question.against.items():
        if word not in question.go:
            yield f"has {word!r} under against, which has no edge{near(word, question.go)}"
        id_, _, verdict = opposite.partition("=")
        if id_ not in tree.questions:
            yield f"names {id_!r} under against, which is no question{near(id_, tree.questions)}"
        elif verdict not in tree.questions[id_].go:
            hint = near(verdict, tree.questions[id_].go)
            yield f"names {opposite!r} under against, but {id_} has no edge for that{hint}"


def _verdicts(question: Question, measure: Measure) -> Iterator[str]:
    for verdict in measure.verdicts:
        if verdict not in question.go and verdict != UNKNOWN:
            yield f"has no edge for {verdict!r}, which {measure.name} may answer"
    for verdict in question.go:
        if verdict not in measure.verdicts:
            hint = near(verdict, measure.verdicts)
            yield f"has an edge for {verdict!r}, which {measure.name} never answers{hint}"


def _test(tree: Tree, node: Question) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in what a node asks, and with which parameters, each with its key."""
    measure = measure_named(node.test)
    if problem := like_problem(tree, node):
        yield "like", problem
    elif not node.test:
        keys = [key for key in ("params", "advanced", "literal", "like") if getattr(node, key)]
        if keys:
            yield keys[0], f"has {keys[0]} but no test"
    elif measure is None:
        yield "test", f"asks the measure {node.test!r}, which does not exist{near(node.test, measure_names())}"
    else:
        yield from _at("params", _params(tree, node, measure))
    yield from _at("advanced", _stated_twice(node))


def _params(tree: Tree, node: Question, measure: Measure) -> Iterator[str]:
    names = {key: item for key, (_, item) in settable(measure).items()}
    wrong = list(mistakes(names, measure.name, {**node.params, **node.advanced, **node.literal}))
    yield from wrong
    for key in measure.params.keys() - resolved(tree, node).keys():
        yield f"lacks the parameter {key!r} of {measure.name}"
    if wrong:
        return
    for name in facts_behind(measure):
        if name not in tree.facts and any(item.default is None for item in MEASURES[name].params.values()):
            yield f"asks for the fact {name}, of which nothing is stated under 'facts'"


def _stated_twice(item: Question | FactParams) -> Iterator[str]:
    both = item.params.keys() & item.advanced.keys()
    if both:
        yield f"states {min(both)!r} under params and under advanced"


def _fact(stated: FactParams) -> Iterator[str]:
    fact = MEASURES.get(stated.id)
    if fact is None or fact.verdicts:
        yield f"there is no fact {stated.id!r}{near(stated.id, all_values())}"
        return
    for text in _stated_twice(stated):
        yield f"fact {stated.id} {text}"
    values = {**stated.params, **stated.advanced}
    for text in mistakes(fact.params, stated.id, {**values, **stated.literal}):
        yield f"fact {stated.id} {text}"
    for key, item in fact.params.items():
        if key not in values and item.default is None:
            yield f"fact {stated.id} lacks the parameter {key!r}"


def _leaf(tree: Tree, leaf: Leaf) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in a leaf, each with the key that it belongs to."""
    if not leaf.source:
        yield "source", "lacks a source"
    yield from _at("fix", fixes.mistakes(leaf.fix))
    if leaf.headline and leaf.headline.count(BRIEF) != 1:
        yield "headline", f"has a headline without {BRIEF}, or with more than one"
    for event in leaf.events:
        if event not in EVENTS:
            yield "events", f"has the event {event!r}{near(event, EVENTS)}; known are {', '.join(EVENTS)}"
    if leaf.page and not ADDRESS.fullmatch(leaf.page):
        text = "an address begins with https:// or http:// and holds no blank or quote"
        yield "page", f"has the page {leaf.page!r}; {text}"
    if leaf.lasting and not leaf.events:
        yield "lasting", "is lasting, but has no event"
    yield from _links(tree, leaf)


def _links(tree: Tree, leaf: Leaf) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in the nodes that a leaf names."""
    homes = {**tree.questions, **tree.groups}
    if leaf.of not in homes:
        yield "of", f"is of {leaf.of!r}, neither a question nor a group{near(leaf.of, homes)}"
    for key in ("escalate", "near", "unproven"):
        other = getattr(leaf, key)
        if other and other not in tree.leaves:
            yield key, f"has {key}: {other!r}, which is not a leaf{near(other, tree.leaves)}"
    for need in leaf.needs:
        if need not in tree.questions:
            yield "needs", f"needs {need!r}, which is not a question{near(need, tree.questions)}"


def _case(tree: Tree, case: Case) -> Iterator[str]:
    if not stays_inside(case.run):
        yield "leads out of the tree's folder"
    if case.reaches not in tree.leaves:
        yield f"expects {case.reaches!r}, which is not a leaf{near(case.reaches, tree.leaves)}"
    for id_, verdict in case.answers.items():
        question = tree.questions.get(id_)
        if question is None:
            yield f"answers {id_!r}, which is not a question{near(id_, tree.questions)}"
            continue
        known = [*question.go, *question.words, UNKNOWN]
        if verdict not in known:
            yield f"answers {id_} with {verdict!r}, which is not an answer to it{near(verdict, known)}"


def check_reach(tree: Tree) -> Iterator[Mistake]:
    """Yield the circles and the nodes that no walk reaches; all edges must exist."""
    seen: set[str] = set()
    for section in tree.sections:
        for circle in _circles(tree, section.entry, seen):
            yield circle[-2], "", f"the walk can go round in a circle: {' → '.join(circle)}"
    for id_ in (*tree.questions, *tree.leaves):
        if id_ not in seen:
            yield id_, "", f"{id_} can't be reached from any section"


def _circles(tree: Tree, entry: str, seen: set[str]) -> Iterator[list[str]]:
    """Yield each circle that a walk from an entry could go round in; add the nodes that it reaches to `seen`."""
    seen.add(entry)
    path = {entry: iter(_next(tree, entry))}
    while path:
        id_ = next(reversed(path))
        target = next(path[id_], None)
        if target is None:
            del path[id_]
        elif target in path:
            ids = list(path)
            yield [*ids[ids.index(target) :], target]
        elif target not in seen:
            seen.add(target)
            path[target] = iter(_next(tree, target))


def _next(tree: Tree, id_: str) -> tuple[str, ...]:
    if id_ in tree.questions:
        return tuple(tree.questions[id_].go.values())
    leaf = tree.leaves[id_]
    return tuple(filter(None, [leaf.escalate, leaf.near, leaf.unproven]))
