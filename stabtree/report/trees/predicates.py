"""The predicates as text, for those who write trees: what each asks, reads, may answer and lets a tree set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import docstring
from stabtree.facts import FACTS
from stabtree.report.page import Page
from stabtree.tree.load import stated_for
from stabtree.tree.params import settable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.facts.registry import Fact, Parameter
    from stabtree.predicates import Predicate

# What a parameter is counted in, by the last word of its name.
UNITS = {
    "steps": "optimizer steps",
    "rows": "rows of the log",
    "share": "a share, 0 to 1",
    "factor": "times",
    "growth": "times",
    "sigma": "standard deviations",
    "z": "score of a trend test, in standard deviations",
    "chance": "rows expected by chance",
    "level": "in the unit of the metric",
    "levels": "medians of blocks of rows",
    "metric": "name of a metric",
    "beside": "name of a metric",
    "unless": "name of a metric",
    "pattern": "regular expression",
}


def predicate_list(predicates: Sequence[Predicate], *, width: int = 100, color: bool = False) -> str:
    """Return all predicates in a line or two each: name, question, verdicts."""
    page = Page(width=width, color=color)
    column = max(len(item.name) for item in predicates) + 2
    for item in sorted(predicates, key=lambda each: each.name):
        page.item((item.name, "id"), [(item.question, "")], indent=0, head_width=column)
        page.line(("answers ", "dim"), (", ".join(item.verdicts), "answer"), indent=column)
    page.blank()
    page.line(("stabtree tree predicates NAME", "id"), ("  one of them, with what it reads and what can be set", "dim"))
    return page.text()


def predicate_page(item: Predicate, *, width: int = 100, color: bool = False) -> str:
    """Return one predicate, whole."""
    page = Page(width=width, color=color)
    page.line((item.name, "id"), ("  ", ""), (item.question, "heading"), hanging=len(item.name) + 2)
    page.blank()
    about = " ".join(docstring(item.func).partition("\n")[2].split())
    reads = read_by(item)
    if any(need.kind == "Run" for need in item.needs):
        reads.append("the run's config and lines")
    fields = {
        "about": about,
        "reads": ", ".join(reads),
        "needs": f"{item.min_points} finite values of each" if item.min_points else "",
        "answers": ", ".join(item.verdicts),
        "source": item.source,
    }
    for name, text in fields.items():
        if text:
            page.item((name, "dim"), [(text, "")], indent=1, head_width=10)
    stated = stated_for(item.name)
    rows = []
    for name, (fact, parameter) in settable(item).items():
        pieces = [(f"{fact}.{name}" if fact else name, "id"), (f"  {_described(name, parameter)}", "")]
        if not fact and name in stated:
            pieces.append((f"  (in the shipped trees {stated[name]})", "dim"))
        rows.append(pieces)
    page.listed("params", rows, indent=1, head_width=10)
    return page.text()


def _described(name: str, parameter: Parameter) -> str:
    """Return the type of a parameter and its unit."""
    unit = UNITS.get(name.rpartition("_")[2], "")
    return ", ".join(filter(None, (parameter.kind.__name__, unit)))


def metrics_of(asking: Predicate | Fact) -> dict[str, bool]:
    """Return the metrics that a predicate or a fact reads, its facts included, and whether it can't answer without."""
    found: dict[str, bool] = {}
    for need in sorted(asking.needs, key=lambda need: need.kind == "Fact"):
        held: dict[str, bool] = {}
        if need.kind == "Series":
            held = {need.name: need.required}
        elif need.kind == "Groups":
            held = {f"{need.name}/<group>": need.required}
        elif need.kind == "Fact":
            # A fact that is taken as unknown is no reason not to answer.
            held = {name: firm and "Unknown" not in need.takes for name, firm in metrics_of(FACTS[need.name]).items()}
        for name, firm in held.items():
            found[name] = found.get(name, False) or firm
    return found


def read_by(predicate: Predicate) -> list[str]:
    """Return the metrics that a predicate reads, in words."""
    return [f"{name}{'' if firm else ' (if logged)'}" for name, firm in metrics_of(predicate).items()]


def shown_value(value: object) -> str:
    """Return the value of a parameter as a tree states it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
