"""What one looks up by name: the metrics, the measures, and how often each question was right on labelled runs."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.site.markup import MEASURE, METRIC, code, page, part, prose, shipped, table, text, to
from faultbench.rates import Rate
from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.text import docstring
from stabtree.common.yaml12 import parse
from stabtree.measures import MEASURES, all_questions
from stabtree.metrics.table import all_metrics, by_name
from stabtree.metrics.table import table as metric_table
from stabtree.report.trees import metrics_of, shown_value
from stabtree.tree.model import Question
from stabtree.tree.params import facts_behind, resolved, settable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.measures.registry import Measure
    from stabtree.metrics.metric import Metric

FIGURES = Path(__file__).resolve().parents[1] / "figures"
LEAST = 5  # runs, below which a share says nothing
LABEL = "measured-rates"
NAMING = ("metric", "beside", "unless")  # parameters that name a metric
METRICS = (
    "A metric is a series that stabtree knows by name. A log is read under whatever names its trainer uses. Log the "
    "first six, and most questions have an answer.\n\nCase, blanks, and `/ . - : |` between words make no difference: "
    "`Train/Loss` and `train_loss` are one name. Of several columns the one whose name comes first here is read. "
    "`--column METRIC=NAME` names another one, and `stabtree inspect` shows what was read as what."
)
MEASURE_ABOUT = (
    "A measure is a question that data can answer: one Python function, which a node of a tree asks by name with "
    "numbers of its own. It answers with evidence, or `unknown` where the log can't tell. `stabtree tree measures "
    "NAME` shows all that can be set of one, and [Write a measure](../how-to/write-a-measure.md) how to add one."
)
RATES = (
    "Every question that a walk came to was counted on runs of which it is known whether they failed, and how. A false "
    "alarm is a warning or worse to which the walk went from it on a healthy run before it began another section. A "
    "failed run is of its kind where one of the findings that the question can lead to is what the label allows the "
    "run to be called, and the finding is right where it is one of these. A log with several runs counts once. "
    f"Intervals are Wilson's, at 95%; of fewer than {LEAST} runs no share is given. Causes are not counted: the labels "
    "say too little of them. The rules were made on most of these runs, so expect somewhat more errors on yours."
)


def pages() -> dict[str, str]:
    """Return the content of each page by its path."""
    return {"reference/metrics.md": _metrics(), "reference/measures.md": _measures()}


@cache
def figures() -> dict[str, Any]:
    """Return how often questions and measures were right on labelled runs, as recorded."""
    counts: dict[str, Any] = json.loads((FIGURES / "measures.json").read_text(encoding="utf-8"))
    return counts


def measured(kind: str, name: str) -> str:
    """Return how often a question or a measure was right; an empty string if too few runs were asked."""
    counts = figures()[kind].get(name)
    if not counts:
        return ""
    healthy, failed = counts["healthy"], counts["failed"]
    rates = []
    if healthy["asked"] >= LEAST:
        rates.append(f"a false alarm on {_share(healthy['alarms'], healthy['asked'])} healthy runs")
    if failed["asked"] >= LEAST:
        others = f", and others found {failed['elsewhere']}" if failed["elsewhere"] else ""
        rates.append(f"the right finding on {_share(failed['right'], failed['asked'])} failed runs of its kind{others}")
    return f"On [labelled runs](#{LABEL}) it led to {', and to '.join(rates)}." if rates else ""


def _share(count: int, total: int) -> str:
    low, high = Rate(count, total).interval()
    return f"{count} of {total} ({low:.0%} to {high:.0%})"


def reads(node: Question) -> dict[str, bool]:
    """Return the metrics that a node reads, by its test or by name, and whether it can't answer without."""
    if node.test not in MEASURES:
        return {}
    metrics = {name.removesuffix("/<group>"): needed for name, needed in metrics_of(MEASURES[node.test]).items()}
    values = resolved(shipped(), node)
    for key in NAMING:
        name = str(values.get(key) or "")
        if name.partition("/")[0] in by_name():
            metrics[name] = key == "metric"
    return metrics


def _metrics() -> str:
    lines = parse((FIGURES / "log_lines.yaml").read_text(encoding="utf-8"), "log_lines.yaml").value
    readers: dict[str, list[tuple[Question, bool]]] = defaultdict(list)
    for node in shipped().questions.values():
        for name, needed in reads(node).items():
            readers[name.partition("/")[0]].append((node, needed))
    axes = table(("which row it is", "names"), ((axis, _names(names)) for axis, names in metric_table().axes.items()))
    metrics = (
        _metric(item, readers[item.name], lines["metrics"].get(item.name, {}), lines["trainers"])
        for item in all_metrics()
    )
    return page("Metrics", METRICS, axes, *metrics)


def _metric(
    metric: Metric, readers: list[tuple[Question, bool]], lines: dict[str, str], trainers: dict[str, str]
) -> str:
    name, _, rest = metric.log.partition(": ")
    groups = f" Each group is a series of its own: {code(f'{metric.name}/NAME')}." if metric.grouped else ""
    needing = [node for node, needed in readers if needed and isinstance(node, Question)]
    ends = (end for node in needing for end in node.go.values() if end != node.go.get(UNKNOWN, node.go.get(NO)))
    leaves = {end: shipped().leaves[end] for end in ends if end in shipped().leaves and shipped().leaves[end].page}
    return part(
        f"{code(metric.name)}: {text(metric.meaning)}",
        f"Log {f'{code(name)}: {prose(rest)}' if rest else prose(metric.log)}.{groups}",
        table(("in", "by"), ((trainers[where], prose(how)) for where, how in lines.items())),
        f"Names: {_names(metric.names)}.",
        f"Findings that need it: {', '.join(map(to, leaves))}." if leaves else "",
        f"Read by {_ids(node for node, _ in readers)}." if readers else "",
        at=f"{METRIC}-{metric.name}",
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))


def _ids(nodes: Iterable[Question]) -> str:
    return ", ".join(dict.fromkeys(to(node.id) for node in nodes))


def _measures() -> str:
    askers: dict[str, list[Question]] = defaultdict(list)
    for node in shipped().questions.values():
        askers[node.test].append(node)
    rooms: dict[str, list[Measure]] = defaultdict(list)
    for item in all_questions().values():
        rooms[item.func.__module__].append(item)
    subjects = []
    for room, items in sorted(rooms.items()):
        about = (sys.modules[room].__doc__ or "").strip().partition("\n\n")[0]
        blocks = (_measure(item, askers[item.name]) for item in items)
        subjects.append(part(text(room.rpartition(".")[2].replace("_", " ").capitalize()), prose(about), *blocks))
    samples = (
        (name, str(item["healthy"]), str(item["failed"]), item["what"]) for name, item in figures()["samples"].items()
    )
    how = f"Measured with stabtree {figures()['version']}."
    rates = part(
        "How often they are right", RATES, table(("runs", "healthy", "failed", "what they are"), samples), how, at=LABEL
    )
    return page("Measures", MEASURE_ABOUT, *subjects, rates)


def _measure(item: Measure, askers: list[Question]) -> str:
    params = [
        f"{code(f'{fact}.{name}' if fact else name)}"
        + ("" if value.default is None else f" = {code(shown_value(value.default))}")
        for name, (fact, value) in settable(item).items()
    ]
    metrics = [to(name, kind=METRIC) + ("" if needed else " (if logged)") for name, needed in metrics_of(item).items()]
    facts = ", ".join(map(code, facts_behind(item)))
    return part(
        f"{code(item.name)}: {text(item.question)}",
        prose(docstring(item.func).partition("\n")[2]),
        f"Answers {_names(item.verdicts)}. " + (f"Reads {', '.join(metrics)}." if metrics else ""),
        f"Rests on the facts {facts}." if facts else "",
        f"To set: {', '.join(params)}." if params else "",
        measured("measures", item.name),
        f"Asked by {_ids(askers)}." if askers else "No shipped tree asks it; it is there for trees of your own.",
        f"Source: {prose(item.source)}.",
        level=3,
        at=f"{MEASURE}-{item.name}",
    )
