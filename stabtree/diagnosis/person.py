"""The answers that a person gives: checked, applied, and compared with the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, Answer, Evidence
from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.diagnosis.result import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.tree.model import Question, Tree


def check_answers(tree: Tree, answers: Mapping[str, str]) -> None:
    """Check the ids and the verdicts of given answers.

    Raises:
        StabtreeError: for the first that the tree does not know.
    """
    for id_, word in answers.items():
        if id_ not in tree.questions:
            hint = f"type --answer Q1.2=fp16; ids: `stabtree tree show {tree.name}`"
            raise StabtreeError(f"there is no question {id_!r}{near(id_, tree.questions)}", where="--answer", hint=hint)
        known = [*tree.questions[id_].go, *tree.questions[id_].words]
        if word not in (*known, UNKNOWN):
            raise StabtreeError(
                f"{word!r} is not an answer to {id_}{near(word, known)}",
                where="--answer",
                hint=f"answers: {', '.join(known)}",
            )


def answered_visit(question: Question, word: str, against: str = "") -> Visit:
    """Return the visit of a question that a person answered, by the verdict or another word for it."""
    text = against or f"{word}, as answered"
    return Visit(question, Answer(question.words.get(word, word), (Evidence(text),), reason=text), "person")


def contradiction(question: Question, word: str, ask: Callable[[Question], Answer], tree: Tree) -> str:
    """Return how the log contradicts a person's answer, by this question or by the one it names; empty if it does not.

    Args:
        question: the question.
        word: the person's answer.
        ask: returns the log's answer to a question.
        tree: the tree.
    """
    verdict, data = question.words.get(word, word), ask(question)
    if word != UNKNOWN and data.verdict not in (UNKNOWN, verdict):
        return f"answered {word}; the log says {data.verdict.replace('_', ' ')}: {data.evidence[0].text}"
    id_, _, other_verdict = question.against.get(verdict, "").partition("=")
    if not id_:
        return ""
    other = ask(tree.questions[id_])
    if other.verdict != other_verdict:
        return ""
    return f"answered {word}; the log says otherwise: {other.evidence[0].text}"
