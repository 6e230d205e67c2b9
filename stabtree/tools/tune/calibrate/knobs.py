"""The numbers that decided an alarm: the thresholds of the questions that led to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.dataclass import dataclass
from stabtree.predicates import predicate_named
from stabtree.tools.tune.why.ways import end_of
from stabtree.tree.overrides import apply_overrides, declared
from stabtree.tree.params import facts_behind, find_node, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.visits import Visit
    from stabtree.facts.registry import Param
    from stabtree.tree.model import Question, Tree
    from stabtree.tree.params import Asking

LENGTHS = ("steps", "rows")
SHARES = ("share", "chance", "correlation")
FACTOR, CHANCES = 10.0, 1e6
"""How far a threshold may be moved, and how far a chance, which falls fast where others grow slowly: beyond, the
question is as good as not asked."""


@dataclass(frozen=True, slots=True)
class Tunable:
    """A threshold.

    Attributes:
        key: what it is set by, `spike.sigma`.
        shipped: what the tree states.
        base: what is in force: a project may have set it before.
        whole: whether it is a whole number.
        question: the first question on the way that depends on it.
    """

    key: str
    shipped: float
    base: float
    whole: bool
    question: str

    @property
    def factor(self) -> float:
        """By what it may be multiplied or divided."""
        if self.key.endswith("chance"):
            return CHANCES
        return FACTOR

    @property
    def max_value(self) -> float:
        """The highest value that it may take; a share or a chance ends at 1."""
        far = self.base * self.factor
        if self.key.endswith(SHARES) and self.base <= 1:
            return min(far, 1.0)
        return far

    @property
    def min_value(self) -> float:
        """The lowest value that it may take."""
        far = self.base / self.factor
        # a count of none asks for nothing, or is refused
        if self.whole:
            return max(far, 1.0)
        return far

    def moved(self, value: float, factor: float, *, up: bool) -> float:
        """Return a value multiplied, or divided, by a factor, and not beyond the end of the range."""
        if up:
            return min(value * factor, self.max_value)
        return max(value / factor, self.min_value)


def way_to(diagnosis: Diagnosis, leaf: str) -> tuple[Visit, ...]:
    """Return the walk that ended at a leaf; empty where it is reported otherwise."""
    for visits in (diagnosis.path, *diagnosis.further):
        end = diagnosis.tree.leaves.get(end_of(visits))
        if end is not None and leaf in (end.id, end.escalate):
            return visits
    return ()


def knobs_of(diagnosis: Diagnosis, leaf: str) -> dict[str, Tunable]:
    """Return the thresholds, by their keys, that decided the way to a leaf: of its questions that the data said yes to.

    Lengths of windows are none: they say where to look, not what is too much; nor is what only fine-tunes a guard:
    moved far enough it silences a real spike for a reason that nobody could follow.
    """
    tree, found = diagnosis.tree, dict[str, Tunable]()
    own, facts = apply_overrides(tree, diagnosis.overrides, literal=diagnosis.literal)
    for visit in way_to(diagnosis, leaf):
        if visit.answer.verdict in (NO, UNKNOWN) or visit.given_by != "data":
            continue
        question = visit.question
        values = resolved(tree, question, literal=diagnosis.literal, facts=facts)
        for node in reversed([question, *_likes(tree, question)]):
            values.update({key: value for key, value in own.get(node.id, {}).items() if key in values})
        known = declared(tree, question.id)
        for home, name, shipped in _stated(tree, question):
            base = facts.get(home, values)[name]
            if _is_threshold(name, shipped) and _is_threshold(name, base):
                key, whole = f"{home}.{name}", known[name][1].kind is int
                found.setdefault(key, Tunable(key, float(shipped), float(base), whole, question.id))
    return found


def _is_threshold(name: str, value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return number and not name.endswith(LENGTHS)


def _stated(tree: Tree, question: Question) -> Iterator[tuple[str, str, Param]]:
    """Yield what a tree states of a question, of what that is like and of the facts behind: home, name, value."""
    predicate = predicate_named(question.test)
    if predicate is None:
        return
    own: dict[str, Param] = {}
    for node in reversed([question, *_likes(tree, question)]):
        own = {name: value for name, value in own.items() if name not in node.advanced} | dict(node.params)
    for name, value in own.items():
        if name in predicate.params:
            yield question.id, name, value
    for stated in (tree.facts[fact] for fact in facts_behind(predicate) if fact in tree.facts):
        for name, value in stated.params.items():
            yield stated.id, name, value


def _likes(tree: Tree, node: Asking) -> list[Asking]:
    """Return the nodes whose parameters a node takes over, nearest first."""
    found: list[Asking] = []
    while node.like:
        node = find_node(tree, node.like)
        found.append(node)
    return found
