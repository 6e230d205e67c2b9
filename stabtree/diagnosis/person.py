"""What a person answers: checked, believed, and held against the log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, Answer, Evidence
from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.diagnosis.visits import Visit
from stabtree.predicates import predicate_named
from stabtree.run import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.run import Run
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
        if word not in {*known, UNKNOWN}:
            raise StabtreeError(
                f"{word!r} is not an answer to {id_}{near(word, known)}",
                where="--answer",
                hint=f"answers: {', '.join(known)}",
            )


def told(question: Question, word: str, against: str = "") -> Visit:
    """The visit of a question that a person answered, in the verdict's or in other words."""
    text = against or f"{word}, as answered"
    return Visit(question, Answer(question.words.get(word, word), (Evidence(text),), reason=text), "person")


def contradiction(question: Question, word: str, data: Answer) -> str:
    """What is to be said aloud where the log answers otherwise; empty where it does not."""
    if data.verdict in (UNKNOWN, question.words.get(word, word)) or word == UNKNOWN:
        return ""
    return f"answered {word}; the log says {data.verdict.replace('_', ' ')}: {data.evidence[0].text}"


def denied(question: Question, word: str, ask: Callable[[str], Answer]) -> str:
    """What is to be said aloud where another question's answer from the log rules a person's out; else empty."""
    id_, _, verdict = question.against.get(question.words.get(word, word), "").partition("=")
    data = ask(id_) if id_ else None
    if data is None or data.verdict != verdict:
        return ""
    return f"answered {word}; the log says otherwise: {data.evidence[0].text}"


def believing(run: Run, question: Question, word: str) -> Run:
    """The run with what a person said of it, for all that ask for the same setting."""
    predicate = predicate_named(question.test)
    if predicate is None or not predicate.sets or word == UNKNOWN:
        return run
    return replace(run, config={**run.config, predicate.sets: Setting(word, f"answered to {question.id}")})


def can_tell(question: Question) -> bool:
    """Whether it is a question that a person can answer without the log."""
    return bool(question.person) or not question.test
