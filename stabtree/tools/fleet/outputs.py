"""Many runs for machines and reports: CSV, a DataFrame, JSON, a line each, Markdown."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean, inert, to_ascii
from stabtree.judging.verdict import ORDER, UNREAD, Outcome
from stabtree.report.contract import SCHEMA
from stabtree.report.json import inert as inert_json
from stabtree.report.json import written
from stabtree.report.markdown import code, escape, folded, paged, table
from stabtree.report.outputs import CSV, DEFAULT_OPTIONS, JSONL, RenderOptions
from stabtree.report.page import BADGES
from stabtree.tools.fleet.record import record_of
from stabtree.tools.fleet.table import CAUSES, RUN, Summary, next_command, word
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tools.fleet.record import Record

COLUMNS = (
    *("path", "run", "verdict", "leaf", "section", "title", "onset_step", "restart_step"),
    *("rows", "last_step", "more", "seconds", "problem", "badge", "label"),
)
"""The columns; new ones are only added behind them. The exit code is that of `verdict`; the screen counts `badge`."""
MAX_CELL, MAX_LINE = 4000, 400
MAX_RUNS = 100  # a forge takes some 65,000 characters of a comment
_BEGINS_A_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # some take the last four, wide forms, for the first


def row(record: Record, varied: Iterable[str] = ()) -> dict[str, str | float | None]:
    """Return a run by columns, those of the settings that vary last."""
    values = {name: getattr(record, name, "") for name in COLUMNS} | {"seconds": round(record.seconds, 4)}
    values |= {key: record.settings.get(key) for key in varied}
    if record.verdict == UNREAD:
        values |= {"title": "", "rows": None, "more": None, "problem": record.title}
    return values


def csv_lines(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a line a run below a header; no cell is a formula, none holds a line break."""
    rows, stream = list(records), io.StringIO()
    varied = Summary(rows).varied
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow((*COLUMNS, *varied))
    for record in rows:
        writer.writerow([_cell(value) for value in row(record, varied).values()])
    yield stream.getvalue()


def _cell(value: str | float | None) -> str | float | None:
    """Return text that spreadsheets show as text: what would begin a formula gets an apostrophe before it."""
    if not isinstance(value, str):
        return value
    text = inert(clean(value, MAX_CELL))
    return f"'{text}" if value.startswith(_BEGINS_A_FORMULA) or text.startswith(_BEGINS_A_FORMULA) else text


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return a row a run, with the columns of the CSV; verdicts and badges are ordered, the worst is the greatest."""
    import pandas as pd

    runs = list(records)
    varied = Summary(runs).varied
    whole = ("onset_step", "restart_step", "rows", "last_step", "more")
    order = pd.CategoricalDtype([*map(str, reversed(ORDER))], ordered=True)
    rows = [row(run, varied) for run in runs]
    table = pd.DataFrame(rows, columns=[*COLUMNS, *varied], dtype=object)  # a float would round a large step
    return table.astype({**dict.fromkeys(whole, "Int64"), "verdict": order, "badge": order}).convert_dtypes()


def jsonl(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a line a run: the object of `diagnose --json` with its path as `source`, or why it can't be read."""
    for record in records:
        yield f"{inert_json(record.data)}\n"


def to_json(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield `{"schema": 1, "runs": [...], "verdict": worst, ...}`, each run as in `jsonl`, and what a sweep varies."""
    summary = Summary(records)
    worst = min((run.verdict for run in summary.records), key=ORDER.index, default=str(Severity.OK))
    yield written(
        {
            "schema": SCHEMA,
            "runs": [json.loads(run.data) for run in summary.records],
            "verdict": UNKNOWN if worst == UNREAD else worst,
            "varied": [{"key": key, "split": summary.splits.get(key, "")} for key in summary.varied],
        }
    )


def headlines(records: Iterable[Record], look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a line a run: verdict, path, what was found and from which step on."""
    for record in records:
        title = record.title
        if record.badge != Severity.OK and record.onset:
            title = f"{record.unit.capitalize()} {record.onset}: {title}"
        leaf = f" [{record.leaf}]" if record.leaf else ""
        line = clean(f"{BADGES[record.badge].word}  {record.name}: {title}{leaf}", MAX_LINE)
        yield inert(f"{to_ascii(line) if look.ascii else line}\n")


def markdown(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a report for a pull request: of few runs a line each, of many the causes, and the worst runs folded."""
    summary = Summary(records)
    few = not summary.grouped
    shown = summary.records if few else summary.calling[:MAX_RUNS]
    parts = [f"### {summary.headline}", escape(summary.where), *map(escape, summary.splits.values())]
    if not few:
        parts.append(table(CAUSES, [[word(badge), *map(escape, cells)] for badge, *cells in summary.causes()]))
    if shown:
        cells = [[word(badge), *map(escape, cells)] for badge, *cells in map(summary.run, shown)]
        runs = table((*RUN[:2], *summary.varied, *RUN[2:]), cells)
        if not few:
            runs = folded(f"The worst {len(shown):,} of {len(summary.calling):,} runs that are not ok", runs)
        parts += [runs, "The worst in full:", code(next_command(shown[0], "--output markdown"))]
    yield paged(*parts)


def one(diagnosis: Diagnosis, _look: RenderOptions = DEFAULT_OPTIONS, *, name: str) -> str:
    """Return a run that is diagnosed alone as one of many: its line of JSON, its row below a header."""
    path = next((source.path for source in diagnosis.run.sources), diagnosis.run.name)
    return "".join({JSONL: jsonl, CSV: csv_lines}[name]([record_of(Outcome(path, diagnosis), path)]))


one_jsonl, one_csv = partial(one, name=JSONL), partial(one, name=CSV)
