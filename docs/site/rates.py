"""The measured error rates of questions and predicates, as `python -m benchmarks.predicates` recorded them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from docs.site.markup import code
from docs.site.prose import part, table
from docs.site.reading import asking, home_of
from faultbench.rates import Rate
from stabtree.tree.model import Question
from stabtree.tree.shipped import PREFLIGHT

FIGURES = Path(__file__).resolve().parents[1] / "figures" / "predicates.json"
LEAST = 5  # runs, below which a share says nothing
LABEL = "measured-rates"


@cache
def figures() -> dict[str, Any]:
    """What was recorded; nothing where it was not measured."""
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
    return found


def of_question(id_: str) -> str:
    """How often a question's answers were right on labelled runs."""
    found = figures().get("questions", {}).get(id_)
    return _told(found) if found else _unasked(asks_settings=home_of(id_) == PREFLIGHT)


def of_predicate(name: str) -> str:
    """The same of a predicate, over all questions that ask it."""
    found = figures().get("predicates", {}).get(name)
    if found:
        return _told(found)
    nodes = [asked.node for asked in asking() if asked.node.test == name]
    questions = [node.id for node in nodes if isinstance(node, Question)]
    if nodes and not questions:
        return "Only causes of findings are tested by it, and the labels say too little of causes to count them."
    return _unasked(asks_settings=bool(questions) and all(home_of(id_) == PREFLIGHT for id_ in questions))


def _unasked(*, asks_settings: bool) -> str:
    if not figures():
        return ""
    if asks_settings:
        return "It is asked of configurations, and the labelled runs are logs: its errors were not measured."
    return "No labelled run was asked, so nothing can be said of its errors."


def in_short(name: str) -> tuple[str, str]:
    """Of a predicate: false alarms on healthy runs, and right findings on failed ones; empty where few were asked."""
    found = figures().get("predicates", {}).get(name)
    if not found:
        return "", ""
    healthy, failed = found["healthy"], found["failed"]
    others = f", {failed['elsewhere']} by others" if failed["elsewhere"] else ""
    return (
        f"{healthy['alarms']} of {healthy['asked']}" if healthy["asked"] >= LEAST else "",
        f"{failed['right']} of {failed['asked']}{others}" if failed["asked"] >= LEAST else "",
    )


def _told(found: dict[str, Any]) -> str:
    healthy, failed = found["healthy"], found["failed"]
    either = failed["right"] + failed["elsewhere"]
    rows = [
        _row(f"{healthy['asked']} healthy runs", "a false alarm", healthy["alarms"], healthy["asked"]),
        _row(f"{failed['asked']} failed runs of its kind", "a right finding", failed["right"], failed["asked"]),
        _row("the same", "a right finding, by this or another question", either, failed["asked"]),
    ]
    led = table(("asked of", "led to", "how often", "95% interval"), rows)
    return "\n\n".join((led, _answers(found["answers"]), f"[How this was measured](#{LABEL})."))


def _row(runs: str, what: str, count: int, total: int) -> tuple[str, ...]:
    if total < LEAST:
        return runs, what, "asked of too few labelled runs to say", ""
    low, high = Rate(count, total).interval()
    times = "once" if count == 1 else f"{count} times"
    return runs, what, f"{times}, {count / total:.0%}", f"{low:.0%} to {high:.0%}"


def _answers(answers: dict[str, list[int]]) -> str:
    """Which answers were given, of healthy runs and of failed ones of its kind."""
    rows = [(code(verdict), str(healthy), str(failed)) for verdict, (healthy, failed) in answers.items()]
    return table(("answer given", "of healthy runs", "of failed ones of its kind"), rows)


def head() -> str:
    """What the columns of the predicates' index say."""
    if not figures():
        return ""
    return (
        "*False alarms* are of the healthy labelled runs that could be asked, *right findings* of the failed ones of a "
        f"predicate's kind; an empty cell had fewer than {LEAST} of them. [How this was measured](#{LABEL})."
    )


def about() -> str:
    """What was measured on what, for the predicates' index."""
    found = figures()
    if not found:
        return ""
    rows = [(name, str(held["healthy"]), str(held["failed"]), held["what"]) for name, held in found["samples"].items()]
    told = (
        "Every question that a walk came to was counted on runs of which it is known whether they failed, and how. "
        "*Asked* means that the log could answer. An answer *led to* a finding where the walk went from it to a "
        "warning or worse before it began another section. A failed run is *of its kind* where one of the findings "
        "that the question can lead to is what the label allows the run to be called, and the finding is *right* "
        "where it is one of these. What one question does not tell, another may. A log with several runs counts once, "
        f"and once for each answer. Intervals are Wilson's, at 95%; of fewer than {LEAST} runs no share is given. "
        "Causes of findings are not counted: the labels say too little of them."
    )
    limits = (
        "The rules were made on most of these runs, so expect somewhat more errors on yours. Runs of one project are "
        "alike, which makes the intervals narrower than they should be."
    )
    measured = f"Measured with stabtree {found['version']}; `python -m benchmarks.predicates` does it again."
    body = part("How often they are right", told, table(("runs", "healthy", "failed", "what they are"), rows), limits)
    return f"({LABEL})=\n{body}\n\n{measured}"
