"""What came near to a limit without reaching it: no alarm, and no reason to call a run healthy either."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.tree.calibration import calibrations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.visits import Visit
    from stabtree.tree.model import Leaf, Tree


class Near(Struct, frozen=True):
    """A question whose answer came near to its limit.

    Attributes:
        visit: the question with its answer.
        leaf: the leaf that it would have led to.
        p: how likely an engineer would call the run faulty in this way.
    """

    visit: Visit
    leaf: Leaf
    p: float

    @property
    def strength(self) -> float:
        """How far it is from the limit, in doublings; below 0."""
        return self.visit.answer.strength or 0.0

    @property
    def as_visit(self) -> Visit:
        """The visit as if the limit had been reached, headed by what that would have meant."""
        answer = self.visit.answer
        brief = self.leaf.title[:1].lower() + self.leaf.title[1:]
        first = replace(answer.evidence[0], brief=brief)
        return replace(self.visit, answer=replace(answer, verdict=answer.near, evidence=(first, *answer.evidence[1:])))


def near_facts(tree: Tree, visits: Iterable[Visit]) -> tuple[Near, ...]:
    """Return what came near to an alarm, the likeliest first.

    Args:
        tree: the tree.
        visits: all questions that were asked.
    """
    found = [near for visit in visits if (near := _near(tree, visit)) is not None]
    return tuple(sorted(found, key=attrgetter("p"), reverse=True))


def _near(tree: Tree, visit: Visit) -> Near | None:
    answer, question = visit.answer, visit.question
    if answer.strength is None or answer.strength >= 0 or not answer.evidence:
        return None
    leaf = tree.leaves.get(question.go.get(answer.near, ""))
    if leaf is None or not leaf.severity.is_alarm:
        return None
    known = calibrations()
    p = known.likelihood(question.id, answer.strength)
    return Near(visit, leaf, p) if p >= known.near else None


def asking(leaf: Leaf, facts: Sequence[Near]) -> Leaf:
    """Return a leaf that quotes what came near, with the questions that decide as its first fixes."""
    first = (f"{near.visit.question.ask} If so: {near.leaf.fixes[0]}" for near in facts)
    seen = facts[0].visit.answer.evidence[0]
    quoted = seen.text
    if not (seen.metric and quoted.startswith(seen.metric)):
        quoted = quoted[:1].upper() + quoted[1:]
    return replace(leaf, why=f"{quoted}. {leaf.why}", fixes=(*first, *leaf.fixes))
