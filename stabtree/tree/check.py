"""What must hold between the nodes of a tree, and between a tree and the predicates."""

from __future__ import annotations

import difflib
import re
import string
from typing import TYPE_CHECKING

from stabtree.answer import NO, UNKNOWN
from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named, predicate_names
from stabtree.run import OTHERS
from stabtree.tree.compose import settings
from stabtree.tree.model import Cause, Question, Signature, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stabtree.predicates import Predicate
    from stabtree.predicates.registry import Param

Mistake = tuple[int, str]
LARGEST = 10**12  # of a parameter: beyond any number of steps, and harmless to compute with
FORMATS = ("", "g", ".0%")  # what a rule may format a number with; a width could fill the memory


def near(name: str, known: Iterable[str]) -> str:
    """A did-you-mean clause for a name, empty where nothing is near."""
    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def check(tree: Tree, places: Mapping[str, int]) -> list[Mistake]:
    """All mistakes in a tree as (line, text); `places` has the line of each id, sections as `§id`."""
    nodes = {**tree.questions, **tree.leaves}
    mistakes: list[Mistake] = []
    for question in tree.questions.values():
        mistakes += [(places.get(question.id, 1), text) for text in _question(tree, question, nodes)]
    for leaf in tree.leaves.values():
        line = places.get(leaf.id, 1)
        mistakes += [(line, f"leaf {leaf.id} {text}") for text in _leaf(tree, leaf.id)]
        for cause in leaf.causes:
            mistakes += [(line, f"cause {cause.id} {text}") for text in _predicate(tree, cause)]
    for item in tree.signatures:
        mistakes += [(places.get(item.id, 1), f"cause {item.id} {text}") for text in _predicate(tree, item)]
    for entry in tree.entries.values():
        if not entry.fixes or not entry.source:
            mistakes.append((places.get(entry.id, 1), f"entry {entry.id} lacks a fix or a source"))
    mistakes += _sections(tree, places)
    walked = tree.sections and tree.questions and tree.leaves
    if not walked and not ((tree.entries or tree.signatures) and not tree.questions):
        mistakes.append((1, "a tree needs at least one section, one question and one leaf"))
    return mistakes or _shape(tree, places)


def _sections(tree: Tree, places: Mapping[str, int]) -> Iterator[Mistake]:
    for section in tree.sections:
        line = places.get(f"§{section.id}", 1)
        for name in _strangers(section.when):
            text = f"section {section.id} waits for the metric {name!r}, which is not known{near(name, by_name())}"
            yield line, text
        if section.entry not in tree.questions:
            text = f"section {section.id} enters at {section.entry}, which is no question"
            yield line, text + near(section.entry, tree.questions)
    for name in _strangers(tree.when):
        yield 1, f"the tree waits for the metric {name!r}, which is not known{near(name, by_name())}"


def _strangers(when: Iterable[str]) -> Iterator[str]:
    """The names to wait for that are no metric and nothing else that a run may have."""
    return (name for name in when if name not in OTHERS and name.partition("/")[0] not in by_name())


def _question(tree: Tree, question: Question, nodes: Mapping[str, object]) -> Iterator[str]:
    name = f"question {question.id}"
    if question.section not in {section.id for section in tree.sections}:
        yield f"{name} is in section {question.section!r}, which does not exist"
    if not question.source:
        yield f"{name} lacks a source"
    yield from (f"{name} {text}" for text in _edges(question, nodes))
    yield from (f"{name} {text}" for text in _predicate(tree, question))
    predicate = predicate_named(question.test)
    if predicate is not None:
        yield from (f"{name} {text}" for text in _verdicts(question, predicate))
        yield from (f"{name} {text}" for text in _templates(question, predicate))


def _edges(question: Question, nodes: Mapping[str, object]) -> Iterator[str]:
    for verdict, target in question.go.items():
        if target not in nodes:
            yield f"goes to {target!r} on {verdict}, which does not exist{near(target, nodes)}"
    for word, verdict in question.words.items():
        if verdict not in question.go:
            yield f"takes {word!r} for {verdict!r}, which has no edge{near(verdict, question.go)}"
    if UNKNOWN not in question.go and NO not in question.go:
        yield "has no edge for 'unknown' and none for 'no' to go on along"


def _verdicts(question: Question, predicate: Predicate) -> Iterator[str]:
    for verdict in predicate.verdicts:
        if verdict not in question.go and verdict != UNKNOWN:
            yield f"has no edge for {verdict!r}, which {predicate.name} may answer"
    for verdict in question.go:
        if verdict not in predicate.verdicts:
            hint = near(verdict, predicate.verdicts)
            yield f"has an edge for {verdict!r}, which {predicate.name} never answers{hint}"


def _predicate(tree: Tree, node: Question | Cause | Signature) -> Iterator[str]:
    mistake = "" if isinstance(node, Signature) else _like(tree, node)
    if mistake:
        yield mistake
        return
    if not node.test:
        if node.params:
            yield "has params but no test"
        return
    predicate = predicate_named(node.test)
    if predicate is None:
        yield f"asks the predicate {node.test!r}, which does not exist{near(node.test, predicate_names())}"
        return
    literal = dict(node.literal) if isinstance(node, Question) else {}
    yield from parameter_mistakes(predicate, {**node.params, **literal})


def _like(tree: Tree, node: Question | Cause) -> str:
    """What is wrong with the questions that a node takes its parameters from, empty where nothing is."""
    seen = [node.id]
    while node.like:
        if node.like not in tree.questions:
            return f"is like {node.like!r}, which is no question{near(node.like, tree.questions)}"
        if node.like in seen:
            return f"is like itself: {' → '.join([*seen, node.like])}"
        node = tree.questions[node.like]
        seen.append(node.id)
    return ""


def parameter_mistakes(predicate: Predicate, params: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with values for a predicate's parameters, one sentence each."""
    for key, value in params.items():
        if key not in predicate.params:
            yield f"sets {key!r}, which {predicate.name} does not have{near(key, predicate.params)}"
        elif not fits(value, predicate.params[key]):
            wanted = type(predicate.params[key]).__name__
            yield f"sets {key!r} to {value!r}; it must be of type {wanted}, from 0 on"
        elif key == "pattern" and (problem := _pattern(str(value))):
            yield f"sets a pattern that is no regular expression: {problem}"


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""


def fits(value: object, default: Param) -> bool:
    """Whether a value has the type of a parameter's default; an int will do for a float."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float) and 0 <= value <= LARGEST
    if isinstance(default, int):
        return isinstance(value, int) and 0 <= value <= LARGEST
    return isinstance(value, type(default))


def resolved(tree: Tree, node: Question | Cause, *, literal: bool = False) -> dict[str, Param]:
    """All parameters of a node's predicate: its defaults, then what the tree sets."""
    predicate = predicate_named(node.test)
    if predicate is None:
        return {}
    found = dict(predicate.params)
    found.update({k: v for k, v in settings(tree, node, literal=literal).items() if k in found})
    return found


def _templates(question: Question, predicate: Predicate) -> Iterator[str]:
    quick = (question.quick.threshold, question.quick.letter) if question.quick else ()
    for text in (question.rule, *quick):
        try:
            parts = [part for part in string.Formatter().parse(text) if part[1] is not None]
        except ValueError:
            yield f"has braces that don't close in {text!r}"
            continue
        for _, name, form, conversion in parts:
            if name not in predicate.params:
                hint = near(str(name), predicate.params)
                yield f"names {{{name}}} in its rule, which {predicate.name} does not have{hint}"
            elif form not in FORMATS or conversion:
                yield f"formats {{{name}}} as {form!r}; leave it out or use one of {', '.join(filter(None, FORMATS))}"


def _leaf(tree: Tree, id_: str) -> Iterator[str]:
    leaf = tree.leaves[id_]
    if not leaf.fixes:
        yield "lacks a fix"
    if not leaf.source:
        yield "lacks a source"
    if leaf.of not in tree.questions and leaf.of not in tree.groups:
        yield f"is of {leaf.of!r}, which is no question and no group{near(leaf.of, [*tree.questions, *tree.groups])}"
    if leaf.escalate and leaf.escalate not in tree.leaves:
        yield f"escalates to {leaf.escalate!r}, which is no leaf{near(leaf.escalate, tree.leaves)}"
    for need in leaf.needs:
        if need not in tree.questions:
            yield f"needs {need!r}, which is no question{near(need, tree.questions)}"


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
