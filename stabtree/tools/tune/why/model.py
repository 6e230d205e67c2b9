"""What `--why-not` reports: data only."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

if TYPE_CHECKING:
    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.visits import Visit
    from stabtree.facts.registry import Param


class NodeStatus(StrEnum):
    """Whether a walk came to a node."""

    REACHED = "reached"
    DIVERTED = "turned away"  # a question of the way there was answered otherwise
    NOT_WALKED = "not walked"  # its section has no meaning for this run
    ELSEWHERE = "elsewhere"  # no walk leads there by itself


@dataclass(frozen=True, slots=True)
class Margin:
    """By how much a number missed what would have led to a node.

    Attributes:
        evidence: what was seen.
        value: the number that was compared.
        threshold: what it was compared with.
        decides: whether getting past the threshold is known to turn the answer.
    """

    evidence: Evidence
    value: float
    threshold: float
    decides: bool

    @property
    def missed(self) -> float:
        """How far the value is from the threshold."""
        return abs(self.threshold - self.value)


@dataclass(frozen=True, slots=True)
class Flip:
    """A parameter with which a question would have been answered as the way to a node needs it.

    Attributes:
        key: what to set, as `spike.sigma`.
        now: its value in this walk.
        value: the nearest one that would do.
    """

    key: str
    now: Param
    value: Param


@dataclass(frozen=True, slots=True)
class Stage:
    """A question on the way to a node.

    Attributes:
        visit: the question, and how this run answers it.
        walked: whether a walk came to it; else it was asked for this alone.
        wanted: the answers that lead on to the node.
        target: where they lead.
        agrees: whether the answer leads there.
        margin: of another answer, by how much a number missed it; None where no single number decides.
        flips: what would have turned it, the smallest change first.
        lacks: of no answer, what to log for one: each name with how to log it.
        person: whether a person can answer it.
    """

    visit: Visit
    walked: bool
    wanted: tuple[str, ...]
    target: str
    agrees: bool
    margin: Margin | None = None
    flips: tuple[Flip, ...] = ()
    lacks: tuple[tuple[str, str], ...] = ()
    person: bool = False


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Whether a walk came to a node, and if not what led away from it.

    Attributes:
        node: the id of the question or leaf.
        title: what it is called.
        status: whether a walk came to it.
        why: what the stages don't say, in words; may be empty.
        stages: the questions from the entry of its section to it, by the nearest way; those behind one that can be
            turned by what is set are asked as if it had been.
        settings: what set together takes the walk there, tried out; empty where nothing does.
        lacks: of a section that was not walked, what to log for it: each name with how to log it.
    """

    node: str
    title: str
    status: NodeStatus
    why: str = ""
    stages: tuple[Stage, ...] = ()
    settings: tuple[Flip, ...] = ()
    lacks: tuple[tuple[str, str], ...] = ()

    @property
    def turn(self) -> Stage | None:
        """The question that led away."""
        return next((stage for stage in self.stages if not stage.agrees), None)
