"""The charts of a page: the one figure as data for the script, and as a picture where scripts are off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stabtree.common.lazy import np
from stabtree.common.stats import stretches
from stabtree.report.figure.build import figure
from stabtree.report.figure.svg import COLUMNS, svg
from stabtree.report.html.tags import NOTHING, Markup, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.report.figure.model import Figure, Strip
    from stabtree.report.model.report import Report

MAX_COLUMNS = 8000  # some times the pixels of a wide screen: what is zoomed into has more to show
DIGITS = 6
MARKS = {"onset": "onset", "restart": "restart", "first": "moved first", "parting": "they part at"}


def charts(report: Report) -> Markup:
    """Return the strips with their legend; nothing where there is nothing to draw."""
    return section(lambda columns: figure(report.diagnosis, report.finding, columns), "Charts", ())


def section(drawn: Callable[[int], Figure | None], title: str, keys: Sequence[Markup]) -> Markup:
    """Return a section with a figure, as the script draws it and as it stands without; nothing where there is none.

    Args:
        drawn: returns the figure at so many columns.
        title: its heading.
        keys: entries of the legend, before those of what is marked.
    """
    still = drawn(COLUMNS)
    if still is None:
        return NOTHING
    span = still.last_step - still.first_step + 1
    fine = drawn(min(span, MAX_COLUMNS))
    assert fine is not None  # noqa: S101 - there is a figure of as many series
    return tag(
        "section",
        tag("h2", title, id="charts"),
        tag("div", _legend(still, keys), id="live"),
        tag("div", _listed(keys), Markup(svg(still)), class_="still"),
        _data(fine),
        class_="charts",
        aria_labelledby="charts",
    )


def key(kind: str, words: str) -> Markup:
    """Return an entry of a legend: how something is drawn, and what it is."""
    return tag("li", tag("i", class_=f"key {kind}", aria_hidden="true"), words)


def _legend(drawn: Figure, keys: Sequence[Markup]) -> Markup:
    known = [*keys, *(key(mark.kind, f"{MARKS[mark.kind]} {mark.label}") for mark in drawn.marks)]
    if any(strip.bad.any() for strip in drawn.strips):
        known.append(key("bad", "NaN or infinite"))
    return _listed(known)


def _listed(keys: Sequence[Markup]) -> Markup:
    if keys:
        return tag("ul", *keys, class_="legend")
    return NOTHING


def _data(drawn: Figure) -> Markup:
    data = {
        "first": drawn.first_step,
        "last": drawn.last_step,
        "unit": drawn.unit,
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
    """Return a strip by its course and what is drawn with it."""
    starts = _first_steps(drawn)
    data = {
        "metric": strip.metric,
        **_course(strip, starts),
        "bad": [[int(starts[begin]), int(starts[end - 1])] for begin, end in stretches(strip.bad)],
        "axis": _short(np.array([strip.low, strip.high])),
        "log": strip.log,
        "beyond": _short(np.array([end for end in (strip.clipped_low, strip.clipped) if end is not None])),
        "leads": strip.first,
        "moved": strip.moved,
    }
    if strip.behind is not None:
        data["behind"] = _course(strip.behind, starts)
    return data


def _course(strip: Strip, starts: Ints) -> dict[str, Any]:
    """Return the filled columns: where each begins, its lowest and highest value, where the line breaks."""
    filled = np.flatnonzero(np.isfinite(strip.lows))
    lows, highs = _short(strip.lows[filled]), _short(strip.highs[filled])
    return {
        "at": starts[filled].tolist(),
        "low": lows,
        "high": [] if lows == highs else highs,
        "cut": np.flatnonzero(~strip.joined[filled]).tolist(),
    }


def _first_steps(drawn: Figure) -> Ints:
    """Return the first whole step of each column: int64 (columns,)."""
    columns = np.arange(drawn.columns)
    found: Ints = -(-columns * (drawn.last_step - drawn.first_step) // drawn.columns) + drawn.first_step
    return found


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
