"""`--why-not`: whether a walk came to a node; if not what led away, by how much, and what would lead there."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.figures import against
from stabtree.common.text import in_words
from stabtree.report.explain import rule_of
from stabtree.report.words import answer_word
from stabtree.tools.tune.why.model import NodeStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.facts.registry import Param
    from stabtree.report.page import Page
    from stabtree.tools.tune.why.model import Flip, Margin, Stage, WhyNot

Row = tuple[str, str]
HEAD = 9
COMES = {
    NodeStatus.REACHED: "the walk came to it",
    NodeStatus.DIVERTED: "the walk did not come to it",
    NodeStatus.NOT_WALKED: "its section was not walked",
    NodeStatus.ELSEWHERE: "no walk comes to it by itself",
}
MAX_STEPS = 3


def why_not_text(page: Page, diagnosis: Diagnosis, result: WhyNot) -> None:
    """Write all about the node that was asked about."""
    page.line(
        (result.node, "id"), (": ", ""), (COMES[result.status], "heading"), (f"  {result.title}", "dim"), hanging=2
    )
    page.blank()
    for head, text in rows(diagnosis, result):
        page.item((head, "dim"), [(text, "")], indent=1, head_width=HEAD)


def rows(diagnosis: Diagnosis, result: WhyNot) -> Iterator[Row]:
    """Yield what is reported, each with the word that comes before it; empty words go on with what is above."""
    if result.stages:
        yield "way", " › ".join([*map(_link, result.stages), result.stages[-1].target])
    if result.why:
        yield "why", result.why
    yield from _logs(result.lacks)
    if result.status is NodeStatus.REACHED and result.stages:
        yield from _seen(result.stages[-1])
    missed = [stage for stage in result.stages if not stage.agrees]
    for stage in missed:
        first = stage is missed[0]
        yield "turned" if first else "then", _turned(stage)
        yield from _seen(stage)
        yield from _what_it_takes(diagnosis, stage, first=first)
    yield from _what_leads_there(result, len(missed))


def _what_leads_there(result: WhyNot, missed: int) -> Iterator[Row]:
    """Yield which settings would lead to the node, else how many questions would have to be answered otherwise."""
    if result.settings:
        yield "try", f"with {' '.join(map(_typed, result.settings))} the walk comes to {result.node}"
    elif missed == 2:
        yield "", "both would have to be answered otherwise"
    elif missed > 2:
        yield "", f"all {missed} would have to be answered otherwise"


def _link(stage: Stage) -> str:
    link = f"{stage.visit.question.id} {answer_word(stage.visit)}"
    if stage.agrees:
        return link
    return f"{link} (not {_words(stage.wanted)})"


def _turned(stage: Stage) -> str:
    question = stage.visit.question
    answer = answer_word(stage.visit)
    if stage.visit.given_by == "person":
        answer = f"{answer} by a person"
    text = f"{question.id} {question.ask} {answer}, not {_words(stage.wanted)}"
    if stage.walked:
        return text
    return f"{text}; no walk asked it"


def _words(verdicts: Iterable[str]) -> str:
    return " or ".join(word.replace("_", " ") for word in verdicts if word != UNKNOWN) or "left open"


def _seen(stage: Stage) -> Iterator[Row]:
    """Yield what the answer rests on."""
    answer = stage.visit.answer
    if answer.verdict == UNKNOWN:
        yield "seen", answer.reason
    else:
        yield from _headed("seen", (item.text for item in answer.evidence))


def _what_it_takes(diagnosis: Diagnosis, stage: Stage, *, first: bool) -> Iterator[Row]:
    """By how much it was missed, and what would have to be different; the rule of the first one where no number is."""
    if stage.margin:
        yield "missed", _missed(stage.margin, diagnosis.run.unit)
    yield from _headed("would", (f"{_limit(flip)} turns it: {_typed(flip)}" for flip in stage.flips))
    rule = rule_of(diagnosis.tree, stage.visit.question, literal=diagnosis.literal)
    if rule and first and not stage.flips and not stage.lacks:
        yield "rule", rule
    yield from _logs(stage.lacks)
    words = [word for word in stage.wanted if word != UNKNOWN]
    if stage.person and words:
        yield "by hand", f"--answer {stage.visit.question.id}={words[0]}, where you know it"


def _missed(margin: Margin, unit: str) -> str:
    steps = margin.evidence.steps[:MAX_STEPS]
    at = ""
    if steps:
        at = f" ({unit}{'s' * (len(steps) > 1)} {in_words([f'{step:,}' for step in steps])})"
    value, limit = against(margin.value, margin.threshold), against(margin.threshold, margin.value)
    name = ""
    if margin.evidence.metric:
        name = f"{margin.evidence.metric}: "
    if not margin.missed:
        return f"{name}{value}{at}, at a limit of {limit}: it would have to get past that"
    share = ""
    if margin.threshold:
        share = f", {margin.missed / abs(margin.threshold):.0%} of it"
    if not margin.decides:
        return f"{name}{value} beside a limit of {limit}{at}: {margin.missed:.3g} apart{share}"
    more = "more" if margin.value < margin.threshold else "less"
    return f"{name}{value}{at}, past {limit} is needed: {margin.missed:.3g} {more}{share}"


def _limit(flip: Flip) -> str:
    return f"{flip.key} at {_number(flip.value)} instead of {_number(flip.now)}"


def _typed(flip: Flip) -> str:
    return f"--set {flip.key}={_number(flip.value)}"


def _number(value: Param) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.7g}"
    return f"{value}"


def _logs(lacks: Iterable[tuple[str, str]]) -> Iterator[Row]:
    texts = []
    for name, how in lacks:
        if how.startswith(name):
            texts.append(how)
        else:
            texts.append(f"{name}: {how}")
    yield from _headed("log", texts)


def _headed(head: str, texts: Iterable[str]) -> Iterator[Row]:
    """Yield a row for each text, of which the first has the head."""
    return zip(chain([head], repeat("")), texts, strict=False)
