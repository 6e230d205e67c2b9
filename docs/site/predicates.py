"""A page for each predicate: what it asks, what it reads, what can be set, who asks it, and how often it is right."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

from docs.site import rates
from docs.site.markup import PREDICATE_PAGES, code, text, to_metric
from docs.site.prose import console, listed, page, part, prose, shown, table
from docs.site.reading import KINDS, asking, counted_in, known_besides, told
from stabtree.common.text import docstring
from stabtree.facts import FACTS
from stabtree.predicates import PREDICATES
from stabtree.report.trees import metrics_of
from stabtree.tree.load import file_of, stated_for
from stabtree.tree.params import facts_behind, settable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docs.site.reading import Asked
    from stabtree.predicates import Predicate

ABOUT = (
    "A predicate is a question that data can answer: one Python function, which a node of a tree asks by name with "
    "numbers of its own. It answers with evidence, or `unknown` where the log can't tell. `stabtree tree predicates` "
    "lists them, and [Write a predicate](../how-to/write-a-predicate.md) shows how to add one."
)
ROOM = "stabtree.predicates"


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    askers: dict[str, list[Asked]] = defaultdict(list)
    for asked in asking():
        askers[asked.node.test].append(asked)
    made = {item.name: _page(item, askers[item.name]) for item in PREDICATES.values()}
    index = page("The predicates", ABOUT, rates.head(), *_by_subject(), rates.about(), listed_elsewhere=False)
    return {f"{PREDICATE_PAGES}/{file_of(name)}.md": content for name, content in {**made, "index": index}.items()}


def _by_subject() -> list[str]:
    """The predicates by the module that they stand in, each in a line."""
    rooms: dict[str, list[Predicate]] = defaultdict(list)
    for item in PREDICATES.values():
        rooms[item.func.__module__].append(item)
    return [part(_heading(room), _about(room), _rows(items)) for room, items in sorted(rooms.items())]


def _heading(room: str) -> str:
    return text(room.removeprefix(f"{ROOM}.").replace("_", " ").capitalize())


def _about(room: str) -> str:
    return prose((sys.modules[room].__doc__ or "").strip().partition("\n\n")[0])


def _rows(items: Iterable[Predicate]) -> str:
    return table(
        ("predicate", "what it asks", "false alarms", "right findings"),
        [
            (f"[{code(item.name)}]({file_of(item.name)}.md)", prose(item.question), *rates.in_short(item.name))
            for item in items
        ],
    )


def _page(item: Predicate, askers: list[Asked]) -> str:
    about = docstring(item.func).partition("\n")[2].strip()
    return page(
        f"{code(item.name)}: {text(item.question)}",
        "[The predicates](index.md)",
        *(prose(paragraph) for paragraph in re.split(r"\n\s*\n", about)),
        part("What it may answer", *_verdicts(item)),
        part("How often it is right", rates.of_predicate(item.name)),
        part("What it reads", *_reads(item)),
        part("What can be set", _settable(item), *_facts(item)),
        part("Who asks it", listed(map(told, askers)) or "No shipped tree asks it; it is there for trees of your own."),
        part("On the command line", console(f"stabtree tree predicates {item.name}")),
        f"Source: {prose(item.source)}. Written in {code(_file(item))}.",
    )


def _verdicts(item: Predicate) -> list[str]:
    answers = " · ".join(map(code, item.verdicts))
    waits = any(need.kind == "Fact" for need in item.needs)
    absent = f"Where what it looks at was not found in the run, it answers {code(item.absent)}." if waits else ""
    return [answers, absent]


def _reads(item: Predicate) -> list[str]:
    rows = [
        (to_metric(name), "needed" if needed else "where logged")
        for name, needed in sorted(metrics_of(item).items(), key=lambda one: not one[1])
    ]
    more = known_besides(item, beside=bool(rows))
    few = f"{item.min_points} finite values of each that is needed." if item.min_points else ""
    if "metric" in item.params:
        more = f"The metric that the node names. {more}".strip()
    return [table(("metric", ""), rows), " ".join(filter(None, (more, f"At least {few}" if few else "")))]


def _settable(item: Predicate) -> str:
    stated = stated_for(item.name)
    rows = [
        (
            code(f"{fact}.{name}" if fact else name),
            KINDS[parameter.kind],
            unit if (unit := counted_in(name, parameter)) != KINDS[parameter.kind] else "",
            shown(parameter.default) if parameter.default is not None else "",
            shown(stated[name]) if not fact and name in stated else "",
        )
        for name, (fact, parameter) in settable(item).items()
    ]
    return table(("parameter", "type", "counted in", "default", "in the first node that asks it"), rows)


def _facts(item: Predicate) -> list[str]:
    """What is found in the run once, for this predicate and others."""
    behind = [
        f"{code(name)}: {prose(docstring(FACTS[name].func).partition(chr(10))[0])}" for name in facts_behind(item)
    ]
    return ["It asks for what is found in a run once, for all who want it:", listed(behind)] if behind else []


def _file(item: Predicate) -> str:
    return f"{item.func.__module__.replace('.', '/')}.py"
