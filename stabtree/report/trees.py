"""What `tree` prints, and `explain` of a metric: outlines, thresholds, measures, what a metric is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import docstring, first_few
from stabtree.measures import MEASURES, measure_named
from stabtree.metrics.names import AXES, Names
from stabtree.metrics.table import by_name
from stabtree.report.page import Page, styled
from stabtree.tree.params import known, settable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.measures.registry import Measure
    from stabtree.report.page import Line
    from stabtree.tree.model import Question, Section, Tree

HEAD = 11  # columns of the name of a field
ALIASES = 12
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


def outline(tree: Tree, *, width: int = 100, color: bool = False) -> str:
    """Return the whole tree, section by section."""
    page = Page(width=width, color=color)
    page.line((tree.name, "id"), ("  ", ""), (tree.title, "heading"))
    page.line((tree.about, "dim"), indent=1)
    checks = [tree.questions[section.entry] for section in tree.sections if section.check]
    for section in tree.sections:
        if not section.check:
            _section(page, tree, section)
    _titled(page, "Checks, each on its own", [(check.id, check.ask) for check in checks])
    _titled(page, "Entries, for a person", [(entry.id, entry.title) for entry in tree.entries.values()])
    page.blank()
    for link in tree.see:
        page.line((f"see {link}", "dim"))
    return page.text()


def _titled(page: Page, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Add ids with their texts under a heading; nothing where there is none."""
    if rows:
        page.heading(title)
    for id_, text in rows:
        page.item((id_, "id"), [(text, "")], indent=1, head_width=max(len(id_) for id_, _ in rows) + 2)


def _section(page: Page, tree: Tree, section: Section) -> None:
    """Add a section: its questions with where each verdict leads, then its groups with the leaves that they hold."""
    page.heading(f"§{section.id} {section.title}")
    for question in tree.questions.values():
        if question.section == section.id:
            page.item((question.id, "id"), [(question.ask, "")], indent=1, head_width=max(6, len(question.id) + 2))
            for verdict, target in question.go.items():
                way: Line = [(target, "id")]
                if target in tree.leaves:
                    way = [(target, "heading"), (f" {tree.leaves[target].severity}", "dim")]
                page.line((f"{verdict} → ", "dim"), *way, indent=8)
    for group in tree.groups.values():
        if group.section == section.id:
            page.item((group.id, "id"), [(group.ask, "")], indent=1, head_width=max(6, len(group.id) + 2))
            leaves = ", ".join(leaf.id for leaf in tree.leaves.values() if leaf.of == group.id)
            page.line((f"holds {leaves}", "dim"), indent=8)


def thresholds(tree: Tree, *, literal: bool = False, width: int = 100, color: bool = False) -> str:
    """Return the quick-reference table of the tree, and the rule of every question that is not in it."""
    from rich.table import Table

    page, title = Page(width=width, color=color), "Rules"
    table = Table(title=None, box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("Node", "Symptom", "Threshold", "First action"):
        table.add_column(name, overflow="fold")
    rules = {}
    for question in tree.questions.values():
        quick, numbers = question.quick, known(tree, question, literal=literal)
        if quick is None:
            rules[question.id] = question.rule.format_map(numbers)
            continue
        # That of the source document where this is asked for and known.
        threshold = quick.threshold
        if literal and quick.letter:
            threshold = quick.letter
        cells = (question.id, quick.symptom, threshold.format_map(numbers), quick.first)
        table.add_row(*(styled([(cell, "")]) for cell in cells))
    if table.row_count:
        page.add(table)
        title = "Rules of the other questions"
    if any(rules.values()):
        page.heading(title)
    for id_, rule in rules.items():
        if rule:
            page.item((id_, "id"), [(tree.questions[id_].ask, "")], indent=1, head_width=max(6, len(id_) + 2))
            page.line((rule, "dim"), indent=8)
    return page.text()


def listing(trees: list[Tree], *, width: int = 100, color: bool = False) -> str:
    """Return trees, a line each: name, what they are for, and how much they hold."""
    page = Page(width=width, color=color)
    column = max(len(tree.name) for tree in trees) + 2
    for tree in trees:
        held = {"questions": tree.questions, "leaves": tree.leaves, "entries": tree.entries}
        counts = ", ".join(f"{len(nodes):,} {kind}" for kind, nodes in held.items())
        page.item((tree.name, "id"), [(tree.title, ""), (f"  {counts}", "dim")], indent=0, head_width=column)
    return page.text()


def measure_list(measures: Sequence[Measure], *, width: int = 100, color: bool = False) -> str:
    """Return all measures in a line or two each: name, question, verdicts."""
    page = Page(width=width, color=color)
    column = max(len(item.name) for item in measures) + 2
    for item in sorted(measures, key=lambda each: each.name):
        page.item((item.name, "id"), [(item.question, "")], indent=0, head_width=column)
        page.line(("answers ", "dim"), (", ".join(item.verdicts), "answer"), indent=column)
    return page.text()


def measure_page(item: Measure, *, width: int = 100, color: bool = False) -> str:
    """Return one measure, whole: what it asks, reads, may answer and lets a tree set."""
    page = Page(width=width, color=color)
    page.line((item.name, "id"), ("  ", ""), (item.question, "heading"), hanging=len(item.name) + 2)
    page.blank()
    field(page, "about", " ".join(docstring(item.func).partition("\n")[2].split()))
    field(page, "reads", ", ".join(read_by(item)))
    if item.min_points:
        field(page, "needs", f"{item.min_points} finite values of each")
    field(page, "answers", ", ".join(item.verdicts))
    field(page, "source", item.source)
    rows = []
    for name, (fact, parameter) in settable(item).items():
        key, described = name, [parameter.kind.__name__]
        if fact:
            key = f"{fact}.{name}"
        if unit := UNITS.get(name.rpartition("_")[2]):
            described.append(unit)
        rows.append([(key, "id"), (f"  {', '.join(described)}", "")])
    page.listed("params", rows, indent=1, head_width=HEAD)
    return page.text()


def metrics_of(asks: Measure) -> dict[str, bool]:
    """Return the metrics that a measure reads, itself or by another, and whether it can't answer without."""
    found: dict[str, bool] = {}
    for need in sorted(asks.needs, key=lambda need: need.kind == "Measure"):
        names: dict[str, bool] = {}
        if need.kind in ("Series", "Groups"):
            names = {need.name + "/<group>" * (need.kind == "Groups"): need.required}
        elif need.kind == "Measure":
            # A value that is taken as unknown is no reason not to answer.
            names = {
                name: firm and "Unknown" not in need.takes for name, firm in metrics_of(MEASURES[need.name]).items()
            }
        for name, firm in names.items():
            found[name] = found.get(name, False) or firm
    return found


def read_by(measure: Measure) -> list[str]:
    """Return what a measure reads, in words: metrics, and where it takes the whole run what else that holds."""
    said = {True: "", False: " (if logged)"}
    reads = [f"{name}{said[firm]}" for name, firm in metrics_of(measure).items()]
    if any(need.kind == "Run" for need in measure.needs):
        reads.append("the run's config, gaps, ranks, lines and rerun")
    return reads


def shown_value(value: object) -> str:
    """Return the value of a parameter or a setting as a file states it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return first_few(value, ALIASES, 2000)
    return f"{value:g}" if isinstance(value, float) else str(value)


def field(page: Page, name: str, *texts: str) -> None:
    """Add texts beside the name of a field; nothing where all are empty."""
    page.listed(name, ([(text, "")] for text in texts if text), indent=1, head_width=HEAD)


def metric_of(name: str) -> str:
    """Return the metric that a column of that name is read as; empty where it is none."""
    role = Names().match(name).role
    return "" if role in AXES else role.partition("/")[0]


def about_metric(tree: Tree, name: str, *, named: str = "", width: int = 100, color: bool = False) -> str:
    """Return what is known of the metric of that name; empty where there is none.

    Args:
        tree: whose questions read it.
        name: the metric.
        named: what was typed, where that is another name of it.
        width: columns.
        color: whether it may be coloured.
    """
    metric = by_name().get(name)
    if metric is None:
        return ""
    page = Page(width=width, color=color)
    if named not in ("", name):
        page.line((f"{named} is read as {name}.", "dim"))
    page.line((metric.name, "id"), ("  ", ""), (metric.meaning, "heading"), hanging=len(metric.name) + 2)
    page.blank()
    names = first_few(metric.aliases, ALIASES)
    if len(metric.aliases) > ALIASES:
        names += f"; --column {metric.name}=NAME adds one"
    field(page, "log", metric.log)
    if metric.grouped:
        field(page, "groups", f"{metric.name}/<group>, a series each")
    field(page, "found as", names)
    field(page, "read by", ", ".join(node.id for node in tree.questions.values() if _reads(node, name)))
    return page.text()


def _reads(node: Question, name: str) -> bool:
    """Whether a question reads a metric: by its measure and the facts behind it, or by name."""
    measure = measure_named(node.test)
    if measure is None:
        return False
    return name == node.params.get("metric") or not {name, f"{name}/<group>"}.isdisjoint(metrics_of(measure))
