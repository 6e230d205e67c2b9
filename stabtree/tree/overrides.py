"""What is set from outside of where it is stated: `--set`, and a node that sets a parameter of a fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import near
from stabtree.facts import FACTS
from stabtree.predicates import predicate_named
from stabtree.tree.model import Cause, FactParams, Question, Signature
from stabtree.tree.params import asking, fact_params, fits, mistakes, settable

if TYPE_CHECKING:
    from stabtree.facts.registry import Param, Parameter
    from stabtree.tree.model import Tree
    from stabtree.tree.params import Asking

Values = dict[str, dict[str, "Param"]]
Node = TypeVar("Node", Question, Cause, Signature)


def declared(tree: Tree, id_: str) -> dict[str, tuple[str, Parameter]]:
    """What can be set of a question, a cause or a fact: name -> the fact that has it (empty: the node), and its kind.

    Raises:
        StabtreeError: where there is no such id.
    """
    nodes = {node.id: node for node in asking(tree) if node.test} | dict(tree.questions)
    if id_ in nodes:
        predicate = predicate_named(nodes[id_].test)
        return settable(predicate) if predicate else {}
    if id_ in FACTS:
        return {key: (id_, item) for key, item in FACTS[id_].params.items()}
    raise StabtreeError(
        f"there is no question {id_!r}{near(id_, [*nodes, *FACTS])}",
        where="--set",
        hint=f"type --set Q2.1.sigma=4; ids: `stabtree tree show {tree.name}`",
    )


def overridden(
    tree: Tree, overrides: Mapping[str, Mapping[str, Param]], *, literal: bool = False
) -> tuple[Values, Values]:
    """What is set of nodes, by their ids, and the parameters of all facts with what is set of them.

    Raises:
        StabtreeError: for an unknown id, parameter or type, and for two values of one parameter of a fact.
    """
    own: Values = {}
    facts = fact_params(tree, literal=literal)
    said: dict[tuple[str, str], tuple[str, Param]] = {}
    for id_, given in overrides.items():
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in (id_, *given)):
            problem = f"{id_!r} must map names of parameters to values"
            raise StabtreeError(problem, where="overrides", hint='give {"Q2.1": {"sigma": 4.0}}')
        # What was computed is often a number of numpy's.
        params = {key: value.item() if isinstance(value, np.generic) else value for key, value in given.items()}
        known = declared(tree, id_)
        wrong = next(mistakes({key: item for key, (_, item) in known.items()}, id_, params), "")
        if wrong:
            hint = f"`stabtree explain {id_} --full` shows what can be set"
            raise StabtreeError(f"{id_} {wrong}", where="--set", hint=hint)
        for key, value in params.items():
            home = known[key][0]
            if not home:
                own.setdefault(id_, {})[key] = value
                continue
            before, other = said.setdefault((home, key), (id_, value))
            if other != value:
                problem = f"{before} sets {home}.{key} to {other}, {id_} to {value}: it has one value in a walk"
                raise StabtreeError(problem, where="--set", hint=f"type --set {home}.{key}={value} alone")
            facts.setdefault(home, {})[key] = value
    return own, facts


def hoisted(tree: Tree) -> tuple[Tree, list[tuple[int, str]]]:
    """A tree in which what a node sets of a fact is stated of the fact; two values for one are a mistake."""
    facts = {name: {**stated.params, **stated.advanced} for name, stated in tree.facts.items()}
    literals = {name: dict(stated.literal) for name, stated in tree.facts.items()}
    owners: dict[tuple[str, str], str] = {}
    wrong: list[tuple[int, str]] = []

    def lifted(node: Asking, key: str, value: Param, into: dict[str, dict[str, Param]]) -> bool:
        predicate = predicate_named(node.test)
        home, item = settable(predicate).get(key, ("", None)) if predicate else ("", None)
        if not home or item is None or not fits(value, item):
            return False
        held = into.setdefault(home, {})
        if key in held and held[key] != value:
            said = owners.get((home, key), "'facts'")
            wrong.append((1, f"{node.id} sets {home}.{key} to {value}, {said} to {held[key]}: it has one value"))
        held[key] = value
        owners[home, key] = node.id
        return True

    def bare(node: Node) -> Node:
        return replace(
            node,
            params={k: v for k, v in node.params.items() if not lifted(node, k, v, facts)},
            advanced={k: v for k, v in node.advanced.items() if not lifted(node, k, v, facts)},
        )

    def bare_question(node: Question) -> Question:
        literal = {k: v for k, v in node.literal.items() if not lifted(node, k, v, literals)}
        return replace(bare(node), literal=literal)

    questions = {id_: bare_question(node) for id_, node in tree.questions.items()}
    leaves = {id_: replace(leaf, causes=tuple(map(bare, leaf.causes))) for id_, leaf in tree.leaves.items()}
    signatures = tuple(map(bare, tree.signatures))
    found = {}
    for name in {**facts, **literals}:
        fine = tree.facts[name].advanced if name in tree.facts else {}
        plain = {key: value for key, value in facts.get(name, {}).items() if key not in fine}
        found[name] = FactParams(name, plain, fine, literals.get(name, {}))
    return replace(tree, questions=questions, leaves=leaves, signatures=signatures, facts=found), wrong
