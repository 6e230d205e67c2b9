"""The course of a walk: the questions it asked, those without an answer, the sections and trees it went through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.answer import NO

if TYPE_CHECKING:
    from stabtree.common.answer import Answer
    from stabtree.tree.model import Question, Section


class Visit(Struct, frozen=True):
    """One turn of the walk: the question, its answer, and who gave it (`data` or `person`)."""

    question: Question
    answer: Answer
    given_by: str = "data"

    @property
    def target(self) -> str:
        """The node to which the answer leads."""
        return self.question.go.get(self.answer.verdict) or self.question.go[NO]


class Missing(Struct, frozen=True):
    """A question that the log could not answer, and what to log next time.

    Attributes:
        id: the question's id.
        reason: why it has no answer.
        metrics: the metrics and settings that the run lacks for it; empty where no log would help.
        log: how to log them.
        applies: whether the question has a meaning for this run at all.
    """

    id: str
    reason: str
    metrics: tuple[str, ...]
    log: str
    applies: bool = True


class LogNext(Struct, frozen=True):
    """Something to log next time, and what it would decide.

    Attributes:
        names: metrics, or settings to name in the manifest.
        log: how to log them.
        unlocks: ids of the questions and causes that it would answer.
        decides: what of the findings it would settle, as `whether the cause is ...`.
    """

    names: tuple[str, ...]
    log: str
    unlocks: tuple[str, ...]
    decides: tuple[str, ...] = ()


class Walked(Struct, frozen=True):
    """A section, whether it was walked, and why (not)."""

    section: Section
    walked: bool
    why: str


class WalkedTree(Struct, frozen=True):
    """One of the trees that were put together, whether any of it was walked, and why (not)."""

    name: str
    title: str
    walked: bool
    why: str
