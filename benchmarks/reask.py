"""Whether a known run is told otherwise by a tree with other parameters, found without walking it where that can be.

What a walk goes by is the verdict, the onset and the last good step of each answer. So the changed nodes alone are
asked again, of the facts of the first walk but for those that change; only where one of them says something else is
the run walked anew.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.facts import FACTS, Facts
from stabtree.predicates import predicate_named
from stabtree.tree.params import fact_params, facts_behind, resolved
from tests import corpus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.facts.registry import Param
    from stabtree.tree.model import Tree
    from stabtree.tree.params import Asking

NodeId = tuple[str, str]
"""The leaf of a cause, empty for a question, and the node's own id."""

AT_A_RESTART = {"checkpoints", "movers"}  # facts that the walk itself asks for, where a finding has a restart
BETWEEN_FINDINGS = {"levels", "rise"}  # and where there are several, which may tell of one event
Steers = tuple[str, int | None, int | None, bool]


class Change(NamedTuple):
    """What another tree changes.

    Attributes:
        tree: the other tree.
        facts: the facts that are found with other parameters, or of others that are.
        nodes: the nodes that are asked with other parameters, or of one of these facts.
    """

    tree: Tree
    facts: frozenset[str]
    nodes: Mapping[NodeId, Asking]


class Reused(Facts):
    """The facts of a run; those that do not change are taken from an earlier look at it."""

    def __init__(self, earlier: Facts, params: Mapping[str, Mapping[str, Param]], changed: frozenset[str]) -> None:
        super().__init__(earlier.run, FACTS, params)
        self.earlier, self.changed = earlier, changed

    def get(self, name: str) -> Any:
        """The fact, `Absent` or `Unknown`."""
        return super().get(name) if name in self.changed else self.earlier.get(name)


def change_to(after: Tree) -> Change:
    """What changes from the shipped trees to another."""
    before = corpus.trees()
    first = {name for name in FACTS if before.facts.get(name) != after.facts.get(name)}
    facts = frozenset(name for name in FACTS if first & {name, *facts_behind(FACTS[name])})
    new = dict(_nodes(after))
    nodes = {
        id_: new[id_]
        for id_, old in _nodes(before)
        if resolved(before, old) != resolved(after, new[id_]) or facts & set(_behind(old))
    }
    return Change(after, facts, nodes)


def _nodes(tree: Tree) -> Iterator[tuple[NodeId, Asking]]:
    for question in tree.questions.values():
        yield ("", question.id), question
    for leaf in tree.leaves.values():
        for cause in leaf.causes:
            yield (leaf.id, cause.id), cause


@cache
def _node(id_: NodeId) -> Asking:
    return dict(_nodes(corpus.trees()))[id_]


def _behind(node: Asking) -> tuple[str, ...]:
    predicate = predicate_named(node.test)
    return facts_behind(predicate) if predicate else ()


def told_otherwise(case: str, change: Change) -> bool:
    """Whether a case is told otherwise; of the causes only those that a changed node judges are compared."""
    nodes = change.nodes.keys() & _asked(case)
    if not (nodes or change.facts) or all(_same(case, change, nodes)):
        return False
    said, expected = corpus.told(corpus.diagnosed(case, change.tree)), corpus.expected()[case]
    judged = {id_ for _, id_ in change.nodes}
    return _of(said, judged) != _of(expected, judged)


def _of(said: corpus.Told, nodes: set[str]) -> corpus.Told:
    return said._replace(causes=[line for line in said.causes if line.split()[1] in nodes])


@cache
def _asked(case: str) -> frozenset[NodeId]:
    """Which nodes the walk over a case asks."""
    found = corpus.found(case)
    questions = [("", visit.question.id) for visits in (found.path, *found.further) for visit in visits]
    causes = [(finding.leaf.id, cause.id) for finding in found.reached for cause in finding.leaf.causes]
    return frozenset(questions + causes)


def _same(case: str, change: Change, nodes: set[NodeId]) -> Iterator[bool]:
    """Whether what the walk goes by stays: the facts that it asks for itself, then each changed node's answer."""
    earlier = _facts(case)
    facts = Reused(earlier, _params(change.tree, case), change.facts)
    if change.facts & AT_A_RESTART:
        yield not any(finding.restart for finding in corpus.found(case).findings)
    if change.facts & BETWEEN_FINDINGS:
        yield len(corpus.found(case).reached) < 2
    if "reading" in change.facts:
        yield facts.get("reading") == earlier.get("reading")
    for id_ in nodes:
        yield _steers(case, change.tree, change.nodes[id_], facts) == _said(case, id_)


@cache
def _facts(case: str) -> Facts:
    """The facts of a case by the shipped trees."""
    return Facts(corpus.given(case)[0], FACTS, _params(corpus.trees(), case))


def _params(tree: Tree, case: str) -> Mapping[str, Mapping[str, Param]]:
    return fact_params(tree, literal=corpus.given(case)[1]["literal"])


@cache
def _said(case: str, id_: NodeId) -> Steers:
    """What a node says of a case by the shipped trees."""
    return _steers(case, corpus.trees(), _node(id_), _facts(case))


def _steers(case: str, tree: Tree, node: Asking, facts: Facts) -> Steers:
    """What the walk goes by in a node's answer."""
    predicate = predicate_named(node.test)
    assert predicate is not None  # noqa: S101 - what is for a person has no parameters that could change
    params = resolved(tree, node, literal=corpus.given(case)[1]["literal"], facts=facts.params)
    answer = predicate.ask(facts, params)
    return answer.verdict, answer.onset_step, answer.last_good_step, answer.storm
