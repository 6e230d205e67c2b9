"""How a run was read: its columns, what was skipped, what can't be checked; and the settings of a project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.text import clean, first_few
from stabtree.context.find import context_of
from stabtree.context.model import as_dict
from stabtree.diagnosis.account import AccountEntry, Fate, account, broken_values
from stabtree.judging.settings import FILE, KEYS, SHARED
from stabtree.report.contract import SCHEMA
from stabtree.report.json import fingerprint, picked, plain
from stabtree.report.page import QUIET, Page, styled
from stabtree.report.trees import shown_value
from stabtree.report.words import identity, missing, unknown_parts
from stabtree.tree.model import Severity
from stabtree.tree.params import fact_params, known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.judging.settings import Settings
    from stabtree.judging.verdict import KnownFindings
    from stabtree.loaders.paths.load import Contents
    from stabtree.report.page import Piece
    from stabtree.run import ColumnUse, FileUse, Run, Series
    from stabtree.tree.model import Tree

IGNORED_SHOWN = 10
USED_SHOWN = 60
SKIPPED_SHOWN = 8
LIST_SHOWN = 12
KEY_WIDTH = 11
EVEN = 0.9  # the share of equal intervals from which on they are even
FATE_WIDTH = 13
LOSSES = "What could be the training loss (--column loss=NAME takes another one)"
MISSING = "Not checkable in this run; to change that, log"
UNSET: dict[str, Any] = {"fail_on": [str(Severity.WARNING)], "accept_partial": False}  # others have none
COLUMN = ("name", "metric", "role", "why", "logged", "first", "last", "nonfinite", "misread")


def inspect_text(run: Run, *, width: int = 100, color: bool = False) -> str:
    """Return the whole report for a terminal."""
    page = Page(width=width, color=color)
    page.line((run.name, "heading"))
    layouts = [[(use.name, use.metric) for use in source.columns] for source in run.sources]
    for place, source in enumerate(run.sources):
        _source(page, source, same=place > 0 and layouts[place] == layouts[0])
    context = context_of(run)
    page.heading("Run")
    for name, value, how in identity(context):
        _fact(page, name, [(value, ""), (f"  ({how})", "dim")])
    if unknown := unknown_parts(context):
        _fact(page, "not known", [(", ".join(unknown), "dim")])
    _list(page, LOSSES, run.loss_ranking.in_words)
    _steps(page, run)
    page.heading("Account")
    for fate in Fate:
        head = str(fate)
        for part in _of_fate(fate, [entry for entry in account(run) if entry.fate is fate], run.unit):
            page.line((f"{head:<{FATE_WIDTH}}", "dim"), (part, ""), indent=1, hanging=FATE_WIDTH)
            head = ""
    _list(page, "Notes", run.notes)
    _list(page, MISSING, [text for _, text in missing(run)])
    return page.text()


def files_text(found: Contents, *, width: int = 100, color: bool = False) -> str:
    """Return the names of the runs below some paths where there are several, and what can't be read, for a terminal."""
    page, files = Page(width=width, color=color), files_dict(found)
    runs = [clean(item.name) for item in found.loaded if not isinstance(item.run, StabtreeError)]
    if len(runs) > 1:
        _list(page, f"{len(runs)} runs; name one to see how it is read", runs)
    for title, kind in (("Not read", "unread"), ("Hold no metrics", "ignored")):
        _list(page, title, [f"{item['path']}: {item['reason']}" for item in files[kind]])
    return page.text() if any(files.values()) or len(runs) > 1 else ""


def files_dict(found: Contents) -> dict[str, list[dict[str, str]]]:
    """Return the files below some paths that can't be read and that hold no metrics, each with why."""
    errors = [(item, item.run) for item in found.loaded if isinstance(item.run, StabtreeError)]
    return {
        "unread": [{"path": clean(item.path), "reason": error.problem, "hint": error.hint} for item, error in errors],
        "ignored": [{"path": clean(item.path), "reason": item.reason} for item in found.ignored],
    }


def inspect_dict(run: Run) -> dict[str, Any]:
    """Return how a run was read as plain values, a number that is not finite as null."""
    return {
        "schema": SCHEMA,
        "name": run.name,
        "context": as_dict(context_of(run)),
        "series": [
            {
                "metric": metric,
                "column": series.origin,
                "points": len(series),
                "first_step": int(series.steps[0]),
                "last_step": int(series.steps[-1]),
                "interval_steps": median(np.diff(series.steps)) if len(series) > 1 else None,
                "nonfinite": int(np.count_nonzero(~np.isfinite(series.values))),
            }
            for metric, series in run.series.items()
        ],
        "loss_candidates": _plain(run.loss_ranking.candidates),
        "ranks": list(run.ranks),
        "config": {key: picked(setting, "value", "source") for key, setting in run.config.items()},
        "gaps": _plain(run.gaps),
        "resumes": _plain(run.resumes),
        "sources": [
            {
                **picked(source, "path", "format", "rows", "steps_from", "restarts"),
                "columns": [picked(use, *COLUMN) for use in source.columns],
                "skipped": _plain(source.skipped),
                **picked(source, "skipped_count", "lost_share"),
            }
            for source in run.sources
        ],
        "missing": [{"metric": name, "log": text} for name, text in missing(run)],
        "account": _plain(account(run)),
        "notes": list(run.notes),
    }


def _plain(items: Sequence[object]) -> Any:
    """Return structs as plain values."""
    return msgspec.to_builtins(items, enc_hook=plain)


def _source(page: Page, source: FileUse, *, same: bool) -> None:
    if source.columns and not same:
        page.blank()
    parts = [source.format, f"{source.rows:,} rows"]
    if source.skipped_count:
        parts.append(f"{source.skipped_count:,} lines skipped")
    if source.lost_share:
        parts.append(f"{source.lost_share:.1%} of its bytes damaged")
    _fact(page, "file", [(source.path, "")])
    _fact(page, "format", [(" · ".join(parts), "")])
    if same:
        _fact(page, "columns", [("as in the first file", "dim")])
        return
    used, ignored = [use for use in source.columns if use.metric], dict[tuple[str, str], list[str]]()
    page.blank()
    _columns(page, used[:USED_SHOWN])
    if used[USED_SHOWN:]:
        page.line((f"and {len(used) - USED_SHOWN:,} more columns like these", "dim"), indent=1)
    for use in source.columns:
        if not use.metric:
            ignored.setdefault((use.role, use.why), []).append(use.name)
    for (role, why), names in sorted(ignored.items(), key=lambda item: len(item[1])):  # worth a look: few of a kind
        _fact(page, "ignored", [(first_few(names, IGNORED_SHOWN, 2000), ""), (f"  ({role}: {why})", "dim")])


def _columns(page: Page, uses: Sequence[ColumnUse]) -> None:
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=QUIET)
    for title in ("column", "read as", "role"):
        table.add_column(title, overflow="fold")
    counts = ["not finite", "misread"]
    if not any(use.misread for use in uses):
        counts.pop()
    for title in ("values", "first", "last", *counts):
        table.add_column(title, justify="right", no_wrap=True)
    for use in uses:
        metric = (str(use.metric), "id")
        if use.metric == use.name:
            metric = ("=", "dim")
        if use.why:
            metric = (f"{metric[0]} ({use.why})", "id")
        cells: list[Piece] = [(use.name, ""), metric, (use.role, "dim"), (f"{use.logged or 0:,}", "")]
        cells += [(_end(use, value), "") for value in (use.first, use.last)]
        for count in (use.nonfinite, use.misread)[: len(counts)]:
            cells.append((f"{count:,}", "mark") if count else ("·", "dim"))
        table.add_row(*(styled([cell]) for cell in cells))
    page.add(Padding(table, (0, 0, 0, 1)))


def _end(use: ColumnUse, value: float | None) -> str:
    """Return the first or last value of a column; none of hashes."""
    if value is None or use.metric == "batch_id":
        return "–"
    return f"{value:,.0f}" if use.metric == "step" else f"{value:.6g}"


def _steps(page: Page, run: Run) -> None:
    page.heading("Steps")
    if run.first_step is not None:
        # What the steps were read from, and in parentheses what it means where they go back.
        origin = clean(", ".join(dict.fromkeys(source.steps_from for source in run.sources)), 60)
        meanings = "; ".join(dict.fromkeys(clean(source.restarts, 200) for source in run.sources if source.restarts))
        pieces = [(f"{run.first_step:,} to {run.last_step or 0:,}", "number"), (f", from {origin}", "")]
        if meanings:
            pieces.append((f" ({meanings})", ""))
        _fact(page, "range", pieces)
    by_interval: dict[str, dict[str, None]] = {}
    for metric, series in run.series.items():
        group, slash, _ = metric.partition("/")
        by_interval.setdefault(interval(series), {})[f"{group}/*" if slash else metric] = None
    for every, names in by_interval.items():
        _fact(page, "logged", [(every, ""), (f": {', '.join(names)}", "dim")])
    if run.ranks:
        _fact(page, "ranks", [(f"{len(run.ranks)}: {', '.join(list(run.ranks)[:LIST_SHOWN])}", "")])
    places: dict[str, list[str]] = {}
    for key, setting in run.config.items():
        places.setdefault(setting.source, []).append(f"{key}={shown_value(setting.value)}")
    if places:
        page.heading("Configuration")
    for place, texts in places.items():
        page.line((" · ".join(texts), ""), (f"  from {place}", "dim"), indent=1, hanging=2)


def interval(series: Series) -> str:
    """Return how often a series was logged, in words."""
    if len(series) < 2:
        return "once"
    intervals = np.diff(series.steps)
    usual = int(median(intervals))
    every = "every step" if usual == 1 else f"every {usual:,} steps"
    return every if float(np.mean(intervals == usual)) >= EVEN else f"about {every}, unevenly"


def _of_fate(fate: Fate, entries: Sequence[AccountEntry], unit: str) -> Iterator[str]:
    """Yield the series that share a fate, then the lines, then what is unexplained."""
    series = list(dict.fromkeys(entry.name for entry in entries if entry.kind == "series"))
    if series:
        yield f"{len(series):,} series: {first_few(series, IGNORED_SHOWN)}"
    lines = [entry for entry in entries if entry.kind == "lines"]
    for entry in lines[:SKIPPED_SHOWN]:
        where, more = "further lines", entry.count - 1
        if entry.first:
            where = f"line {entry.first:,}" + f" and {more:,} like it" * (more > 0)
        yield f"{where}: {entry.name}"
    if lines[SKIPPED_SHOWN:]:
        yield f"and {len(lines) - SKIPPED_SHOWN:,} more kinds of lines"
    if fate is Fate.UNEXPLAINED:
        yield from broken_values(entries, unit)


def _list(page: Page, title: str, texts: Sequence[str]) -> None:
    if texts:
        page.heading(title)
    for text in texts[:LIST_SHOWN]:
        page.item(("·", "dim"), [(text, "")], indent=1, head_width=2)
    if len(texts) > LIST_SHOWN:
        page.line((f"and {len(texts) - LIST_SHOWN:,} more; --json lists all", "dim"), indent=3)


def _fact(page: Page, key: str, pieces: Sequence[Piece]) -> None:
    page.line((f"{key:<{KEY_WIDTH}}", "dim"), *pieces, indent=1, hanging=KEY_WIDTH)


def effective_settings(
    settings: Settings, trees: Sequence[tuple[str, Tree]], baseline: KnownFindings | None
) -> dict[str, Any]:
    """Return the effective settings as plain values.

    Args:
        settings: the settings.
        trees: the trees, each with the file that it is from, empty for one that is shipped.
        baseline: the findings that the settings accept.
    """
    keys, given = {}, msgspec.to_builtins(settings, enc_hook=str)
    for key in KEYS:
        value = given[key]
        keys[key] = {"value": value or UNSET.get(key), "from": settings.source if value else "default"}
    del keys["set"]
    return {
        "schema": 1,
        "file": settings.source or None,
        "keys": keys,
        "set": {
            key: {"value": value, "shipped": _shipped(trees, key), "from": settings.source}
            for key, value in settings.set.items()
        },
        "accepted": baseline.count if baseline else 0,
        "trees": [
            {"name": tree.name, "file": file or None, "version": tree.version, "sha256": fingerprint(tree)}
            for file, tree in trees
        ],
    }


def _shipped(trees: Sequence[tuple[str, Tree]], key: str) -> object:
    """Return what a parameter of a question or a fact is where nobody sets it."""
    id_, _, name = key.rpartition(".")
    given = [known(tree, tree.questions[id_]) for _, tree in trees if id_ in tree.questions]
    return next(iter([*given, fact_params(trees[0][1]).get(id_, {})])).get(name)


def config_text(effective: Mapping[str, Any], *, width: int = 100, color: bool = False) -> str:
    """Return the effective settings, a line a key with where it is from, then the trees with their hashes."""
    page = Page(width=width, color=color)
    title = f"No settings: neither {FILE} nor [tool.stabtree] of {SHARED} is in the working directory"
    if effective["file"]:
        title = f"Settings of {effective['file']}"
    page.line((title, "heading"))
    rows = [(key, item["from"], _value(item["value"])) for key, item in effective["keys"].items()]
    for key, item in effective["set"].items():
        rows.append((f"set.{key}", item["from"], f"{_value(item['value'])} (shipped: {_value(item['shipped'])})"))
    trees = [(it["name"], it["sha256"][:12], it["file"] or f"shipped, {it['version']}") for it in effective["trees"]]
    for heading, table in (("Keys", rows), ("Trees, and the hash of what each says", trees)):
        page.heading(heading)
        widths = tuple(max(len(page.plain(row[column])) for row in table) + 2 for column in (0, 1))
        page.rows([list(zip(row, ("id", "dim", ""), strict=True)) for row in table], indent=2, widths=widths)
    return page.text()


def _value(value: Any) -> str:
    """Return a value as JSON, without the quotes around a text or a list of one."""
    if isinstance(value, list | tuple) and len(value) == 1:
        return _value(value[0])
    return "-" if value is None else clean(json.dumps(value, ensure_ascii=False)).strip('"')
