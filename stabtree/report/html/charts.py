"""The charts of a page: the one figure as data for the script, and as a picture where scripts are off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.report.figure.build import figure
from stabtree.report.figure.svg import COLUMNS, svg
from stabtree.report.html.tags import NOTHING, Markup, tag

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.report.figure.model import Figure, Strip
    from stabtree.report.model.report import Report

MAX_COLUMNS = 8000  # some times the pixels of a wide screen: what is zoomed into has more to show
DIGITS = 6
MARKS = {"onset": "onset", "restart": "restart", "first": "moved first"}


def charts(report: Report) -> Markup:
    """Return the strips with their legend; nothing where there is nothing to draw."""
    still = figure(report.diagnosis, report.finding, COLUMNS)
    if still is None:
        return NOTHING
    span = still.last_step - still.first_step + 1
    fine = figure(report.diagnosis, report.finding, min(span, MAX_COLUMNS))
    assert fine is not None  # noqa: S101 - there is a figure of as many series
    return tag(
        "section",
        tag("h2", "Charts", id="charts"),
        tag("div", _legend(still), id="live"),
        tag("div", Markup(svg(still)), class_="still"),
        _data(fine),
        class_="charts",
        aria_labelledby="charts",
    )


def _legend(drawn: Figure) -> Markup:
    known = [
        tag("li", tag("i", class_=f"key {mark.kind}", aria_hidden="true"), f"{MARKS[mark.kind]} {mark.label}")
        for mark in drawn.marks
    ]
    if any(strip.bad.any() for strip in drawn.strips):
        known.append(tag("li", tag("i", class_="key bad", aria_hidden="true"), "NaN or infinite"))
    if known:
        return tag("ul", *known, class_="legend")
    return NOTHING


def _data(drawn: Figure) -> Markup:
    data = {
        "first": drawn.first_step,
        "last": drawn.last_step,
        "width": (drawn.last_step - drawn.first_step) / drawn.columns,
        "marks": [{"step": mark.step, "kind": mark.kind, "label": mark.label} for mark in drawn.marks],
        "strips": [_strip(strip, drawn) for strip in drawn.strips],
    }
    return tag("script", as_script(data), type="application/json", id="chart-data")


def as_script(value: Any) -> Markup:
    """Return data as JSON that no parser of markup takes for anything else."""
    written = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(
        written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("##", "#\\u0023")
    )


def _strip(strip: Strip, drawn: Figure) -> dict[str, Any]:
    """Return a strip by its filled columns: where each begins, its lowest and highest value, where the line breaks."""
    filled = np.flatnonzero(np.isfinite(strip.lows))
    starts = _first_steps(drawn)
    lows, highs = _short(strip.lows[filled]), _short(strip.highs[filled])
    return {
        "metric": strip.metric,
        "at": starts[filled].tolist(),
        "low": lows,
        "high": [] if lows == highs else highs,
        "cut": np.flatnonzero(~strip.joined[filled]).tolist(),
        "bad": [[int(starts[first]), int(starts[last])] for first, last in _stretches(strip.bad)],
        "axis": _short(np.array([strip.low, strip.high])),
        "log": strip.log,
        "beyond": _short(np.array([end for end in (strip.clipped_low, strip.clipped) if end is not None])),
        "leads": strip.first,
        "moved": strip.moved,
    }


def _first_steps(drawn: Figure) -> Any:
    """Return the first whole step of each column: int64 (columns,)."""
    columns = np.arange(drawn.columns)
    return -(-columns * (drawn.last_step - drawn.first_step) // drawn.columns) + drawn.first_step


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]


def _stretches(bad: Bools) -> list[tuple[int, int]]:
    """Return the first and the last column of each stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True))
