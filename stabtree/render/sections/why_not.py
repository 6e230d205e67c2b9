"""`--why-not`: whether a walk came to a node; if not what led away, by how much, and what would lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import against, in_words
from stabtree.diagnosis.why.model import Came
from stabtree.render.report.words import answer_of
from stabtree.render.trees.reference import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.why.model import Flip, Margin, Stage, WhyNot
    from stabtree.facts.registry import Param
    from stabtree.render.page import Page

Row = tuple[str, str]
HEAD = 9
COMES = {
    Came.REACHED: "the walk came to it",
    Came.TURNED: "the walk did not come to it",
    Came.NOT_WALKED: "its section was not walked",
    Came.ELSEWHERE: "no walk comes to it by itself",
}
MOST_STEPS = 3


def why_not_text(page: Page, diagnosis: Diagnosis) -> None:
    """All that is told of the node that was asked about."""
    told = diagnosis.why_not
    if told is None:
        return
    page.line((told.node, "id"), (": ", ""), (COMES[told.came], "heading"), (f"  {told.title}", "dim"), hanging=2)
    page.blank()
    for head, text in rows(diagnosis, told):
        page.item((head, "dim"), [(text, "")], indent=1, head_width=HEAD)


def rows(diagnosis: Diagnosis, told: WhyNot) -> Iterator[Row]:
    """What is told, each with the word that stands before it; empty words go on with what is above."""
    if told.stages:
        yield "way", " › ".join([*map(_link, told.stages), told.stages[-1].target])
    if told.why:
        yield "why", told.why
    yield from _logs(told.lacks)
    if told.came is Came.REACHED and told.stages:
        yield from _seen(told.stages[-1])
    missed = [stage for stage in told.stages if not stage.agrees]
    for place, stage in enumerate(missed):
        yield "turned" if not place else "then", _turned(stage)
        yield from _seen(stage)
        yield from _what_it_takes(diagnosis, stage, first=not place)
    if told.settings:
        yield "try", f"with {' '.join(map(_typed, told.settings))} the walk comes to {told.node}"
    elif len(missed) > 1:
        yield "", f"{'both' if len(missed) == 2 else f'all {len(missed)}'} would have to be answered otherwise"


def _link(stage: Stage) -> str:
    answer = answer_of(stage.visit)
    return f"{stage.visit.question.id} {answer}{'' if stage.agrees else f' (not {_words(stage.wanted)})'}"


def _turned(stage: Stage) -> str:
    question = stage.visit.question
    by = " by a person" if stage.visit.given_by == "person" else ""
    aside = "" if stage.walked else "; no walk asked it"
    return f"{question.id} {question.ask} {answer_of(stage.visit)}{by}, not {_words(stage.wanted)}{aside}"


def _words(verdicts: Iterable[str]) -> str:
    return " or ".join(word.replace("_", " ") for word in verdicts if word != UNKNOWN) or "left open"


def _seen(stage: Stage) -> Iterator[Row]:
    """What the answer rests on."""
    answer = stage.visit.answer
    if answer.verdict == UNKNOWN:
        yield "seen", answer.reason
    for place, item in enumerate(answer.evidence if answer.verdict != UNKNOWN else ()):
        yield "" if place else "seen", item.text


def _what_it_takes(diagnosis: Diagnosis, stage: Stage, *, first: bool) -> Iterator[Row]:
    """By how much it was missed, and what would have to be different; the rule of the first one where no number is."""
    if stage.margin:
        yield "missed", _missed(stage.margin, diagnosis.run.unit)
    for place, flip in enumerate(stage.flips):
        yield "" if place else "would", f"{_limit(flip)} turns it: {_typed(flip)}"
    rule = rule_of(diagnosis.tree, stage.visit.question, literal=diagnosis.literal)
    if rule and first and not stage.flips and not stage.lacks:
        yield "rule", rule
    yield from _logs(stage.lacks)
    if stage.person:
        words = [word for word in stage.wanted if word != UNKNOWN]
        yield from [("by hand", f"--answer {stage.visit.question.id}={words[0]}, where you know it")] if words else []


def _missed(margin: Margin, unit: str) -> str:
    steps = margin.evidence.steps[:MOST_STEPS]
    at = f" ({unit}{'s' * (len(steps) > 1)} {in_words([f'{step:,}' for step in steps])})" if steps else ""
    value, limit = against(margin.value, margin.threshold), against(margin.threshold, margin.value)
    name = f"{margin.evidence.metric}: " if margin.evidence.metric else ""
    if not margin.missed:
        return f"{name}{value}{at}, at a limit of {limit}: it would have to get past that"
    share = f", {margin.missed / abs(margin.threshold):.0%} of it" if margin.threshold else ""
    if not margin.decides:
        return f"{name}{value} beside a limit of {limit}{at}: {margin.missed:.3g} apart{share}"
    more = "more" if margin.value < margin.threshold else "less"
    return f"{name}{value}{at}, past {limit} is needed: {margin.missed:.3g} {more}{share}"


def _limit(flip: Flip) -> str:
    return f"{flip.key} at {_number(flip.value)} instead of {_number(flip.now)}"


def _typed(flip: Flip) -> str:
    return f"--set {flip.key}={_number(flip.value)}"


def _number(value: Param) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.7g}" if isinstance(value, float) else f"{value}"


def _logs(lacks: Iterable[tuple[str, str]]) -> Iterator[Row]:
    for place, (name, how) in enumerate(lacks):
        yield "" if place else "log", how if how.startswith(name) else f"{name}: {how}"
