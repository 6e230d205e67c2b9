"""How a run was read: which column became which metric, what was skipped, and what can't be checked."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.text import clean
from stabtree.metrics.table import METRICS
from stabtree.render.page import QUIET, Page, styled
from stabtree.run import UNSCALED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.render.plot import Piece
    from stabtree.run import ColumnUse, FileUse, Run, Series

SCHEMA = 1
IGNORED_SHOWN = 10
USED_SHOWN = 60
SKIPPED_SHOWN = 8
LIST_SHOWN = 12
# What most questions need, in the order in which it helps.
WANTED = ("grad_norm", "lr", "loss_scale", "eval_loss", "weight_norm", "batch_id")
KEY_WIDTH = 11


def inspect_text(run: Run, *, width: int = 100, color: bool = False) -> str:
    """The whole report for a terminal."""
    page = Page(width=width, color=color)
    page.line((run.name, "heading"))
    for place, source in enumerate(run.sources):
        _source(page, source, same=place > 0 and _layout(source) == _layout(run.sources[0]))
    _steps(page, run)
    _config(page, run)
    _events(page, run)
    _skipped(page, run)
    _list(page, "Notes", run.notes)
    _list(page, "Not checkable in this run; to change that, log", [text for _, text in missing(run)])
    return page.text()


def _source(page: Page, source: FileUse, *, same: bool) -> None:
    if source.columns and not same:
        page.blank()
    _fact(page, "file", [(source.path, "")])
    skipped = f" · {source.skipped_count:,} lines skipped" if source.skipped_count else ""
    skipped += f" · {source.lost_share:.1%} of its bytes damaged" if source.lost_share else ""
    _fact(page, "format", [(f"{source.format} · {source.rows:,} rows{skipped}", "")])
    if same:
        _fact(page, "columns", [("as in the first file", "dim")])
        return
    used = [use for use in source.columns if use.metric]
    ignored = [use for use in source.columns if not use.metric]
    page.blank()
    _columns(page, used[:USED_SHOWN])
    if len(used) > USED_SHOWN:
        page.line((f"and {len(used) - USED_SHOWN:,} more columns like these", "dim"), indent=1)
    _ignored(page, ignored)


def _columns(page: Page, uses: Sequence[ColumnUse]) -> None:
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=QUIET)
    for title in ("column", "read as"):
        table.add_column(title, overflow="fold")
    misread = ("misread",) if any(use.misread for use in uses) else ()
    for title in ("values", "first", "last", "not finite", *misread):
        table.add_column(title, justify="right", no_wrap=True)
    for use in uses:
        bad: Piece = (f"{use.nonfinite:,}", "mark") if use.nonfinite else ("·", "dim")
        cells: list[Piece] = [
            (use.name, ""),
            ("=", "dim") if use.metric == use.name and not use.why else (_role(use), "id"),
            (f"{use.logged or 0:,}", ""),
            (_short(use, use.first), ""),
            (_short(use, use.last), ""),
            bad,
        ]
        if misread:
            cells.append((f"{use.misread:,}", "mark") if use.misread else ("·", "dim"))
        table.add_row(*(styled([cell]) for cell in cells))
    page.add(Padding(table, (0, 0, 0, 1)))


def _role(use: ColumnUse) -> str:
    same = "=" if use.metric == use.name else str(use.metric)
    return f"{same} ({use.why})" if use.why else same


def _short(use: ColumnUse, value: float | None) -> str:
    if value is None or use.metric == "batch_id":
        return "–"
    return f"{value:,.0f}" if use.metric == "step" else f"{value:.6g}"


def _ignored(page: Page, uses: Sequence[ColumnUse]) -> None:
    """The ignored columns, grouped by reason; reasons that are worth a look first."""
    reasons = Counter(use.why for use in uses)
    for why, count in sorted(reasons.items(), key=lambda item: item[1]):
        names = [use.name for use in uses if use.why == why]
        more = f" and {count - IGNORED_SHOWN:,} more" if count > IGNORED_SHOWN else ""
        pieces: list[Piece] = [(", ".join(names[:IGNORED_SHOWN]) + more, ""), (f"  ({why})", "dim")]
        _fact(page, "ignored", pieces)


def _steps(page: Page, run: Run) -> None:
    page.heading("Steps")
    loss = run.get("loss")
    if loss is not None and len(loss):
        origin = ", ".join(dict.fromkeys(source.steps_from for source in run.sources))
        span = f"{int(loss.steps[0]):,} to {run.last_step or 0:,}"
        _fact(page, "range", [(span, "number"), (f", from {clean(origin, 60)}", "")])
    by_interval: dict[str, list[str]] = {}
    for metric, series in run.series.items():
        name = f"{metric.partition('/')[0]}/*" if "/" in metric else metric
        names = by_interval.setdefault(interval(series), [])
        if name not in names:
            names.append(name)
    for every, names in by_interval.items():
        _fact(page, "logged", [(every, ""), (f": {', '.join(names)}", "dim")])
    if run.ranks:
        _fact(page, "ranks", [(f"{len(run.ranks)}: {', '.join(list(run.ranks)[:LIST_SHOWN])}", "")])


def interval(series: Series) -> str:
    """How often a series was logged, in words."""
    if len(series) < 2:
        return "once"
    intervals = np.diff(series.steps)
    usual = int(median(intervals))
    even = float(np.mean(intervals == usual))
    every = "every step" if usual == 1 else f"every {usual:,} steps"
    return every if even == 1 else f"{every}, mostly" if even >= 0.9 else f"about {every}, unevenly"


def _config(page: Page, run: Run) -> None:
    if not run.config:
        return
    page.heading("Configuration")
    for source in dict.fromkeys(setting.source for setting in run.config.values()):
        settings = [(key, value.value) for key, value in run.config.items() if value.source == source]
        text = " · ".join(f"{key}={_value(value)}" for key, value in settings)
        page.line((text, ""), (f"  from {source}", "dim"), indent=1, hanging=2)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(map(str, value[:LIST_SHOWN]))
        return f"{shown} and {len(value) - LIST_SHOWN} more" if len(value) > LIST_SHOWN else shown
    return f"{value:g}" if isinstance(value, float) else str(value)


def _events(page: Page, run: Run) -> None:
    """Where the log went back, and where a metric stops."""
    resumes = [
        f"The log went back from step {resume.from_step:,} to {resume.to_step:,}:"
        f" {resume.replaced_rows:,} rows were replaced by the later ones."
        for resume in run.resumes
    ]
    _list(page, "Resumes", resumes)
    gaps = [
        f"{gap.metric} is missing in {gap.rows:,} rows, "
        + (
            f"from step {gap.first_step:,} to the end."
            if gap.at_end
            else f"steps {gap.first_step:,} to {gap.last_step:,}."
        )
        for gap in run.gaps
    ]
    _list(page, "Gaps (an empty cell is often a NaN)", gaps)


def _skipped(page: Page, run: Run) -> None:
    texts = []
    for source in run.sources:
        prefix = f"{source.path}, " if len(run.sources) > 1 else ""
        texts += [f"{prefix}line {skip.line:,} {skip.reason}." for skip in source.skipped[:SKIPPED_SHOWN]]
        if source.skipped_count > SKIPPED_SHOWN:
            texts.append(f"{prefix}{source.skipped_count - min(SKIPPED_SHOWN, len(source.skipped)):,} more lines.")
    _list(page, "Skipped lines", texts)


def _list(page: Page, title: str, texts: Sequence[str]) -> None:
    if not texts:
        return
    page.heading(title)
    for text in texts[:LIST_SHOWN]:
        page.item(("·", "dim"), [(text, "")], indent=1, head_width=2)
    if len(texts) > LIST_SHOWN:
        page.line((f"and {len(texts) - LIST_SHOWN:,} more; --json lists all", "dim"), indent=3)


def _fact(page: Page, key: str, pieces: Sequence[Piece]) -> None:
    page.line((f"{key:<{KEY_WIDTH}}", "dim"), *pieces, indent=1, hanging=KEY_WIDTH)


def missing(run: Run) -> list[tuple[str, str]]:
    """The metrics that most questions need and this run lacks, each with how to log it."""
    names = {name.partition("/")[0] for name in run.series}
    idle = {"loss_scale"} if run.setting("dtype") in UNSCALED else set()
    wanted = [name for name in WANTED if name not in names | idle]
    logs = {metric.name: metric.log for metric in METRICS}
    return [(name, logs[name]) for name in wanted]


def inspect_dict(run: Run) -> dict[str, Any]:
    """The report as plain values, a number that is not finite as null."""
    return {
        "schema": SCHEMA,
        "name": run.name,
        "series": [_series(metric, series) for metric, series in run.series.items()],
        "ranks": list(run.ranks),
        "config": {
            key: {
                "value": list(setting.value) if isinstance(setting.value, tuple) else setting.value,
                "source": setting.source,
            }
            for key, setting in run.config.items()
        },
        "gaps": [{field: getattr(gap, field) for field in gap.__dataclass_fields__} for gap in run.gaps],
        "resumes": [{field: getattr(item, field) for field in item.__dataclass_fields__} for item in run.resumes],
        "sources": [_source_dict(source) for source in run.sources],
        "missing": [{"metric": name, "log": text} for name, text in missing(run)],
        "notes": list(run.notes),
    }


def inspect_json(run: Run) -> str:
    """The report as indented JSON with a final newline."""
    return json.dumps(inspect_dict(run), indent=2, allow_nan=False) + "\n"


def _series(metric: str, series: Series) -> dict[str, Any]:
    finite = np.isfinite(series.values)
    return {
        "metric": metric,
        "column": series.origin,
        "points": len(series),
        "first_step": int(series.steps[0]),
        "last_step": int(series.steps[-1]),
        "interval_steps": median(np.diff(series.steps)) if len(series) > 1 else None,
        "nonfinite": int(len(series) - np.count_nonzero(finite)),
    }


def _source_dict(source: FileUse) -> dict[str, Any]:
    return {
        "path": source.path,
        "format": source.format,
        "rows": source.rows,
        "steps_from": source.steps_from,
        "columns": [
            {
                "name": use.name,
                "metric": use.metric,
                "why": use.why,
                "logged": use.logged,
                "first": _finite(use.first),
                "last": _finite(use.last),
                "nonfinite": use.nonfinite,
                "misread": use.misread,
            }
            for use in source.columns
        ],
        "skipped": [{"line": skip.line, "reason": skip.reason} for skip in source.skipped],
        "skipped_count": source.skipped_count,
        "lost_share": source.lost_share,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _layout(source: FileUse) -> tuple[tuple[str, str | None], ...]:
    return tuple((use.name, use.metric) for use in source.columns)
