"""A stretch of a run: what was logged in it, on the log's own steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.common.lazy import Ints
    from stabtree.run import Gap, LogLine, Run, Series, Setting

T = TypeVar("T")


def stretch(run: Run, first: int | None = None, last: int | None = None) -> Run:
    """Return the run as if its log held the rows of these steps alone; a note says so.

    Checkpoints from before it are kept: a run can go back to them. An error line that ends the log is left out where
    the stretch ends before it; no other line has a step, so those are kept.

    Args:
        run: the run.
        first: its first step; None from the first row on.
        last: its last step, included; None to the last row.

    Raises:
        StabtreeError: where it holds no row.
    """
    rows = _rows(run.series)
    low = _bound(rows[:1], first)
    high = _bound(rows[-1:], last)
    inside = rows[(rows >= low) & (rows <= high)]
    if not len(inside):
        raise _empty(run, rows, first, last)
    cut_short = high < int(rows[-1])
    series = _cut(run.series, low, high)
    return replace(
        run,
        series=series,
        config=_config(run.config, high),
        ranks={rank: _cut(own, low, high) for rank, own in run.ranks.items()},
        written=_cut(run.written, low, high),
        gaps=tuple(_gaps(run.gaps, series, inside)),
        resumes=tuple(item for item in run.resumes if low < item.to_step <= high),
        checkpoints=_up_to(high, run.checkpoints),
        saved=_up_to(high, run.saved),
        epoch_ends=_between(low, high, run.epoch_ends),
        lines=_lines(run, cut_short=cut_short),
        goes_on=cut_short,
        notes=(_note(run, low, high, rows, inside), *run.notes),
    )


def _bound(end: Ints, asked: int | None) -> int:
    """Return the step that was asked for, else the one at an end of the log."""
    if asked is None and len(end):
        return int(end[0])
    return asked or 0


def _empty(run: Run, rows: Ints, first: int | None, last: int | None) -> StabtreeError:
    held = "the log has no rows"
    if len(rows):
        held = f"the log has steps {int(rows[0]):,} to {int(rows[-1]):,}"
    asked = ":".join("" if step is None else str(step) for step in (first, last))
    return StabtreeError(f"no row of {run.name} lies in it", where=f"--steps {asked}", hint=held)


def _up_to(high: int, by_step: Mapping[int, T]) -> dict[int, T]:
    return {step: value for step, value in by_step.items() if step <= high}


def _between(low: int, high: int, by_step: Mapping[int, T]) -> dict[int, T]:
    return {step: value for step, value in by_step.items() if low <= step <= high}


def _lines(run: Run, *, cut_short: bool) -> tuple[LogLine, ...]:
    """Return the error lines, without those that end the log where the stretch ends before it."""
    if cut_short:
        return tuple(line for line in run.lines if not line.at_end)
    return tuple(run.lines)


def _config(config: Mapping[str, Setting], high: int) -> dict[str, Setting]:
    """Return the settings, without checkpoints from after the stretch."""
    listed = config.get("checkpoints")
    if listed is None or not isinstance(listed.value, tuple):
        return dict(config)
    return {**config, "checkpoints": replace(listed, value=tuple(step for step in listed.value if step <= high))}


def _rows(series: Mapping[str, Series]) -> Ints:
    """Return all steps at which anything was logged."""
    steps = [one.steps for one in series.values() if len(one)]
    if steps:
        return np.unique(np.concatenate(steps))
    return np.empty(0, dtype=np.int64)


def _cut(series: Mapping[str, Series], low: int, high: int) -> dict[str, Series]:
    """Return the series within the steps, without those that hold nothing there."""
    found = {}
    for name, one in series.items():
        start, stop = np.searchsorted(one.steps, [low, high + 1])
        if stop > start:
            found[name] = replace(one, steps=one.steps[start:stop], values=one.values[start:stop])
    return found


def _gaps(gaps: tuple[Gap, ...], series: Mapping[str, Series], rows: Ints) -> Iterator[Gap]:
    """Yield the parts of the gaps within the stretch, if their metric was logged in it before."""
    for gap in gaps:
        metric = series.get(gap.metric)
        inside = rows[(rows >= gap.first_step) & (rows <= gap.last_step)]
        if metric is not None and len(inside) and int(metric.steps[0]) < int(inside[0]):
            first, last = int(inside[0]), int(inside[-1])
            at_end = gap.at_end or gap.last_step > int(rows[-1])
            yield replace(gap, first_step=first, last_step=last, rows=min(gap.rows, len(inside)), at_end=at_end)


def _note(run: Run, low: int, high: int, rows: Ints, inside: Ints) -> str:
    text = f"Judged: steps {low:,} to {high:,} only (--steps)"
    text += f"; {len(rows) - len(inside):,} of {len(rows):,} rows lie outside."
    if any(not line.at_end for line in run.lines):
        text += " The error lines of the log have no step and are read as they are."
    return text
