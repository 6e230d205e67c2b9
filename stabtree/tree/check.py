"""Checks what must hold between the nodes of a tree, and between a tree and the predicates."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.text import near, stays_inside
from stabtree.context.kinds import USUAL, kinds_of_run
from stabtree.facts import FACTS
from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named, predicate_names
from stabtree.run import OTHERS
from stabtree.tree import fixes
from stabtree.tree.model import BRIEF, EVENTS, SHORT, SHORT_CAUSE, SHORT_FIX, FactParams, Leaf, Question, Tree
from stabtree.tree.params import (
    Asking,
    facts_behind,
    group_problems,
    like_problem,
    mistakes,
    resolved,
    rule_problems,
    settable,
)
from stabtree.tree.reach import check_reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stabtree.predicates import Predicate
    from stabtree.tree.document import Case, Cause

Mistake = tuple[int, str]
MIN_BRANCHES = 2
Where = TypeVar("Where", int, str)
ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]\\`]+")  # it is written into pages and into Markdown


def check(tree: Tree, lines: Mapping[str, int], *, whole: bool = True) -> list[Mistake]:
    """Return all mistakes in a tree as (line, text).

    Args:
        tree: the tree.
        lines: the line of each id, sections as `§id`, and of each of its keys as `id.key`.
        whole: whether all nodes could be read: else what leads where is not checked.
    """
    found = [*_nodes(tree, lines), *_others(tree, lines), *_sections(tree, lines)]
    is_walked = tree.sections and tree.questions and tree.leaves
    is_read_only = (tree.entries or tree.signatures) and not tree.questions
    if not is_walked and not is_read_only:
        found.append((1, "a tree needs at least one section, one question and one leaf"))
    if whole and not found:
        found += check_reach(tree, lines)
    return found


def _nodes(tree: Tree, lines: Mapping[str, int]) -> Iterator[Mistake]:
    """Yield the mistakes in questions, leaves and causes."""
    nodes = {**tree.questions, **tree.leaves}
    for question in tree.questions.values():
        line = lines.get(question.id, 1)
        for key, text in _question(tree, question, nodes):
            yield lines.get(f"{question.id}.{key}", line), f"question {question.id} {text}"
    for leaf in tree.leaves.values():
        line = lines.get(leaf.id, 1)
        yield from _at(line, _leaf(tree, leaf), f"leaf {leaf.id} ")
        for cause in leaf.causes:
            yield from _at(line, _cause(tree, cause), f"cause {cause.id} ")
    for signature in tree.signatures:
        yield from _at(lines.get(signature.id, 1), _cause(tree, signature), f"cause {signature.id} ")


def _others(tree: Tree, lines: Mapping[str, int]) -> Iterator[Mistake]:
    """Yield the mistakes in what is no node of a walk."""
    for group in tree.groups.values():
        yield from _at(lines.get(group.id, 1), group_problems(tree, group), f"group {group.id} ")
    for stated in tree.facts.values():
        yield from _at(lines.get(f"fact {stated.id}", 1), _fact(stated))
    for entry in tree.entries.values():
        if not entry.fixes or not entry.source:
            yield lines.get(entry.id, 1), f"entry {entry.id} lacks a fix or a source"
    for index, case in enumerate(tree.tests):
        yield from _at(lines.get(f"test {index}", 1), _case(tree, case), f"the test of {case.run!r} ")


def _at(where: Where, texts: Iterable[str], prefix: str = "") -> Iterator[tuple[Where, str]]:
    """Yield each text, after a prefix, with the line or the key that it belongs to."""
    return ((where, prefix + text) for text in texts)


def _sections(tree: Tree, lines: Mapping[str, int]) -> Iterator[Mistake]:
    for section in tree.sections:
        line = lines.get(f"§{section.id}", 1)
        yield from _at(line, _metrics(section.when), f"section {section.id} ")
        if section.entry not in tree.questions:
            text = f"section {section.id} enters at {section.entry}, which is not a question"
            yield line, text + near(section.entry, tree.questions)
    yield from _at(1, _metrics(tree.when), "the tree ")


def _metrics(when: Iterable[str]) -> Iterator[str]:
    """Yield a mistake for each name that is no metric, and nothing else that a run may have."""
    for name in when:
        if name not in OTHERS and name.partition("/")[0] not in by_name():
            yield f"waits for the metric {name!r}, which is not known{near(name, by_name())}"


def _question(tree: Tree, question: Question, nodes: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in a question, each with the key that it belongs to."""
    if question.id in FACTS:
        yield "id", "has the name of a fact"
    if question.section not in {section.id for section in tree.sections}:
        yield "section", f"is in section {question.section!r}, which does not exist"
    if not question.source:
        yield "source", "lacks a source"
    if len(question.short) > SHORT:
        yield "short", f"has a short of {len(question.short)} characters; {SHORT} is the most"
    yield from _at("against", _against(tree, question))
    yield from _at("go", _edges(question, nodes))
    predicate = predicate_named(question.test)
    yield from _at("test" if predicate is None else "params", _test(tree, question))
    if predicate is not None:
        yield from _at("go", _verdicts(question, predicate))
        yield from _at("rule", rule_problems(question, predicate))


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


def _verdicts(question: Question, predicate: Predicate) -> Iterator[str]:
    for verdict in predicate.verdicts:
        if verdict not in question.go and verdict != UNKNOWN:
            yield f"has no edge for {verdict!r}, which {predicate.name} may answer"
    for verdict in question.go:
        if verdict not in predicate.verdicts:
            hint = near(verdict, predicate.verdicts)
            yield f"has an edge for {verdict!r}, which {predicate.name} never answers{hint}"


def _test(tree: Tree, node: Asking) -> Iterator[str]:
    """Yield the mistakes in what a node asks, and with which parameters."""
    problem = like_problem(tree, node)
    predicate = predicate_named(node.test)
    if problem:
        yield problem
    elif not node.test:
        keys = [key for key in ("params", "advanced", "literal", "like") if getattr(node, key, None)]
        if keys:
            yield f"has {keys[0]} but no test"
    else:
        yield from _stated_twice(node)
        if predicate is None:
            yield f"asks the predicate {node.test!r}, which does not exist{near(node.test, predicate_names())}"
        else:
            yield from _params(tree, node, predicate)


def _params(tree: Tree, node: Asking, predicate: Predicate) -> Iterator[str]:
    literal = node.literal if isinstance(node, Question) else {}
    names = {key: item for key, (_, item) in settable(predicate).items()}
    wrong = list(mistakes(names, predicate.name, {**node.params, **node.advanced, **literal}))
    yield from wrong
    for key in predicate.params.keys() - resolved(tree, node).keys():
        yield f"lacks the parameter {key!r} of {predicate.name}"
    if wrong:
        return
    for name in facts_behind(predicate):
        if name not in tree.facts and any(item.default is None for item in FACTS[name].params.values()):
            yield f"asks for the fact {name}, of which nothing is stated under 'facts'"


def _stated_twice(item: Asking | FactParams) -> Iterator[str]:
    both = item.params.keys() & item.advanced.keys()
    if both:
        yield f"states {min(both)!r} under params and under advanced"


def _cause(tree: Tree, cause: Cause) -> Iterator[str]:
    yield from _test(tree, cause)
    if cause.moves and cause.moves not in by_name():
        yield f"moves {cause.moves!r}, which is no metric{near(cause.moves, by_name())}"
    for key, words in cause.holds.items():
        yield from fixes.circumstance_mistakes(key, words)
    yield from _weighing(cause)
    yield from chain.from_iterable(map(fixes.mistakes, cause.fixes))
    for key, text, limit in (("short", cause.short, SHORT_CAUSE), ("short_fix", cause.short_fix, SHORT_FIX)):
        if len(text) > limit:
            yield f"has a {key} of {len(text)} characters; {limit} is the most"
    if cause.short_fix and not cause.fixes:
        yield "has a short_fix, but no fix that it shortens"


def _weighing(cause: Cause) -> Iterator[str]:
    """Yield the mistakes in what speaks for and against a cause."""
    for item in cause.expects:
        yield from fixes.clue_mistakes(item.clue, item.when)
        if not item.weight > 1:
            yield f"expects {item.clue} with the weight {item.weight:g}; it must be above 1"
    for name, text in cause.refuted_by.items():
        yield from fixes.clue_mistakes(name, text)
    for key, kinds in cause.usual.items():
        if key not in USUAL:
            yield f"is usual {key!r}{near(key, USUAL)}; known are {', '.join(USUAL)}"
        for word in kinds:
            if word not in kinds_of_run():
                yield f"is {key} for {word!r}, which is no kind of run{near(word, kinds_of_run())}"
    if cause.ask and not cause.fixes:
        yield "has a question, but no fix for its yes"


def _fact(stated: FactParams) -> Iterator[str]:
    fact = FACTS.get(stated.id)
    if fact is None:
        yield f"there is no fact {stated.id!r}{near(stated.id, FACTS)}"
        return
    for text in _stated_twice(stated):
        yield f"fact {stated.id} {text}"
    values = {**stated.params, **stated.advanced}
    for text in mistakes(fact.params, stated.id, {**values, **stated.literal}):
        yield f"fact {stated.id} {text}"
    for key, item in fact.params.items():
        if key not in values and item.default is None:
            yield f"fact {stated.id} lacks the parameter {key!r}"


def _leaf(tree: Tree, leaf: Leaf) -> Iterator[str]:
    if not leaf.fixes:
        yield "lacks a fix"
    yield from chain.from_iterable(map(fixes.mistakes, leaf.fixes))
    if leaf.decide is not None:
        yield from chain.from_iterable(map(fixes.mistakes, (leaf.decide.ask, *leaf.decide.branches.values())))
        if len(leaf.decide.branches) < MIN_BRANCHES:
            yield "has a question that decides, with fewer than two branches"
    if not leaf.source:
        yield "lacks a source"
    if leaf.headline and leaf.headline.count(BRIEF) != 1:
        yield f"has a headline without {BRIEF}, or with more than one"
    for event in leaf.events:
        if event not in EVENTS:
            yield f"has the event {event!r}{near(event, EVENTS)}; known are {', '.join(EVENTS)}"
    if leaf.page and not ADDRESS.fullmatch(leaf.page):
        yield f"has the page {leaf.page!r}; an address begins with https:// or http:// and holds no blank or quote"
    if leaf.lasting and not leaf.events:
        yield "is lasting, but has no event"
    yield from _links(tree, leaf)


def _links(tree: Tree, leaf: Leaf) -> Iterator[str]:
    """Yield the mistakes in the nodes that a leaf names."""
    if leaf.of not in tree.questions and leaf.of not in tree.groups:
        yield f"is of {leaf.of!r}, neither a question nor a group{near(leaf.of, [*tree.questions, *tree.groups])}"
    for key in ("escalate", "near", "unproven"):
        other = getattr(leaf, key)
        if other and other not in tree.leaves:
            yield f"has {key}: {other!r}, which is not a leaf{near(other, tree.leaves)}"
    for need in leaf.needs:
        if need not in tree.questions:
            yield f"needs {need!r}, which is not a question{near(need, tree.questions)}"


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
