"""A stretch of a run: what was logged in it, on the log's own steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.errors import StabtreeError
from stabtree.loaders.assemble.early_end import early_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.common.lazy import Ints
    from stabtree.run import Gap, Run, Series, Setting


def stretch(run: Run, first: int | None = None, last: int | None = None) -> Run:
    """The run as if its log held the rows of these steps alone; a note says so.

    Checkpoints from before it are kept: a run can go back to them. An error line that ends the log is left out where
    the stretch ends before it; no other line has a step, so those are kept.

    Args:
        run: the run.
        first: its first step; None from the first row on.
        last: its last step, which is in it; None to the last row.

    Raises:
        StabtreeError: where no row lies in it.
    """
    rows = _rows(run.series)
    low = int(rows[0]) if first is None and len(rows) else first or 0
    high = int(rows[-1]) if last is None and len(rows) else last or 0
    kept = int(np.count_nonzero((rows >= low) & (rows <= high)))
    if not kept:
        held = f"the log has steps {int(rows[0]):,} to {int(rows[-1]):,}" if len(rows) else "the log has no rows"
        asked = f"{'' if first is None else first}:{'' if last is None else last}"
        raise StabtreeError(f"no row of {run.name} lies in it", where=f"--steps {asked}", hint=held)
    cut_short = high < int(rows[-1])
    untrue = early_end(run) if cut_short else ()  # the log does go on
    series = _cut(run.series, low, high)
    return replace(
        run,
        series=series,
        config=_config(run.config, high),
        ranks={rank: _cut(own, low, high) for rank, own in run.ranks.items()},
        written=_cut(run.written, low, high),
        gaps=tuple(_gaps(run.gaps, series, rows[(rows >= low) & (rows <= high)])),
        resumes=tuple(item for item in run.resumes if low < item.to_step <= high),
        checkpoints={step: path for step, path in run.checkpoints.items() if step <= high},
        saved={step: line for step, line in run.saved.items() if step <= high},
        epoch_ends={step: epoch for step, epoch in run.epoch_ends.items() if low <= step <= high},
        lines=tuple(line for line in run.lines if not (line.at_end and cut_short)),
        notes=(_note(run, low, high, len(rows) - kept, len(rows)), *(n for n in run.notes if n not in untrue)),
    )


def _config(config: Mapping[str, Setting], high: int) -> dict[str, Setting]:
    """The settings, without checkpoints from after the stretch."""
    listed = config.get("checkpoints")
    if listed is None or not isinstance(listed.value, tuple):
        return dict(config)
    return {**config, "checkpoints": replace(listed, value=tuple(step for step in listed.value if step <= high))}


def _rows(series: Mapping[str, Series]) -> Ints:
    """All steps at which anything was logged."""
    steps = [one.steps for one in series.values() if len(one)]
    return np.unique(np.concatenate(steps)) if steps else np.empty(0, dtype=np.int64)


def _cut(series: Mapping[str, Series], low: int, high: int) -> dict[str, Series]:
    """The series within the steps, without those that hold nothing there."""
    found = {}
    for name, one in series.items():
        start, stop = np.searchsorted(one.steps, [low, high + 1])
        if stop > start:
            found[name] = replace(one, steps=one.steps[start:stop], values=one.values[start:stop])
    return found


def _gaps(gaps: tuple[Gap, ...], series: Mapping[str, Series], rows: Ints) -> Iterator[Gap]:
    """What of the gaps lies in the stretch, after something of their metric."""
    for gap in gaps:
        metric = series.get(gap.metric)
        inside = rows[(rows >= gap.first_step) & (rows <= gap.last_step)]
        if metric is not None and len(inside) and int(metric.steps[0]) < int(inside[0]):
            first, last = int(inside[0]), int(inside[-1])
            at_end = gap.at_end or gap.last_step > int(rows[-1])
            yield replace(gap, first_step=first, last_step=last, rows=min(gap.rows, len(inside)), at_end=at_end)


def _note(run: Run, low: int, high: int, outside: int, rows: int) -> str:
    lines = any(not line.at_end for line in run.lines)
    also = " The error lines of the log have no step and are read as they are." if lines else ""
    return f"Judged: steps {low:,} to {high:,} only (--steps); {outside:,} of {rows:,} rows lie outside.{also}"
