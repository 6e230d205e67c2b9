"""Everything else on a page: what the screen leaves out, folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.report.html.first import fixes, headed
from stabtree.report.html.node import turns
from stabtree.report.html.tags import NOTHING, Markup, folded, items, joined, prose, table, tag
from stabtree.report.model.build import turn_of
from stabtree.report.model.events import by_group, followers
from stabtree.report.model.run_facts import steps_around, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.diagnosis.judged import Happening
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.model.report import Report
    from stabtree.run import FileUse, Run

MAX_ROWS = 300  # of a table: some logs have ten thousand columns
BEFORE, AFTER = 6, 6  # rows around the onset
MAX_SERIES = 12
HASHES = "batch_id"  # a series of them shows nothing


def everything_else(report: Report) -> Markup:
    """Return what no first look needs."""
    diagnosis = report.diagnosis
    trees = [[tree.name, tree.title, "walked" if tree.walked else "not walked", tree.why] for tree in diagnosis.trees]
    settings = sorted(diagnosis.run.config.items())
    configuration = [[key, str(setting.value), setting.source] for key, setting in settings]
    parts = [
        _events(report),
        _rows(report),
        _all_fixes(report.finding),
        _list("NaN monitor", report.monitor),
        _walks(diagnosis),
        _table(f"Trees ({len(trees)})", ["tree", "title", "", "why"], trees),
        _table(f"Configuration ({len(settings)})", ["setting", "value", "from"], configuration),
        *map(_file, diagnosis.run.sources),
        _list("Your answers", diagnosis.answer_notes),
        _list("Notes on the log", report.log_notes),
    ]
    return headed("Everything else", *parts, name="more")


def _events(report: Report) -> Markup:
    """Return what happened, in order; nothing where the headline reports all of it."""
    groups = by_group(report.events)
    if len(groups) < 2:
        return NOTHING
    rows = [_event(first, len(others)) for first, *others in groups]
    return folded("What happened, in order", tag("ol", *rows, class_="events"))


def _event(event: Happening, others: int) -> Markup:
    step = tag("span", f"{event.unit} {event.step:,}", class_="step")
    text = prose(event.sentence + followers(others))
    if not event.first:
        return tag("li", step, tag("span", text, " "))
    mark = tag("span", "◀ first", class_="first")
    return tag("li", step, tag("span", text, " ", mark), class_="leads")


def _list(title: str, texts: tuple[str, ...]) -> Markup:
    if texts:
        return folded(title, items("ul", texts))
    return NOTHING


def _table(title: str, heads: list[str], rows: list[list[str]]) -> Markup:
    if rows:
        return folded(title, *_first_rows(heads, rows))
    return NOTHING


def _first_rows(heads: list[str], rows: list[list[str]]) -> Iterator[Markup]:
    """Yield the first rows of a table, and how many are left out."""
    if rows:
        yield table(heads, rows[:MAX_ROWS])
    if rows[MAX_ROWS:]:
        yield tag("p", f"and {len(rows) - MAX_ROWS:,} more", class_="quiet")


def _all_fixes(finding: Incident | None) -> Markup:
    if finding is None or not finding.advice:
        return NOTHING
    return folded(f"All fixes, in the order in which to try them ({len(finding.advice)})", fixes(finding.advice))


def _rows(report: Report) -> Markup:
    """Return the log's own rows around the onset."""
    run, finding = report.diagnosis.run, report.finding
    if finding is None or finding.onset_step is None:
        return NOTHING
    onset = finding.onset_step
    heads, rows = around(run, onset, ["loss", *(event.metric for event in report.events)])
    marked = [[tag("strong", cell) for cell in row] if row[0] == f"{onset:,}" else row for row in rows]
    if rows:
        return folded(f"The log's rows around {run.unit} {onset:,}", table(heads, marked, class_="numbers"))
    return NOTHING


def around(run: Run, step: int, names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of a table: the steps nearest to one, a column a series.

    Args:
        run: the run.
        step: the step in the middle.
        names: series that go first.
    """
    found = {name: run.find(name) for name in dict.fromkeys([*names, *run.series]) if name != HASHES}
    chosen = [series for series in found.values() if series][:MAX_SERIES]
    known = [series.metric for series in chosen]
    near = np.unique(np.concatenate([np.empty(0, np.int64), *(steps_around(s, step, BEFORE, AFTER) for s in chosen)]))
    middle = int(near.searchsorted(step))
    steps = near[max(middle - BEFORE, 0) : middle + AFTER + 1].tolist()
    return [run.unit, *known], [[f"{at:,}", *(value_at(series, at, "") for series in chosen)] for at in steps]


def _walks(diagnosis: Diagnosis) -> Markup:
    """Return the walks past the path, by section."""
    parts: list[str] = []
    for visits in filter(None, diagnosis.further):
        parts.append(tag("h3", diagnosis.tree.section(visits[0].question.section).heading))
        parts.append(turns(diagnosis, map(turn_of, visits)))
    if parts:
        return folded("The walks past the first diagnosis", *parts)
    return NOTHING


def _file(source: FileUse) -> Markup:
    rows = [
        [use.name, use.metric or "not used", _number(use.logged), _number(use.first), _number(use.last), use.why]
        for use in source.columns
    ]
    facts = [f"{source.rows:,} rows, {source.format}"]
    if source.skipped_count:
        facts.append(f"{source.skipped_count:,} lines were skipped")
    facts += [f"line {line.line:,}: {line.reason}" for line in source.skipped]
    columns = _first_rows(["column", "read as", "cells", "first", "last", "note"], rows)
    return folded(joined(["How ", tag("code", source.path), " was read"]), items("ul", facts), *columns)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}"
