"""The parameters of a tree's nodes and facts: where each is stated, and its value in a walk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import near
from stabtree.facts import FACTS
from stabtree.predicates import predicate_named
from stabtree.tree import patterns
from stabtree.tree.model import Cause, FactParams, Question, Signature, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.facts.registry import Fact, Param, Parameter
    from stabtree.predicates import Predicate

Asking = Question | Cause | Signature
"""A node that may ask a predicate."""

LARGEST = 10**12  # of a parameter: beyond any number of steps, and harmless to compute with


def facts_behind(asked: Predicate | Fact) -> tuple[str, ...]:
    """The facts that a predicate or a fact asks for, and those that they ask for, nearest first."""
    found: dict[str, None] = {}
    waiting = [need.name for need in asked.needs if need.kind == "Fact"]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += [need.name for need in FACTS[name].needs if need.kind == "Fact"]
    return tuple(found)


def settable(predicate: Predicate) -> dict[str, tuple[str, Parameter]]:
    """What can be set of a node: name -> the fact that has it (empty: the predicate itself), and its declaration."""
    found: dict[str, tuple[str, Parameter]] = {key: ("", item) for key, item in predicate.params.items()}
    for name in facts_behind(predicate):
        for key, item in FACTS[name].params.items():
            found.setdefault(key, (name, item))
    return found


def fact_params(tree: Tree, *, literal: bool = False) -> dict[str, dict[str, Param]]:
    """The parameters of all facts that a tree states."""
    return {
        name: {**stated.params, **stated.advanced, **(stated.literal if literal else {})}
        for name, stated in tree.facts.items()
    }


def resolved(
    tree: Tree, node: Asking, *, literal: bool = False, facts: Mapping[str, Mapping[str, Param]] | None = None
) -> dict[str, Param]:
    """The parameters of a node's own predicate: those of the question that it is like, then what it states itself.

    Args:
        tree: the tree.
        node: a node of it.
        literal: with what `--literal` sets.
        facts: the parameters of the facts in this walk, where they are not those of the tree.
    """
    predicate = predicate_named(node.test)
    if predicate is None:
        return {}
    found = {key: item.default for key, item in predicate.params.items() if item.default is not None}
    if node.like:
        found.update(known(tree, liked(tree, node.like), literal=literal, facts=facts))
    found.update({**node.params, **node.advanced})
    if literal and isinstance(node, Question):
        found.update(node.literal)
    return {key: found[key] for key in predicate.params if key in found}


def known(
    tree: Tree, node: Asking, *, literal: bool = False, facts: Mapping[str, Mapping[str, Param]] | None = None
) -> dict[str, Param]:
    """All that a node's answer depends on: its own parameters and those of the facts behind it."""
    predicate = predicate_named(node.test)
    if predicate is None:
        return {}
    stated = fact_params(tree, literal=literal) if facts is None else facts
    found: dict[str, Param] = {}
    for name in reversed(facts_behind(predicate)):
        found.update(stated.get(name, {}))
    return {**found, **resolved(tree, node, literal=literal, facts=facts)}


def mistakes(declared: Mapping[str, Parameter], owner: str, params: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with values for parameters, one sentence each."""
    for key, value in params.items():
        if key not in declared:
            yield f"sets {key!r}, which {owner} does not have{near(key, declared)}"
        elif not fits(value, declared[key]):
            item = declared[key]
            yield f"sets {key!r} to {value!r}; it must be of type {item.kind.__name__}, from {item.least} on"
        elif declared[key].pattern and (problem := patterns.problem(str(value))):
            yield f"sets a pattern that {problem}"


def fits(value: object, parameter: Parameter) -> bool:
    """Whether a value is of a parameter's type and within its bounds; an int will do for a float."""
    kind, least = parameter.kind, parameter.least
    if kind is bool or isinstance(value, bool):
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return isinstance(value, int | float) and least <= value <= LARGEST
    if kind is int:
        return isinstance(value, int) and least <= value <= LARGEST
    return isinstance(value, kind)


def asking(tree: Tree) -> Iterator[Asking]:
    """All nodes that may ask a predicate: questions, causes of leaves, signatures."""
    yield from tree.questions.values()
    for leaf in tree.leaves.values():
        yield from leaf.causes
    yield from tree.signatures


def liked(tree: Tree, id_: str) -> Asking:
    """The question or cause of an id.

    Raises:
        KeyError: where there is none.
    """
    if id_ in tree.questions:
        return tree.questions[id_]
    found = next((node for node in asking(tree) if node.id == id_), None)
    if found is None:
        raise KeyError(id_)
    return found


def fine(tree: Tree, node: Asking) -> set[str]:
    """The parameters of a node's own that only fine-tune a guard, those that it takes over included."""
    taken = fine(tree, liked(tree, node.like)) if node.like else set()
    return (taken - set(node.params)) | set(node.advanced)


def stated(tree: Tree) -> dict[tuple[str, str], Param]:
    """Every parameter that a tree states: (fact or node, name) -> value; each stands in one place."""
    found: dict[tuple[str, str], Param] = {}
    for item in (*tree.facts.values(), *asking(tree)):
        for key, value in {**item.params, **item.advanced}.items():
            found[item.id, key] = value
    return found


def merged(owner: Mapping[str, FactParams], other: Mapping[str, FactParams]) -> dict[str, FactParams]:
    """What two trees state of facts: the first one's word, the other's where the first is silent."""
    found = dict(other)
    for name, own in owner.items():
        if name in other:
            rest = other[name]
            said = {**own.params, **own.advanced}
            found[name] = FactParams(
                name,
                {**{k: v for k, v in rest.params.items() if k not in said}, **own.params},
                {**{k: v for k, v in rest.advanced.items() if k not in said}, **own.advanced},
                {**{k: v for k, v in rest.literal.items() if k not in said}, **own.literal},
            )
        else:
            found[name] = own
    return found
