"""Composes trees: several into one, checks into questions and leaves."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN, YES
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.measures import measure_named
from stabtree.measures.lines import SURVIVED
from stabtree.tree.model import NOTHING, Leaf, Part, Question, Section, Severity, Tree
from stabtree.tree.params import fact_params, merge_facts

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from stabtree.tree.model import Check

T = TypeVar("T")

_NODES = ("questions", "leaves", "groups", "entries")
NOT_ENDED = "It did not end the training: rows of metrics follow it, or all planned steps were done before it."


def compose(trees: Sequence[Tree], left_out: Sequence[Part] = ()) -> Tree:
    """Return one tree made of several: the first one's path, then the sections of all in order.

    What the first tree states of facts applies to all. Those that are left out were not loaded.

    Raises:
        ValueError: if two of them use an id twice.
    """
    ids: Counter[str] = Counter()
    for tree in trees:
        ids.update({section.id for section in tree.sections}.union(*(getattr(tree, key) for key in _NODES)))
    twice = sorted(id_ for id_, count in ids.items() if count > 1)
    if twice:
        raise ValueError(f"{', '.join(twice[:3])}: used by more than one of {', '.join(tree.name for tree in trees)}")
    named = [replace(section, tree=tree.name) for tree in trees for section in tree.sections]
    parts = [Part(tree.name, tree.title, tree.when) for tree in trees]
    return replace(reduce(_join, trees), sections=tuple(named), parts=(*parts, *left_out))


def _join(tree: Tree, other: Tree) -> Tree:
    """Return a tree with the nodes of another one after its own."""
    nodes = {key: {**getattr(tree, key), **getattr(other, key)} for key in _NODES}
    return replace(tree, **nodes, facts=merge_facts(tree.facts, other.facts))


def ok_leaf(tree: str) -> str:
    """Return the id of the leaf at which the checks of a tree end if they find nothing."""
    return f"{tree}-ok"


_ASKED = ("id", "ask", "short", "test", "params", "advanced", "like", "person", "see", "source")
_ENDED = (
    *("title", "severity", "headline", "kind", "fix", "restart", "take", "events", "lasting", "unended"),
    *("see", "source"),
)


def expand_checks(tree: str, checks: Sequence[Check]) -> tuple[list[Section], list[Question], list[Leaf]]:
    """Return the sections, questions and leaves that the checks of a tree, called so, are short for."""
    sections = [Section(check.id, check.title, check.id, check.when) for check in checks if not check.section]
    leaves = [*chain.from_iterable(map(_leaves, checks))]
    ending = [check for check in checks if not check.then]
    if ending:
        leaves.append(
            Leaf(
                id=ok_leaf(tree),
                of=ending[0].id,
                title=NOTHING,
                severity=Severity.OK,
                why="Nothing that these checks look for is in the log.",
                needs=tuple(check.id for check in checks if check.needed),
                source="stabtree",
            )
        )
    return sections, [_question(tree, check) for check in checks], leaves


def _question(tree: str, check: Check) -> Question:
    measure = measure_named(check.test)
    verdicts = measure.verdicts if measure else (YES, NO)
    go = {verdict: check.leaf for verdict in verdicts if verdict not in (NO, UNKNOWN)}
    go |= {verdict: f"{check.leaf}-{verdict}" for verdict in check.severities}
    go[NO if NO in verdicts else UNKNOWN] = check.then or ok_leaf(tree)
    return Question(
        **{name: getattr(check, name) for name in _ASKED},
        section=check.section or check.id,
        go=go,
        why=check.why or check.means,
        rule=check.rule or (measure.rule if measure else ""),
    )


def _leaves(check: Check) -> Iterator[Leaf]:
    """Yield the leaf of a check, and those of verdicts with a severity of their own."""
    leaf = Leaf(id=check.leaf, of=check.id, why=check.means, **{name: getattr(check, name) for name in _ENDED})
    yield leaf
    for verdict, severity in check.severities.items():
        milder = replace(leaf, id=f"{check.leaf}-{verdict}", severity=severity, restart=False, unended=False)
        if verdict == SURVIVED:  # what the run survived ended nothing
            title, why = f"{leaf.title}, and the run survived it", f"{NOT_ENDED} {leaf.why}"
            milder = replace(milder, title=title, why=why, headline="", events=(), lasting=False)
        yield milder


def beside(tree: Tree, owner: Tree, used: Iterable[Tree]) -> Tree:
    """Return a user's tree as it is composed with the shipped ones: without what it took from those that it uses.

    Args:
        tree: the user's tree.
        owner: the tree that owns the facts.
        used: the shipped trees that the user's tree uses.

    Raises:
        StabtreeError: if it states another value of a fact than the tree that owns them.
    """
    theirs = fact_params(owner)
    for name, params in fact_params(tree).items():
        for key, value in params.items():
            if value != theirs[name][key]:
                raise StabtreeError(
                    f"states {name}.{key} = {value}, where {owner.name} has {theirs[name][key]}: one value for all",
                    where=clean(tree.name, 100),
                    hint=f"leave it out and type --set {name}.{key}={value}",
                )
    if tree.uses:
        tree = replace(tree, sections=tuple(section for section in tree.sections if section.tree == tree.name))
    for other in used:
        taken = set().union(*(getattr(other, key) for key in _NODES))
        tree = replace(tree, **{key: without(getattr(tree, key), taken) for key in _NODES})
    return tree


def without(own: Mapping[str, T], taken: Container[str]) -> dict[str, T]:
    """Return the nodes whose ids are not taken."""
    return {id_: node for id_, node in own.items() if id_ not in taken}
