"""How a run was read: which column became which metric, what was skipped, and what can't be checked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.text import clean, first_few
from stabtree.context.find import context_of
from stabtree.judging.account import AccountEntry, Fate, account, broken_values
from stabtree.loaders.assemble.run import replaced_rows
from stabtree.report.model.identity import identity, unknown_parts
from stabtree.report.model.run_facts import missing
from stabtree.report.page import QUIET, Page, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.context.model import FullContext
    from stabtree.report.text import Piece
    from stabtree.run import ColumnUse, FileUse, Gap, Run, Series

IGNORED_SHOWN = 10
USED_SHOWN = 60
SKIPPED_SHOWN = 8
LIST_SHOWN = 12
KEY_WIDTH = 11
FATE_WIDTH = 13
GAPS = "Gaps (an empty cell is often a NaN)"
LOSSES = "What could be the training loss (--column loss=NAME takes another one)"
MISSING = "Not checkable in this run; to change that, log"


def inspect_text(run: Run, *, width: int = 100, color: bool = False) -> str:
    """Return the whole report for a terminal."""
    page = Page(width=width, color=color)
    page.line((run.name, "heading"))
    for source in run.sources:
        same = source is not run.sources[0] and _layout(source) == _layout(run.sources[0])
        _source(page, source, same=same)
    _identity(page, context_of(run))
    _list(page, LOSSES, run.loss_ranking.in_words)
    _steps(page, run)
    _config(page, run)
    resumes = [
        f"The log went back from step {resume.from_step:,} to {resume.to_step:,}:"
        f" the later rows replace {replaced_rows(resume)}."
        for resume in run.resumes
    ]
    _list(page, "Resumes", resumes)
    _list(page, GAPS, [*map(_gap, run.gaps)])
    _list(page, "Skipped lines", [*_skipped(run)])
    _account(page, run)
    _list(page, "Notes", run.notes)
    _list(page, MISSING, [text for _, text in missing(run)])
    return page.text()


def _identity(page: Page, context: FullContext) -> None:
    page.heading("Run")
    for name, value, how in identity(context):
        _fact(page, name, [(value, ""), (f"  ({how})", "dim")])
    unknown = unknown_parts(context)
    if unknown:
        _fact(page, "not known", [(", ".join(unknown), "dim")])


def _source(page: Page, source: FileUse, *, same: bool) -> None:
    if source.columns and not same:
        page.blank()
    _fact(page, "file", [(source.path, "")])
    _fact(page, "format", [(" · ".join(_format_of(source)), "")])
    if same:
        _fact(page, "columns", [("as in the first file", "dim")])
        return
    used = [use for use in source.columns if use.metric]
    page.blank()
    _columns(page, used[:USED_SHOWN])
    if used[USED_SHOWN:]:
        page.line((f"and {len(used) - USED_SHOWN:,} more columns like these", "dim"), indent=1)
    _ignored(page, [use for use in source.columns if not use.metric])


def _format_of(source: FileUse) -> Iterator[str]:
    """Yield the format of a file, its rows, and what of it could not be read."""
    yield source.format
    yield f"{source.rows:,} rows"
    if source.skipped_count:
        yield f"{source.skipped_count:,} lines skipped"
    if source.lost_share:
        yield f"{source.lost_share:.1%} of its bytes damaged"


def _columns(page: Page, uses: Sequence[ColumnUse]) -> None:
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=QUIET)
    for title in ("column", "read as", "role"):
        table.add_column(title, overflow="fold")
    numbers = ["values", "first", "last", "not finite"]
    misread = any(use.misread for use in uses)
    if misread:
        numbers.append("misread")
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    for use in uses:
        counts = [use.nonfinite]
        if misread:
            counts.append(use.misread)
        cells = [
            (use.name, ""),
            _metric(use),
            (use.role, "dim"),
            (f"{use.logged or 0:,}", ""),
            (_short(use, use.first), ""),
            (_short(use, use.last), ""),
            *map(_bad, counts),
        ]
        table.add_row(*(styled([cell]) for cell in cells))
    page.add(Padding(table, (0, 0, 0, 1)))


def _bad(count: int) -> Piece:
    if count:
        return f"{count:,}", "mark"
    return "·", "dim"


def _metric(use: ColumnUse) -> Piece:
    name = str(use.metric)
    if use.metric == use.name:
        name = "="
    if use.why:
        return f"{name} ({use.why})", "id"
    if name == "=":
        return name, "dim"
    return name, "id"


def _short(use: ColumnUse, value: float | None) -> str:
    if value is None or use.metric == "batch_id":
        return "–"
    if use.metric == "step":
        return f"{value:,.0f}"
    return f"{value:.6g}"


def _ignored(page: Page, uses: Sequence[ColumnUse]) -> None:
    """Add the ignored columns, grouped by role and reason; those that are worth a look first."""
    groups = Counter((use.role, use.why) for use in uses)
    for (role, why), count in sorted(groups.items(), key=lambda item: item[1]):
        names = ", ".join([use.name for use in uses if (use.role, use.why) == (role, why)][:IGNORED_SHOWN])
        if count > IGNORED_SHOWN:
            names += f" and {count - IGNORED_SHOWN:,} more"
        _fact(page, "ignored", [(names, ""), (f"  ({role}: {why})", "dim")])


def _steps(page: Page, run: Run) -> None:
    page.heading("Steps")
    loss = run.get("loss")
    if loss is not None and len(loss):
        span = f"{int(loss.steps[0]):,} to {run.last_step or 0:,}"
        _fact(page, "range", [(span, "number"), (f", from {_origin(run)}", "")])
    by_interval: dict[str, dict[str, None]] = {}
    for metric, series in run.series.items():
        by_interval.setdefault(interval(series), {})[_group(metric)] = None
    for every, names in by_interval.items():
        _fact(page, "logged", [(every, ""), (f": {', '.join(names)}", "dim")])
    if run.ranks:
        _fact(page, "ranks", [(f"{len(run.ranks)}: {', '.join(list(run.ranks)[:LIST_SHOWN])}", "")])


def _origin(run: Run) -> str:
    """Return what the steps were read from, and in parentheses what it means where they go back."""
    origin = clean(", ".join(dict.fromkeys(source.steps_from for source in run.sources)), 60)
    meanings = "; ".join(dict.fromkeys(clean(source.restarts, 200) for source in run.sources if source.restarts))
    if meanings:
        return f"{origin} ({meanings})"
    return origin


def _group(metric: str) -> str:
    """Return the group of a series, as `weight_norm/*`; its own name if it is in none."""
    group, slash, _ = metric.partition("/")
    if slash:
        return f"{group}/*"
    return metric


def interval(series: Series) -> str:
    """Return how often a series was logged, in words."""
    if len(series) < 2:
        return "once"
    intervals = np.diff(series.steps)
    usual = int(median(intervals))
    even = float(np.mean(intervals == usual))
    every = f"every {usual:,} steps"
    if usual == 1:
        every = "every step"
    if even == 1:
        return every
    if even >= 0.9:
        return f"{every}, mostly"
    return f"about {every}, unevenly"


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
        if len(value) > LIST_SHOWN:
            return f"{shown} and {len(value) - LIST_SHOWN} more"
        return shown
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _gap(gap: Gap) -> str:
    where = f"steps {gap.first_step:,} to {gap.last_step:,}."
    if gap.at_end:
        where = f"from step {gap.first_step:,} to the end."
    return f"{gap.metric} is missing in {gap.rows:,} rows, {where}"


def _skipped(run: Run) -> Iterator[str]:
    for source in run.sources:
        prefix = ""
        if len(run.sources) > 1:
            prefix = f"{source.path}, "
        shown = source.skipped[:SKIPPED_SHOWN]
        for skip in shown:
            yield f"{prefix}line {skip.line:,} {skip.reason}."
        if source.skipped_count > SKIPPED_SHOWN:
            yield f"{prefix}{source.skipped_count - len(shown):,} more lines."


def _account(page: Page, run: Run) -> None:
    """Add what became of all that the files hold."""
    page.heading("Account")
    entries = account(run)
    for fate in Fate:
        head = str(fate)
        for part in _of_fate(fate, [entry for entry in entries if entry.fate is fate], run.unit):
            page.line((f"{head:<{FATE_WIDTH}}", "dim"), (part, ""), indent=1, hanging=FATE_WIDTH)
            head = ""


def _of_fate(fate: Fate, entries: Sequence[AccountEntry], unit: str) -> Iterator[str]:
    """Yield the series that share a fate, then the lines, then what is unexplained."""
    series = list(dict.fromkeys(entry.name for entry in entries if entry.kind == "series"))
    if series:
        yield f"{len(series):,} series: {first_few(series, IGNORED_SHOWN)}"
    lines = [entry for entry in entries if entry.kind == "lines"]
    yield from _lines(lines)
    if fate is Fate.UNEXPLAINED:
        yield from broken_values(entries, unit)


def _lines(entries: Sequence[AccountEntry]) -> Iterator[str]:
    for entry in entries[:SKIPPED_SHOWN]:
        where = "further lines"
        if entry.first:
            where = f"line {entry.first:,}"
            if entry.count > 1:
                where += f" and {entry.count - 1:,} like it"
        yield f"{where}: {entry.name}"
    if entries[SKIPPED_SHOWN:]:
        yield f"and {len(entries) - SKIPPED_SHOWN:,} more kinds of lines"


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


def _layout(source: FileUse) -> tuple[tuple[str, str | None], ...]:
    return tuple((use.name, use.metric) for use in source.columns)
