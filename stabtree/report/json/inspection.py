"""How a run was read, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.context.find import context_of
from stabtree.context.model import as_dict
from stabtree.report.json.machine import account_list
from stabtree.report.json.values import picked
from stabtree.report.model.run_facts import missing

if TYPE_CHECKING:
    from stabtree.run import FileUse, Run, Series

SCHEMA = 1


def inspect_dict(run: Run) -> dict[str, Any]:
    """Return the report as plain values, a number that is not finite as null."""
    return {
        "schema": SCHEMA,
        "name": run.name,
        "context": as_dict(context_of(run)),
        "series": [_series(metric, series) for metric, series in run.series.items()],
        "loss_candidates": [picked(one, "column", "points", "why") for one in run.loss_ranking.candidates],
        "ranks": list(run.ranks),
        "config": {key: picked(setting, "value", "source") for key, setting in run.config.items()},
        "gaps": [picked(gap, *gap.__dataclass_fields__) for gap in run.gaps],
        "resumes": [picked(resume, *resume.__dataclass_fields__) for resume in run.resumes],
        "sources": [_source_dict(source) for source in run.sources],
        "missing": [{"metric": name, "log": text} for name, text in missing(run)],
        "account": account_list(run),
        "notes": list(run.notes),
    }


def _series(metric: str, series: Series) -> dict[str, Any]:
    return {
        "metric": metric,
        "column": series.origin,
        "points": len(series),
        "first_step": int(series.steps[0]),
        "last_step": int(series.steps[-1]),
        "interval_steps": median(np.diff(series.steps)) if len(series) > 1 else None,
        "nonfinite": int(np.count_nonzero(~np.isfinite(series.values))),
    }


def _source_dict(source: FileUse) -> dict[str, Any]:
    columns = ("name", "metric", "role", "why", "logged", "first", "last", "nonfinite", "misread")
    return {
        **picked(source, "path", "format", "rows", "steps_from", "restarts"),
        "columns": [picked(use, *columns) for use in source.columns],
        "skipped": [picked(skip, "line", "reason") for skip in source.skipped],
        **picked(source, "skipped_count", "lost_share"),
    }
