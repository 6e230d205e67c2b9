"""Everything else on a page: what the screen leaves out, folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.html.first import headed, steps
from stabtree.render.html.node import turns
from stabtree.render.html.rows import around
from stabtree.render.html.tags import NOTHING, Markup, folded, items, joined, prose, table, tag
from stabtree.render.report.build import turn_of
from stabtree.render.sections.monitor import sentences

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.report.model import Report
    from stabtree.run import FileUse

MOST_ROWS = 300  # of a table: some logs have ten thousand columns


def everything_else(report: Report) -> Markup:
    """What no first look needs."""
    diagnosis = report.diagnosis
    parts = [
        _rows(report),
        _fixes(report),
        _monitor(diagnosis),
        _walks(diagnosis),
        _trees(diagnosis),
        _settings(diagnosis),
        *(_file(source) for source in diagnosis.run.sources),
        _list("Your answers", diagnosis.said),
        _list("Notes on the log", diagnosis.run.notes),
    ]
    return headed("Everything else", *parts, name="more")


def _list(title: str, texts: tuple[str, ...]) -> Markup:
    return folded(title, items("ul", texts)) if texts else NOTHING


def _rows(report: Report) -> Markup:
    onset = report.finding.onset_step if report.finding else None
    if onset is None:
        return NOTHING
    heads, rows = around(report.diagnosis.run, onset, ["loss", *(event.metric for event in report.events)])
    marked = [[tag("strong", cell) if row[0] == f"{onset:,}" else cell for cell in row] for row in rows]
    title = f"The log's rows around {report.diagnosis.run.unit} {onset:,}"
    return folded(title, table(heads, marked, class_="numbers")) if rows else NOTHING


def _fixes(report: Report) -> Markup:
    advice = report.finding.advice if report.finding else ()
    told = steps((prose(fix.text), fix.reason) for fix in advice)
    return folded(f"All fixes, in the order in which to try them ({len(advice)})", told) if told else NOTHING


def _monitor(diagnosis: Diagnosis) -> Markup:
    return (
        _list("NaN monitor", tuple(sentences(diagnosis.monitor, diagnosis.run.unit))) if diagnosis.monitor else NOTHING
    )


def _walks(diagnosis: Diagnosis) -> Markup:
    """The walks past the path, by section."""
    told: list[str] = []
    for visits in filter(None, diagnosis.further):
        told.append(tag("h3", diagnosis.tree.section(visits[0].question.section).heading))
        told.append(turns(diagnosis, map(turn_of, visits)))
    return folded("The walks past the first diagnosis", *told) if told else NOTHING


def _trees(diagnosis: Diagnosis) -> Markup:
    rows = [[tree.name, tree.title, "walked" if tree.walked else "not walked", tree.why] for tree in diagnosis.trees]
    return folded(f"Trees ({len(rows)})", table(["tree", "title", "", "why"], rows)) if rows else NOTHING


def _settings(diagnosis: Diagnosis) -> Markup:
    rows = [[key, str(setting.value), setting.source] for key, setting in sorted(diagnosis.run.config.items())]
    heads = ["setting", "value", "from"]
    return folded(f"Configuration ({len(rows)})", *_most(heads, rows)) if rows else NOTHING


def _most(heads: list[str], rows: list[list[str]]) -> tuple[Markup, Markup]:
    """The first rows of a table, and how many are left out."""
    rest = len(rows) - MOST_ROWS
    return table(heads, rows[:MOST_ROWS]), tag("p", f"and {rest:,} more", class_="quiet") if rest > 0 else NOTHING


def _file(source: FileUse) -> Markup:
    rows = [
        [use.name, use.metric or "not used", _number(use.logged), _number(use.first), _number(use.last), use.why]
        for use in source.columns
    ]
    facts = [f"{source.rows:,} rows, {source.format}"]
    facts += [f"{source.skipped_count:,} lines were skipped"] if source.skipped_count else []
    facts += [f"line {line.line:,}: {line.reason}" for line in source.skipped]
    heads = ["column", "read as", "cells", "first", "last", "note"]
    told = _most(heads, rows) if rows else ()
    return folded(joined(["How ", tag("code", source.path), " was read"]), items("ul", facts), *told)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
