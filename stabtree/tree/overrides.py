"""Parameters that are set elsewhere than they are stated: by `--set`, and by a node that sets one of a fact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import near
from stabtree.facts import FACTS
from stabtree.predicates import predicate_named
from stabtree.tree.model import Cause, FactParams, Question
from stabtree.tree.params import asking, fact_params, fits, mistakes, settable

if TYPE_CHECKING:
    from stabtree.facts.registry import Param, Parameter
    from stabtree.tree.model import Tree
    from stabtree.tree.params import Asking

Values = dict[str, dict[str, "Param"]]
Node = TypeVar("Node", bound=Question | Cause)


def declared(tree: Tree, id_: str) -> dict[str, tuple[str, Parameter]]:
    """Return the parameters of a question, a cause or a fact: name -> the fact that has it (empty: the node), its kind.

    Raises:
        StabtreeError: if there is no such id.
    """
    nodes = {node.id: node for node in asking(tree) if node.test} | dict(tree.questions)
    if id_ in nodes:
        return _settable(nodes[id_])
    if id_ in FACTS:
        return {key: (id_, item) for key, item in FACTS[id_].params.items()}
    raise StabtreeError(
        f"there is no question {id_!r}{near(id_, [*nodes, *FACTS])}",
        where="--set",
        hint=f"type --set Q2.1.sigma=4; ids: `stabtree tree show {tree.name}`",
    )


def _settable(node: Asking) -> dict[str, tuple[str, Parameter]]:
    predicate = predicate_named(node.test)
    return settable(predicate) if predicate else {}


def apply_overrides(
    tree: Tree, overrides: Mapping[str, Mapping[str, Param]], *, literal: bool = False
) -> tuple[Values, Values]:
    """Return what is set of nodes, by their ids, and the parameters of all facts with what is set of them.

    Raises:
        StabtreeError: for an unknown id, parameter or type, and for two values of one parameter of a fact.
    """
    own: Values = {}
    facts = fact_params(tree, literal=literal)
    setters: dict[tuple[str, str], tuple[str, Param]] = {}
    for id_, given in overrides.items():
        params = _plain(id_, given)
        known = declared(tree, id_)
        wrong = next(mistakes({key: item for key, (_, item) in known.items()}, id_, params), "")
        if wrong:
            hint = f"`stabtree explain {id_} --full` shows what can be set"
            raise StabtreeError(f"{id_} {wrong}", where="--set", hint=hint)
        for key, value in params.items():
            fact = known[key][0]
            if not fact:
                own.setdefault(id_, {})[key] = value
                continue
            before, other = setters.setdefault((fact, key), (id_, value))
            if other != value:
                problem = f"{before} sets {fact}.{key} to {other}, {id_} to {value}: it has one value in a walk"
                raise StabtreeError(problem, where="--set", hint=f"type --set {fact}.{key}={value} alone")
            facts.setdefault(fact, {})[key] = value
    return own, facts


def _plain(id_: object, given: object) -> dict[str, Param]:
    """Return given parameters with plain numbers: what was computed is often a number of numpy's.

    Raises:
        StabtreeError: if they are no mapping of names to values.
    """
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in (id_, *given)):
        problem = f"{id_!r} must map names of parameters to values"
        raise StabtreeError(problem, where="overrides", hint='give {"Q2.1": {"sigma": 4.0}}')
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in given.items()}


class _Lifted:
    """The parameters of a tree's facts, with those that its nodes set of them.

    Attributes:
        params: the values, by fact and name.
        literals: the same of what `--literal` sets.
        mistakes: two values for one parameter, in words.
    """

    def __init__(self, tree: Tree) -> None:
        self.params: Values = fact_params(tree)
        self.literals: Values = {name: dict(stated.literal) for name, stated in tree.facts.items()}
        self.mistakes: list[str] = []
        self._setters: dict[tuple[str, str], str] = {}

    def lift(self, node: Node) -> Node:
        """Return the node without the parameters of facts that it sets."""
        bare = replace(node, params=self._split(node, node.params), advanced=self._split(node, node.advanced))
        if isinstance(bare, Question):
            return replace(bare, literal=self._split(node, bare.literal, literal=True))
        return bare

    def _split(self, node: Asking, params: Mapping[str, Param], *, literal: bool = False) -> dict[str, Param]:
        """Return the node's own parameters; keep those of facts."""
        known, own = _settable(node), {}
        for key, value in params.items():
            fact, item = known.get(key, ("", None))
            if fact and item is not None and fits(value, item):
                self._set(node.id, fact, key, value, self.literals if literal else self.params)
            else:
                own[key] = value
        return own

    def _set(self, id_: str, fact: str, key: str, value: Param, values: Values) -> None:
        held = values.setdefault(fact, {})
        if key in held and held[key] != value:
            before = self._setters.get((fact, key), "'facts'")
            text = f"{id_} sets {fact}.{key} to {value}, {before} to {held[key]}: it has one value"
            self.mistakes.append(text)
        held[key] = value
        self._setters[fact, key] = id_


def lift_fact_params(tree: Tree) -> tuple[Tree, list[str]]:
    """Return the tree with what its nodes set of facts stated of the facts, and the mistakes: two values for one."""
    lifted = _Lifted(tree)
    questions = {id_: lifted.lift(node) for id_, node in tree.questions.items()}
    leaves = {id_: replace(leaf, causes=tuple(map(lifted.lift, leaf.causes))) for id_, leaf in tree.leaves.items()}
    signatures = tuple(map(lifted.lift, tree.signatures))
    facts = {}
    for name in {**lifted.params, **lifted.literals}:
        advanced = tree.facts[name].advanced if name in tree.facts else {}
        params = {key: value for key, value in lifted.params.get(name, {}).items() if key not in advanced}
        facts[name] = FactParams(name, params, advanced, lifted.literals.get(name, {}))
    return replace(tree, questions=questions, leaves=leaves, signatures=signatures, facts=facts), lifted.mistakes
